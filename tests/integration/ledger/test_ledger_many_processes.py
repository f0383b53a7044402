"""What holds when many processes use one ledger at once, each a real process."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.ledger.tokens import hashed
from openry.models import RunContext

AT = "2026-03-01T09:00:00.000Z"

#: Waits for the file `go`, then does its calls, and says what became of them.
WRITER = """
import json, os, sys, time
from openry.ledger.fast import FastLedger
from openry.models import CommandResult, RunContext
path, go, run_id, calls = sys.argv[1:]
context, outcomes = RunContext(run_id=run_id, token="the token"), {"ran": 0, "braked": 0}
while not os.path.exists(go):
    time.sleep(0.002)
ledger = FastLedger(path)
for number in range(int(calls)):
    begun = ledger.begin(context, f"echo {os.getpid()} {number}", cwd="/")
    if begun.command_id is not None:
        ledger.finish(begun.command_id, CommandResult(0, f"{number}\\n", "", 0.001))
    outcomes["ran" if begun.command_id is not None else "braked"] += 1
print(json.dumps(outcomes))
"""


def at_once(
    tmp_path: Path, writers: int, calls: int, run_id: str = "manual"
) -> list[dict[str, int]]:
    """What `writers` processes report that all begin at the same moment."""
    go = tmp_path / "go"
    go.unlink(missing_ok=True)
    argv = [sys.executable, "-c", WRITER, tmp_path / "openry.db", go, run_id, str(calls)]
    processes = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(writers)
    ]
    time.sleep(0.5)
    go.touch()
    outcomes = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert err == ""
        outcomes.append(json.loads(out))
    return outcomes


def rows(tmp_path: Path, sql: str) -> list[tuple]:
    connection = sqlite3.connect(tmp_path / "openry.db")
    found = connection.execute(sql).fetchall()
    connection.close()
    return found


def test_eight_first_users_at_once(tmp_path):
    """On a fresh home eight processes that all come first all succeed, on one ledger."""
    outcomes = at_once(tmp_path, writers=8, calls=1)

    assert [outcome["ran"] for outcome in outcomes] == [1] * 8
    assert rows(tmp_path, "SELECT count(*) FROM commands_log") == [(8,)]
    assert rows(tmp_path, "SELECT count(*) FROM alembic_version") == [(1,)]


def test_eight_writers_of_two_hundred_commands(tmp_path):
    """8 × 200 calls at once leave 1,600 whole rows, numbered without gap or double."""
    at_once(tmp_path, writers=8, calls=200)

    assert rows(
        tmp_path,
        "SELECT count(*), count(DISTINCT seq), min(seq), max(seq), count(DISTINCT command)"
        " FROM commands_log WHERE ending = 'exited' AND exit_code = 0",
    ) == [(1600, 1600, 1, 1600, 1600)]
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]


def test_a_limit_of_three_among_ten_processes(tmp_path):
    """Ten processes call at once under a limit of three: exactly three may run."""
    with Ledger(tmp_path / "openry.db") as ledger, ledger.write() as db:
        db.exec_driver_sql(
            "INSERT INTO task_state (run_id, status, max_tool_calls, token_hash, created_at)"
            " VALUES ('run-1', 'in_progress', 3, ?, ?)",
            (hashed("the token"), AT),
        )

    outcomes = at_once(tmp_path, writers=10, calls=1, run_id="run-1")

    assert sum(outcome["ran"] for outcome in outcomes) == 3
    assert sum(outcome["braked"] for outcome in outcomes) == 7
    assert rows(tmp_path, "SELECT tool_calls, brake FROM task_state") == [(3, "call_limit")]


def test_a_held_lock_is_waited_for(tmp_path):
    """While another process holds the ledger, calls wait; afterwards each has its row."""
    FastLedger(tmp_path / "openry.db").begin(RunContext(), "first")
    holder = sqlite3.connect(tmp_path / "openry.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    waiting = subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "openry.db", tmp_path, "manual", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1.5)
    holder.execute("COMMIT")
    holder.close()

    assert json.loads(waiting.communicate()[0]) == {"ran": 1, "braked": 0}
    assert rows(tmp_path, "SELECT count(*) FROM commands_log") == [(2,)]


def test_kill_9_among_writers_loses_no_finished_row(tmp_path):
    """Writers killed at any moment leave whole rows; what was started becomes lost, not wrong."""
    go = tmp_path / "go"
    go.touch()
    argv = [sys.executable, "-c", WRITER, tmp_path / "openry.db", go, "manual", "100000"]
    with FastLedger(tmp_path / "openry.db") as ledger:  # made now: the kills are to meet writers
        ledger.recover_lost()
    count = "SELECT count(*) FROM commands_log"
    for pause_s in (0.3, 0.5, 0.7):
        before = rows(tmp_path, count)
        writer = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        while rows(tmp_path, count) == before:
            time.sleep(0.01)
        time.sleep(pause_s)
        writer.kill()
        writer.wait()

    ledger = FastLedger(tmp_path / "openry.db")
    assert ledger.recover_lost() <= 3
    assert rows(
        tmp_path, "SELECT count(*) FROM commands_log WHERE ending NOT IN ('exited', 'lost')"
    ) == [(0,)]
    assert rows(tmp_path, "SELECT count(*) = max(seq) FROM commands_log") == [(1,)]
    assert ledger.begin(RunContext(), "goes on").command_id is not None
    ledger.close()
