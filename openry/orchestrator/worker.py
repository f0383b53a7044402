"""From a claimed run to its consequences: perform, record, validate, route, take the next one.

What follows is decided from a look at the run, and written only if the run is still as it was
looked at, under the epoch of the claim. Who comes too late writes that down, and stops.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from openry.errors import StaleError, StorageError
from openry.ledger.commands import of_run
from openry.ledger.instances import (
    end_child,
    get_instance,
    move_instance,
    set_uncancelled,
)
from openry.ledger.journal import Transaction, later, ledger_now
from openry.ledger.records import add_payload, add_validation, ask_person
from openry.ledger.runs import (
    CANCEL,
    COMPLETE,
    FAIL,
    HANDLED,
    INVALIDATE,
    LOSE,
    PROCESS,
    RESUME,
    VALIDATE,
    Claim,
    Move,
    Run,
    claim,
    get_run,
    move_run,
    set_run,
    stale_result,
)
from openry.models import InstanceState, RunState
from openry.orchestrator.countdowns import Countdowns
from openry.orchestrator.course import (
    MAX_REQUEUES,
    Course,
    Holds,
    Standing,
    Written,
    chart,
    chart_start,
    deadline_of,
    note_state,
    requeue,
    write_course,
    write_start,
)
from openry.orchestrator.items import (
    OTHER_FAILED,
    ItemCourse,
    chart_item,
    write_item,
    write_spread,
)
from openry.orchestrator.judging import Judge, Verdict
from openry.orchestrator.keeping import keep_after, prepare
from openry.orchestrator.overflow import Overflow, Resume, Start, handling_of, write_handler
from openry.orchestrator.room import Job, Room
from openry.orchestrator.routing import Ended, Outcome
from openry.orchestrator.spec import Kind, SubStep
from openry.orchestrator.step_end import StepEnd, failed
from openry.orchestrator.steps import Steps, idempotency_key
from openry.orchestrator.waiting import condition_of
from openry.sandbox.strays import end_strays

#: Says in a brake's reason that the big step's own clock ran out: nothing is retried then.
BIG_STEP_TIMEOUT = "the big step's time is up"
_BRAKE_WORDS = {"call_limit": "max_tool_calls", "loop": "looped", OTHER_FAILED: "stopped"}
_TRIES = 20
#: How long nobody else draws the consequences of a lost run while its strays are ended.
_TAKEN_OVER_S = 15.0
_HOLDER = ("epoch", "owner", "lease_until", "pid", "pid_started_at", "host")
_LET_GO = "interrupted"
More = Callable[[], bool]
#: How a run goes on whose instance a person has cancelled: to an end, if it is at none.
_CANCEL_MOVES: dict[RunState, tuple[Move, ...]] = {
    RunState.COMPLETED: (INVALIDATE,),
    RunState.OVERFLOW: (RESUME,),
    RunState.OVERFLOW_PROCESSING: (HANDLED,),
    RunState.VALIDATED: (),
    RunState.FAILED: (),
    RunState.LOST: (),
}


@dataclass(frozen=True, slots=True)
class Spread:
    """The items that a step is handed over to."""

    standing: Standing
    items: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be written of a run: its moves, and what follows if that is clear already."""

    moves: tuple[Move, ...] = ()
    reason: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
    course: Course | ItemCourse | None = None
    spread: Spread | None = None
    requeue: str = ""
    ask: str = ""
    start: Start | None = None
    resume: Resume | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What was written: the run's last word, or `run` as it is now, to go on from."""

    run: Run | None = None
    following: Job | None = None
    last_word: bool = True


class Worker:
    """Carries out the runs of one engine; each call works in the thread it is called from."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.judge = Judge(room)
        self.steps = Steps(room)
        self.overflow = Overflow(room)
        self.countdowns = Countdowns()

    def work(self, job: Job, more: More) -> Job | None:
        """Carry out `job` and write down what follows. Returns the next run, claimed at once."""
        try:
            working = job.run.status == RunState.IN_PROGRESS
            if job.run.status == RunState.COMPLETED:  # the last of its items has just ended
                keep_after(self.room, job)
            return self.conclude(job.run, job, self._perform(job) if working else None, more)
        except StorageError:
            return None  # nothing can be written down: the lease expires, and the run is taken up
        finally:
            self.room.jobs.pop(job.run_id, None)
            job.stop.close()

    def follow(self, run: Run, more: More) -> Job | None:
        """Draw the consequences of a run whose work is over, as whoever did it could not.

        What a lost one left running is ended before its work may be done again.
        """
        with self.room.ledger.read() as connection:
            fresh = get_run(connection, run.run_id)
        if fresh is None or fresh.settled:
            return None  # whoever did the work has drawn them since `run` was looked at
        seen, run = run, fresh
        if run.status == RunState.LOST:
            taken = self._take_over(run) if run.epoch == seen.epoch else None
            if taken is None:
                return None
            run = taken
            end_strays(f"OPENRY_IDEMPOTENCY_KEY={idempotency_key(run)}\0".encode())
        elif run.status == RunState.OVERFLOW_PROCESSING and self.overflow.is_waiting(run):
            return None
        return self.conclude(run, None, None, more)

    def _take_over(self, run: Run) -> Run | None:
        """A lost run as ours alone to draw consequences of; None when somebody else's it is.

        Who ended its strays after another had begun it again would end the new command.
        """
        with self.room.write() as connection:
            at = ledger_now(connection)
            claim = replace(self._claim(), lease_s=max(self.room.times.lease_s, _TAKEN_OVER_S))
            mine = claim.columns(at, run.run_id, run.epoch + 1)
            return move_run(connection, at, run, **{name: mine[name] for name in _HOLDER})

    def _perform(self, job: Job) -> StepEnd:
        try:
            prepare(self.room, job)
            end = self.steps.perform(job)
            if end.ok and end.items is None:
                keep_after(self.room, job)
            return end
        except StorageError:
            raise
        except Exception as error:  # a mistake of ours must not stop the other steps
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            return failed(f"internal error: {type(error).__name__}: {error} ({place})")

    # --- deciding and writing ---------------------------------------------------------------

    def conclude(self, run: Run, job: Job | None, end: StepEnd | None, more: More) -> Job | None:
        """Take the run as far as it goes: recorded, validated, settled, the next one queued.

        Decided from `run` as it was seen, written only if it still is so; else looked at again.
        """
        for _ in range(_TRIES):
            change = self._change(run, job, end)
            with self.room.write(durable=not _goes_on(change, more)) as connection:
                done = self._write(connection, ledger_now(connection), run, change, more)
            if done is not None and done.last_word:
                return done.following
            if done is not None and done.run is not None:
                run, end = done.run, None
                continue
            fresh = self._look_again(run, job, end)
            if fresh is None:
                return None
            run = fresh
        raise StorageError(f"run `{run.run_id}` changed {_TRIES} times while it was concluded")

    def _look_again(self, run: Run, job: Job | None, end: StepEnd | None) -> Run | None:
        """The run as it is now; None when there is nothing for us to write of it any more."""
        with self.room.ledger.read() as connection:
            fresh = get_run(connection, run.run_id)
        if fresh is None or (end is None and (fresh.settled or _is_working(fresh))):
            return None
        in_time = fresh.status == RunState.IN_PROGRESS or bool(fresh.reported_status)
        if end is None or (fresh.epoch == run.epoch and in_time and not fresh.settled):
            return fresh
        with self.room.write() as connection:
            stale_result(connection, ledger_now(connection), fresh, self.room.owner)
        return None

    def _change(self, run: Run, job: Job | None, end: StepEnd | None) -> Change:
        """What is to be written of `run` as it is now. Pure but for the rules it evaluates."""
        standing = job.standing if job else self.room.standing(run)
        step = standing.step(run.step_id)
        if run.cancel_requested and run.status in _CANCEL_MOVES:
            outcome = Outcome(step.id, Ended.CANCELLED, "cancelled")
            moves = _CANCEL_MOVES[RunState(run.status)]
            return self._course(run, standing, outcome, standing.payload, moves)
        if run.status == RunState.IN_PROGRESS:
            assert end is not None, "who has not done the work does not conclude it"
            return self._of_work(run, standing, step, end, let_go=bool(job and job.let_go))
        change = self._of_ended(run, standing, step)
        return replace(change, values={**_spent(end), **change.values}) if end else change

    def _of_ended(self, run: Run, standing: Standing, step: SubStep) -> Change:
        """What follows when the ledger has the end of the work already."""
        match RunState(run.status):
            case RunState.COMPLETED:
                return self._of_completed(run, standing, step)
            case RunState.VALIDATED:
                payload = _stored(standing, run, step, run.payload)
                verdict = self.judge.verdict(standing, run, payload)
                outcome = Outcome(step.id, Ended.VALIDATED, matches=verdict.matches)
                return self._course(run, standing, outcome, run.payload)
            case RunState.LOST:
                return self._of_lost(run, standing, step)
            case RunState.OVERFLOW:
                return self._of_overflow(run, standing)
            case RunState.OVERFLOW_PROCESSING:
                return self._of_handled(run, standing)
            case _:
                return self._course(run, standing, _plain_outcome(run), standing.payload)

    def _of_work(
        self, run: Run, standing: Standing, step: SubStep, end: StepEnd, *, let_go: bool
    ) -> Change:
        """The step's own end, unless a brake or a cancel goes before it."""
        kept = _spent(end)
        if end.result is not None:
            kept["result"] = dict(end.result)
        if run.cancel_requested:
            outcome = Outcome(step.id, Ended.CANCELLED, "cancelled")
            return self._course(run, standing, outcome, standing.payload, (CANCEL,), kept)
        if run.brake:
            return self._course(run, standing, _braked(run), standing.payload, (FAIL,), kept)
        if let_go and not end.ok:
            return Change((LOSE,), _LET_GO, kept, requeue=_LET_GO)
        if not end.ok:
            outcome = Outcome(step.id, Ended.FAILED, end.reason)
            return self._course(run, standing, outcome, standing.payload, (FAIL,), kept)
        if end.items:
            return Change(values=kept, spread=Spread(standing, end.items))
        found = {"items": []} if end.items is not None else end.payload
        payload = _stored(standing, run, step, found)
        kept["payload"] = payload
        if not self.judge.is_quick(step, of_item=bool(run.item)):
            return Change((COMPLETE,), values=kept)
        verdict = self.judge.verdict(standing, run, payload)
        return self._judged(run, standing, payload, verdict, (COMPLETE,), kept)

    def _of_completed(self, run: Run, standing: Standing, step: SubStep) -> Change:
        if run.brake:  # it reported `completed` after the brake: what it had to do was to stop
            kept = {"validation_status": "failed"}
            return self._course(run, standing, _braked(run), standing.payload, (INVALIDATE,), kept)
        payload = _stored(standing, run, step, run.payload)
        verdict = self.judge.verdict(standing, run, payload)
        return self._judged(run, standing, payload, verdict, (), {})

    def _judged(
        self,
        run: Run,
        standing: Standing,
        payload: Mapping[str, Any],
        verdict: Verdict,
        moves: tuple[Move, ...],
        values: Mapping[str, Any],
    ) -> Change:
        good = verdict.ended is Ended.VALIDATED
        outcome = Outcome(run.step_id, verdict.ended, verdict.reason, verdict.matches)
        course = self._chart(run, standing, outcome, payload if good else standing.payload)
        kept = {**values, "payload": payload, "validation_status": "passed" if good else "failed"}
        moves = (*moves, VALIDATE if good else INVALIDATE)
        return Change(moves, verdict.reason, kept, verdict, course)

    def _of_lost(self, run: Run, standing: Standing, step: SubStep) -> Change:
        """Again, at most so many times; what cannot be undone waits for a person."""
        over = run.reason == "rejected" or run.brake == OTHER_FAILED
        if over or run.requeue_count >= MAX_REQUEUES:
            return self._course(run, standing, _plain_outcome(run), standing.payload)
        if step.irreversible and "answered" not in run.data and self._is_unknown(run):
            return Change(
                ask=f"step `{step.id}` was cut off and its outcome is unknown; run it again?"
            )
        return Change(requeue=run.reason or "lost")

    def _is_unknown(self, run: Run) -> bool:
        """Whether something was begun of which nobody knows how it ended.

        What did end is not done again: the next attempt gets its recorded result. What is no
        command of the hand leaves no row, so it is unknown.
        """
        with self.room.ledger.read() as connection:
            commands = of_run(connection, run.run_id)
        ended = (one.ending not in ("started", "lost") for one in commands)
        return not commands or not all(ended)

    def _of_overflow(self, run: Run, standing: Standing) -> Change:
        """Its handler is started; or it goes on with the digest at once; or it has failed."""
        begun = self.overflow.begin(run)
        if isinstance(begun, str):
            outcome = Outcome(run.step_id, Ended.FAILED, begun)
            return self._course(run, standing, outcome, standing.payload, (RESUME,))
        if isinstance(begun, Start):
            return Change((PROCESS,), f"handled by `{begun.handling.handler}`", start=begun)
        return self._resumed(begun, RESUME)

    def _of_handled(self, run: Run, standing: Standing) -> Change:
        ended = self.overflow.end(run)
        if ended is not None:
            return self._resumed(ended, HANDLED)
        outcome = Outcome(run.step_id, Ended.FAILED, f"timeout: {BIG_STEP_TIMEOUT}", final=True)
        return self._course(run, standing, outcome, standing.payload, (HANDLED,))

    def _resumed(self, resume: Resume, move: Move) -> Change:
        reason = "overflow: the output was too large"
        values = {"payload": dict(resume.payload)}
        return Change((move,), reason, values, requeue=reason, resume=resume)

    def _course(
        self,
        run: Run,
        standing: Standing,
        outcome: Outcome,
        payload: Mapping[str, Any],
        moves: tuple[Move, ...] = (),
        values: Mapping[str, Any] | None = None,
    ) -> Change:
        course = self._chart(run, standing, outcome, payload)
        return Change(moves, outcome.reason, values or {}, course=course)

    def _chart(
        self, run: Run, standing: Standing, outcome: Outcome, payload: Mapping[str, Any]
    ) -> Course | ItemCourse:
        if run.item:
            return chart_item(standing, run, outcome)
        return chart(standing, outcome, payload, self._holds(standing))

    def _holds(self, standing: Standing) -> Holds:
        return lambda big_step, payload: self.judge.holds(standing, big_step, payload)

    def _write(
        self, connection: Transaction, at: str, run: Run, change: Change, more: More
    ) -> Done | None:
        """Write `change`; None when the run is not any more as it was seen."""
        about: dict[str, Any] = {
            "reason": change.reason,
            "actor": self.room.owner,
            **change.values,
        }
        if change.ask:
            return self._ask(connection, at, run, change.ask)
        if change.start is not None:
            return Done() if write_handler(connection, at, run, change.start, about) else None
        if change.moves[:1] == (HANDLED,) and (handling := handling_of(run)):
            end_child(connection, at, handling.instance, self.room.owner)
        if change.requeue:
            counted = change.requeue != _LET_GO
            about |= {"level": "resume" if change.resume else "requeue", "counted": counted}
            if change.resume:
                resumes = run.data.get("resumes", 0) + 1
                again = {"overflow": change.resume.handling.data(), "resumes": resumes}
                about |= {"counted": False, "again": again}
            about["reason"] = change.requeue
            queued = requeue(connection, at, run, *change.moves, **about)
            return Done() if queued else None
        taker = self._claim() if more() else None
        if change.spread is not None:
            standing, items = change.spread.standing, change.spread.items
            spread = write_spread(connection, at, run, standing, items, taker, **about)
            return Done(following=self._taken(spread)) if spread else None
        if change.course is None:
            moved = move_run(connection, at, run, *change.moves, **about)
            if moved is not None:
                self._keep_payload(connection, at, run, change)
            return Done(moved, last_word=False) if moved else None
        if isinstance(change.course, ItemCourse):
            written = write_item(connection, at, run, change.course, change.moves, taker, **about)
        else:
            written = write_course(connection, at, run, change.course, change.moves, taker, **about)
        if written is None:
            return None
        self._keep_payload(connection, at, run, change)
        add_validation(connection, at, run.run_id, change.verdict.results if change.verdict else ())
        return Done(following=self._taken(written))

    def _keep_payload(self, connection: Transaction, at: str, run: Run, change: Change) -> None:
        if COMPLETE in change.moves:
            add_payload(connection, at, run, change.values["payload"])

    def _ask(self, connection: Transaction, at: str, run: Run, question: str) -> Done | None:
        """A person decides about a run that cannot be undone and may have done its work."""
        old, new = InstanceState.RUNNING, InstanceState.SUSPENDED
        about: dict[str, Any] = {"reason": "unknown outcome", "actor": self.room.owner}
        set_run(connection, at, run.run_id, lease_until=None)  # whoever comes next may take it up
        if not move_instance(connection, at, run.workflow_instance_id, old, new, **about):
            return Done()  # suspended for another reason: its turn comes when that is over
        ask_person(connection, at, run, question, kind="unknown_outcome", data={})
        note_state(connection, at, self.room.standing(run), new)
        return Done()

    # --- taking runs --------------------------------------------------------------------------

    def start(self, instance_id: str, more: More) -> Job | None:
        """Let a queued instance begin, unless as many of its name run as may."""
        with self.room.ledger.read() as connection:
            instance = get_instance(connection, instance_id)
        if instance is None or instance.state != InstanceState.QUEUED:
            return None
        standing = self.room.start_of(instance)
        course = chart_start(standing, self._holds(standing))
        condition = condition_of(self.room, instance)
        with self.room.write() as connection:
            if not condition.holds(connection, instance_id):
                return None
            taker = self._claim() if more() else None
            written = write_start(connection, ledger_now(connection), course, taker)
            return self._taken(written) if written else None

    def begin(self, run: Run, more: More) -> Job | None:
        """Take a queued run; None when another engine was first, or a person said stop.

        Raises:
            StaleError: Its instance was suspended or cancelled since somebody looked.
        """
        standing = self.room.standing(run)
        with self.room.alone():
            with self.room.write() as connection:
                taken = self._begin(connection, run, standing) if more() else None
            return self._job(taken, standing) if taken else None

    def _begin(self, connection: Transaction, run: Run, standing: Standing) -> Run | None:
        at, step = ledger_now(connection), standing.step(run.step_id)
        kept: dict[str, Any] = {"current_step": step.id}
        if run.data["enters"]:
            kept["deadline_at"] = deadline_of(standing.spec, at)
        deadline_at = later(at, step.timeout_s) if step.timeout_s else None
        taken = claim(connection, at, run, self._claim(), deadline_at=deadline_at)
        if taken and not set_uncancelled(connection, at, run.workflow_instance_id, **kept):
            raise StaleError(f"instance `{run.workflow_instance_id}` is not to go on")
        return taken

    def _claim(self) -> Claim:
        room = self.room
        return Claim(room.owner, room.process, room.times.lease_s, room.secret)

    def _taken(self, written: Written) -> Job | None:
        self.room.remember(written.standing)
        if not written.claimed or written.run is None:
            return None
        return self._job(written.run, written.standing)

    def _job(self, run: Run, standing: Standing) -> Job:
        job = self.room.jobs[run.run_id] = Job(run, run.epoch, standing)
        if run.status == RunState.IN_PROGRESS and run.started_at:  # it was, this very moment
            self.countdowns.begin(run.started_at, run.deadline_at)
            if run.data["enters"]:
                ends_at = deadline_of(standing.spec, run.started_at)
                self.countdowns.begin(run.started_at, ends_at)
        return job


def _goes_on(change: Change, more: More) -> bool:
    """Whether a command follows at once, whose row `started` waits for the disk in any case.

    Then this need not wait as well: a power cut in between leaves the step as if it were cut off a
    moment earlier, and nobody has been told anything else.
    """
    course = change.course
    if not isinstance(course, Course) or course.ends is not None or course.next.delay_s:
        return False
    step = course.standing.step(course.next.step_id)
    return step.kind in (Kind.SHELL, Kind.CAPABILITY) and step.for_each is None and more()


def _is_working(run: Run) -> bool:
    return run.status in (RunState.QUEUED, RunState.IN_PROGRESS, RunState.WAITING_APPROVAL)


def _stored(
    standing: Standing, run: Run, step: SubStep, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """The payload as it is stored: laid over the inherited one if the step says so.

    What an item ends with is its own; the step's is laid over when all are together.
    """
    inherits = step.inherit_payload and not run.item
    return {**standing.payload, **payload} if inherits else dict(payload)


def _spent(end: StepEnd) -> dict[str, Any]:
    return {"tokens": end.tokens, "cost_usd": end.cost_usd}


def _plain_outcome(run: Run) -> Outcome:
    """The outcome of a run that ended without a verdict of ours."""
    if run.brake:
        return _braked(run)
    if "stop" in run.data:  # as the item ended that was the end of them all
        stop = run.data["stop"]
        return Outcome(run.step_id, Ended(stop["ended"]), run.reason, final=stop["final"])
    ended = {
        RunState.CANCELLED: Ended.CANCELLED,
        RunState.SKIPPED: Ended.SKIPPED,
        RunState.LOST: Ended.LOST,
    }
    return Outcome(run.step_id, ended.get(RunState(run.status), Ended.FAILED), run.reason)


def _braked(run: Run) -> Outcome:
    """A brake of ours ends as a failure with its reason; the big step's clock ends everything."""
    word = _BRAKE_WORDS.get(run.brake, run.brake)
    reason = f"{word}: {run.brake_reason}" if run.brake_reason else word
    final = run.brake == "budget" or BIG_STEP_TIMEOUT in run.brake_reason
    return Outcome(run.step_id, Ended.FAILED, reason, final=final)
