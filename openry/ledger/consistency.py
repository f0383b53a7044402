"""Whether a ledger keeps its promises: every run lost or done twice would show here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from sqlalchemy import BindParameter, Connection, bindparam, func, select

from openry.ledger.instances import SUSPENDED_BY_HAND
from openry.ledger.runs import Run, runs_of
from openry.ledger.schema import (
    approvals,
    commands_log,
    events,
    payloads,
    retries,
    workflow_instances,
)
from openry.models import InstanceState, RunState
from openry.models.command import MANUAL_RUN
from openry.models.states import instance_may_become, may_become

_R, _I = RunState, InstanceState
_i, _e, _a = workflow_instances.c, events.c, approvals.c
_p, _r, _c = payloads.c, retries.c, commands_log.c
_ENDED = frozenset({_I.COMPLETED, _I.FAILED, _I.CANCELLED})
#: States in which a run that is settled may stay.
_LAST = frozenset({_R.DONE, _R.FAILED, _R.CANCELLED, _R.LOST, _R.RESUMED, _R.SKIPPED, _R.DROPPED})
#: What a run's retry count of a level is called.
_COUNTS = {
    "sub_step": "sub_step_retry_count",
    "big_step": "big_step_retry_count",
    "requeue": "requeue_count",
}
_OF: BindParameter[str] = bindparam("instance_id")
_STATE = select(_i.state, _i.cancel_requested, _i.reason).where(_i.instance_id == _OF)
_MOVES = (
    select(_e.run_id, _e.old, _e.new)
    .where(_e.instance_id == _OF, _e.kind.in_(("transition", "instance")))
    .order_by(_e.run_id, _e.id)
)
_PENDING = select(_a.run_id, _a.kind).where(_a.instance_id == _OF, _a.state == "pending")
_KEPT = select(_p.run_id).where(_p.instance_id == _OF, _p.accepted)
_RETRIES = select(_r.run_id, _r.next_run_id, _r.level, _r.number).where(_r.instance_id == _OF)
_CALLS = (
    select(_c.run_id, func.count(), func.min(_c.seq), func.max(_c.seq))
    .where(_c.instance_id == _OF, _c.run_id != MANUAL_RUN)
    .group_by(_c.run_id)
)


def inconsistencies(connection: Connection) -> Iterator[str]:
    """What contradicts itself in a ledger, a sentence each; nothing in a sound one.

    It reads all of every instance. In one transaction of `Ledger.read()` it is right while
    engines are at work.
    """
    yield from _of_the_file(connection)
    ids = connection.execute(select(_i.instance_id).order_by(_i.created_at)).scalars().all()
    for instance_id in ids:
        for said in _of_instance(connection, instance_id):
            yield f"instance `{instance_id}`: {said}"


def _of_the_file(connection: Connection) -> Iterator[str]:
    """What SQLite itself finds; another database looks after itself."""
    if connection.dialect.name != "sqlite":
        return
    for (said,) in connection.exec_driver_sql("PRAGMA quick_check"):
        if said != "ok":
            yield f"the file: {said}"
    for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"table `{row[0]}`: row {row[1]} belongs to none of `{row[2]}`"


def _of_instance(connection: Connection, instance_id: str) -> Iterator[str]:
    state, cancelled, reason = connection.execute(_STATE, {"instance_id": instance_id}).one()
    by_hand = reason.startswith(SUSPENDED_BY_HAND)  # `openry session resume` is what it waits for
    waits = state == _I.SUSPENDED and not cancelled and not by_hand
    runs = runs_of(connection, instance_id)
    yield from _of_journal(connection, instance_id, state, runs)
    yield from _of_turns(runs)
    yield from _of_life(_I(state), runs)
    yield from _of_questions(connection, instance_id, runs, waits)
    yield from _of_records(connection, instance_id, runs)


# --- the journal ----------------------------------------------------------------------------------


def _of_journal(
    connection: Connection, instance_id: str, state: str, runs: Sequence[Run]
) -> Iterator[str]:
    """Each state was reached along the arrows, and the journal ends at the state of the row."""
    rows = connection.execute(_MOVES, {"instance_id": instance_id}).all()
    journal = {
        run_id: [(row.old, row.new) for row in each]
        for run_id, each in groupby(rows, lambda row: row.run_id)
    }
    own = journal.pop("", [])
    yield from _walk("it", own, state, lambda old, new: instance_may_become(_I(old), _I(new)))
    for run in runs:
        about = f"run `{run.run_id}` of step `{run.step_id}`"
        moves = journal.pop(run.run_id, [])
        yield from _walk(about, moves, run.status, lambda old, new: may_become(_R(old), _R(new)))
    for run_id in journal:
        yield f"the journal speaks of a run `{run_id}` that is not there"


def _walk(
    who: str,
    moves: Iterable[tuple[str, str]],
    state: str,
    allowed: Callable[[str, str], bool],
) -> Iterator[str]:
    at = ""
    for old, new in moves:
        if old != at or (not allowed(at, new) if at else new != "queued"):
            yield f"{who} went from `{at}` to `{new}`, noted as from `{old}`"
        at = new
    if at != state:
        yield f"{who} is `{state}`, but by the journal `{at}`"


# --- runs -----------------------------------------------------------------------------------------


def _of_turns(runs: Sequence[Run]) -> Iterator[str]:
    """A turn is one place in the course of an instance: one run of it lives, and one is done."""
    turns: dict[tuple[int, int, str], list[Run]] = defaultdict(list)
    for run in runs:
        turns[run.data.get("visit", 0), run.data.get("folded", 0), run.item].append(run)
    for turn in turns.values():
        what = f"step `{turn[0].step_id}`" + (f", item {turn[0].item}" if turn[0].item else "")
        if len({run.step_id for run in turn}) > 1:
            yield f"{what} has its turn together with another step"
        live = [run for run in turn if not run.settled]
        if len(live) > 1:
            yield f"{what} has {len(live)} runs alive: {', '.join(run.run_id for run in live)}"
        done = [run for run in turn if run.status == _R.DONE]
        if len(done) > 1:
            yield f"{what} was done {len(done)} times in one turn"
    if len([run for run in runs if not run.settled and not run.item]) > 1:
        yield "more than one of its steps is alive"


def _of_life(state: InstanceState, runs: Sequence[Run]) -> Iterator[str]:
    live = [run for run in runs if not run.settled]
    if state in _ENDED and live:
        yield f"it is `{state}`, but run `{live[0].run_id}` is still `{live[0].status}`"
    if state in (_I.RUNNING, _I.SUSPENDED) and not live:
        yield f"it is `{state}`, but no run of it can go on"
    for run in runs:
        if run.settled and run.status not in _LAST:
            yield f"run `{run.run_id}` is settled as `{run.status}`"
        if run.attempt != run.sub_step_retry_count + 1:
            yield f"run `{run.run_id}` is attempt {run.attempt} after {run.sub_step_retry_count}"


def _of_questions(
    connection: Connection, instance_id: str, runs: Sequence[Run], waits: bool
) -> Iterator[str]:
    """Who waits for a person has asked one, and nobody is asked in vain."""
    pending = connection.execute(_PENDING, {"instance_id": instance_id}).all()
    asked = {run_id for run_id, _ in pending}
    over = {run.run_id for run in runs if run.settled}
    waiting = {run.run_id for run in runs if run.status == _R.WAITING_APPROVAL}
    for run_id, kind in pending:
        moot = run_id not in waiting if kind == "step" else run_id in over
        if moot and kind != "command":  # a yes to a command holds for the next attempt
            yield f"a person is asked about run `{run_id}`, which does not wait"
    if waits and not asked:
        yield "it waits for a person, but nobody is asked"
    for run_id in waiting - asked:
        yield f"run `{run_id}` waits for a person, but nobody is asked"


# --- what is kept beside the runs -----------------------------------------------------------------


def _of_records(connection: Connection, instance_id: str, runs: Sequence[Run]) -> Iterator[str]:
    by_id = {run.run_id: run for run in runs}
    which = {"instance_id": instance_id}
    kept = set(connection.execute(_KEPT, which).scalars())
    for run in runs:
        if run.status == _R.DONE and run.kind != "approval" and run.run_id not in kept:
            yield f"run `{run.run_id}` is done, but its payload is not kept"
    followers: Counter[str] = Counter()
    for run_id, next_run_id, level, number in connection.execute(_RETRIES, which):
        followers[run_id] += 1
        following = by_id.get(next_run_id)
        if following is None or run_id not in by_id:
            yield f"run `{run_id}` is followed by `{next_run_id}`, which is not there"
        elif by_id[run_id].status == _R.DONE and level != "big_step":
            yield f"run `{run_id}` was done, and begun again as `{next_run_id}`"
        elif level in _COUNTS and getattr(following, _COUNTS[level]) != number:
            yield f"run `{next_run_id}` does not count as {level} {number}"
    for run_id, count in followers.items():
        if count > 1:
            yield f"run `{run_id}` is followed by {count} runs"
    for run_id, count, first, last in connection.execute(_CALLS, which):
        if (first, last) != (1, count):
            yield f"run `{run_id}` has {count} commands numbered {first} to {last}"
