"""Whatever a ledger's rows hold: as written they verify, and a change of any cell is found."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from hashlib import blake2b
from pathlib import Path
from unittest.mock import patch

from hypothesis import assume, example, given
from hypothesis import strategies as st

from openry.ledger import verify_part
from openry.ledger.chain import ENDED_COLUMNS, EVENT_COLUMNS, STARTED_COLUMNS, link
from openry.ledger.db import Ledger
from openry.ledger.verify_part import Part, Task, part_of

NUMBERS = {
    "pid", "seq", "exit_code", "stdout_bytes", "stderr_bytes", "duration_ms",
}  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "\0", "a\0b", "'", '"', "\\", "\n\t\b\f\r\x7f\x1b", "null", "[1,2]", "12"]
    ),
    st.sampled_from(["é", "漢字", "\u2028", "𝄞", "x" * 70_000, '"],["', "', '"]),
)
INTEGERS = st.one_of(
    st.sampled_from([0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
)
ANYTHING = st.one_of(TEXTS, INTEGERS, st.none(), st.floats(allow_nan=False), st.binary(max_size=4))
FORMS = {"today's": link, "the older": lambda *parts: hashed(ascii(parts).encode("ascii"))}


def hashed(said: bytes) -> str:
    return blake2b(said, digest_size=32).hexdigest()


@cache
def empty() -> sqlite3.Connection:
    """A new ledger, to copy."""
    memory = sqlite3.connect(":memory:", check_same_thread=False)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "openry.db"
        Ledger(path).close()
        with closing(sqlite3.connect(path)) as made:
            made.backup(memory)
    return memory


def value_of(column: str):
    if column in NUMBERS:
        return st.one_of(INTEGERS, st.none()) if column in ("pid", "duration_ms") else INTEGERS
    return TEXTS


#: What is said of a command, or of an event, apart from what makes it one of a chain.
COMMANDS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.fixed_dictionaries({name: value_of(name) for name in STARTED_COLUMNS[1:-1]}),
        st.fixed_dictionaries({name: value_of(name) for name in ENDED_COLUMNS[1:]}),
        st.booleans(),
        st.sampled_from([*FORMS]),
    ),
    min_size=1,
    max_size=8,
)
EVENTS = st.lists(
    st.tuples(
        st.fixed_dictionaries({name: TEXTS for name in EVENT_COLUMNS if name != "instance_id"}),
        st.sampled_from("ab"),
        st.sampled_from([*FORMS]),
    ),
    min_size=1,
    max_size=8,
)


def ledger_of(commands=(), events=()) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    empty().backup(db)
    db.execute("PRAGMA ignore_check_constraints = ON")
    last: dict[str, tuple[int, str]] = {}
    for run_id, begun, over, open_, form in commands:
        seq, before = last.get(run_id, (0, ""))
        row = {"run_id": run_id, **begun, "seq": seq + 1, "timestamp": "t"}
        row["started_hash"] = FORMS[form](before, *(row[name] for name in STARTED_COLUMNS))
        if not open_:
            row |= {"ending": "exited", **over}
            ended = (row[name] for name in ENDED_COLUMNS)
            row["ended_hash"] = FORMS[form](row["started_hash"], *ended)
        insert(db, "commands_log", row)
        last[run_id] = (seq + 1, row["started_hash"])
    hashes: dict[str, str] = {}
    for said, instance_id, form in events:
        row = {**said, "instance_id": instance_id, "data": f"[{len(hashes)}]"}
        columns = (row[name] for name in EVENT_COLUMNS)
        row["hash"] = hashes[instance_id] = FORMS[form](hashes.get(instance_id, ""), *columns)
        insert(db, "events", row)
    return db


def insert(db: sqlite3.Connection, table: str, row) -> None:
    marks = ", ".join("?" for _ in row)
    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def look(db: sqlite3.Connection, *, parts: int = 1, stride: int = 3) -> Part:
    whole = Part()
    first, upto = ({"events": number, "commands_log": number} for number in (1, 99))
    for number in range(parts):
        task = Task(first, upto, {"events": 0, "commands_log": 0}, 99, "", stride, number, parts)
        whole.add(part_of(db.cursor(), "?", task))
    return whole


@given(st.lists(st.one_of(TEXTS, INTEGERS, st.none()), max_size=6))
@example(["\0"])
@example([2**63 - 1, -(2**63), None, ""])
def test_sqlite_writes_what_is_hashed(columns):
    """SQLite's `json_array` of a row is, to the byte, what `link` hashes of it."""
    with closing(sqlite3.connect(":memory:")) as db:
        marks = ", ".join("?" for _ in columns)
        (text,) = db.execute(f"SELECT json_array({marks})", columns).fetchone()

    assert link("before", *columns) == hashed(f"before{text}".encode())


@given(st.lists(ANYTHING, max_size=4), st.lists(ANYTHING, max_size=4))
@example(["a,b"], ["a", "b"])
@example(['a","b'], ["a", "b"])
@example(["1"], [1])
@example(["null"], [None])
@example([""], [None])
@example([b"1"], [1])
def test_rows_that_differ_have_other_hashes(one, other):
    """No two rows make the same text, whatever somebody puts into a cell."""
    same = [(type(each), each) for each in one] == [(type(each), each) for each in other]

    assert (link("", *one) == link("", *other)) is same


@given(COMMANDS, EVENTS, st.integers(1, 3), st.integers(1, 4))
def test_what_was_written_verifies_in_both_forms(commands, events, parts, stride):
    """Any texts and numbers, hashed in today's form, in the one before, or some in each."""
    with closing(ledger_of(commands, events)) as db:
        found = look(db, parts=parts, stride=stride)

    assert found.problems == []
    assert found.rows == len(commands) + len(events)


@given(COMMANDS)
def test_rows_in_todays_form_are_read_as_sqlite_writes_them(commands):
    """None of them is read column by column: that is the slow way, for what does not fit."""
    commands = [(*row[:-1], "today's") for row in commands]
    with closing(ledger_of(commands)) as db, patch.object(verify_part, "fits", None):
        assert look(db).rows == len(commands)


@given(COMMANDS, st.data())
def test_any_cell_of_a_command_that_changes_is_found(commands, data):
    """Another value in any column that is hashed, of any type: the row is named."""
    number = data.draw(st.integers(1, len(commands)), "row")
    over = ("ending",) if commands[number - 1][3] else ENDED_COLUMNS  # not ended: nothing to tell
    columns = (*STARTED_COLUMNS, *over, "started_hash", "ended_hash")
    column = data.draw(st.sampled_from(columns), "column")
    with closing(ledger_of(commands)) as db:
        change(db, "commands_log", number, column, data.draw(ANYTHING, "value"))
        found = look(db, parts=data.draw(st.integers(1, 2), "parts"))

    assert ("commands_log", number) in {problem[:2] for problem in found.problems}


@given(EVENTS, st.data())
def test_any_cell_of_an_event_that_changes_is_found(events, data):
    """The same for what happened to an instance."""
    number = data.draw(st.integers(1, len(events)), "row")
    column = data.draw(st.sampled_from((*EVENT_COLUMNS, "hash")), "column")
    with closing(ledger_of((), events)) as db:
        change(db, "events", number, column, data.draw(ANYTHING, "value"))
        found = look(db, parts=data.draw(st.integers(1, 2), "parts"))

    assert ("events", number) in {problem[:2] for problem in found.problems}


def change(db: sqlite3.Connection, table: str, number: int, column: str, value: object) -> None:
    """Put another value into a cell, or give the example up where the table takes none."""
    said = f"SELECT typeof({column}), CAST({column} AS BLOB) FROM {table} WHERE id = ?"
    before = db.execute(said, (number,)).fetchone()
    try:
        db.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (value, number))
    except sqlite3.IntegrityError:
        assume(False)
    assume(db.execute(said, (number,)).fetchone() != before)


@given(COMMANDS, st.data())
def test_a_command_that_goes_or_comes_is_found(commands, data):
    """The one after a row that was removed is named; so is a row that was put in."""
    with closing(ledger_of(commands)) as db:
        rows = db.execute("SELECT id, run_id, seq FROM commands_log ORDER BY id").fetchall()
        number, run_id, seq = data.draw(st.sampled_from(rows), "row")
        db.execute("DELETE FROM commands_log WHERE id = ?", (number,))
        after = [row[0] for row in rows if row[1:] == (run_id, seq + 1)]
        found = {problem[:2] for problem in look(db, parts=2).problems}
        assert found == {("commands_log", one) for one in after}

        forged = {"run_id": run_id, "seq": seq, "command": "another", "timestamp": "t"}
        insert(db, "commands_log", {**forged, "started_at": "t", "started_hash": "0" * 64})
        newest = db.execute("SELECT max(id) FROM commands_log").fetchone()[0]
        found = {problem[:2] for problem in look(db, parts=2).problems}
        assert ("commands_log", newest) in found


@given(COMMANDS, st.data())
def test_bytes_that_are_no_text_are_found(commands, data):
    """A text that is no UTF-8 breaks nothing off: its row is named, and only what hangs on it."""
    number = data.draw(st.integers(1, len(commands)), "row")
    column = data.draw(st.sampled_from(["command", "host", "run_id"]), "column")
    with closing(ledger_of(commands)) as db:
        bad = f"UPDATE commands_log SET {column} = CAST(x'61ff62' AS TEXT) WHERE id = ?"
        db.execute(bad, (number,))
        found = look(db)

    assert ("commands_log", number) in {problem[:2] for problem in found.problems}
    assert found.rows == len(commands)
