"""`for_each`: a run for each item, and above them the run of the step, which waits for all.

The run above finds the items and stays `in_progress`, nobody's work. An item's run is claimed, kept
alive, retried and requeued like any other. Whoever settles one queues the next item in the same
transaction, and whoever settles the last ends the run above: no engine has to remember anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openry.errors import UsageError
from openry.ledger.instances import glance_at
from openry.ledger.journal import Transaction, later
from openry.ledger.records import add_payload, add_retry, ask_no_longer
from openry.ledger.runs import (
    CANCEL,
    COMPLETE,
    DROP_LOST,
    FAIL,
    RECALL,
    WITHDRAW,
    Claim,
    Move,
    Run,
    add_run,
    items_of,
    lock_run,
    move_run,
    open_items,
    put_brake,
    set_run,
)
from openry.models import InstanceState, RunState
from openry.orchestrator.course import Standing, Written, closing, new_id
from openry.orchestrator.routing import Action, Ended, Next, Outcome, after_item
from openry.orchestrator.rules_scene import CannotEvaluate, Scene, shown
from openry.orchestrator.spec import ForEach, SubStep
from openry.orchestrator.templates import render_value
from openry.texts import shortened

MAX_ITEMS = 10_000
MAX_ITEMS_CHARS = 1024 * 1024
#: The brake of the items that are under way when another one has ended the step.
OTHER_FAILED = "other"
_LABEL_CHARS = 60
#: How an item's run ends that nobody is at work on when the step ends.
_PUT_AWAY: Mapping[str, Move] = {
    RunState.QUEUED: WITHDRAW,
    RunState.WAITING_APPROVAL: RECALL,
    RunState.LOST: DROP_LOST,
}


def expand(each: ForEach, scope: Mapping[str, Any], workspace: Path) -> list[Any]:
    """The items: a list, what a template gives, or the files of the workspace that a glob matches.

    Raises:
        UsageError: It is no list, or too long.
    """
    items = render_value(each.items, scope)
    if isinstance(items, str):
        items = _files(items, workspace)
    if not isinstance(items, list):
        raise UsageError(f"`for_each.items` must give a list, got `{shown(items)}`")
    if len(items) > MAX_ITEMS:
        raise UsageError(f"`for_each` has {len(items)} items; {MAX_ITEMS} are the most")
    if len(json.dumps(items, ensure_ascii=False)) > MAX_ITEMS_CHARS:
        raise UsageError("the items of `for_each` are together larger than 1 MiB; name files")
    return items


def _files(pattern: str, workspace: Path) -> list[str]:
    if "\n" in pattern:
        hint = "add `.splitlines()` for its lines"
        raise UsageError(f"`for_each.items` gives a text of several lines, not a list ({hint})")
    try:
        return Scene(workspace, {}).glob(pattern)
    except CannotEvaluate as error:
        raise UsageError(f"`for_each.items`: {error}") from None


@dataclass(frozen=True, slots=True)
class ItemCourse:
    """What follows after the run of one item."""

    standing: Standing
    step: SubStep
    outcome: Outcome
    next: Next

    @property
    def ends_step(self) -> bool:
        """Whether no other item is wanted any more."""
        if self.next.action is not Action.ABORT:
            return False
        for_good = self.outcome.final or self.outcome.ended is Ended.CANCELLED
        return for_good or _each(self.step).on_item_failure == "abort"


def chart_item(standing: Standing, run: Run, outcome: Outcome) -> ItemCourse:
    """What follows after `outcome` of an item's run."""
    step = standing.step(run.step_id)
    return ItemCourse(standing, step, outcome, after_item(step, run.attempt, outcome))


def _each(step: SubStep) -> ForEach:
    assert step.for_each is not None
    return step.for_each


# --- writing ------------------------------------------------------------------------------


def write_spread(
    connection: Transaction,
    at: str,
    run: Run,
    standing: Standing,
    items: Sequence[Any],
    taker: Claim | None,
    **values: Any,
) -> Written | None:
    """Hand a step over to the runs of its items; None when it is not any more as it was seen."""
    step = standing.step(run.step_id)
    first = min(len(items), _each(step).max_parallel)
    nobody = {"owner": "", "lease_until": None, "pid": None, "pid_started_at": ""}
    values |= {**nobody, "deadline_at": None, "result": {"items": list(items)}}
    # A new epoch: whoever saw it as a worker's run must not find that worker gone.
    values |= {"epoch": run.epoch + 1, "data": {**run.data, "next": first}}
    above = move_run(connection, at, run, **values)
    if above is None:
        return None
    queued = [
        _queue(connection, at, above, step, place, taker if place == 0 else None)
        for place in range(first)
    ]
    return Written(standing, queued[0], taker is not None)


def write_item(
    connection: Transaction,
    at: str,
    run: Run,
    course: ItemCourse,
    moves: Sequence[Move],
    taker: Claim | None,
    **values: Any,
) -> Written | None:
    """Make `moves`, settle an item's `run`, and put down what follows for it and its step.

    None when the run is not any more as it was when `course` was charted.
    """
    standing, step = course.standing, course.step
    last = moves[-1].new if moves else RunState(run.status)
    moves = (*moves, *closing(last, course.outcome, dropped=course.next.dropped))
    data = {**run.data, "item_ended": course.outcome.ended.value}
    if move_run(connection, at, run, *moves, settled=True, data=data, **values) is None:
        return None
    above = lock_run(connection, at, run.data["above"])
    if above is None or not above.is_spread:
        return Written(standing)
    taker = taker if _goes_on(connection, above) else None
    if course.next.action is Action.RETRY and "stop" not in above.data:
        queued = _queue_again(connection, at, run, step, course.next, taker)
        return Written(standing, queued, queued.status == RunState.IN_PROGRESS)
    if course.ends_step and "stop" not in above.data:
        above = _stop(connection, at, above, run, course.outcome)
    queued_next = _queue_next(connection, at, above, step, taker)
    if queued_next is not None:
        return Written(standing, queued_next, taker is not None)
    if open_items(connection, above):
        return Written(standing)
    return Written(standing, _end(connection, at, above, standing, taker), taker is not None)


def _goes_on(connection: Transaction, above: Run) -> bool:
    """Whether its instance is neither suspended nor asked to end."""
    instance = glance_at(connection, {above.workflow_instance_id})[above.workflow_instance_id]
    return instance.state == InstanceState.RUNNING and not instance.cancel_requested


def _queue(
    connection: Transaction, at: str, above: Run, step: SubStep, place: int, taker: Claim | None
) -> Run:
    """The first run of an item."""
    assert above.result is not None
    data = {name: above.data[name] for name in ("seq", "visit", "folded", "because")}
    data |= {"enters": False, "restarts": False, "above": above.run_id}
    values: dict[str, Any] = {
        "item": str(place),
        "big_step_retry_count": above.big_step_retry_count,
        "data": {**data, "item": above.result["items"][place]},
    }
    return _add(connection, at, above, step, values, taker)


def _queue_again(
    connection: Transaction, at: str, run: Run, step: SubStep, again: Next, taker: Claim | None
) -> Run:
    """The next attempt at the item of `run`, with the reason beside it."""
    values: dict[str, Any] = {
        "item": run.item,
        "attempt": again.attempt,
        "previous_run_id": run.run_id,
        "sub_step_retry_count": again.attempt - 1,
        "big_step_retry_count": run.big_step_retry_count,
        "not_before": later(at, again.delay_s) if again.delay_s else None,
        "data": {**run.data, "because": again.reason},
    }
    queued = _add(connection, at, run, step, values, None if again.delay_s else taker)
    about: dict[str, Any] = {"reason": again.reason, "delay_s": again.delay_s}
    number = again.attempt - 1
    add_retry(connection, at, run, queued.run_id, level="sub_step", number=number, **about)
    return queued


def _add(
    connection: Transaction,
    at: str,
    like: Run,
    step: SubStep,
    values: Mapping[str, Any],
    taker: Claim | None,
) -> Run:
    same = ("workflow_instance_id", "workflow", "big_step", "step_id", "kind")
    row: dict[str, Any] = {
        "run_id": new_id(),
        "max_tool_calls": step.tool_calls,
        "max_output_tokens": step.max_output_tokens,
        **{name: getattr(like, name) for name in same},
        **values,
    }
    if taker is not None and step.timeout_s:
        row["deadline_at"] = later(at, step.timeout_s)
    return add_run(connection, at, row, taker)


def _queue_next(
    connection: Transaction, at: str, above: Run, step: SubStep, taker: Claim | None
) -> Run | None:
    """The next item that nobody has begun; None when there is none, or none is wanted."""
    assert above.result is not None
    place = above.data["next"]
    if "stop" in above.data or above.cancel_requested or place >= len(above.result["items"]):
        return None
    set_run(connection, at, above.run_id, data={**above.data, "next": place + 1})
    return _queue(connection, at, above, step, place, taker)


def _stop(connection: Transaction, at: str, above: Run, run: Run, outcome: Outcome) -> Run:
    """Let no further item begin, and brake those under way: `run` has ended the step."""
    label = shortened(shown(run.data["item"]), _LABEL_CHARS)
    reason = outcome.reason or str(outcome.ended)
    stop = {
        "ended": outcome.ended.value,
        "final": outcome.final,
        "reason": f"item {int(run.item) + 1} (`{label}`): {reason}",
    }
    for each in open_items(connection, above):
        if each.status in _PUT_AWAY:
            move = _PUT_AWAY[each.status]
            move_run(connection, at, each, move, reason=OTHER_SAID, settled=True)
            ask_no_longer(connection, at, each.run_id)
        elif each.status == RunState.IN_PROGRESS:
            put_brake(connection, at, each, OTHER_FAILED, OTHER_SAID)
    set_run(connection, at, above.run_id, data={**above.data, "stop": stop})
    found = lock_run(connection, at, above.run_id)
    assert found is not None
    return found


OTHER_SAID = "another item failed"


def _end(
    connection: Transaction, at: str, above: Run, standing: Standing, taker: Claim | None
) -> Run | None:
    """End the run of the step itself; `taker` draws the consequences."""
    kept: dict[str, Any] = taker.columns(at, above.run_id, above.epoch + 1) if taker else {}
    kept.pop("started_at", None)
    runs = items_of(connection, above)
    kept["tokens"] = above.tokens + sum(run.tokens for run in runs.values())
    kept["cost_usd"] = above.cost_usd + sum(run.cost_usd for run in runs.values())
    kept["actor"] = taker.owner if taker else "engine"
    stop = above.data.get("stop")
    if stop is not None:
        move = CANCEL if stop["ended"] == Ended.CANCELLED else FAIL
        return move_run(connection, at, above, move, reason=stop["reason"], **kept)
    payload = stored_of_items(standing, above, runs)
    ended = move_run(connection, at, above, COMPLETE, payload=payload, **kept)
    if ended is not None:
        add_payload(connection, at, ended, payload)
    return ended


def stored_of_items(standing: Standing, above: Run, runs: Mapping[int, Run]) -> dict[str, Any]:
    """`items`: what each one's run ended with, in their order; null for one that was skipped."""
    assert above.result is not None
    done = {place: run.payload for place, run in runs.items() if run.status == RunState.DONE}
    places = range(len(above.result["items"]))
    payload: dict[str, Any] = {"items": [done.get(place) for place in places]}
    inherits = standing.step(above.step_id).inherit_payload
    return {**standing.payload, **payload} if inherits else payload
