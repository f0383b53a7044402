"""What was asked is found again: by text, by action, by what a step changed, by SQL."""

from __future__ import annotations

import json
import re
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry import cli
from openry.errors import UsageError
from openry.ledger import query
from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.ledger.search import search
from openry.ledger.words import Words, literals, place_of
from openry.models import CommandResult, Ending, RunContext

TEXTS = (
    "echo one",
    "grep -c ERROR app.log",
    'say "quoted"',
    "ls 目录里的文件",
    "echo disk full",
    "",
)


@pytest.fixture
def path(tmp_path):
    fill(tmp_path / "openry.db", TEXTS)
    return tmp_path / "openry.db"


def fill(path, texts, *, stdout="") -> None:
    with FastLedger(path) as fast:
        for number, text in enumerate(texts):
            begun = fast.begin(RunContext(), text, fingerprint=f"f{number}")
            result = CommandResult(0, stdout or f"out {number}\n", "", 0.0, Ending.EXITED)
            fast.finish(begun.command_id, result)


def found(path, pattern, **given) -> list[str]:
    with Ledger(path) as ledger, ledger.read() as db:
        rows = search(db, re.compile(pattern), ledger=str(path), **given)
        return [row.command for row in rows]


@pytest.mark.parametrize(
    ("pattern", "commands"),
    [
        ("ERROR", [TEXTS[1]]),
        ("error", []),
        ("echo", [TEXTS[4], TEXTS[0]]),
        ('"quoted"', [TEXTS[2]]),
        ("目录里", [TEXTS[3]]),
        ("out 5", [TEXTS[5]]),
        ("e.*n", [TEXTS[0]]),
        (r"app\.log", [TEXTS[1]]),
        ("is", [TEXTS[4]]),
        ("grep .* app.log", [TEXTS[1]]),
        ("(?i)error", [TEXTS[1]]),
        ("ERR(OR)?", [TEXTS[1]]),
        ("full|ERROR", [TEXTS[4], TEXTS[1]]),
        ("out", [*TEXTS[::-1]]),
    ],
)
def test_a_text_is_found_in_command_and_output(path, pattern, commands):
    """By the index or by looking through, the newest first; the second time as the first."""
    assert found(path, pattern) == commands
    assert found(path, pattern) == commands


def test_rows_the_index_has_not_got_are_found_too(path):
    """What was written since, and what still runs, is looked through."""
    found(path, "warm up")
    fill(path, ["a new needle"])
    with FastLedger(path) as fast:
        fast.begin(RunContext(), "needle that still runs")
    fill(path, ["another needle"])

    expected = ["another needle", "needle that still runs", "a new needle"]
    assert found(path, "needle") == expected
    assert found(path, "needle") == expected


def test_a_broken_index_costs_time_only(path):
    """Whatever is in the index's file, rows are found; the index is made anew."""
    place_of(str(path)).write_bytes(b"this is no database" * 1000)

    assert found(path, "ERROR") == [TEXTS[1]]
    assert found(path, "ERROR") == [TEXTS[1]]
    with Words(str(path)) as words:
        assert words.upto() == len(TEXTS)


def test_an_index_with_a_damaged_page_costs_time_only(path):
    """Each row is found once, in its order, whichever page of the index is spoilt."""
    fill(path, [f"needle {number} {'%x' % number**130}" for number in range(2, 42)])
    expected, place = found(path, "needle"), place_of(str(path))
    sound = place.read_bytes()
    assert len(sound) > 4096 * 5
    for page in range(4096, len(sound), 4096):
        place.write_bytes(sound[:page] + b"Z" * 4096 + sound[page + 4096 :])

        assert found(path, "needle") == expected, page


def test_an_index_that_cannot_grow_costs_time_only(path, monkeypatch):
    """As on a full disk: rows are looked through."""

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Words, "add", full)

    assert found(path, "ERROR") == [TEXTS[1]]


def test_an_index_is_closed_to_others(path):
    """It tells what commands said, so only its owner reads it."""
    found(path, "ERROR")

    assert place_of(str(path)).stat().st_mode & 0o077 == 0


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.text(alphabet='ab"%* \nä文', min_size=1, max_size=12), min_size=1, max_size=6),
    st.text(alphabet='ab"%* \nä文', min_size=1, max_size=5),
)
def test_the_index_finds_what_looking_through_finds(tmp_path_factory, texts, wanted):
    """For any texts and any literal, both ways give the same rows."""
    path = tmp_path_factory.mktemp("l") / "openry.db"
    fill(path, texts)
    pattern = re.escape(wanted)
    with Ledger(path) as ledger, ledger.read() as db:
        looked = [row.id for row in search(db, re.compile(pattern), ledger=None)]
        indexed = [row.id for row in search(db, re.compile(pattern), ledger=str(path))]

    assert indexed == looked


def test_what_an_expression_must_find_is_looked_up():
    """Its plain texts are looked up; what may be left out, or varies, is not."""
    asked = [
        "abc|bcd",
        "^abcd",
        r"\d\d\d",
        "a b c",
        r"\(xy\)z+",
        "(?i)abc",
        "ab(cde)?",
        "ab",
        "x?yz",
    ]
    assert [literals(one) for one in asked] == [
        (), ("abcd",), (), ("a b c",), ("(xy)",), (), (), (), (),
    ]  # fmt: skip


def test_a_run_is_found_by_its_own_index(path):
    """`--run` reads that run's rows, whatever else there is."""
    from openry.ledger import commands

    said = []
    with Ledger(path) as ledger, ledger.read() as db:
        db.connection.driver_connection.set_trace_callback(said.append)
        commands.find(db, run_id="manual")
        db.connection.driver_connection.set_trace_callback(None)
        select = next(each for each in said if each.startswith("SELECT"))
        plan = db.exec_driver_sql(f"EXPLAIN QUERY PLAN {select}").fetchall()

    assert "sqlite_autoindex_commands_log_1 (run_id=?" in plan[0][-1]
    assert "TEMP B-TREE" not in str(plan)


def test_python_asks_by_column_state_and_sql(path):
    """`openry.ledger.query` answers with values, and changes nothing."""
    assert [one.command for one in query.commands(path, fingerprint="f1")] == [TEXTS[1]]
    assert query.events(path, kind="transition", new="failed") == ()
    rows = query.sql(path, "SELECT ending, count(*) AS n FROM commands_log GROUP BY ending")
    assert rows == [{"ending": "exited", "n": len(TEXTS)}]
    for statement in ("DELETE FROM commands_log", "SELEC 1", "SELECT 1; SELECT 2"):
        with pytest.raises(UsageError, match="cannot be answered"):
            query.sql(path, statement)
    with pytest.raises(UsageError, match="has no `colour`"):
        query.events(path, colour="red")
    assert len(query.commands(path)) == len(TEXTS)


@pytest.fixture
def said(path, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENRY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENRY_DB", str(path))
    monkeypatch.delenv("OPENRY_RUN_ID", raising=False)

    def run(*words: str) -> tuple[int, str, str]:
        status = cli.main(["log", *words])
        return (status, *capfd.readouterr())

    return run


def test_the_form_finds_and_exports(said, path, tmp_path):
    """`--grep`, `--fingerprint` and `export` say the same rows; a file is never overwritten."""
    assert [row["id"] for row in json.loads(said("--grep", "ERROR", "--json")[1])] == [2]
    assert [row["id"] for row in json.loads(said("--fingerprint", "f2", "--json")[1])] == [3]
    lines = said("export")[1].splitlines()
    assert [json.loads(line)["table"] for line in lines] == ["commands_log"] * len(TEXTS)
    target = tmp_path / "all.jsonl"
    assert said("export", str(target))[0] == 0
    assert target.read_text().splitlines() == lines
    assert said("export", str(target))[0] == 2
    assert said("export", "--since", "2199-01-01")[1] == ""


def test_an_unknown_step_is_named(said, path):
    """`--changes` of a step nobody ran says so."""
    status, _, err = said("--changes", "nothing")

    assert (status, err) == (2, "openry: no instance ran a step `nothing`\n")
    sqlite3.connect(path).close()
