"""Each guard is one: switched off, by a switch that only tests have, its promise breaks.

A guard whose absence nothing notices would be no guard, or nobody would know.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

import pytest
from sqlalchemy.exc import DatabaseError

from openry.errors import StorageError
from openry.ledger import runs as ledger_runs
from openry.ledger.db import Ledger
from openry.ledger.journal import later, ledger_now
from openry.ledger.runs import get_run, open_runs, set_run
from openry.ledger.schema import payloads, task_state
from openry.orchestrator import worker as engine_worker
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.room import Times
from openry.orchestrator.worker import Worker
from openry.sandbox import watch as sandbox_watch

TIMES = Times(interval_s=0.2, watch_s=0.02, beat_s=0.1, self_kill_s=0.4, lease_s=60, grace_s=0.5)
STEP = "{name: x, sub_steps: [{id: a, kind: shell, command: 'echo a >> marks'}]}"


def unfenced(monkeypatch):
    """Writes of a run look at nothing but its id: neither state nor epoch nor who holds it."""
    real = ledger_runs.change

    def change(connection, table, where, values, **more):
        if table is task_state and "epoch" in where:
            where = {"run_id": where["run_id"]}
        return real(connection, table, where, values, **more)

    monkeypatch.setattr(ledger_runs, "change", change)


def deferred(monkeypatch):
    """Writing transactions take the lock with their first write, not with their beginning."""
    monkeypatch.setattr(Ledger, "write", lambda self: self._transaction(writing=False))


def no_orphan_kill(monkeypatch):
    """What a dead engine left running goes on while its step is done again."""
    monkeypatch.setattr(engine_worker, "end_strays", lambda mark: None)
    monkeypatch.setattr(sandbox_watch.Watch, "_write", lambda self, *what: None)


def payload_apart(monkeypatch):
    """The payload is put down in a transaction of its own, after the end of the run."""
    real_write, real_keep = Worker._write, Worker._keep_payload
    kept = []
    monkeypatch.setattr(Worker, "_keep_payload", lambda self, *about: kept.append(about))

    def write(self, connection, at, *about):
        done = real_write(self, connection, at, *about)
        self.room.after = [(at, *more[2:]) for more in kept]
        kept.clear()
        return done

    real_conclude = Worker.conclude

    def conclude(self, *about):
        following = real_conclude(self, *about)
        if os.environ.get("DIE_BETWEEN"):
            os.kill(os.getpid(), signal.SIGKILL)
        with self.room.write() as connection:
            for at, run, change in getattr(self.room, "after", ()):
                real_keep(self, connection, at, run, change)
        return following

    monkeypatch.setattr(Worker, "_write", write)
    monkeypatch.setattr(Worker, "conclude", conclude)


@pytest.fixture
def two(config):
    """Two engines on one ledger."""
    with Engine(config, times=TIMES) as one, Engine(config, times=TIMES) as other:
        yield one, other


def submit(engine, workspace, text=STEP):
    return engine.submit(load(text), workspace=workspace)


def marks(workspace):
    file = Path(workspace, "marks")
    return file.read_text().split() if file.exists() else []


def never():
    return False


# --- the fence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarded", [True, False])
def test_without_the_fence_on_claims_a_run_is_taken_twice(two, workspace, monkeypatch, guarded):
    """Two engines saw the same queued run; only one may carry it out."""
    if not guarded:
        unfenced(monkeypatch)
    one, _ = two
    instance_id = submit(one, workspace)
    job = one.crew.worker.start(instance_id, never)
    assert job is None, "started, not claimed"
    with one.ledger.read() as connection:
        (seen,) = open_runs(connection)
    jobs = [engine.crew.worker.begin(seen, lambda: True) for engine in two]
    for engine, job in zip(two, jobs, strict=True):
        if job is not None:
            engine.crew.worker.work(job, never)
    assert len([job for job in jobs if job is not None]) == (1 if guarded else 2)
    assert not guarded or marks(workspace) == ["a"]


@pytest.mark.parametrize("guarded", [True, False])
def test_without_the_fence_on_ends_a_late_result_is_written(two, workspace, monkeypatch, guarded):
    """Who was taken for dead must not write a result over what happened since."""
    one, other = two
    instance_id = submit(one, workspace)
    job = one.crew.worker.start(instance_id, lambda: True)
    with other.room.write() as connection:
        at = ledger_now(connection)
        gone = {"owner": "gone", "pid": None, "lease_until": later(at, -1), "epoch": 9}
        set_run(connection, at, job.run_id, **gone)
    assert other.run(instance_id).ok
    before = _status(one, job.run_id)
    assert before == "lost"
    if not guarded:
        unfenced(monkeypatch)
        monkeypatch.setattr(Worker, "_look_again", lambda self, run, job, end: run)
    with suppress(StorageError):
        one.crew.worker.work(job, never)
    assert (_status(one, job.run_id) == before) is guarded


def _status(engine, run_id):
    with engine.ledger.read() as connection:
        return get_run(connection, run_id).status


# --- transactions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("guarded", [True, False])
def test_without_immediate_transactions_writers_fail(config, monkeypatch, guarded):
    """Who looked, and then writes, fails when another wrote in between; taken at once it waits."""
    if not guarded:
        deferred(monkeypatch)
    with (
        Ledger(config.ledger) as ledger,
        closing(sqlite3.connect(ledger.path, timeout=0, isolation_level=None)) as other,
        ledger.write() as connection,
    ):
        connection.execute(task_state.select()).all()
        with nullcontext() if not guarded else pytest.raises(sqlite3.Error, match="locked"):
            other.execute("INSERT INTO task_state (run_id, created_at) VALUES ('y', '2026')")
        with nullcontext() if guarded else pytest.raises(DatabaseError, match="locked"):
            connection.execute(task_state.insert().values(run_id="x", created_at="2026"))


@pytest.mark.parametrize("guarded", [True, False])
def test_without_one_transaction_a_kill_loses_the_payload(config, workspace, monkeypatch, guarded):
    """A run that is recorded as done has its payload beside it, wherever the engine died."""
    with Engine(config, times=TIMES) as engine:
        instance_id = submit(engine, workspace)
    pid = os.fork()
    if pid == 0:
        try:
            if not guarded:
                os.environ["DIE_BETWEEN"] = "1"
                payload_apart(monkeypatch)
            with Engine(config, times=TIMES) as engine:
                engine.run(instance_id)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    with Engine(config, times=TIMES) as engine:
        assert engine.run(instance_id).ok
        with engine.ledger.read() as connection:
            kept = connection.execute(payloads.select()).all()
    assert len(kept) == (1 if guarded else 0)


# --- processes ------------------------------------------------------------------------------------


@contextmanager
def locked(path):
    """Another program holds the ledger."""
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.parametrize("guarded", [True, False])
def test_without_the_self_kill_a_step_outlives_its_lease(config, workspace, monkeypatch, guarded):
    """Without ledger for too long a step is ended: soon somebody else may begin it again."""
    monkeypatch.setattr("openry.ledger.engine.BUSY_TIMEOUT_S", 0.2)
    times = TIMES if guarded else Times(**{**_as_dict(TIMES), "self_kill_s": 3600.0})
    nap = "sleep 3000" if guarded else "sleep 2"
    text = STEP.replace("echo a >> marks", f"echo a >> marks; {nap}; echo late >> marks")
    with Engine(config, times=times) as engine:
        instance_id = submit(engine, workspace, text)
        job = engine.crew.worker.start(instance_id, lambda: True)
        engine.crew._put_to_work("x", instance_id, lambda more: job)
        while not marks(workspace):
            time.sleep(0.01)
        with locked(engine.ledger.path):
            while not job.stop.is_set() and "late" not in marks(workspace):
                time.sleep(0.02)
        assert job.stop.is_set() is guarded


def _as_dict(times):
    return {name: getattr(times, name) for name in times.__slots__}


@pytest.mark.parametrize("guarded", [True, False])
def test_without_the_orphan_kill_two_of_a_step_run_at_once(config, workspace, monkeypatch, guarded):
    """What a killed engine started is ended before its step is begun again."""
    if not guarded:
        no_orphan_kill(monkeypatch)
    command = (
        "test -e marks && grep -qs 'State:.[RSD]' /proc/$(head -1 marks)/status && touch both;"
        " echo $$ >> marks; test $(wc -l < marks) -gt 1 || sleep 3000"
    )
    text = STEP.replace("'echo a >> marks'", json.dumps(command))
    text = text.replace("{name: x,", "{name: x, command_policy: permissive,")
    with Engine(config, times=TIMES) as engine:
        instance_id = submit(engine, workspace, text)
    pid = os.fork()
    if pid == 0:
        try:
            Engine(config, times=TIMES).run(instance_id)
        finally:
            os._exit(0)
    while not marks(workspace):
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with Engine(config, times=TIMES) as engine:
        assert engine.run(instance_id).ok
    assert (workspace / "both").exists() is not guarded
    with suppress(ProcessLookupError):
        os.kill(int(marks(workspace)[0]), signal.SIGKILL)
