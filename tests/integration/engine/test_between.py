"""What another process does between a look at the ledger and the deed: forced, not waited for."""

from __future__ import annotations

import threading
import time

import pytest

from openry.errors import StaleError, StorageError, UsageError
from openry.ledger.journal import later, ledger_now
from openry.ledger.records import pending_approvals
from openry.ledger.runs import LOSE, move_run, open_runs, set_run
from openry.models import RunContext
from openry.orchestrator import worker as engine_worker
from openry.orchestrator.engine import Engine
from openry.orchestrator.patrol import View
from openry.session import archive, lifecycle
from openry.session.archive import export_session

STEP = "{name: x, sub_steps: [{id: a, kind: shell, command: 'echo a >> marks'}]}"
ASKS = "{name: x, sub_steps: [{id: a, kind: approval}, {id: b, kind: shell, command: 'true'}]}"


def always():
    return True


def never():
    return False


def begun(bench, text):
    """An instance whose first run is queued, and not taken; its id, and that run."""
    instance_id = bench.submit(text)
    assert bench.engine.crew.worker.start(instance_id, never) is None
    return instance_id, the_run(bench)


def the_run(bench):
    with bench.engine.ledger.read() as connection:
        (run,) = open_runs(connection)
    return run


def lost(bench, text):
    """The run of an instance that somebody took, and will never end."""
    instance_id = bench.submit(text)
    job = bench.engine.crew.worker.start(instance_id, always)
    bench.engine.room.jobs.clear()
    job.stop.close()
    with bench.engine.room.write() as connection:
        run = move_run(connection, ledger_now(connection), job.run, LOSE, reason="gone")
    return instance_id, run


def test_what_was_suspended_since_it_was_seen_is_not_begun(bench):
    """The run stays in the queue, as it was."""
    instance_id, run = begun(bench, STEP)
    lifecycle.suspend(bench.engine.ledger, instance_id, by="me")

    with pytest.raises(StaleError):
        bench.engine.crew.worker.begin(run, always)

    assert the_run(bench) == run
    assert bench.engine.room.jobs == {}
    lifecycle.resume(bench.engine.ledger, instance_id)
    assert bench.engine.run(instance_id).ok


def test_nobody_is_asked_of_what_was_suspended_since_it_was_seen(bench):
    """The question comes once it goes on."""
    instance_id, run = begun(bench, ASKS)
    lifecycle.suspend(bench.engine.ledger, instance_id, by="me")

    bench.engine.patrol._ask(View("", (), {}, ()), run)

    assert bench.engine.approvals() == ()
    assert the_run(bench) == run
    lifecycle.resume(bench.engine.ledger, instance_id)
    assert bench.engine.run(instance_id).state == "suspended"
    assert len(bench.engine.approvals()) == 1


def test_a_step_that_begins_as_its_engine_stops_is_put_back(bench, monkeypatch):
    """Also when it was not yet among the steps under way as the engine was told to stop."""
    instance_id, run = begun(bench, STEP.replace("echo a >> marks", "sleep 300"))
    crew = bench.engine.crew
    real, inside = crew.worker._begin, threading.Event()

    def begin(*what):
        inside.set()
        while not crew._stopped:
            time.sleep(0.01)
        return real(*what)

    monkeypatch.setattr(crew.worker, "_begin", begin)
    assert crew.begin(run)
    assert inside.wait(300)

    crew.let_go(300)

    assert bench.engine.room.jobs == {}
    assert [each.status for each in bench.runs(instance_id)] == ["lost", "queued"]


def test_nothing_begins_once_its_engine_stops(bench):
    """A run that was handed out already stays in the queue."""
    _, run = begun(bench, STEP)
    assert bench.engine.crew.worker.begin(run, never) is None
    assert the_run(bench) == run


def test_a_lost_run_is_followed_up_by_one_engine(bench, config, monkeypatch):
    """Another one that saw it too would end the command of the one that had begun it again."""
    instance_id, run = lost(bench, STEP)
    ended = []
    with Engine(config, times=bench.engine.room.times) as other:

        def end_strays(mark):
            ended.append(mark)
            assert len(ended) == 1, "ended by both"
            assert other.crew.worker.follow(run, never) is None

        monkeypatch.setattr(engine_worker, "end_strays", end_strays)
        bench.engine.crew.worker.follow(run, never)
        other.crew.worker.follow(run, never)

    assert [each.status for each in bench.runs(instance_id)] == ["lost", "queued"]
    assert bench.engine.run(instance_id).ok


def test_an_unknown_outcome_of_a_suspended_session_waits_for_its_turn(bench):
    """A person is asked once the session goes on, not while it is suspended."""
    text = STEP.replace("kind: shell", "kind: shell, irreversible: true")
    instance_id, run = lost(bench, text)
    lifecycle.suspend(bench.engine.ledger, instance_id, by="me")

    assert bench.engine.crew.worker.follow(run, never) is None

    assert bench.engine.approvals() == ()
    lifecycle.resume(bench.engine.ledger, instance_id)
    assert bench.engine.run(instance_id).reason == "unknown outcome"
    bench.engine.answer(instance_id, approve=True)
    assert bench.engine.run(instance_id).ok


def test_what_was_exported_does_not_go_on_when_its_question_expires(bench, tmp_path):
    """Time alone resumes nothing that may go on elsewhere."""
    instance_id = bench.submit(ASKS)
    assert bench.engine.run(instance_id).state == "suspended"
    export_session(bench.engine.config, bench.engine.ledger, instance_id, tmp_path / "x.openry")
    with bench.engine.room.write() as connection:
        at = ledger_now(connection)
        set_run(connection, at, the_run(bench).run_id, deadline_at=later(at, -1))

    for _ in range(2):
        bench.engine.patrol.scan()

    assert bench.engine.outcome(instance_id).state == "suspended"
    with bench.engine.ledger.read() as connection:
        assert len(pending_approvals(connection, instance_id)) == 1


def test_what_goes_on_while_it_is_exported_is_not_exported(bench, tmp_path, monkeypatch):
    """Its files would be older than its rows; nothing is written, nothing suspended."""
    instance_id, _ = begun(bench, STEP)
    real = archive._keep_workspaces

    def keep(*about):
        kept = real(*about)
        assert bench.engine.run(instance_id).ok
        return kept

    monkeypatch.setattr(archive, "_keep_workspaces", keep)
    target = tmp_path / "x.openry"
    with pytest.raises(UsageError, match="went on meanwhile; openry session suspend"):
        export_session(bench.engine.config, bench.engine.ledger, instance_id, target)

    assert not target.exists()
    assert bench.engine.outcome(instance_id).state == "completed"


def test_the_hand_waits_in_line_with_the_engine(bench):
    """Who writes meanwhile waits for our own lock, not in SQLite, whose waiting is a sleep."""
    room = bench.engine.room
    room.fast.run("nobody")  # opens it
    room.fast._connection.execute("PRAGMA busy_timeout = 0")
    told = []

    def begin():
        try:
            told.append(room.fast.begin(RunContext(), "true").command_id)
        except StorageError as error:
            told.append(str(error))

    hand = threading.Thread(target=begin)
    with room.write():
        hand.start()
        hand.join(0.2)  # without the lock it has failed by now
        assert told == []
    hand.join()

    assert told == [1]
