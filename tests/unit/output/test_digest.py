"""The digest: what it finds, how long it may be, and that nothing makes it fail."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.output.census import MAX_KINDS, Census
from openry.output.digest import digest_of, render
from openry.output.kinds import families_of, kinds_of, task_words, trace_around
from openry.output.tokens import MARGIN, weigh

SHARED = Path(__file__).parents[4] / "shared"


def digest(data: bytes, tokens: int = 2000, *, step: int = 0, **more) -> str:
    reads = [data] if not step else [data[i : i + step] for i in range(0, len(data), step)]
    return digest_of(reads, tokens, **more)


def log(lines: int, *, seed: int = 1) -> list[str]:
    pick = random.Random(seed)
    kinds = (
        "INFO request {} took {} ms",
        "DEBUG cache entry {} of {} is fresh",
        "WARN queue length {} over {}",
    )
    return [
        f"2026-03-01 {pick.choice(kinds).format(pick.randrange(10**6), pick.randrange(99))}"
        for _ in range(lines)
    ]


def among(lines: list[str], place: int, *new: str) -> bytes:
    return "\n".join([*lines[:place], *new, *lines[place:]]).encode() + b"\n"


# --- what it finds --------------------------------------------------------------------------


def test_an_error_is_shown_with_its_line_number_and_its_digits():
    """A masked value is a lost value: the line stands there as it was."""
    found = digest(among(log(5000), 3210, "ERROR disk sda7 failed after 93 writes"))
    assert "\n3211: ERROR disk sda7 failed after 93 writes\n" in found
    assert found.startswith("5,001 lines, ")


def test_a_traceback_is_one_record_with_its_ends():
    """First four and last four lines, however deep it is, and its middle counted."""
    trace = ["Traceback (most recent call last):"]
    for number in range(20):
        trace += [f'  File "/srv/m{number}.py", line 7, in f', "    return g(x)"]
    trace.append("ValueError: no such wheel Kq7")
    found = digest(among(log(5000), 2000, *trace))
    assert '2001: Traceback (most recent call last):\n    File "/srv/m0.py", line 7, in f' in found
    assert "  ValueError: no such wheel Kq7\n" in found
    assert "34 more lines" in found
    assert "m10.py" not in found


def test_javas_frames_belong_to_the_line_above():
    """The exception comes first there, and its cause after it."""
    trace = [
        "java.io.IOException: pipe of Kq8 broke",
        "\tat a.B.c(B.java:3)",
        "\tat d.E.f(E.java:9)",
    ]
    found = digest(among(log(3000), 1000, *trace, "Caused by: java.net.SocketException: Kq9"))
    assert "1001: java.io.IOException: pipe of Kq8 broke" in found
    assert "  Caused by: java.net.SocketException: Kq9" in found


def test_a_record_over_the_border_of_two_reads_is_whole():
    """Wherever the reads cut it."""
    trace = ["Traceback (most recent call last):", '  File "a.py", line 1', "KeyError: 'Kq1'"]
    data = among(log(40_000), 25_000, *trace)
    at = data.index(b"Traceback")
    for cut in (at + 3, at + 40, at + 60):
        found = digest_of([data[:cut], data[cut:]], 2000)
        assert '25001: Traceback (most recent call last):\n    File "a.py", line 1\n' in found
        assert "KeyError: 'Kq1'" in found


def test_a_rare_line_and_an_odd_value_are_found_among_a_hundred_thousand():
    """Neither says a word of trouble."""
    lines = log(100_000)
    odd = next(place for place in range(60_000, 61_000) if "request" in lines[place])
    lines[odd] = lines[odd].replace("request ", "request Kq2x")
    found = digest(among(lines, 70_000, "switched leader to node Kq3"), 1000)
    assert "Kq2x" in found
    assert "switched leader to node Kq3" in found


def test_the_words_of_the_task_count_as_trouble():
    """A line of no account is shown first when the task speaks of it."""
    lines = log(3000)
    pick = random.Random(4)
    for number in range(400):  # rarities by the hundred
        name = "".join(chr(97 + number // 26**place % 26) for place in range(3))
        lines.insert(pick.randrange(len(lines)), f"{name} came by")
    data = among(lines, 3300, "invoice ledger of march sealed by hand Kq4")
    words = task_words("When was the invoice ledger sealed?")
    assert "Kq4" not in digest(data, 500)
    assert "Kq4" in digest(data, 500, words=words)


def test_the_usual_is_counted():
    """Common kinds with how often they are there."""
    found = digest(among(log(9000), 1, "ERROR once"))
    common = found[found.index("\ncommon\n") :]
    assert common.count("×") >= 3
    times = [
        int(line.split("×")[1].split()[0].replace(",", "")) for line in common.splitlines()[2:5]
    ]
    assert sum(times) == 9000


def test_text_in_which_all_lines_differ_is_said_to_be_so():
    """Rarity says little there; it points to grep."""
    pick = random.Random(5)
    words = ["".join(pick.choices("abcdefghij", k=6)) for _ in range(3000)]
    data = "\n".join(" ".join(pick.choices(words, k=8)) for _ in range(2000)).encode()
    found = digest(data, name="out-7")
    assert "rare says little" in found
    assert "openry output grep out-7 REGEX" in found


def test_progress_bars_and_colours_are_folded():
    """What a terminal would not show any more is not in the digest."""
    bars = b"".join(b"\rdone %d%%" % n for n in range(5000)) + b"\r\n\x1b[31mERROR red Kq5\x1b[0m\n"
    found = digest("\n".join(log(500)).encode() + b"\n" + bars)
    assert "ERROR red Kq5" in found
    assert "\x1b" not in found
    assert "502 lines" in found


def test_a_document_on_one_line_is_cut_at_its_records():
    """JSON of some megabytes without a line end: an odd record is still found."""
    records = [{"id": n, "state": "ok", "size": n * 7 % 1000} for n in range(60_000)]
    records[31_000] = {"id": 31_000, "state": "rejected Kq6", "error": "no credit"}
    data = json.dumps(records).encode()
    assert len(data) > 2_000_000
    assert "rejected Kq6" in digest(data, 1000, step=65_536)


# --- binary ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (gzip.compress(b"x" * 10_000 + bytes(range(256)) * 90), "gzip data"),
        (Path(sys.executable).resolve().read_bytes()[:500_000], "an ELF program or library"),
        (bytes(random.Random(6).randbytes(100_000)), "binary data"),
    ],
)
def test_what_is_no_text_is_told_by_type_size_and_strings(data, kind):
    """No kinds of lines there."""
    found = digest(data, step=70_000)
    assert found.startswith(f"{kind}, {len(data):,} bytes")
    found.encode("utf-8")


def test_text_in_other_scripts_is_text():
    """Chinese, Cyrillic, emoji: no binary data."""
    data = ("日志 错误 Kq7\nжурнал ошибка\n🙂 ok\n" * 500).encode()
    assert "Kq7" in digest(data)


# --- bounds ---------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [b"ERROR a\n", b"INFO 17 b\n", b"\n", b"\r", b"\x1b[1m", b"\x00", b"\xff", b"  at x\n",
     b"{" * 9, "中文 日志\n".encode(), "é".encode()[:1], b"a" * 3000,
     b"Traceback (most recent call last):\n"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES | st.binary(max_size=60), max_size=60), st.integers(0, 400), st.data())
def test_never_more_tokens_than_asked_never_a_crash_always_utf_8(parts, tokens, data):
    """For any bytes, however they are read."""
    whole = b"".join(parts)
    step = data.draw(st.integers(1, max(1, len(whole))))
    found = digest_of([whole[i : i + step] for i in range(0, len(whole), step)], tokens)
    assert weigh(found.encode("utf-8")) * MARGIN <= tokens or not found
    assert found == "" or found.endswith("\n")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a 1", "b", "ERROR 7", "", "x" * 50]), max_size=300), st.data())
def test_lines_are_counted_however_they_are_read(lines, data):
    """Their number, their bytes and the sum over the kinds agree."""
    whole = "".join(f"{line}\n" for line in lines).encode()
    step = data.draw(st.integers(1, max(1, len(whole))))
    census = Census()
    for i in range(0, len(whole), step):
        census.feed(whole[i : i + step])
    census.end()
    assert (census.lines, census.bytes) == (len(lines), len(whole))
    assert sum(kind.count for kind in census.kinds.values()) + census.unkept == len(lines)


def test_there_are_never_more_than_so_many_kinds_and_the_rare_error_stays():
    """Noise of any length: the tables are bounded, and trouble is the last to be forgotten."""
    pick = random.Random(8)
    census = Census()
    census.feed(b"ERROR early Kq8 in unit seven\n")
    for _ in range(30):
        lines = ("".join(pick.choices("abcdefghijklmnop ", k=40)) for _ in range(3000))
        census.feed("\n".join(lines).encode() + b"\n")
        assert len(census.kinds) <= MAX_KINDS
        assert len(census.families) <= 2 * MAX_KINDS
    assert "ERROR early Kq8" in render(census.end(), 500)


def test_memory_does_not_grow_with_the_output():
    """Ten times as much takes no more."""
    part = "\n".join(log(20_000)).encode() + b"\n"

    def peak(times: int) -> int:
        tracemalloc.start()
        digest_of((part for _ in range(times)), 2000)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(20) < 1.3 * peak(2)


def test_a_small_answer_needs_no_digest():
    """The module is not even loaded on the way of a small answer."""
    code = (
        "import sys; from openry.output.notice import Reader, told;"
        "from openry.output.capture import Captured; from openry.output.redact import Redactor;"
        "c = lambda b: Captured(b, b'', len(b), len(b), 1, '', '', 0, '');"
        "t = told(c(b'hello\\n'), c(b''), Redactor(), Reader(100), None, 'out-1');"
        "assert t.stdout == 'hello\\n';"
        "sys.exit(sum(m in sys.modules for m in ('openry.output.digest', 'openry.output.tokens')))"
    )
    assert subprocess.run((sys.executable, "-c", code), check=False).returncode == 0


# --- masks ----------------------------------------------------------------------------------


def test_kinds_and_families():
    """Hexadecimal becomes one sign, other digits go; families have no word with a digit."""
    lines = [b"req 0xDEADbeef1 user7 took 12ms", b"id 550e8400-e29b-41d4-a716-446655440000 ok"]
    assert kinds_of(lines) == [b"req # user took ms", b"id #-#-#-#-# ok"]
    assert families_of(lines) == [b"req * * took *", b"id * ok"]


@given(st.lists(st.text("abE=:/ 0189", max_size=30).map(str.encode), max_size=20))
def test_masks_keep_the_number_of_lines(lines):
    """One kind and one family for each line."""
    assert len(kinds_of(lines)) == max(1, len(lines))
    assert len(families_of(lines)) == max(1, len(lines))


def test_where_a_record_begins_and_ends():
    """From any line of trouble in it."""
    lines = [b"a", b"Traceback (most recent call last):", b"  File x", b"KeyError: 1", b"b"]
    assert trace_around(lines, 3) == (1, 3)
    assert trace_around(lines, 1) == (1, 3)
    assert trace_around(lines, 0) == (0, 0)


# --- recall ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["HDFS", "Linux", "Hadoop", "Apache"])
def test_planted_facts_are_found(name, tmp_path):
    """Nine of ten and more at 10 kB, in a log grown to 3 MB."""
    tool = SHARED / "tools" / "plant_facts.py"
    sample = SHARED / "cases" / "logs" / f"{name}_2k.log"
    if not tool.is_file() or not sample.is_file():
        pytest.skip("the samples are not here")
    grown = tmp_path / "grown.log"
    argv = (sys.executable, str(tool), str(sample), "3", "11", str(grown))
    facts = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    found = digest(grown.read_bytes(), 3700, step=1 << 20)
    assert len(found.encode()) < 12_500
    missed = [fact for fact in facts if fact[1] not in found]
    assert len(missed) <= 0.05 * len(facts), missed
