"""No process without a row, whoever else writes, however full the disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
from hand_helpers import PROGRAM, OpenRY, gone_within, need_bubblewrap

from openry.ledger.fast import FastLedger


def _in_parallel(openry: OpenRY, workers: int, calls: int) -> list[dict]:
    answers: list[dict] = []

    def work(worker: int) -> None:
        for call in range(calls):
            answers.append(openry("-c", f"echo {worker}.{call}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize(
    ("workers", "calls"), [(8, 5), pytest.param(8, 200, marks=pytest.mark.long)]
)
def test_parallel_calls_leave_every_row(openry: OpenRY, workers: int, calls: int):
    """Also when the first of them must make the ledger (B29)."""
    answers = _in_parallel(openry, workers, calls)

    said = sorted(answer["stdout"] for answer in answers)
    rows = openry.rows("stdout, ending, seq")
    assert len(rows) == workers * calls
    assert sorted(row["stdout"] for row in rows) == said
    assert {row["ending"] for row in rows} == {"exited"}
    assert sorted(row["seq"] for row in rows) == list(range(1, len(rows) + 1))


def test_a_locked_ledger_is_waited_for(openry: OpenRY):
    """Another writer holding the lock for a while costs time, not a row."""
    openry("-c", "true")
    holder = sqlite3.connect(openry.home / "openry.db", check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    release = threading.Timer(1.5, holder.rollback)
    release.start()

    answer = openry("-c", "echo ran")

    release.join()
    holder.close()
    assert answer["stdout"] == "ran\n"
    assert len(openry.rows()) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_ledger_that_may_not_be_written_starts_nothing(openry: OpenRY):
    """74, one sentence, and the command was not started."""
    openry.home.mkdir(mode=0o500)

    answer = openry("-c", "touch made", status=74)

    assert answer["exit_code"] == 74
    assert not (openry.cwd / "made").exists()


@pytest.mark.parametrize("kind", ["folder", "file_above", "no_database"])
def test_a_ledger_in_an_impossible_place_starts_nothing(openry: OpenRY, kind: str):
    """Whatever is in its way: 74 and one sentence that names the place."""
    place = openry.cwd.parent / "place"
    if kind == "folder":
        place.mkdir()
    else:
        place.write_text("this is no database, and longer than a header would be " * 20)
    database = place / "x.db" if kind == "file_above" else place

    answer = openry("-c", "touch made", env={"OPENRY_DB": str(database)}, status=74)

    assert answer["exit_code"] == 74
    assert str(place) in answer["stderr"]
    assert answer["stderr"].count("\n") == 1
    assert not (openry.cwd / "made").exists()


@pytest.mark.sandbox
def test_a_full_disk_is_told_and_does_not_stop_the_search_for_it(openry: OpenRY):
    """Output too large for the disk is answered from memory; `df` still runs (B67)."""
    need_bubblewrap()
    openry("-c", "true")
    base = shutil.copytree(openry.home, openry.cwd / "base")
    script = (
        f'cp {base}/openry.db "$OPENRY_HOME"/ && '
        f"{PROGRAM} -c 'head -c 5000000 /dev/zero | tr \"\\0\" a' && "
        f"{PROGRAM} -c 'df -h \"$PWD\"' && "
        f'rm -rf "$OPENRY_HOME"/runs && {PROGRAM} -c "echo fine"'
    )
    argv = ["bwrap", "--dev-bind", "/", "/", "--size", "1500000", "--tmpfs", str(openry.home)]

    done = subprocess.run(
        [*argv, "sh", "-c", script], env=openry.env, cwd=openry.cwd, capture_output=True, timeout=60
    )

    first, second, third = (json.loads(line) for line in done.stdout.splitlines())
    assert first["exit_code"] == 0
    assert "not saved: no space left on device" in first["stdout"]
    assert first["stdout"].startswith("aaa")
    assert second["exit_code"] == 0
    assert third["stdout"] == "fine\n"


def test_a_killed_hand_leaves_a_row_that_recovery_marks_lost(openry: OpenRY):
    """The row was on disk before the process; recovery says how it ended. Nothing lives on."""
    mark = openry.cwd / "begun"
    nap = f"sleep 7620.{os.getpid()}"
    line = f"touch {mark}; (setsid {nap} &) ; {nap} & {nap}"
    process = openry.start("-c", line)
    while not mark.exists():
        assert process.poll() is None
        time.sleep(0.02)

    process.send_signal(signal.SIGKILL)
    process.wait()

    assert gone_within(nap, 30)
    assert [row["ending"] for row in openry.rows()] == ["started"]
    with FastLedger(openry.home / "openry.db") as ledger:
        assert ledger.recover_lost() == 1
    assert [row["ending"] for row in openry.rows()] == ["lost"]


#: A hand that is killed as soon as its command was started, before it could say which one that is.
KILLED_AT_ONCE = """
import os, sys
from openry.cli import main
from openry.sandbox.watch import Watch
Watch.begin = lambda self, *about: os.kill(os.getpid(), 9)
main(["-c", sys.argv[1]])
"""


def test_a_hand_that_is_killed_as_it_starts_its_command_leaves_nothing(openry: OpenRY):
    """Its processes are found by what stands in their environment."""
    nap = f"sleep 7621.{os.getpid()}"
    argv = [sys.executable, "-c", KILLED_AT_ONCE, f"(setsid {nap} &) ; {nap} & {nap}"]

    done = subprocess.run(argv, cwd=openry.cwd, env=openry.env)

    assert done.returncode == -signal.SIGKILL
    assert gone_within(nap, 60)


def test_a_killed_hand_is_followed_by_its_commands_wherever_their_files_are(openry: OpenRY):
    """The folder for temporary files may have a space in its name."""
    base = openry.cwd / "not here"
    base.mkdir()
    nap = f"sleep 7622.{os.getpid()}"
    argv = [sys.executable, "-c", KILLED_AT_ONCE, f"(setsid {nap} &) ; {nap} & {nap}"]

    subprocess.run(argv, cwd=openry.cwd, env={**openry.env, "TMPDIR": str(base)})

    assert gone_within(nap, 60)


#: Two calls at once that are killed in the middle, after others which are over. Says whether the
#: watch still holds a line for each that runs, and for no other.
KILLED_AMONG_OTHERS = """
import os, sys, threading, time
from openry.config import load_config
from openry.forwarder import Hand
from openry.ledger.fast import FastLedger
from openry.models import Command, RunContext
from openry.sandbox.watch import watch

config = load_config(sys.argv[1], env={})
hand = Hand(FastLedger(config.ledger), RunContext(workspace=os.getcwd()), config)
for _ in range(5):
    hand.forward(Command("true"))
for name in ("one", "two"):
    line = f"touch {name}; (setsid {sys.argv[2]} &); {sys.argv[2]}"
    threading.Thread(target=hand.forward, args=(Command(line),), daemon=True).start()
while not (os.path.exists("one") and os.path.exists("two")):
    time.sleep(0.01)
table = os.pread(watch(alone=False)._table, 100_000, 0)
print([len(line.split()) for line in table.decode().splitlines()], flush=True)
os.kill(os.getpid(), 9)
"""


def test_what_runs_dies_with_the_hand_and_what_is_over_is_forgotten(openry: OpenRY):
    """A line of two words, group and folder, for each command that runs; lines are used again."""
    nap = f"sleep 7623.{os.getpid()}"
    openry("-c", "true")
    argv = [sys.executable, "-c", KILLED_AMONG_OTHERS, str(openry.home), nap]

    done = subprocess.run(argv, cwd=openry.cwd, env=openry.env, capture_output=True)

    assert done.stdout.decode() == "[2, 2]\n", done.stderr.decode()
    assert gone_within(nap, 60)


def test_the_home_is_private(openry: OpenRY):
    """0700 for the folder, 0600 for what is in it."""
    openry("-c", "head -c 3000000 /dev/zero | tr '\\0' e")

    assert openry.home.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in openry.home.rglob("*")}
    assert {name: mode for name, mode in modes.items() if mode not in (0o600, 0o700)} == {}
