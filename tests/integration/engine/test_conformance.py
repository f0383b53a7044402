"""What every engine must keep, said in the Protocol's five verbs only. Today there is `local`."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from openry.errors import NotFoundError, StorageError, UsageError
from openry.ledger.change import change
from openry.ledger.journal import events_after, later, ledger_now
from openry.ledger.runs import runs_of
from openry.ledger.schema import workflow_instances
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.protocol import WorkflowEngine
from openry.orchestrator.room import Times
from tests.integration.engine.dying import STUCK, stop_between_transactions

PATIENT = Times(interval_s=0.5, watch_s=0.02, grace_s=0.5)
#: A lease that ends while somebody sleeps; on a busy machine it may end for others too.
SHORT = replace(PATIENT, beat_s=0.2, self_kill_s=0.6, lease_s=1.0)


def local(config, times) -> WorkflowEngine:
    return Engine(config, times=times)


ENGINES: dict[str, Callable[..., WorkflowEngine]] = {"local": local}


@pytest.fixture(params=ENGINES)
def make(request, config):
    """Makes an engine on the same ledger; all are closed."""
    made = []

    def one(times: Times = PATIENT) -> WorkflowEngine:
        made.append(ENGINES[request.param](config, times))
        return made[-1]

    yield one
    for engine in made:
        engine.close()


@pytest.fixture
def engine(make):
    return make()


def submit(engine, workspace, text, **more):
    loaded = load(text)
    assert not loaded.errors, loaded.errors
    return engine.submit(loaded, workspace=workspace, **more)


def marks(workspace):
    file = workspace / "marks"
    return file.read_text().split() if file.exists() else []


CHAIN = "name: chain\nsub_steps:\n" + "".join(
    f"  - {{id: s{n}, kind: shell, command: echo s{n} >> marks}}\n" for n in range(4)
)


def test_an_instance_is_taken_on_once(engine, workspace):
    """The same id with the same plan is the same instance; with another plan it is refused."""
    assert submit(engine, workspace, CHAIN, instance_id="mine") == "mine"
    assert submit(engine, workspace, CHAIN, instance_id="mine") == "mine"
    with pytest.raises(UsageError, match="of another plan"):
        submit(engine, workspace, CHAIN.replace("s0", "t0"), instance_id="mine")
    with pytest.raises(UsageError, match="is no id"):
        submit(engine, workspace, CHAIN, instance_id="../x")
    engine.run_worker(once=True)
    assert marks(workspace) == ["s0", "s1", "s2", "s3"]


def test_steps_run_in_order_and_are_described(engine, workspace):
    """`describe` says how each step stands, before and after."""
    instance_id = submit(engine, workspace, CHAIN)
    assert engine.describe(instance_id).state == "queued"
    engine.run_worker(once=True)
    outcome = engine.describe(instance_id)
    assert outcome.ok
    assert [(step.id, step.state) for step in outcome.steps] == [
        (f"s{n}", "done") for n in range(4)
    ]
    with pytest.raises(NotFoundError):
        engine.describe("nobody")


def test_both_levels_of_retry(engine, workspace):
    """A step again with its backoff, then the whole from its first step."""
    counter = workspace.parent / "counter"
    instance_id = submit(
        engine,
        workspace,
        f"""
name: both
max_retries: 1
sub_steps:
  - {{id: a, kind: shell, command: echo a >> marks}}
  - id: b
    kind: shell
    command: 'echo x >> {counter}; test $(wc -l < {counter}) = 4'
    on_failure: retry
    max_sub_step_retries: 1
    retry_backoff_seconds: 0.05
""",
    )
    engine.run_worker(once=True)
    outcome = engine.describe(instance_id)
    assert outcome.ok, outcome.reason
    assert counter.read_text() == "x\n" * 4
    assert marks(workspace) == ["a"], "the files of the failed attempt are gone"


def test_a_person_is_waited_for_and_heard(engine, workspace):
    """`signal` lets it go on; nothing behind the question ran before."""
    text = (
        CHAIN
        + "  - {id: ask, kind: approval}\n  - {id: end, kind: shell, command: echo e >> marks}\n"
    )
    for answer, state, last in (("approve", "completed", "e"), ("reject", "failed", "s3")):
        instance_id = submit(engine, workspace, text)
        engine.run_worker(once=True)
        assert engine.describe(instance_id).state == "suspended"
        assert engine.signal(instance_id, answer, by="ann", comment="") == 1
        assert engine.signal(instance_id, answer, by="ann", comment="") == 0
        engine.run_worker(once=True)
        assert engine.describe(instance_id).state == state
        assert marks(workspace)[-1] == last


def test_a_cancelled_instance_ends_and_stays_ended(engine, workspace):
    """Queued or running; a second time there is nothing to cancel."""
    queued = submit(engine, workspace, CHAIN)
    assert engine.cancel(queued) and not engine.cancel(queued)
    running = submit(engine, workspace, "{name: x, sub_steps: [{id: a, kind: shell, command: 'touch began; sleep 3000'}]}")  # fmt: skip  # noqa: E501
    engine.run_worker(should_stop=lambda: (workspace / "began").exists() and engine.cancel(running))
    engine.run_worker(once=True)
    assert {engine.describe(each).state for each in (queued, running)} == {"cancelled"}
    assert marks(workspace) == []


def test_two_workers_share_what_there_is(make, workspace):
    """Each step once, whoever was first."""
    ids = [submit(make(), workspace, CHAIN) for _ in range(6)]

    def work():
        pid = os.fork()
        if pid == 0:
            try:
                make().run_worker(once=True)
            finally:
                os._exit(0)
        return pid

    for pid in (work(), work()):
        os.waitpid(pid, 0)
    assert {make().describe(each).state for each in ids} == {"completed"}
    assert Counter(marks(workspace)) == {f"s{n}": 6 for n in range(4)}


def test_a_killed_workers_step_runs_again_and_no_other(make, workspace):
    """What was recorded stays; the step that was cut off is at-least-once."""
    text = CHAIN.replace("echo s2 >> marks", "'echo s2 >> marks; test -e go || sleep 3000'")
    instance_id = submit(make(), workspace, text)
    pid = os.fork()
    if pid == 0:
        try:
            make().run_worker(once=True)
        finally:
            os._exit(0)
    while "s2" not in marks(workspace):
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    (workspace / "go").touch()
    make().run_worker(once=True)
    assert make().describe(instance_id).ok
    assert marks(workspace) == ["s0", "s1", "s2", "s2", "s3"]


def test_a_result_that_comes_too_late_is_dropped(config, make, workspace):
    """The fence: who was taken for dead and comes back writes nothing of the run any more."""
    text = STUCK.replace("STEPS", "")
    instance_id = submit(make(), workspace, text)
    pid = os.fork()
    if pid == 0:
        try:
            make(SHORT).run_worker(once=True)
        finally:
            os._exit(0)
    while not marks(workspace):
        time.sleep(0.01)
    stop_between_transactions(pid, config.ledger)
    (workspace / "go").touch()
    make(SHORT).run_worker(once=True)
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)
    with Engine(config) as looking, looking.ledger.read() as connection:
        kinds = [event.kind for event in events_after(connection, 0, instance_id)]
        done = [run for run in runs_of(connection, instance_id) if run.status == "done"]
    assert make().describe(instance_id).ok
    assert (kinds.count("stale_result_dropped"), len(done)) == (1, 1)


def test_the_plan_is_frozen_with_its_hash_and_its_interpreter(config, make, workspace, tmp_path):
    """An edited file changes nothing; an edited ledger is noticed; a newer plan is refused."""
    file = tmp_path / "chain.yaml"
    file.write_text(CHAIN)
    engine = make()
    ids = [engine.submit(load(file), workspace=workspace) for _ in range(3)]
    file.write_text(CHAIN.replace("echo", "rm"))
    with Engine(config) as looking, looking.room.write() as connection:
        rows = connection.execute(workflow_instances.select()).mappings().all()
        assert {(len(row["plan_hash"]), row["interpreter_version"]) for row in rows} == {
            (64, "0.1.0")
        }
        plan = rows[0]["plan"]
        for instance_id, old, new in (
            (ids[1], "echo", "Echo"),
            (ids[2], '"format":1', '"format":9'),
        ):
            values = {"plan": plan.replace(old, new)}
            if old != "echo":
                from openry.orchestrator.plan import sha256_of

                values["plan_hash"] = sha256_of(values["plan"])
            change(connection, workflow_instances, {"instance_id": instance_id}, values)
    assert engine.describe(ids[0]).state == "queued"
    for instance_id, said in ((ids[1], "somebody changed the ledger"), (ids[2], "upgrade openry")):
        with Engine(config) as looking, pytest.raises(StorageError, match=said):
            looking.room.plan(looking._instance(instance_id))
    at = later("2026-01-01T00:00:00.000Z", 1)
    with Engine(config) as looking, looking.room.write() as connection:
        assert ledger_now(connection) > at
        for instance_id in ids[1:]:
            values = {"state": "cancelled", "ended_at": at}
            change(connection, workflow_instances, {"instance_id": instance_id}, values)
    engine.run_worker(once=True)
    assert engine.describe(ids[0]).ok
    assert marks(workspace) == ["s0", "s1", "s2", "s3"]
