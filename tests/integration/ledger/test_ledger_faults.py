"""SQLite itself fails, at every step there is: a row is whole or absent, and no lock stays."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from itertools import chain, count, repeat

import pytest

from openry.errors import StorageError
from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.ledger.schema import metadata
from openry.ledger.tokens import hashed
from openry.models import CommandResult, RunContext

AT = "2026-03-01T09:00:00.000Z"
RUN = RunContext(run_id="run-1", token="the token")
ADD_RUN = (
    "INSERT INTO task_state (run_id, status, max_tool_calls, token_hash, created_at)"
    f" VALUES ('run-1', 'in_progress', 1, '{hashed(RUN.token)}', '{AT}')"
)
STATE = (
    "SELECT (SELECT count(*) FROM commands_log), (SELECT count(*) FROM events),"
    " (SELECT count(*) FROM payloads), tool_calls, brake, status FROM task_state"
)


@pytest.fixture
def ledger(tmp_path):
    made = FastLedger(tmp_path / "openry.db")
    made.run("nobody")
    yield made
    made.close()


def fail_once_after(ledger: FastLedger, steps: int) -> None:
    """Make SQLite itself fail once, after `steps` steps of its virtual machine."""
    ledger.run("nobody")  # opens it
    assert ledger._connection is not None
    ledger._connection.execute("PRAGMA synchronous = OFF")  # hundreds of rounds; no power is cut
    answers = chain(repeat(0, steps), [1], repeat(0))
    ledger._connection.set_progress_handler(answers.__next__, 1)


def fail_no_more(ledger: FastLedger) -> None:
    if ledger._connection is not None:
        ledger._connection.set_progress_handler(None, 0)


def look(ledger: FastLedger, sql: str) -> list[tuple]:
    """Ask past our own code, without patience: a lock that stayed is an error here."""
    connection = sqlite3.connect(ledger.path, timeout=0, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def fresh(ledger: FastLedger) -> None:
    connection = sqlite3.connect(ledger.path, timeout=0, isolation_level=None)
    tables = ("commands_log", "events", "payloads", "task_state")
    emptied = "; ".join(f"DELETE FROM {table}" for table in tables)
    connection.executescript(f"PRAGMA synchronous = OFF; BEGIN; {emptied}; {ADD_RUN}; COMMIT")
    connection.close()


#: What is called, and what the ledger holds when it was.
CALLS = {
    "begin": (lambda ledger: ledger.begin(RUN, "true"), (1, 0, 0, 1, "", "in_progress")),
    "refuse": (
        lambda ledger: ledger.refuse(RUN, "rm", reason="no"),
        (1, 0, 0, 1, "", "in_progress"),
    ),
    "report": (
        lambda ledger: ledger.report(RUN, "completed", {"a": 1}),
        (0, 1, 1, 0, "", "completed"),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_whole_or_absent_wherever_sqlite_fails(ledger, name):
    """Fail after 0, 1, 2 … steps until nothing fails: all of its rows are there, or none is."""
    call, whole = CALLS[name]
    absent = (0, 0, 0, 0, "", "in_progress")
    for steps in count():
        fresh(ledger)
        fail_once_after(ledger, steps)
        try:
            call(ledger)
        except StorageError:
            fail_no_more(ledger)
            assert look(ledger, STATE) in ([absent], [whole])
        else:
            fail_no_more(ledger)
            assert look(ledger, STATE) == [whole]
            break
    assert steps > 20, "SQLite was never made to fail"


def test_a_brake_is_whole_or_absent_wherever_sqlite_fails(ledger):
    """The row of the braked call, the brake on the run and its event come together."""
    whole = (1, 1, 0, 1, "call_limit", "in_progress")
    for steps in count():
        fresh(ledger)
        look(ledger, "UPDATE task_state SET tool_calls = 1")
        fail_once_after(ledger, steps)
        try:
            ledger.begin(RUN, "one too many")
        except StorageError:
            fail_no_more(ledger)
            assert look(ledger, STATE) in ([(0, 0, 0, 1, "", "in_progress")], [whole])
        else:
            break
    fail_no_more(ledger)
    assert look(ledger, STATE) == [whole]


def test_a_finish_is_whole_or_absent_wherever_sqlite_fails(ledger):
    """A started row is still started, or finished with everything."""
    query = "SELECT ending, exit_code, stdout, ended_at IS NOT NULL FROM commands_log"
    whole = ("exited", 0, "out", 1)
    for steps in count():
        fresh(ledger)
        command_id = ledger.begin(RunContext(), "true").command_id
        fail_once_after(ledger, steps)
        try:
            ledger.finish(command_id, CommandResult(0, "out", "", 0.1))
        except StorageError:
            fail_no_more(ledger)
            assert look(ledger, query) in ([("started", None, "", 0)], [whole])
        else:
            break
    fail_no_more(ledger)
    assert look(ledger, query) == [whole]


def test_an_error_of_ours_leaves_nothing_and_no_lock(ledger):
    """Whatever ends a transaction early, Ctrl-C too: it is undone, and others may write."""
    fresh(ledger)

    def interrupted(db: sqlite3.Connection) -> None:
        db.execute("UPDATE task_state SET tool_calls = 99")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger._write(interrupted)

    assert look(ledger, "SELECT tool_calls FROM task_state") == [(0,)]
    look(ledger, "UPDATE task_state SET tool_calls = 1")  # would fail at once on a lock


def test_a_full_disk_is_said_and_mended(tmp_path):
    """Without space nothing is written and the sentence says so; with space all works on."""
    ledger = FastLedger(tmp_path / "openry.db")
    ledger.begin(RunContext(), "true")
    pages = look(ledger, "PRAGMA page_count")[0][0]
    ledger._connection.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StorageError, match="no space is left on the disk of the ledger"):
        ledger.begin(RunContext(), "x" * 100_000)
    assert look(ledger, "SELECT count(*) FROM commands_log") == [(1,)]

    ledger._connection.execute("PRAGMA max_page_count = 100000")
    assert ledger.begin(RunContext(), "x" * 100_000).command_id == 2
    ledger.close()


#: Makes a ledger in a process whose SQLite connections all get what `{prepare}` does to them.
MAKE = """
import itertools, os, signal, sqlite3, sys
from openry.errors import StorageError
from openry.ledger.migrate import migrate, upgrade
step = itertools.count()
def countdown(steps):
    if next(step) == steps:
        os.kill(os.getpid(), signal.SIGKILL)
real = sqlite3.connect
def connect(*args, **options):
    connection = real(*args, **options)
    {prepare}
    return connection
sqlite3.connect = sqlite3.dbapi2.connect = connect
try:
    {how}(sys.argv[1])
except StorageError as error:
    print(error)
"""


def make_ledger(path, how: str, prepare: str) -> subprocess.CompletedProcess:
    code = MAKE.format(how=how, prepare=prepare)
    return subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)


@pytest.mark.parametrize("how", ["upgrade", "migrate"])
@pytest.mark.parametrize("steps", [0, 30, 300, 1000, 3000, 5000])
def test_a_first_use_that_is_killed_leaves_no_half_ledger(tmp_path, how, steps):
    """kill -9 while the ledger is made: the next one finds nothing or everything."""
    path = tmp_path / "openry.db"
    prepare = f"connection.set_progress_handler(lambda: countdown({steps}), 1)"

    assert make_ledger(path, how, prepare).returncode == -signal.SIGKILL

    with Ledger(path) as ledger, ledger.read() as db:
        assert db.exec_driver_sql("SELECT count(*) FROM task_state").scalar() == 0
        tables = db.exec_driver_sql("SELECT count(*) FROM sqlite_master WHERE type = 'table'")
        assert tables.scalar() == len(metadata.tables) + 2  # and alembic's and SQLite's own


@pytest.mark.parametrize("how", ["upgrade", "migrate"])
def test_a_ledger_that_cannot_be_made_leaves_the_file_as_it_was(tmp_path, how):
    """Creation is one transaction: SQLite fails in its midst, and the file holds no table."""
    path = tmp_path / "openry.db"
    path.touch()
    blocker = sqlite3.connect(path)
    blocker.execute("PRAGMA journal_mode = WAL")
    blocker.close()

    done = make_ledger(path, how, "connection.execute('PRAGMA max_page_count = 20')")

    assert "no space is left" in done.stdout
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    connection.close()
