"""Kill -9 at any point, then go on: nothing lost, nothing done twice that was recorded as done."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from openry.ledger.consistency import inconsistencies
from openry.ledger.journal import later, ledger_now
from openry.ledger.process import this_process
from openry.ledger.runs import runs_of, set_run
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.room import Times
from tests.integration.engine.dying import (
    STUCK,
    dying_at,
    in_child,
    stop_between_transactions,
    wait,
)

QUICK = Times(interval_s=0.5, watch_s=0.02, beat_s=0.2, self_kill_s=0.6, lease_s=1.0)

#: Items at the same time, one retried, one skipped; then the whole once more from its start.
WIDE = dedent(
    """
    name: wide
    max_retries: 1
    sub_steps:
      - id: each
        kind: shell
        for_each: {items: [1, 2, 3, 4, 5, 6], max_parallel: 3, on_item_failure: skip}
        command: |
          echo {{ item }} >> marks
          test {{ item }} != 2 || test -e again || { touch again; exit 1; }
          test {{ item }} != 5
        on_failure: retry
        max_sub_step_retries: 1
      - {id: last, kind: shell, command: 'echo last >> OUTSIDE; test $(wc -l < OUTSIDE) -gt 1'}
    """
)


def submit(config, workspace, text):
    loaded = load(text)
    assert not loaded.errors, loaded.errors
    with Engine(config, times=QUICK) as engine:
        return engine.submit(loaded, workspace=workspace)


def look(config, instance_id):
    with Engine(config) as engine, engine.ledger.read() as connection:
        return runs_of(connection, instance_id)


def marks(workspace):
    file = workspace / "marks"
    return file.read_text().split() if file.exists() else []


def wide(workspace):
    return WIDE.replace("OUTSIDE", str(workspace.parent / f"{workspace.name}-outside"))


def killed_in_a_wide_one(config, workspace, point):
    """Die at `point` of a `for_each` with a retried whole, go on, and check every promise."""
    instance_id = submit(config, workspace, wide(workspace))

    def run():
        with dying_at(point), Engine(config, times=QUICK) as engine:
            engine.run(instance_id)

    assert wait(in_child(run)) in (0, signal.SIGKILL)
    time.sleep(0.05)
    done_before = {
        (run.data["folded"], run.item): run.run_id
        for run in look(config, instance_id)
        if run.item and run.status == "done"
    }
    with Engine(config, times=QUICK) as engine:
        outcome = engine.run(instance_id)
    runs = look(config, instance_id)
    assert outcome.ok, (point, outcome.reason)
    assert all(run.settled for run in runs), point
    done = Counter((run.data["folded"], run.item) for run in runs if run.status == "done")
    assert set(done.values()) == {1}, (point, "an item was done twice")
    assert {item for _, item in done} == {"", "0", "1", "2", "3", "5"}
    for key, run_id in done_before.items():
        (kept,) = (
            r.run_id for r in runs if (r.data["folded"], r.item) == key and r.status == "done"
        )
        assert kept == run_id, (point, key, "ran again after its end")
    items = outcome.step("each").payload["items"]
    assert [each is None for each in items] == [False] * 4 + [True, False], point


def wide_boundaries(config, workspace):
    instance_id = submit(config, workspace, wide(workspace))
    with dying_at(0) as seen, Engine(config, times=QUICK) as engine:
        assert engine.run(instance_id).ok
        return seen()


def test_a_killed_for_each_loses_no_item_and_repeats_none(config, workspace, tmp_path):
    """A seeded sample of the points of a wide workflow with both levels of retry."""
    points = wide_boundaries(config, workspace)
    assert points > 100, points
    for point in random.Random(11).sample(range(1, points + 1), 6):
        folder = tmp_path / f"wide-{point}"
        folder.mkdir()
        killed_in_a_wide_one(config, folder, point)


@pytest.mark.long
def test_a_killed_for_each_loses_no_item_wherever_it_dies(config, workspace, tmp_path):
    """Every transaction boundary, every start and every end of a process."""
    for point in range(1, wide_boundaries(config, workspace) + 1):
        folder = tmp_path / f"wide-{point}"
        folder.mkdir()
        killed_in_a_wide_one(config, folder, point)


def strays_of(instance_id):
    """Processes that were started by a step of that instance."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"OPENRY_IDEMPOTENCY_KEY={instance_id}-".encode() in environ.read_bytes():
                found.append(environ.parent.name)
    return found


def test_only_the_interrupted_step_repeats(config, workspace):
    """Killed in step three of five: one and two never run again, and keep their payloads."""
    steps = "".join(
        f"  - {{id: s{n}, kind: shell, command: 'echo s{n} >> marks; "
        f'test {n} != 3 || test -e go || sleep 3000; echo "{{\\"n\\": {n}}}"\'}}\n'
        for n in range(1, 6)
    )
    instance_id = submit(config, workspace, f"name: five\nsub_steps:\n{steps}")

    def run():
        with Engine(config, times=QUICK) as engine:
            engine.run(instance_id)

    pid = in_child(run)
    while "s3" not in marks(workspace):
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    wait(pid)
    (workspace / "go").touch()

    with Engine(config, times=QUICK) as engine:
        outcome = engine.run(instance_id)

    assert outcome.ok
    assert not strays_of(instance_id)
    assert marks(workspace) == ["s1", "s2", "s3", "s3", "s4", "s5"]
    assert [outcome.step(f"s{n}").payload["n"] for n in range(1, 6)] == [1, 2, 3, 4, 5]
    lost, again = (run for run in look(config, instance_id) if run.step_id == "s3")
    assert (lost.status, again.status, again.requeue_count) == ("lost", "done", 1)
    assert again.sub_step_retry_count == 0


MEETING = """
name: many
inputs: {me: {type: int}}
sub_steps:
  - id: s0
    kind: shell
    command: |
      me={{ inputs.me }}
      if test $me -lt 2; then
        touch here-$me
        until test -e here-$((1 - $me)); do sleep 0.01; done
      fi
      echo $me-0 >> marks
"""


def two_engines_share(config, workspace, instances, steps=5):
    """Two processes patrol one ledger. Each can do one step at a time, and the first steps of two
    instances wait for each other: both must take part.
    """
    lines = "".join(
        f"  - {{id: s{n}, kind: shell, command: 'echo {{{{ inputs.me }}}}-{n} >> marks'}}\n"
        for n in range(1, steps)
    )
    loaded = load(MEETING + lines)
    assert not loaded.errors, loaded.errors
    with Engine(config, times=QUICK) as engine:
        ids = [
            engine.submit(loaded, inputs={"me": str(n)}, workspace=workspace)
            for n in range(instances)
        ]

    def serve():
        with Engine(config, slots=1) as engine:
            engine.serve(once=True)

    assert [wait(pid) for pid in (in_child(serve), in_child(serve))] == [0, 0]
    with Engine(config) as engine, engine.ledger.read() as connection:
        runs = [run for each in ids for run in runs_of(connection, each)]
        assert list(inconsistencies(connection)) == []
    assert {(run.status, run.reason) for run in runs} == {("done", "")}
    expected = {f"{n}-{step}": 1 for n in range(instances) for step in range(steps)}
    assert Counter(marks(workspace)) == expected
    assert len({run.owner for run in runs}) == 2, "both took part"


def test_two_engines_share_a_ledger_and_run_each_step_once(config, workspace):
    """A hundred steps, each with exactly one mark."""
    two_engines_share(config, workspace, 20)


@pytest.mark.long
def test_two_engines_share_a_thousand_steps(config, workspace):
    """The same for a thousand."""
    two_engines_share(config, workspace, 200)


@pytest.mark.parametrize("pid", [1, None])
def test_a_stranger_with_the_same_number_is_no_owner(config, workspace, pid):
    """A recorded pid that another process has by now is a dead owner; nobody is signalled."""
    instance_id = submit(
        config, workspace, "{name: x, sub_steps: [{id: a, kind: shell, command: echo a >> marks}]}"
    )
    stranger = pid or os.getpid()
    with Engine(config, times=QUICK) as engine:
        engine.crew.worker.start(instance_id, lambda: True)  # claimed, and never carried out
        engine.room.jobs.clear()
        with engine.room.write() as connection:
            (run,) = runs_of(connection, instance_id)
            at = ledger_now(connection)
            started_at = this_process().started_at.rpartition("/")[0] + "/12345"
            values = {"owner": "gone", "pid": stranger, "pid_started_at": started_at}
            set_run(connection, at, run.run_id, **values, lease_until=later(at, 3600))
        outcome = engine.run(instance_id)
    assert outcome.ok
    assert marks(workspace) == ["a"]
    assert [run.status for run in look(config, instance_id)] == ["lost", "done"]


def test_a_late_result_is_dropped(config, workspace):
    """An engine that slept through its lease finds its run taken, writes that down, and stops."""
    then = ", {id: b, kind: shell, command: echo b >> marks}"
    instance_id = submit(config, workspace, STUCK.replace("STEPS", then))

    def run():
        with Engine(config, times=QUICK) as engine:
            engine.run(instance_id)

    pid = in_child(run)
    while not marks(workspace):
        time.sleep(0.01)
    stop_between_transactions(pid, config.ledger)
    (workspace / "go").touch()
    with Engine(config, times=QUICK) as engine:
        outcome = engine.run(instance_id)
        os.kill(pid, signal.SIGCONT)
        assert wait(pid) == 0
        with engine.ledger.read() as connection:
            from openry.ledger.journal import events_after

            kinds = [event.kind for event in events_after(connection, 0, instance_id)]

    assert outcome.ok
    assert kinds.count("stale_result_dropped") == 1
    assert marks(workspace) == ["a", "a", "b"]


def test_a_run_is_requeued_three_times_and_then_given_up(config, workspace):
    """A step that kills its engine each time ends as dropped, not in a loop for ever."""
    killer = "echo a >> marks; kill -9 $PPID; sleep 5"
    instance_id = submit(
        config, workspace, f"{{name: x, sub_steps: [{{id: a, kind: shell, command: '{killer}'}}]}}"
    )

    def run():
        with Engine(config, times=QUICK) as engine:
            engine.run(instance_id)

    ends = [wait(in_child(run)) for _ in range(5)]
    assert ends == [9, 9, 9, 9, 0]
    assert marks(workspace) == ["a"] * 4
    runs = look(config, instance_id)
    assert [run.status for run in runs] == ["lost", "lost", "lost", "dropped"]
    with Engine(config) as engine:
        assert engine.outcome(instance_id).state == "failed"


def test_what_cannot_be_undone_waits_for_a_person(config, workspace):
    """A step marked irreversible is not run again by itself when its outcome is unknown."""
    text = (
        "{name: x, sub_steps: [{id: pay, kind: shell, irreversible: true, "
        "command: 'echo paid >> marks; kill -9 $PPID; sleep 5'}]}"
    )
    instance_id = submit(config, workspace, text)

    def run():
        with Engine(config, times=QUICK) as engine:
            engine.run(instance_id)

    assert wait(in_child(run)) == signal.SIGKILL
    with Engine(config, times=QUICK) as engine:
        outcome = engine.run(instance_id)
        assert (outcome.state, outcome.reason) == ("suspended", "unknown outcome")
        assert marks(workspace) == ["paid"]
        engine.answer(instance_id, approve=False)
        assert engine.run(instance_id).state == "failed"
    assert marks(workspace) == ["paid"]
