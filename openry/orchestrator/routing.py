"""Where an instance goes next: a pure function of its workflow and of what has happened so far.

The engine hands in every ended run in order; the answer is the same however often it is asked,
so a restarted engine needs no memory but the ledger.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from openry.orchestrator.rules import Rule
from openry.orchestrator.spec import (
    ABORT,
    CONTINUE,
    DONE,
    RETRY,
    RETRY_CURRENT,
    Backoff,
    Composition,
    RouteRule,
    SubStep,
    WorkflowSpec,
)

#: A workflow that has run this many steps is going round in circles.
MAX_RUNS = 10_000
_NO_PAYLOAD: Mapping[str, Any] = MappingProxyType({})


class Ended(StrEnum):
    """How one run ended, as far as routing cares."""

    VALIDATED = "validated"
    SKIPPED = "skipped"
    FAILED = "failed"  #: the work itself failed: exit status, `--status failed`, timeout, limit
    INVALID = "invalid"  #: completed, but a validation rule failed
    PAYLOAD_MISSING = "payload_missing"  #: completed without the payload the step promises
    LOST = "lost"  #: given up after its requeues; a lost run that is requeued is no outcome
    CANCELLED = "cancelled"


#: How a step ends that goes on by `on_success`.
GOOD = frozenset({Ended.VALIDATED, Ended.SKIPPED})


@dataclass(frozen=True, slots=True)
class Outcome:
    """One ended run.

    Attributes:
        matches: What `match_routes` said of the step's `validation_routing`, in order.
        final: Nothing may be retried any more (big-step clock, budget, a person's cancel).
    """

    step_id: str
    ended: Ended
    reason: str = ""
    matches: tuple[bool, ...] = ()
    final: bool = False


class Action(StrEnum):
    RUN = "run"  #: start `step_id`
    RETRY = "retry"  #: the same step again
    RESTART = "restart"  #: the whole big step again, workspace restored; `step_id` is its first
    DONE = "done"
    ABORT = "abort"
    JUMP = "jump"  #: leave for the workflow `step_id` of the composition


@dataclass(frozen=True, slots=True)
class Next:
    """What to do now, and why.

    Attributes:
        attempt: 1-based attempt at that step since it was last entered.
        big_attempt: 1-based attempt at the whole workflow.
        delay_s: Seconds to wait first.
        dropped: The ended run spent the step's last retry.
    """

    action: Action
    step_id: str = ""
    attempt: int = 1
    big_attempt: int = 1
    delay_s: float = 0.0
    reason: str = ""
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a workflow stands: what `advance` folds outcomes into. `next` is what to do now."""

    step_id: str
    attempt: int = 1
    big_attempt: int = 1
    runs: int = 0
    next: Next = field(default=Next(Action.RUN))


def decide(plan: WorkflowSpec, outcomes: Iterable[Outcome]) -> Next:
    """What follows after `outcomes`, in the order in which they happened.

    Raises:
        ValueError: An outcome is not of the step whose turn it was.
    """
    cursor = start(plan)
    for outcome in outcomes:
        cursor = advance(plan, cursor, outcome)
    return cursor.next


def start(plan: WorkflowSpec, big_attempt: int = 1, runs: int = 0) -> Cursor:
    """The cursor before the first outcome."""
    first = plan.sub_steps[0].id
    action = Action.RUN if big_attempt == 1 else Action.RESTART
    return Cursor(first, 1, big_attempt, runs, Next(action, first, 1, big_attempt))


def advance(plan: WorkflowSpec, cursor: Cursor, outcome: Outcome) -> Cursor:
    """One step of `decide`, for an engine that keeps the cursor."""
    if cursor.next.action in (Action.DONE, Action.ABORT, Action.JUMP):
        raise ValueError(f"run of `{outcome.step_id}` after the workflow ended")
    if outcome.step_id != cursor.step_id:
        raise ValueError(f"run of `{outcome.step_id}` where `{cursor.step_id}` was due")
    cursor = replace(cursor, runs=cursor.runs + 1)
    step = plan.step(outcome.step_id)
    if cursor.runs >= MAX_RUNS:
        return _end(cursor, Action.ABORT, f"{MAX_RUNS} steps have run: its routes go in circles")
    if outcome.final or outcome.ended is Ended.CANCELLED:
        return _end(cursor, Action.ABORT, outcome.reason or str(outcome.ended))
    if outcome.ended in GOOD:
        target, reason = _success_target(plan, step, outcome)
        return _go(plan, cursor, step, target, reason)
    target, reason = _failure_target(step, outcome), outcome.reason or str(outcome.ended)
    if step.for_each is not None and target in (RETRY, RETRY_CURRENT):
        return _dropped(plan, cursor, step, reason)  # its items have had their retries
    return _go(plan, cursor, step, target, reason)


def after_item(step: SubStep, attempt: int, outcome: Outcome) -> Next:
    """What follows for one item of a `for_each`: another attempt (RETRY), DONE or ABORT."""
    if outcome.ended in GOOD:
        return Next(Action.DONE, step.id)
    reason = outcome.reason or str(outcome.ended)
    for_good = outcome.final or outcome.ended is Ended.CANCELLED
    if for_good or _failure_target(step, outcome) not in (RETRY, RETRY_CURRENT):
        return Next(Action.ABORT, step.id, attempt, reason=reason)
    if attempt > step.max_sub_step_retries:
        return Next(Action.ABORT, step.id, attempt, reason=reason, dropped=True)
    delay = backoff_s(step.retry_backoff_seconds, attempt)
    return Next(Action.RETRY, step.id, attempt + 1, delay_s=delay, reason=reason)


def _go(plan: WorkflowSpec, cursor: Cursor, step: SubStep, target: str, reason: str) -> Cursor:
    if target == DONE:
        return _end(cursor, Action.DONE, reason)
    if target in (RETRY, RETRY_CURRENT):
        if cursor.attempt <= step.max_sub_step_retries:
            return _again(cursor, step, reason)
        return _dropped(plan, cursor, step, reason)
    if target == ABORT:
        return _abort(plan, cursor, reason)
    if not plan.has(target):
        return _end(cursor, Action.JUMP, reason, target)
    entered = Next(Action.RUN, target, 1, cursor.big_attempt, reason=reason)
    return replace(cursor, step_id=target, attempt=1, next=entered)


def _again(cursor: Cursor, step: SubStep, reason: str) -> Cursor:
    attempt = cursor.attempt + 1
    delay = backoff_s(step.retry_backoff_seconds, cursor.attempt)
    again = Next(Action.RETRY, step.id, attempt, cursor.big_attempt, delay, reason)
    return replace(cursor, attempt=attempt, next=again)


def _dropped(plan: WorkflowSpec, cursor: Cursor, step: SubStep, reason: str) -> Cursor:
    target = step.on_dropped or ABORT
    gone = _go(
        plan, cursor, step, target if target not in (RETRY, RETRY_CURRENT) else ABORT, reason
    )
    return replace(gone, next=replace(gone.next, dropped=True))


def _abort(plan: WorkflowSpec, cursor: Cursor, reason: str) -> Cursor:
    """The workflow failed: once more from its first step while it may, else it is over."""
    if cursor.big_attempt > plan.max_retries:
        return _end(cursor, Action.ABORT, reason)
    again = start(plan, cursor.big_attempt + 1, cursor.runs)
    return replace(again, next=replace(again.next, reason=reason))


def _end(cursor: Cursor, action: Action, reason: str, target: str = "") -> Cursor:
    end = Next(action, target, cursor.attempt, cursor.big_attempt, reason=reason)
    return replace(cursor, next=end)


def _failure_target(step: SubStep, outcome: Outcome) -> str:
    if outcome.ended is Ended.LOST:
        return step.on_dropped or ABORT
    if outcome.ended is Ended.PAYLOAD_MISSING:
        return step.on_payload_missing or step.on_validation_fail
    return step.on_validation_fail if outcome.ended is Ended.INVALID else step.on_failure


def _success_target(plan: WorkflowSpec, step: SubStep, outcome: Outcome) -> tuple[str, str]:
    """The first conditional route that decides, else `on_success`, else the next step."""
    for route, matched in zip(step.validation_routing, outcome.matches, strict=False):
        target = route.on_match if matched else route.on_mismatch
        if target != CONTINUE:
            return target, "" if matched else route.on_mismatch_message
    return plan.after(step.id), ""


def match_routes(routes: Iterable[RouteRule], holds: Callable[[Rule], bool]) -> tuple[bool, ...]:
    """Whether each condition held, asking `holds` no further than the first route that decides."""
    matches: list[bool] = []
    for route in routes:
        matched = any(map(holds, route.rules)) if route.when_any else all(map(holds, route.rules))
        matches.append(matched)
        if (route.on_match if matched else route.on_mismatch) != CONTINUE:
            break
    return tuple(matches)


def backoff_s(
    backoff: Backoff, failures: int, *, pick: Callable[[float, float], float] = random.uniform
) -> float:
    """Seconds to wait after the `failures`-th failure: `base` doubled each time, up to `cap`.

    With `jitter` the last part of it is drawn evenly, all of it for 1.

    >>> [backoff_s(Backoff(base=1, cap=5), n) for n in (1, 2, 3, 4)]
    [1.0, 2.0, 4.0, 5.0]
    """
    delay = min(backoff.cap, backoff.base * 2.0 ** min(failures - 1, 60))
    return pick(delay * (1 - backoff.jitter), delay) if backoff.jitter else delay


@dataclass(frozen=True, slots=True)
class BigOutcome:
    """One big step that ended; `jump` is the workflow its last route named, if any."""

    place: int
    completed: bool
    skipped: bool = False
    reason: str = ""
    jump: str = ""


@dataclass(frozen=True, slots=True)
class BigNext:
    """Start the big step at `place`, or end with DONE or ABORT."""

    action: Action
    place: int = -1
    reason: str = ""


def decide_big(plan: Composition, outcomes: Iterable[BigOutcome]) -> BigNext:
    """The same for a composition. A `ref` given twice means the nearest one further down."""
    here = BigNext(Action.RUN, 0)
    for count, outcome in enumerate(outcomes, 1):
        if here.action is not Action.RUN or outcome.place != here.place:
            raise ValueError(f"big step {outcome.place} ended where {here.place} was due")
        here = big_route(plan, outcome)
        if count >= MAX_RUNS and here.action is Action.RUN:
            return BigNext(
                Action.ABORT, reason=f"{MAX_RUNS} big steps have run: its routes go in circles"
            )
    return here


def big_route(plan: Composition, outcome: BigOutcome) -> BigNext:
    """Where one ended big step leads."""
    step = plan.big_steps[outcome.place]
    target = outcome.jump or (step.on_success if outcome.completed else step.on_failure)
    if outcome.skipped:
        target = None
    if target is None:
        following = outcome.place + 1
        return (
            BigNext(Action.RUN, following)
            if following < len(plan.big_steps)
            else BigNext(Action.DONE)
        )
    if target == DONE:
        return BigNext(Action.DONE)
    place = _place_of(plan, target, outcome.place)
    if target == ABORT or place is None:
        reason = outcome.reason or f"no big step is called `{target}`"
        return BigNext(Action.ABORT, reason=reason)
    return BigNext(Action.RUN, place, outcome.reason)


def _place_of(plan: Composition, ref: str, after: int) -> int | None:
    places = [place for place, step in enumerate(plan.big_steps) if step.ref == ref]
    return next((place for place in places if place > after), places[0] if places else None)
