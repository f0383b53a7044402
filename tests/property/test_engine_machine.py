"""Two engines on one ledger, moved by hand in any order, with crashes and clocks that are set.

The engines, the patrol, the workers and the ledger are the real ones; threads are not, so that each
of their moves is one rule here, nor are commands: how a step's work ends is drawn.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy.exc import IntegrityError

from openry.config import load_config
from openry.errors import StaleError, StorageError
from openry.ledger import journal
from openry.ledger import runs as ledger_runs
from openry.ledger.consistency import inconsistencies
from openry.ledger.db import Ledger
from openry.ledger.instances import list_instances
from openry.ledger.journal import later, ledger_now
from openry.ledger.process import ProcessId
from openry.ledger.prune import ended_before, forget
from openry.ledger.runs import beat, get_run, put_brake, runs_of
from openry.ledger.schema import task_state
from openry.models import RunContext
from openry.orchestrator import countdowns, patrol, worker
from openry.orchestrator import crew as crews
from openry.orchestrator import engine as engines
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.outcomes import FINAL
from openry.orchestrator.room import Room, Times
from openry.orchestrator.step_end import StepEnd, failed

TIMES = Times(lease_s=15, grace_s=5)
STEPS = """
name: steps
timeout_minutes: 30
max_retries: 1
sub_steps:
  - {id: a, kind: shell, command: x, on_failure: retry, max_sub_step_retries: 1,
     retry_backoff_seconds: 3}
  - {id: b, description: x, expect_payload: true, max_sub_step_retries: 1}
  - {id: ask, kind: approval, expires_minutes: 5, on_failure: c}
  - {id: c, kind: shell, command: x, timeout_seconds: 20}
"""
ITEMS = """
name: items
concurrency: {max_parallel_instances: 1}
big_steps:
  - {ref: wide, on_failure: pay}
  - {ref: pay}
"""
WIDE = """
name: wide
sub_steps:
  - {id: each, kind: shell, for_each: {items: [1, 2, 3], max_parallel: 2}, command: x,
     on_failure: retry, max_sub_step_retries: 1}
  - {id: agents, description: x, for_each: {items: [1, 2], max_parallel: 2, on_item_failure: skip}}
"""
PAY = """
name: pay
sub_steps: [{id: pay, kind: shell, irreversible: true, command: x}]
"""
ENDS = st.sampled_from(["ok", "ok", "ok", "failed", "let go"])
WHICH = st.integers(0, 7)
SEATS = st.sampled_from([0, 1])


class Clock:
    """The ledger's clock, which people set, and the engines', which nobody does."""

    def __init__(self):
        self.now, self.passed = datetime(2026, 3, 1, tzinfo=UTC), 0.0

    def go_on(self, seconds):
        self.now += timedelta(seconds=seconds)
        self.passed += seconds

    def text(self):
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Seat:
    """One engine after another, with what its threads would be at."""

    numbers = itertools.count(1)

    def __init__(self, machine):
        self.machine = machine
        self.sit()

    def sit(self):
        machine, self.number = self.machine, next(self.numbers)
        self.engine = engine = Engine(machine.config, times=TIMES, slots=4)
        machine.alive.add(self.number)
        machine.numbers[engine.room.owner] = self.number
        engine.crew._put_to_work = self.put
        engine.crew.worker.steps.perform = self.perform
        engine.room.fast._now = machine.clock.text
        self.tasks = []
        self.end = "ok"
        engine._show_up()

    def put(self, key, instance_id, begin):
        crew = self.engine.crew
        if key in crew._busy or len(crew._busy) >= crew.slots:
            return False
        crew._busy[key] = Thread()
        self.tasks.append([key, begin, None])
        return True

    def move(self, task, end, more):
        """One move of a thread: take a run, or carry out the one it has."""
        key, begin, job = task
        self.end, following = end, None
        with suppress(StorageError, StaleError):
            take = self.engine.crew.worker.work
            following = begin(lambda: more) if job is None else take(job, lambda: more)
        task[2] = following
        if following is None:
            self.tasks.remove(task)
            del self.engine.crew._busy[key]

    def perform(self, job):
        """The work of a step; nobody may be at it whose turn was done before."""
        run, step = job.run, job.standing.step(job.run.step_id)
        turn = (run.workflow_instance_id, run.data["visit"], run.data["folded"], run.item)
        assert not self.machine.is_done(turn), f"{turn} runs again"
        if step.for_each is not None and not run.item:
            return StepEnd(True, items=step.for_each.items)
        if job.let_go or self.end == "let go":
            job.let_go = True
            return failed("interrupted", interrupted=True)
        return failed("drawn") if self.end == "failed" else StepEnd(True, {"n": 1})

    def jobs(self):
        return list(self.engine.room.jobs.values())

    def crash(self):
        self.machine.alive.discard(self.number)
        for job in self.jobs():
            job.stop.close()
        self.engine.room.close()
        self.sit()


class Thread:
    def is_alive(self):
        return True


class Machine(RuleBasedStateMachine):
    template = ""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="openry-machine-"))
        home = self.folder / "home"
        home.mkdir()
        self.config = replace(load_config(home, env={}), sandbox="none")
        shutil.copy(template_of(), self.config.ledger)
        for text in (STEPS, ITEMS, WIDE, PAY):
            name = text.split()[1]
            (self.folder / f"{name}.yaml").write_text(text)
        self.clock, self.alive, self.numbers = Clock(), set(), {}
        self.patch = pytest.MonkeyPatch()
        self._patch()
        self.seats = (Seat(self), Seat(self))
        self.plans = {name: load(self.folder / f"{name}.yaml") for name in ("steps", "items")}
        assert not any(plan.errors for plan in self.plans.values())

    def _patch(self):
        clock, alive, numbers = self.clock, self.alive, self.numbers

        class Set(datetime):
            @classmethod
            def now(cls, tz=None):
                return clock.now

        def process(room):
            return ProcessId(numbers[room.owner], "then", "here")

        self.patch.setattr(journal, "datetime", Set)
        self.patch.setattr(Room, "process", property(process))
        for module in (patrol, engines):
            self.patch.setattr(module, "is_alive", lambda process: process.pid in alive)
        for module in (countdowns, patrol, engines, crews):
            self.patch.setattr(module, "monotonic", lambda: clock.passed)
        self.patch.setattr(worker, "end_strays", lambda mark: None)

    def teardown(self):
        try:
            self._finish()
        finally:
            for seat in self.seats:
                self.alive.discard(seat.number)
                seat.engine.room.close()
            self.patch.undo()
            shutil.rmtree(self.folder)

    @property
    def ledger(self):
        return self.seats[0].engine.ledger

    def instances(self):
        with self.ledger.read() as connection:
            return list_instances(connection)

    def is_done(self, turn):
        with self.ledger.read() as connection:
            runs = runs_of(connection, turn[0])
        known = [(r.data["visit"], r.data["folded"], r.item) for r in runs if r.status == "done"]
        return turn[1:] in known

    def _one(self, which):
        found = self.instances()
        return found[which % len(found)] if found else None

    # --- what engines do --------------------------------------------------------------------------

    @rule(seat=SEATS)
    def scan(self, seat):
        self.seats[seat].engine.patrol.scan(None)

    @rule(seat=SEATS, which=WHICH, end=ENDS, more=st.booleans())
    def work(self, seat, which, end, more):
        tasks = self.seats[seat].tasks
        if tasks:
            self.seats[seat].move(tasks[which % len(tasks)], end, more)

    @rule(seat=SEATS, ends=st.lists(ENDS, min_size=1, max_size=6))
    def go_on(self, seat, ends):
        """A scan, and some moves of every thread that found something to do."""
        self.stride(seat, ends)

    @rule(seat=SEATS, ends=st.lists(ENDS, min_size=3, max_size=8))
    def go_far(self, seat, ends):
        """The same more than once, with a person at hand."""
        for end in ends:
            self.stride(seat, (end,))
            for one in self.instances():
                if one.state == "suspended":
                    self.seats[seat].engine.answer(one.instance_id, approve=True)

    def stride(self, seat, ends):
        here = self.seats[seat]
        here.engine.patrol.scan(None)
        for end in ends:
            for task in list(here.tasks):
                here.move(task, end, True)

    @rule(seat=SEATS)
    def prolong(self, seat):
        """What the beat does, and what it does to those it lost."""
        engine = self.seats[seat].engine
        held = [(job.run_id, job.epoch) for job in self.seats[seat].jobs()]
        with engine.room.write() as connection:
            at = ledger_now(connection)
            gone = beat(connection, at, engine.room.owner, held, lease_s=TIMES.lease_s)
        for run_id in gone:
            engine.room.jobs[run_id].stop.set()

    @rule(seat=SEATS)
    def crash(self, seat):
        self.seats[seat].crash()

    @rule(seat=SEATS)
    def shut_down(self, seat):
        """SIGTERM: what runs is let go, and queued again."""
        here = self.seats[seat]
        for job in here.jobs():
            job.let_go = True
        for task in list(here.tasks):
            while task in here.tasks:
                here.move(task, "let go", False)
        here.crash()

    # --- what agents do ---------------------------------------------------------------------------

    @rule(
        seat=SEATS,
        which=WHICH,
        status=st.sampled_from(["completed", "failed", "cancelled", "overflow", "in_progress"]),
        payload=st.sampled_from([{}, {"n": 2}]),
        mine=st.booleans(),
    )
    def report(self, seat, which, status, payload, mine):
        jobs = [job for job in self.seats[seat].jobs() if job.run.kind == "agent"]
        if jobs:
            room, job = self.seats[seat].engine.room, jobs[which % len(jobs)]
            token = room.token(job) if mine else "wrong"
            room.fast.report(RunContext(run_id=job.run_id, token=token), status, payload)

    @rule(seat=SEATS, which=WHICH)
    def brake(self, seat, which):
        jobs = self.seats[seat].jobs()
        if jobs:
            with self.seats[seat].engine.room.write() as connection:
                run = get_run(connection, jobs[which % len(jobs)].run_id)
                put_brake(connection, ledger_now(connection), run, "timeout", "drawn")

    # --- what people do ---------------------------------------------------------------------------

    @initialize(plan=st.sampled_from(["steps", "items"]))
    def start_one(self, plan):
        self.start(plan)

    @precondition(lambda self: len(self.instances()) < 4)
    @rule(plan=st.sampled_from(["steps", "items"]))
    def start(self, plan):
        self.seats[0].engine.submit(self.plans[plan])

    @rule(seat=SEATS, which=WHICH)
    def cancel(self, seat, which):
        if one := self._one(which):
            self.seats[seat].engine.cancel(one.instance_id)

    @rule(seat=SEATS, which=WHICH, approve=st.booleans())
    def answer(self, seat, which, approve):
        if one := self._one(which):
            self.seats[seat].engine.answer(one.instance_id, approve=approve)

    @rule(seat=SEATS, which=WHICH)
    def retry(self, seat, which):
        one = self._one(which)
        if one and one.state in ("failed", "cancelled") and one.current_step:
            self.seats[seat].engine.retry(one.instance_id)

    @rule()
    def prune(self):
        with self.ledger.write() as connection:
            ids = ended_before(connection, later(ledger_now(connection), -60))
            forget(connection, ids)

    # --- what clocks do ---------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.5, 4, 16, 400]))
    def time_passes(self, seconds):
        self.clock.go_on(seconds)

    @rule(seconds=st.sampled_from([-3600, -20, 20, 3600]))
    def clock_is_set(self, seconds):
        self.clock.now += timedelta(seconds=seconds)

    # --- what is always true ----------------------------------------------------------------------

    @invariant()
    def nothing_contradicts(self):
        with self.ledger.read() as connection:
            assert list(inconsistencies(connection)) == []

    def _finish(self):
        """Let alone, with a person at hand, everything comes to its end: nothing is lost."""
        for turn in range(200):
            live = [one for one in self.instances() if one.state not in FINAL]
            if not live:
                break
            for one in live:
                if one.state == "suspended":
                    self.seats[0].engine.answer(one.instance_id, approve=True)
            # Whoever began after the clock was set back waits that much longer.
            self.clock.go_on(2 if turn != 100 else 20_000)
            for seat in (0, 1):
                self.prolong(seat)
                self.stride(seat, ("ok",))
        else:
            raise AssertionError(f"{[(one.workflow, one.state, one.reason) for one in live]}")
        for seat in (0, 1):  # who came too late finds that out
            self.stride(seat, ("ok",) * 4)
        self.nothing_contradicts()
        assert not any(seat.tasks for seat in self.seats)


def template_of():
    """An empty ledger, made once."""
    if not Machine.template:
        place = Path(tempfile.mkdtemp(prefix="openry-ledger-")) / "openry.db"
        Ledger(place).close()
        Machine.template = str(place)
    return Machine.template


def run_machine(examples, steps, *, unshrunk=False):
    about = {"max_examples": examples, "stateful_step_count": steps, "deadline": None}
    about |= {"suppress_health_check": list(HealthCheck), "derandomize": True, "database": None}
    about |= {"phases": [Phase.generate], "print_blob": False} if unshrunk else {}
    run_state_machine_as_test(Machine, settings=settings(**about))


def test_whatever_happens_the_ledger_keeps_its_promises():
    """A sample; the same courses each time."""
    run_machine(10, 25)


@pytest.mark.long
def test_whatever_happens_the_ledger_keeps_its_promises_for_long():
    """Many more, and longer ones."""
    run_machine(150, 60)


#: What a run that two engines took looks like: to the checker, to the steps, to the schema.
_SEEN = r"went from|alive|runs again|was done|UNIQUE constraint"


@pytest.mark.long
def test_without_the_fence_the_machine_finds_a_broken_promise(monkeypatch):
    """Writes of a run that look at nothing but its id: a course is found in which that shows."""
    real = ledger_runs.change

    def change(connection, table, where, values, **more):
        if table is task_state and "epoch" in where:
            where = {"run_id": where["run_id"]}
        return real(connection, table, where, values, **more)

    monkeypatch.setattr(ledger_runs, "change", change)
    with pytest.raises((AssertionError, IntegrityError), match=_SEEN):
        run_machine(100, 40, unshrunk=True)
