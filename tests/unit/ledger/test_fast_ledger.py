"""Rows of commands, on disk before anything starts."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from openry.errors import StorageError
from openry.ledger import schema
from openry.ledger.fast import FastLedger
from openry.ledger.process import ProcessId, process_id
from openry.ledger.tokens import hashed
from openry.ledger.version import HEAD
from openry.models import CommandResult, Ending, RunContext

DONE = CommandResult(3, "out\n", "err\n", 0.0125, stdout_bytes=4, stderr_bytes=4)
CONTEXT = RunContext(run_id="run-1", token="the token")


def test_a_row_is_there_before_the_command_is_started(home):
    """`begin` returns when the row is on disk, and says everything it can about the command."""
    begun = home.fast.begin(
        RunContext(workflow="w", step_id="s", instance_id="i"),
        "echo hi",
        cwd="/ws",
        shell="/bin/sh",
        rule="default",
        fingerprint="f00",
    )

    assert home.rows("SELECT id, run_id, workflow, step_id, instance_id FROM commands_log") == [
        (begun.command_id, "manual", "w", "s", "i")
    ]
    assert home.rows("SELECT command, cwd, shell, rule, fingerprint FROM commands_log") == [
        ("echo hi", "/ws", "/bin/sh", "default", "f00")
    ]
    assert home.rows("SELECT ending, exit_code, ended_at, verdict, seq FROM commands_log") == [
        ("started", None, None, "allow", 1)
    ]
    assert home.rows("SELECT timestamp = started_at, pid FROM commands_log") == [(1, os.getpid())]


def test_a_finished_row_holds_what_came_of_it(home):
    """`finish` completes the row once; a second time it says so and changes nothing."""
    command_id = home.fast.begin(RunContext(), "x").command_id

    assert home.fast.finish(command_id, DONE, stdout_digest="aa", stderr_digest="bb")
    assert not home.fast.finish(command_id, CommandResult(0, "other", "", 1.0))
    assert home.rows(
        "SELECT ending, exit_code, stdout, stderr, stdout_bytes, stdout_digest, stderr_digest,"
        " duration_ms, ended_at IS NOT NULL FROM commands_log"
    ) == [("exited", 3, "out\n", "err\n", 4, "aa", "bb", 12, 1)]


@pytest.mark.parametrize("ending", list(Ending))
def test_every_ending_can_be_recorded(home, ending):
    """However a command ends, its row can be finished with that."""
    command_id = home.fast.begin(RunContext(), "x").command_id

    assert home.fast.finish(command_id, CommandResult(130, "", "", 0.0, ending))
    assert home.rows("SELECT ending FROM commands_log") == [(ending.value,)]


def test_commands_of_a_run_are_numbered(home):
    """`seq` counts 1, 2, 3 within each run, whatever others do in between."""
    home.add_run("run-1")
    home.add_run("run-2")
    for run_id in ("run-1", "run-2", "run-1", "manual", "run-1"):
        home.fast.begin(RunContext(run_id=run_id, token="the token"), "x")

    assert home.rows("SELECT run_id, seq FROM commands_log ORDER BY id") == [
        ("run-1", 1),
        ("run-2", 1),
        ("run-1", 2),
        ("manual", 1),
        ("run-1", 3),
    ]


def test_the_ledger_says_whose_command_it_is(home):
    """Workflow and step of a row are those of the run, not what the caller claims."""
    home.add_run("run-1", workflow="true one", step_id="true step")
    home.fast.begin(replace(CONTEXT, workflow="claimed", step_id="claimed"), "x")

    assert home.rows("SELECT workflow, step_id, instance_id FROM commands_log") == [
        ("true one", "true step", "i-1")
    ]


def test_a_refused_command_has_a_finished_row(home):
    """What the policy denies is recorded with its reason, and nothing may be started."""
    begun = home.fast.refuse(
        RunContext(), "rm -rf /", reason="openry: not allowed: deletes", rule="deny rm"
    )

    assert (begun.command_id, begun.refused) == (None, "openry: not allowed: deletes")
    assert home.rows("SELECT ending, verdict, rule, exit_code, stderr FROM commands_log") == [
        ("refused", "deny", "deny rm", 126, "openry: not allowed: deletes")
    ]


def test_an_unknown_run_starts_nothing_and_is_recorded(home):
    """A call under a run id that the ledger does not know leaves a refused row."""
    begun = home.fast.begin(RunContext(run_id="forged"), "x")

    assert begun.command_id is None
    assert "`forged` is not in the ledger" in (begun.refused or "")
    assert home.rows("SELECT run_id, ending, exit_code FROM commands_log") == [
        ("forged", "refused", 126)
    ]


def test_a_cancelled_run_is_braked_before_the_policy_speaks(home):
    """The brake goes first: even a refused command answers with it."""
    home.add_run("run-1", cancel_requested=1)

    for begun in (
        home.fast.begin(CONTEXT, "x"),
        home.fast.refuse(CONTEXT, "x", reason="openry: not allowed"),
    ):
        assert begun.command_id is None
        assert (begun.braked or "").startswith("User requested immediate stop\n")
    assert home.rows("SELECT DISTINCT ending, exit_code FROM commands_log") == [("braked", 0)]


def test_the_call_limit_brakes_the_run(home):
    """After `max_tool_calls` calls the run is braked, once, with an event; refusals count too."""
    home.add_run("run-1", max_tool_calls=2)
    home.fast.begin(CONTEXT, "1")
    home.fast.refuse(CONTEXT, "2", reason="no")

    braked = [home.fast.begin(CONTEXT, "more").braked for _ in range(3)]

    assert all("limit of 2 calls" in (text or "") for text in braked)
    assert home.rows("SELECT tool_calls, brake, status FROM task_state") == [
        (2, "call_limit", "in_progress")
    ]
    assert home.rows("SELECT kind, new FROM events") == [("brake", "call_limit")]


def test_a_limit_is_exact_among_threads(home):
    """Ten threads that share one ledger, a limit of three: three may start."""
    home.add_run("run-1", max_tool_calls=3)
    begun = []
    threads = [
        threading.Thread(target=lambda: begun.append(home.fast.begin(CONTEXT, "x")))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(one.command_id is not None for one in begun) == 3
    assert sum(one.braked is not None for one in begun) == 7


def test_text_that_is_not_utf8_is_recorded_visibly(home):
    """A lone surrogate or a NUL in a command or output is shown, and never stops the recording."""
    begun = home.fast.begin(RunContext(), "cat \udcff\0", cwd="/caf\udce9")
    home.fast.finish(begun.command_id, CommandResult(0, "\ud800", "\0", 0.1))

    assert home.rows("SELECT command, cwd, stdout, stderr FROM commands_log") == [
        (r"cat \udcff␀", r"/caf\udce9", r"\ud800", "␀")
    ]


# --- runs -------------------------------------------------------------------------------------


def test_a_run_is_read_with_its_workspace(home):
    """`run` gives what the hand needs: limits, brakes, payload, and the instance's workspace."""
    home.add_run("run-1", max_tool_calls=7, payload='{"a": [1]}', data='{"policy": "moderate"}')
    run = home.fast.run("run-1")

    assert run is not None
    assert (run.workspace, run.max_tool_calls, run.cancel_requested) == ("/ws", 7, False)
    assert (run.payload, run.data) == ({"a": [1]}, {"policy": "moderate"})
    assert home.fast.run("unknown") is None


def test_a_report_changes_the_run_and_keeps_the_payload(home):
    """`completed` is a claim: the run waits for validation, with payload, history and event."""
    home.add_run("run-1")

    assert home.fast.report(CONTEXT, "completed", {"名": "值"}).acknowledged
    assert home.rows(
        "SELECT status, reported_status, validation_status, payload, ended_at IS NOT NULL"
        " FROM task_state"
    ) == [("completed", "completed", "pending", '{"名": "值"}', 1)]
    assert home.rows("SELECT status, payload, accepted FROM payloads") == [
        ("completed", '{"名": "值"}', 1)
    ]
    assert home.rows("SELECT kind, old, new, actor, run_id FROM events") == [
        ("transition", "in_progress", "completed", "agent", "run-1")
    ]


def test_a_repeated_report_leaves_one_submission(home):
    """Reporting the same again is acknowledged and adds nothing."""
    home.add_run("run-1")
    for _ in range(3):
        assert home.fast.report(CONTEXT, "completed", {"a": 1}).acknowledged

    assert home.rows("SELECT count(*) FROM payloads") == [(1,)]
    assert home.rows("SELECT count(*) FROM events") == [(1,)]


def test_a_late_payload_is_kept_but_not_taken(home):
    """Every submission stays in the history; the run keeps the payload it ended with."""
    home.add_run("run-1")
    home.fast.report(CONTEXT, "completed", {"a": 1})

    assert home.fast.report(CONTEXT, "completed", {"a": 2}).acknowledged
    assert not home.fast.report(CONTEXT, "failed", {"a": 3}).acknowledged
    assert home.rows("SELECT payload, accepted FROM payloads ORDER BY id") == [
        ('{"a": 1}', 1),
        ('{"a": 2}', 0),
        ('{"a": 3}', 0),
    ]
    assert home.rows("SELECT status, payload FROM task_state") == [("completed", '{"a": 1}')]


def test_progress_changes_no_state(home):
    """`in_progress` with a payload is a sign of life, and the run goes on."""
    home.add_run("run-1")
    home.fast.report(CONTEXT, "in_progress", {"done": 3})

    assert home.rows("SELECT status, payload, heartbeat_at IS NOT NULL FROM task_state") == [
        ("in_progress", '{"done": 3}', 1)
    ]
    assert home.fast.report(CONTEXT, "failed", {"reason": "stuck"}).acknowledged
    assert home.rows("SELECT status, reason FROM task_state") == [("failed", "stuck")]


def test_an_overflow_is_marked(home):
    """`overflow` leaves the run unfinished, and says so in its own column."""
    home.add_run("run-1")
    home.fast.report(CONTEXT, "overflow")

    assert home.rows("SELECT status, output_overflow, ended_at FROM task_state") == [
        ("overflow", 1, None)
    ]


def test_after_a_report_nothing_more_runs(home):
    """A run that said it is done is braked like any other that is no longer in progress."""
    home.add_run("run-1")
    home.fast.report(CONTEXT, "completed")

    assert "it is `completed`" in (home.fast.begin(CONTEXT, "x").braked or "")


# --- what a crash leaves ----------------------------------------------------------------------


def _ended_process() -> ProcessId:
    child = subprocess.Popen(["sleep", "60"])
    known = process_id(child.pid)
    child.kill()
    child.wait()
    return known


def _belongs_to(home, process: ProcessId, started_at: str = "2026-03-01T09:00:00.000Z") -> None:
    home.rows(
        "UPDATE commands_log SET pid = ?, pid_started_at = ?, host = ?, started_at = ?",
        *(process.pid, process.started_at, process.host, started_at),
    )


def test_a_command_of_a_dead_process_is_lost(home):
    """Recovery turns `started` into `lost`, with a time and without an exit code."""
    home.fast.begin(RunContext(), "x")
    _belongs_to(home, _ended_process())

    assert home.fast.recover_lost() == 1
    assert home.fast.recover_lost() == 0
    assert home.rows("SELECT ending, exit_code, ended_at IS NOT NULL FROM commands_log") == [
        ("lost", None, 1)
    ]


def test_a_command_that_still_runs_is_not_lost(home):
    """Who is alive keeps its row, however long it takes."""
    home.fast.begin(RunContext(), "x")
    _belongs_to(home, process_id(os.getpid()))

    assert home.fast.recover_lost() == 0


def test_a_number_given_again_is_no_sign_of_life(home):
    """A process with the same number that began at another time is somebody else."""
    home.fast.begin(RunContext(), "x")
    boot, namespace, ticks = process_id(os.getpid()).started_at.split("/")
    _belongs_to(
        home, ProcessId(os.getpid(), f"{boot}/{namespace}/{int(ticks) - 1}", os.uname().nodename)
    )

    assert home.fast.recover_lost() == 1


def test_another_host_s_command_is_lost_after_a_day(home):
    """What cannot be judged from here is left alone until it is surely over."""
    ledger = FastLedger(home.path, now=lambda: "2026-03-02T08:00:00.000Z")
    ledger.begin(RunContext(), "x")
    _belongs_to(home, ProcessId(1, "boot/ns/1", "elsewhere"), "2026-03-01T09:00:00.000Z")

    assert ledger.recover_lost() == 0
    assert ledger.recover_lost(doubt_s=3600) == 1
    ledger.close()


def test_the_truth_corrects_a_loss(home):
    """A command taken for lost too early is finished all the same."""
    command_id = home.fast.begin(RunContext(), "x").command_id
    _belongs_to(home, _ended_process())
    home.fast.recover_lost()

    assert home.fast.finish(command_id, DONE)
    assert home.rows("SELECT ending, exit_code FROM commands_log") == [("exited", 3)]


def test_a_killed_hand_leaves_a_row(home):
    """kill -9 between `begin` and `finish`: the row is on disk, and recovery finds it."""
    code = (
        "import os, signal, sys; from openry.ledger.fast import FastLedger;"
        "from openry.models import RunContext;"
        "FastLedger(sys.argv[1]).begin(RunContext(), 'x'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(home.path)], check=False)

    assert home.rows("SELECT command, ending FROM commands_log") == [("x", "started")]
    assert home.fast.recover_lost() == 1


# --- the connection ---------------------------------------------------------------------------


def test_a_child_of_fork_gets_its_own_connection(home):
    """Parent and child write on, and both rows are there."""
    home.fast.begin(RunContext(), "parent")
    child = os.fork()
    if child == 0:
        home.fast.begin(RunContext(), "child")
        os._exit(0)
    os.waitpid(child, 0)
    home.fast.begin(RunContext(), "parent again")

    assert home.rows("SELECT command, pid = ? FROM commands_log ORDER BY id", os.getpid()) == [
        ("parent", 1),
        ("child", 0),
        ("parent again", 1),
    ]


def test_a_closed_ledger_opens_again(home):
    """Closing is for tidiness; the next call opens anew."""
    home.fast.begin(RunContext(), "x")
    home.fast.close()

    assert home.fast.begin(RunContext(), "y").command_id == 2


def test_writer_and_schema_agree(tmp_path):
    """All that the hand writes fits the tables as `schema` declares them, without any migration."""
    path = tmp_path / "declared.db"
    engine = create_engine(f"sqlite:///{path}")
    schema.metadata.create_all(engine)
    engine.dispose()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT NOT NULL)")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (HEAD,))
        connection.execute(
            "INSERT INTO task_state (run_id, status, max_tool_calls, token_hash, created_at)"
            " VALUES ('run-1', 'in_progress', 1, ?, '2026-03-01T09:00:00.000Z')",
            (hashed(CONTEXT.token),),
        )
    ledger = FastLedger(path)

    command_id = ledger.begin(CONTEXT, "x").command_id
    ledger.finish(command_id, DONE)
    ledger.begin(CONTEXT, "one too many")
    ledger.refuse(RunContext(), "x", reason="no")
    ledger.report(CONTEXT, "in_progress", {"a": 1})
    ledger.report(CONTEXT, "completed", {"a": 2})
    ledger.recover_lost()

    counts = "SELECT (SELECT count(*) FROM commands_log), (SELECT count(*) FROM payloads),"
    assert connection.execute(f"{counts} (SELECT count(*) FROM events)").fetchone() == (3, 2, 2)
    assert connection.execute("SELECT payload FROM task_state").fetchone() == ('{"a": 2}',)
    connection.close()
    ledger.close()


@pytest.mark.skipif(not shutil.which("strace"), reason="NOT TESTED: strace is not installed")
def test_a_row_is_on_disk_before_its_process_is(tmp_path):
    """`begin`, `refuse` and `report` wait for the disk; how a command ended need not."""
    code = (
        "import os, sys\nfrom openry.ledger.fast import FastLedger\n"
        "from openry.models import CommandResult, RunContext\n"
        "ledger = FastLedger(sys.argv[1])\n"
        "say = lambda word: os.write(2, f'<{word}>'.encode())\n"
        "for _ in range(2):\n"
        "    begun = ledger.begin(RunContext(), 'true'); say('begun')\n"
        "    ledger.finish(begun.command_id, CommandResult(0, '', '', 0.0)); say('ended')\n"
        "ledger.refuse(RunContext(), 'rm', reason='no'); say('refused')\n"
    )
    with FastLedger(tmp_path / "openry.db") as ledger:
        ledger.run("nobody")

    done = subprocess.run(
        ["strace", "-f", "-e", "trace=fsync,fdatasync,write", "-e", "signal=none",
         sys.executable, "-c", code, tmp_path / "openry.db"],
        capture_output=True, text=True,
    )  # fmt: skip
    parts = re.split(r"write\(2, \"<(\w+)>", done.stderr)

    flushed = [
        (word, "sync(" in before) for before, word in zip(parts[:-1:2], parts[1::2], strict=True)
    ]
    assert flushed == [
        ("begun", True), ("ended", False), ("begun", True), ("ended", False), ("refused", True),
    ]  # fmt: skip


def test_one_connection_is_durable_again_after_a_finish(home):
    """Whatever came before, what must be on disk waits for it."""
    begun = home.fast.begin(RunContext(), "true")
    home.fast.finish(begun.command_id, CommandResult(0, "", "", 0.0))
    assert home.fast._connection.execute("PRAGMA synchronous").fetchone() == (1,)

    home.fast.begin(RunContext(), "true")

    assert home.fast._connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_the_stand_in_of_functools_is_gone_after_loading_sqlite():
    """Whoever imports it gets the real one, and SQLite's cache of statements works all the same."""
    code = (
        "import sys\n"
        "from openry.ledger.sqlite import connect\n"
        "assert 'functools' not in sys.modules\n"
        "db = connect(':memory:', cached_statements=5)\n"
        "assert [db.execute(f'SELECT {n % 9}').fetchone()[0] for n in range(50)] == "
        "[n % 9 for n in range(50)]\n"
        "import functools, sqlite3\n"
        "assert functools.partial and functools.lru_cache(lambda: 1)() == 1\n"
        "assert sqlite3.connect(':memory:').execute('SELECT 1').fetchone() == (1,)\n"
    )
    root = Path(__file__).parents[3]
    bare = f"import sys; sys.path.insert(0, {str(root)!r}); exec({code!r})"

    done = subprocess.run([sys.executable, "-I", "-S", "-c", bare], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_journal_with_room_does_not_grow_and_holds_nothing_else(home):
    """What is written to make it large is taken back, whatever was in it before."""
    first = home.fast.begin(RunContext(), "x").command_id
    names = home.rows("SELECT name FROM sqlite_master ORDER BY name")
    journal = home.path.with_name(f"{home.path.name}-wal")

    home.fast.make_room()

    size = journal.stat().st_size
    assert size > 4_000_000
    assert home.fast.finish(first, DONE)
    for number in range(50):
        begun = home.fast.begin(RunContext(), f"echo {number}")
        assert home.fast.finish(begun.command_id, DONE)
    assert journal.stat().st_size == size
    assert home.path.stat().st_size < 1_000_000
    assert home.rows("SELECT name FROM sqlite_master ORDER BY name") == names
    assert home.rows("SELECT count(*) FROM commands_log WHERE ending = 'exited'") == [(51,)]
    assert home.rows("PRAGMA integrity_check") == [("ok",)]


def test_no_room_is_made_while_somebody_else_writes(home):
    """It is said as any other refusal of the database, and the ledger goes on."""
    home.fast.begin(RunContext(), "x")
    home.fast.connected().execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(home.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StorageError):
        home.fast.make_room()

    other.execute("ROLLBACK")
    other.close()
    assert home.fast.begin(RunContext(), "y").command_id == 2
