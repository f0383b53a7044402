"""What follows after a run: charted without touching anything, then written in one transaction.

`chart` folds one outcome into where the instance stands; `write_course` puts the consequences into
the ledger: the run settled, the next one queued, or the instance ended. Both are the same however
often they are tried, because only one engine can settle a run.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from openry.errors import UsageError
from openry.ledger.instances import Instance, move_instance, set_instance, set_uncancelled
from openry.ledger.journal import Transaction, later
from openry.ledger.records import add_retry
from openry.ledger.runs import (
    DROP_FAILED,
    DROP_LOST,
    FINISH,
    Claim,
    Move,
    Run,
    add_run,
    move_run,
)
from openry.ledger.schedules import add_notice
from openry.models import InstanceState, RunState
from openry.orchestrator.plan import Plan
from openry.orchestrator.routing import (
    Action,
    BigNext,
    BigOutcome,
    Cursor,
    Ended,
    Next,
    Outcome,
    advance,
    decide_big,
    start,
)
from openry.orchestrator.spec import BigStep, Kind, SubStep, WorkflowSpec

#: Whether a big step's `when` holds now.
Holds = Callable[[BigStep, Mapping[str, Any]], bool]
#: Requeues of a run whose worker vanished, before it is given up.
MAX_REQUEUES = 3
_OVER = (Action.DONE, Action.ABORT, Action.JUMP)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an instance stands.

    Attributes:
        payload: What the next step inherits.
        place: Which big step it is in.
        visit: Grows with every big step entered; runs of one visit belong together.
        entry: The sub step at which the visit began, if not the first.
        folded: Outcomes of this visit that `cursor` knows.
        seq: Runs queued so far in the whole instance.
        big: How the big steps before ended.
        entry_payload: What the visit began with: what a restart goes back to.
    """

    instance_id: str
    plan: Plan
    workspace: str
    drafted: bool
    inputs: Mapping[str, Any]
    payload: Mapping[str, Any]
    cursor: Cursor
    place: int = 0
    visit: int = 1
    entry: str = ""
    folded: int = 0
    seq: int = 0
    big: tuple[BigOutcome, ...] = ()
    entry_payload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def big_step(self) -> BigStep:
        return self.plan.big_steps[self.place]

    @property
    def spec(self) -> WorkflowSpec:
        return self.plan.workflow_at(self.place)

    def step(self, step_id: str) -> SubStep:
        return self.spec.step(step_id)

    def data(self) -> dict[str, Any]:
        """What the instance's row must remember, beside its runs."""
        return {
            "place": self.place,
            "visit": self.visit,
            "entry": self.entry,
            "seq": self.seq,
            "big": [asdict(each) for each in self.big],
            "entry_payload": dict(self.entry_payload),
        }


@dataclass(frozen=True, slots=True)
class Course:
    """What follows: `queue` the next run, or the instance `ends`.

    Attributes:
        dropped: The run that ended had no retry left.
    """

    next: Next
    standing: Standing
    queue: bool = False
    ends: InstanceState | None = None
    reason: str = ""
    outcome: Outcome | None = None
    dropped: bool = False


#: What a state is called in `notify.on`.
_TOLD = {
    InstanceState.COMPLETED: "completed",
    InstanceState.FAILED: "failed",
    InstanceState.CANCELLED: "cancelled",
    InstanceState.SUSPENDED: "needs_human",
}


# --- where an instance stands -------------------------------------------------------------


def standing_of(
    instance: Instance, runs: Sequence[Run], plan: Plan, *, folded: int | None = None
) -> Standing:
    """Rebuilt from the ledger alone: the instance's row and its runs in order.

    With `folded` only so many outcomes are looked at: where it stood before a later one.
    """
    data = instance.data
    place, visit, entry = data.get("place", 0), data.get("visit", 1), data.get("entry", "")
    standing = Standing(
        instance_id=instance.instance_id,
        plan=plan,
        workspace=instance.workspace,
        drafted=instance.drafted,
        inputs=instance.inputs,
        payload=instance.payload,
        cursor=_first(plan.workflow_at(place), entry),
        place=place,
        visit=visit,
        entry=entry,
        seq=data.get("seq", 0),
        big=tuple(BigOutcome(**each) for each in data.get("big", ())),
        entry_payload=data.get("entry_payload", {}),
    )
    ended = [run for run in runs if run.data.get("visit") == visit and "ended" in run.data]
    for run in ended[:folded]:
        standing = _folded(standing, _outcome_of(run))
    return standing


def _first(spec: WorkflowSpec, entry: str) -> Cursor:
    cursor = start(spec)
    if not entry:
        return cursor
    return replace(cursor, step_id=entry, next=Next(Action.RUN, entry))


def _outcome_of(run: Run) -> Outcome:
    data = run.data
    return Outcome(
        run.step_id, Ended(data["ended"]), run.reason, tuple(data["matches"]), data["final"]
    )


def _folded(standing: Standing, outcome: Outcome) -> Standing:
    cursor = advance(standing.spec, standing.cursor, outcome)
    return replace(standing, cursor=cursor, folded=standing.folded + 1)


# --- deciding -----------------------------------------------------------------------------


def chart_start(standing: Standing, holds: Holds) -> Course:
    """How an instance begins: with its first big step that applies; a replay at its step."""
    if standing.entry:
        return Course(standing.cursor.next, standing, queue=True)
    return _chart_big(standing, holds)


def chart(standing: Standing, outcome: Outcome, payload: Mapping[str, Any], holds: Holds) -> Course:
    """What follows after `outcome`; `payload` is what the next step inherits then."""
    standing = replace(_folded(standing, outcome), payload=payload)
    following = standing.cursor.next
    if outcome.ended is Ended.CANCELLED:
        return Course(following, standing, False, InstanceState.CANCELLED, outcome.reason, outcome)
    if following.action not in _OVER:
        if following.action is Action.RESTART:
            standing = replace(standing, payload=standing.entry_payload)
        return Course(following, standing, True, outcome=outcome, dropped=following.dropped)
    ended = BigOutcome(
        standing.place,
        completed=following.action is Action.DONE,
        reason=following.reason,
        jump=following.step_id if following.action is Action.JUMP else "",
    )
    standing = replace(standing, big=(*standing.big, ended))
    return replace(_chart_big(standing, holds), outcome=outcome, dropped=following.dropped)


def chart_again(standing: Standing, from_step: str, instance: Instance) -> Course:
    """Take up an instance that had ended, at the step it ended at or at another of that big step.

    Raises:
        UsageError: The big step it ended in has no such step.
    """
    step_id = from_step or instance.current_step or standing.spec.sub_steps[0].id
    if not standing.spec.has(step_id):
        near = get_close_matches(step_id, [step.id for step in standing.spec.sub_steps], 1)
        hint = f" (did you mean `{near[0]}`?)" if near else ""
        raise UsageError(f"`{standing.spec.name}` has no step `{step_id}`{hint}")
    big = standing.big
    if big and big[-1].place == standing.place:
        big = big[:-1]  # how it ended then counts no longer
    again = replace(
        standing,
        visit=standing.visit + 1,
        entry=step_id,
        folded=0,
        big=big,
        cursor=_first(standing.spec, step_id),
        entry_payload=standing.payload,
    )
    return Course(again.cursor.next, again, queue=True)


def _chart_big(standing: Standing, holds: Holds) -> Course:
    """Enter the next big step whose condition holds, or end."""
    while True:
        following = decide_big(standing.plan.as_composition, standing.big)
        if following.action is not Action.RUN:
            return _end(standing, following)
        big_step = standing.plan.big_steps[following.place]
        if big_step.when is None or holds(big_step, standing.payload):
            return _enter(standing, following.place)
        skipped = BigOutcome(following.place, completed=True, skipped=True)
        standing = replace(standing, big=(*standing.big, skipped))


def _end(standing: Standing, following: BigNext) -> Course:
    done = following.action is Action.DONE
    ends = InstanceState.COMPLETED if done else InstanceState.FAILED
    return Course(Next(following.action), standing, False, ends, "" if done else following.reason)


def _enter(standing: Standing, place: int) -> Course:
    first_of_all = standing.seq == 0 and not standing.big
    entered = replace(
        standing,
        place=place,
        visit=standing.visit if first_of_all else standing.visit + 1,
        entry="",
        folded=0,
        cursor=start(standing.plan.workflow_at(place)),
        entry_payload=standing.payload,
    )
    return Course(entered.cursor.next, entered, queue=True)


# --- writing ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """What was written: where the instance stands now, and its next run if there is one."""

    standing: Standing
    run: Run | None = None
    claimed: bool = False


def write_start(
    connection: Transaction, at: str, course: Course, taker: Claim | None
) -> Written | None:
    """Let a queued instance begin; None when another engine was first."""
    instance_id = course.standing.instance_id
    old = InstanceState.QUEUED
    if not move_instance(connection, at, instance_id, old, InstanceState.RUNNING):
        return None
    return _write_consequences(connection, at, course, None, taker)


def write_course(
    connection: Transaction,
    at: str,
    run: Run,
    course: Course,
    moves: Sequence[Move],
    taker: Claim | None,
    **values: Any,
) -> Written | None:
    """Make `moves`, settle `run` and put down what follows, in one.

    None when the run is not any more as it was when `course` was charted. With `taker` the next
    run is claimed at once, if it may begin.
    """
    assert course.outcome is not None
    data = {
        **run.data,
        "ended": course.outcome.ended.value,
        "matches": list(course.outcome.matches),
        "final": course.outcome.final,
    }
    last = moves[-1].new if moves else RunState(run.status)
    moves = (*moves, *closing(last, course.outcome, dropped=course.dropped))
    settled = move_run(connection, at, run, *moves, settled=True, data=data, **values)
    if settled is None:
        return None
    return _write_consequences(connection, at, course, settled, taker)


def closing(last: RunState, outcome: Outcome, *, dropped: bool) -> tuple[Move, ...]:
    """How a run is closed when its consequences are drawn."""
    if last is RunState.VALIDATED:
        return (FINISH,)
    given_up = dropped or outcome.ended is Ended.LOST
    drops = {RunState.FAILED: DROP_FAILED, RunState.LOST: DROP_LOST}
    return (drops[last],) if given_up and last in drops else ()


def _write_consequences(
    connection: Transaction, at: str, course: Course, run: Run | None, taker: Claim | None
) -> Written:
    if course.ends is None:
        return queue_next(connection, at, course, run, taker)
    standing = course.standing
    remembered = {"payload": dict(standing.payload), "data": standing.data()}
    for old in (InstanceState.RUNNING, InstanceState.SUSPENDED):
        about: dict[str, Any] = {"reason": course.reason, **remembered}
        if move_instance(connection, at, standing.instance_id, old, course.ends, **about):
            note_state(connection, at, standing, course.ends)
            break
    return Written(standing)


def note_state(connection: Transaction, at: str, standing: Standing, state: InstanceState) -> None:
    """Put down that somebody is to be told of a state, if the plan wants it."""
    wanted = standing.plan.notify
    if wanted is not None and _TOLD[state] in wanted.on:
        add_notice(connection, at, standing.instance_id, _TOLD[state])


def queue_next(
    connection: Transaction, at: str, course: Course, run: Run | None, taker: Claim | None = None
) -> Written:
    """Queue the run that `course` asks for; `run` is the one before it."""
    following = course.next
    standing = replace(course.standing, seq=course.standing.seq + 1)
    step = standing.step(following.step_id)
    entered = run is None or run.data["visit"] != standing.visit
    kept: dict[str, Any] = {
        "current_step": step.id,
        "data": standing.data(),
        "payload": dict(standing.payload),
        "big_step_retry_count": following.big_attempt - 1,
    }
    if entered:
        kept["deadline_at"] = None
    may_begin = not following.delay_s and step.kind is not Kind.APPROVAL
    if taker is not None and may_begin:
        if entered:
            kept["deadline_at"] = deadline_of(standing.spec, at)
        if not set_uncancelled(connection, at, standing.instance_id, **kept):
            taker = None
    if taker is None or not may_begin:
        taker = None
        set_instance(connection, at, standing.instance_id, **kept)
    values = _run_values(standing, step, following, run, entered=entered)
    values["not_before"] = later(at, following.delay_s) if following.delay_s else None
    if taker is not None:
        values["deadline_at"] = later(at, step.timeout_s) if step.timeout_s else None
    queued = add_run(connection, at, values, taker)
    _note_retry(connection, at, run, queued.run_id, following)
    return Written(standing, queued, taker is not None)


def deadline_of(spec: WorkflowSpec, at: str) -> str | None:
    """When the big step's own clock runs out, if it starts at `at`."""
    return later(at, spec.timeout_minutes * 60) if spec.timeout_minutes else None


def _run_values(
    standing: Standing, step: SubStep, following: Next, run: Run | None, *, entered: bool
) -> dict[str, Any]:
    again = following.action is Action.RETRY and run is not None
    return {
        "run_id": new_id(),
        "workflow_instance_id": standing.instance_id,
        "workflow": standing.spec.name,
        "big_step": standing.big_step.ref if standing.plan.composition else "",
        "step_id": step.id,
        "kind": step.kind.value,
        "attempt": following.attempt,
        "previous_run_id": run.run_id if again and run else None,
        "sub_step_retry_count": following.attempt - 1,
        "big_step_retry_count": following.big_attempt - 1,
        "max_tool_calls": step.tool_calls,
        "max_output_tokens": step.max_output_tokens,
        "data": {
            "seq": standing.seq,
            "visit": standing.visit,
            "folded": standing.folded,
            "enters": entered,
            "restarts": following.action is Action.RESTART,
            "because": following.reason,
        },
    }


def _note_retry(
    connection: Transaction, at: str, run: Run | None, next_run_id: str, following: Next
) -> None:
    levels = {Action.RETRY: "sub_step", Action.RESTART: "big_step"}
    level = levels.get(following.action)
    if run is None or level is None:
        return
    number = (following.attempt if level == "sub_step" else following.big_attempt) - 1
    about: dict[str, Any] = {"reason": following.reason, "delay_s": following.delay_s}
    add_retry(connection, at, run, next_run_id, level=level, number=number, **about)


def requeue(
    connection: Transaction,
    at: str,
    run: Run,
    *moves: Move,
    level: str,
    reason: str,
    counted: bool = True,
    again: Mapping[str, Any] | None = None,
    **values: Any,
) -> Run | None:
    """The same work again, which spends no retry: a lost run's, or one resumed after an overflow.

    None when the run is not any more as it was looked at. Nothing of the course changes: it is
    still this turn. `counted` tells whether it is one of the few requeues a run has. `again` is
    what the new run's data says beside the old one's.
    """
    settled = move_run(connection, at, run, *moves, reason=reason, settled=True, **values)
    if settled is None:
        return None
    number = run.requeue_count + counted
    same: dict[str, Any] = {
        "run_id": new_id(),
        "workflow_instance_id": run.workflow_instance_id,
        "workflow": run.workflow,
        "big_step": run.big_step,
        "step_id": run.step_id,
        "item": run.item,
        "kind": run.kind,
        "attempt": run.attempt,
        "previous_run_id": run.run_id,
        "sub_step_retry_count": run.sub_step_retry_count,
        "big_step_retry_count": run.big_step_retry_count,
        "requeue_count": number,
        "max_tool_calls": run.max_tool_calls,
        "data": {**run.data, "requeue_of": run.run_id, **(again or {})},
    }
    if again is not None:
        same["payload"] = settled.payload
    queued = add_run(connection, at, same)
    about: dict[str, Any] = {"level": level, "number": number, "delay_s": 0.0}
    add_retry(connection, at, run, queued.run_id, reason=reason, **about)
    return queued


def new_id() -> str:
    """A short id that nobody else has made: 12 hexadecimal digits."""
    return secrets.token_hex(6)
