"""What common programs print becomes rows a person would have made of it; nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from openry.capability import ToolDefinition, invoke
from openry.capability.parsers import ParseError, parse, parse_noting
from openry.models import CommandResult

DF = """\
Filesystem               Size  Used Avail Use% Mounted on
devtmpfs                  12G     0   12G   0% /dev
/dev/mapper/vg0-root     252G   31G   71G  31% /
"""
PS = """\
  PID TTY          TIME CMD
    1 ?        00:01:40 init
 1042 pts/0    00:00:00 sh
"""
PS_AUX = """\
USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root           1  0.6  0.1  58796 24968 ?        Ssl  10:17   1:40 /sbin/init --log level
systemd+     812  0.0  0.2  91064  7364 ?        Ss   10:17   0:00 (sd-pam)
"""
DOCKER = """\
CONTAINER ID   IMAGE    COMMAND         CREATED             STATUS         PORTS      NAMES
4c01db0b339c   ubuntu   "bash"          2 hours ago         Up 2 hours                web
d7886598dbe2   redis    "entrypoint…"   About an hour ago   Up 5 minutes   6379/tcp   db 1
"""
KUBECTL = """\
NAME                     READY   STATUS             RESTARTS      AGE
web-5d8f9c7b6d-abcde     1/1     Running            0             3d
job-x                    0/1     CrashLoopBackOff   12 (5m ago)   47h
"""
FREE = """\
               total        used        free
Mem:           24105         800       19178
Swap:              0           0           0
"""
LSBLK = """\
NAME  MAJ:MIN RM  SIZE RO TYPE MOUNTPOINTS
zram0 253:0    0    0B  0 disk
vda   254:0    0  256G  0 disk /
"""
SS = """\
State  Recv-Q Send-Q Local Address:Port  Peer Address:PortProcess
LISTEN 0      128          0.0.0.0:2024       0.0.0.0:*
LISTEN 0      5          127.0.0.1:41781      0.0.0.0:*    users:(("my server",pid=4443,fd=13))
"""
SS_ESTABLISHED = """\
Netid State  Recv-Q Send-Q Local Address:Port  Peer Address:Port Process
tcp   ESTAB  0      0          127.0.0.1:40380    127.0.0.1:37325 users:(("python3",pid=1,fd=4))
tcp   ESTAB  0      0          127.0.0.1:37325    127.0.0.1:40380
"""
SS_UNIX = """\
Netid State  Recv-Q Send-Q                 Local Address:Port    Peer Address:PortProcess
u_str LISTEN 0      64     /tmp/openry-run-eylhdqt7/hand 1743085            * 0
"""
PSQL = """\
 id |  name   | note
----+---------+------
  1 | Ann Lee | a|b
  2 | Bo      |
(2 rows)
"""
MYSQL = """\
+----+---------+
| id | name    |
+----+---------+
|  1 | Ann Lee |
|  2 |         |
+----+---------+
2 rows in set (0.00 sec)
"""
MARKDOWN = "| id | name |\n|---:|:-----|\n| 1 | Ann |\n"
BOXES = "┌────┬─────┐\n│ id │ 名字 │\n├────┼─────┤\n│ 1  │ 安   │\n└────┴─────┘\n"
NETSTAT = """\
Active Internet connections (only servers)
Proto Recv-Q Send-Q LocalAddress            State
tcp        0      0 127.0.0.1:8080          LISTEN
tcp6       0      0 :::22                   LISTEN
"""
WIDE = "名字    大小\n苹果    12\n梨      3\n"


@pytest.mark.parametrize(
    ("text", "names", "row"),
    [
        (DF, "Filesystem Size Used Avail Use% Mounted_on",
         "/dev/mapper/vg0-root 252G 31G 71G 31% /"),
        (PS, "PID TTY TIME CMD", "1042 pts/0 00:00:00 sh"),
        (PS_AUX, "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND",
         "systemd+ 812 0.0 0.2 91064 7364 ? Ss 10:17 0:00 (sd-pam)"),
        (DOCKER, "CONTAINER_ID IMAGE COMMAND CREATED STATUS PORTS NAMES",
         'd7886598dbe2 redis "entrypoint…" About_an_hour_ago Up_5_minutes 6379/tcp db_1'),
        (KUBECTL, "NAME READY STATUS RESTARTS AGE", "job-x 0/1 CrashLoopBackOff 12_(5m_ago) 47h"),
        (LSBLK, "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINTS", "vda 254:0 0 256G 0 disk /"),
        (NETSTAT, "Proto Recv-Q Send-Q LocalAddress State", "tcp6 0 0 :::22 LISTEN"),
        (SS, "State Recv-Q Send-Q Local_Address:Port Peer_Address:Port Process",
         'LISTEN 0 5 127.0.0.1:41781 0.0.0.0:* users:(("my_server",pid=4443,fd=13))'),
        (WIDE, "名字 大小", "梨 3"),
        (MARKDOWN, "id name", "1 Ann"),
        (BOXES, "id 名字", "1 安"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", ["table", "auto"])
def test_tables_of_programs_are_read(text: str, names: str, row: str, how: str):
    """Headings of two words, values to the right of their heading, empty cells, wide letters."""
    rows = parse(text, how)

    assert list(rows[-1]) == [name.replace("_", " ") for name in names.split()]
    assert list(rows[-1].values()) == [cell.replace("_", " ") for cell in row.split()]
    assert len({tuple(each) for each in rows}) == 1


def test_cells_that_are_empty_stay_in_their_column():
    """A container without ports, a row without a mount point, a label without a heading."""
    assert parse(DOCKER, "table")[0]["PORTS"] == ""
    assert parse(DOCKER, "table")[0]["STATUS"] == "Up 2 hours"
    assert parse(LSBLK, "table")[0]["MOUNTPOINTS"] == ""
    assert parse(FREE, "auto")[1] == {"": "Swap:", "total": "0", "used": "0", "free": "0"}
    assert [row["Process"] for row in parse(SS_ESTABLISHED, "auto")] == [
        'users:(("python3",pid=1,fd=4))',
        "",
    ]
    assert parse(SS_UNIX, "auto")[0]["Local Address:Port"] == (
        "/tmp/openry-run-eylhdqt7/hand 1743085"
    )
    assert parse(PSQL.replace("a|b", ""), "auto")[0] == {"id": "1", "name": "Ann Lee", "note": ""}
    assert parse(MYSQL, "table") == [{"id": "1", "name": "Ann Lee"}, {"id": "2", "name": ""}]


def test_rows_without_headings_are_lists():
    """Sizes, file listings and counts have none; the first row is no heading."""
    assert parse("4\t./f.txt\n8\t./a b\n", "table") == [["4", "./f.txt"], ["8", "./a b"]]
    assert parse("4.0K    ./f.txt\n12M     ./a  b\n", "table") == [
        ["4.0K", "./f.txt"],
        ["12M", "./a  b"],
    ]
    listing = (
        "total 8\ndrwxr-xr-x 2 ann ann 4096 Nov 30 14:00 d\n"
        "-rw-r--r-- 1 ann ann 12 Nov 30 14:00 a b\n"
    )
    assert [row[-1] for row in parse(listing, "table")] == ["d", "a b"]
    assert len(parse(listing, "table")[0]) == 9
    assert parse("  3 a.py\n 19 b.py\n 22 total\n", "table")[2] == ["22", "total"]


@pytest.mark.parametrize(
    "text", [PSQL, "a | b\n1 | 2 | 3\n", "one\ntwo\n", "alone", "", "NAME  AGE\n"]
)
def test_what_is_no_even_table_is_said(text: str):
    """Better no data than wrong data: the output itself is there."""
    with pytest.raises(ParseError):
        parse(text, "table")


@pytest.mark.parametrize(
    "text",
    [
        "This is prose.  It has\nno table in it, only  gaps.\n",
        " M a.txt\n?? b c.txt\n",
        "## main...origin/main\n M a.txt\n",
        "Error: one\nError: two\n",
        "drwxr-xr-x 2 ann ann 4096 Nov 30 14:00 d\n-rw-r--r-- 1 ann ann 12 Nov 30 14:00 a\n",
        "lrwx 1\n[INFO] starting\n[WARN] slow\n",
        "    3 a.py\n   19 b.py\n",
    ],
)
def test_auto_leaves_lines_that_are_no_table(text: str):
    """Every line as it is, the blanks before it too."""
    assert parse(text, "auto") == text.removesuffix("\n").split("\n")
    assert parse(" M a.txt\n", "auto") == " M a.txt"


CELLS = st.text(st.sampled_from("abcxyz019-./:%"), min_size=1, max_size=9)
HEADS = st.lists(
    st.text(st.sampled_from("ABCDEFG"), min_size=1, max_size=7), min_size=2, max_size=6, unique=True
)


@given(HEADS, st.data())
def test_padded_columns_are_read_back(names: list[str], data):
    """Any columns, to the left or to the right, two blanks between them."""
    rows = data.draw(
        st.lists(st.lists(CELLS, min_size=len(names), max_size=len(names)), min_size=1, max_size=6)
    )
    assume(any(set("".join(row)) - set("-:") for row in rows))
    right = data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    widths = [max(len(row[n]) for row in [names, *rows]) for n in range(len(names))]
    text = "".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip() + "\n"
        for row in [names, *rows]
    )  # fmt: skip
    kept = [row for row in rows if set("".join(row)) - set("-:")]

    assert parse(text, "table") == [dict(zip(names, row, strict=True)) for row in kept]


@given(st.text(st.sampled_from("ab |\t\n-+:1大"), max_size=80))
def test_no_text_makes_the_table_parser_fail(text: str):
    """Rows, or the reason why not."""
    try:
        rows = parse(text, "table")
    except ParseError:
        return
    assert rows
    assert len({len(row) for row in rows}) == 1


# --- JSON, pairs, YAML --------------------------------------------------------------------


def test_a_broken_line_of_jsonl_is_left_out_and_said():
    """The others are data; which one is missing stands in the notes, with the whole output."""
    text = '{"a": 1}\n{"a": \n\n{"a": 3}\n'
    note = "line 2 is no JSON and left out; see raw_output"

    assert parse_noting(text, "jsonl") == ([{"a": 1}, {"a": 3}], (note,))
    assert parse_noting(text, "auto") == ([{"a": 1}, {"a": 3}], (note,))
    tool = ToolDefinition.model_validate({"name": "t", "command_template": ["t"]})
    result = invoke(tool, {}, lambda _: CommandResult(0, text, "", 0.0), Path("/"))
    assert (result.data, result.notes, result.raw_output) == ([{"a": 1}, {"a": 3}], (note,), text)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('[INFO] ready\n[1]\n{"rows": [1, 2, 3]}\n', {"rows": [1, 2, 3]}),
        ('Result: {"ok": true}\n', {"ok": True}),
        (
            '> build\n> tsc -p .\n\n[\n  {"a": 1},\n  {"a": 2}\n]\nDone in 1 s.\n',
            [{"a": 1}, {"a": 2}],
        ),
        ('{"v": NaN, "w": -Infinity}', {"v": "NaN", "w": "-Infinity"}),
    ],
)
def test_json_is_found_where_it_stands(text: str, data):
    """Behind a banner or a word, before a farewell; the largest one; as standard JSON."""
    assert parse(text, "json") == data


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[\n" * 3000, "{" * 5000 + "}"])
def test_nesting_without_end_is_no_json(text: str):
    """And no crash."""
    with pytest.raises(ParseError):
        parse(text, "json")
    parse(text, "auto")


def test_pairs_keep_every_line():
    """Quotes round a value go, a key that stands twice makes lines of it."""
    assert parse('NAME="Debian GNU"\nID=debian\n', "auto") == {"NAME": "Debian GNU", "ID": "debian"}
    assert parse("CPU(s):     2\nModel name: x: y\n", "auto") == {
        "CPU(s)": "2",
        "Model name": "x: y",
    }
    assert parse("a: 1\na: 2\n", "auto") == ["a: 1", "a: 2"]


def test_yaml_is_plain_data():
    """Dates are texts, several documents a list, and aliases do not multiply a small text."""
    assert parse("d: 2026-01-31\n1: [x]\n", "yaml") == {"d": "2026-01-31", "1": ["x"]}
    assert parse("a: 1\n---\nb: 2\n", "yaml") == [{"a": 1}, {"b": 2}]
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    with pytest.raises(ParseError, match="more than"):
        parse(bomb, "yaml")
    assert json.dumps(parse("s: !!set {a}\n", "yaml")) == '{"s": ["a"]}'
