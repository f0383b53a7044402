"""Sessions: one task's whole life, from the instance somebody started to all it started itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openry.config import Config
from openry.errors import UsageError
from openry.ledger.db import Ledger
from openry.ledger.heads import head_of
from openry.ledger.instances import (
    Instance,
    find_instance,
    get_instance,
    list_instances,
    move_instance,
    request_cancel,
    set_instance,
)
from openry.ledger.journal import Transaction, ledger_now, seconds_between
from openry.ledger.places import AtWork, at_work
from openry.ledger.process import is_alive
from openry.ledger.records import pending_approvals, snapshots_of
from openry.ledger.runs import runs_of
from openry.ledger.session_rows import family
from openry.models import InstanceState
from openry.sandbox.strays import end_strays, marked_instances

_I = InstanceState
#: What an instance's state is called of its session, and how it ended.
STATES: Mapping[str, tuple[str, str]] = {
    _I.QUEUED: ("initialised", ""),
    _I.RUNNING: ("running", ""),
    _I.SUSPENDED: ("suspended", ""),
    _I.COMPLETED: ("ended", "completed"),
    _I.FAILED: ("ended", "failed"),
    _I.CANCELLED: ("ended", "aborted"),
}
#: Why a session is suspended that went on elsewhere.
EXPORTED = "exported"


@dataclass(frozen=True, slots=True)
class Session:
    """How a session stands.

    Attributes:
        session_id: The id of the instance it began with.
        outcome: `completed`, `failed` or `aborted` once it has ended.
        instances: All of them, the first one first; only in `show`.
        at_work: What of it is under way on this machine, in words.
    """

    session_id: str
    state: str
    outcome: str
    workflow: str
    step: str
    reason: str
    workspace: str
    created_at: str
    ended_at: str | None
    instances: tuple[str, ...] = ()
    steps: tuple[Mapping[str, Any], ...] = ()
    snapshots: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    at_work: tuple[str, ...] = ()
    tokens: int = 0
    cost_usd: float = 0.0
    head: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)


def list_sessions(connection: Transaction, *, state: str = "", limit: int = 100) -> list[Session]:
    """The newest first; children of an instance are part of its session."""
    found = list_instances(connection, limit=10 * limit)
    sessions = [_glance(one) for one in found if not one.parent_instance_id]
    return [one for one in sessions if state in ("", one.state, one.outcome)][:limit]


def show_session(connection: Transaction, prefix: str) -> Session:
    """One session with everything a person decides by.

    Raises:
        NotFoundError: There is none whose id begins so.
    """
    instance = root_of(connection, prefix)
    ids = family(connection, instance.instance_id)
    runs = [run for one in ids for run in runs_of(connection, one)]
    head = head_of(connection, instance.instance_id)
    glance = _glance(instance)
    steps = tuple(
        {"step": run.step_id, "item": run.item, "state": run.status, "attempt": run.attempt}
        for run in runs
    )
    kept = dict.fromkeys(row.snapshot_id for one in ids for row in snapshots_of(connection, one))
    asked = tuple(one.question for each in ids for one in pending_approvals(connection, each))
    return Session(
        **{name: getattr(glance, name) for name in GLANCED},
        instances=ids,
        steps=steps,
        snapshots=tuple(kept),
        waits_for=asked,
        at_work=tuple(one.what for one in alive_in(connection, ids)),
        tokens=sum(run.tokens for run in runs),
        cost_usd=sum(run.cost_usd for run in runs),
        head=head.hash if head else "",
        payload=instance.payload,
    )


GLANCED = (
    "session_id", "state", "outcome", "workflow", "step", "reason", "workspace", "created_at",
    "ended_at",
)  # fmt: skip


def _glance(instance: Instance) -> Session:
    state, outcome = STATES[instance.state]
    return Session(
        instance.instance_id,
        state,
        outcome,
        instance.workflow,
        instance.current_step,
        instance.reason,
        instance.workspace,
        instance.created_at,
        instance.ended_at,
    )


def root_of(connection: Transaction, prefix: str) -> Instance:
    """The instance with which the session of an instance began."""
    instance = get_instance(connection, find_instance(connection, prefix))
    seen: set[str] = set()
    while instance is not None and instance.parent_instance_id:
        seen.add(instance.instance_id)
        above = get_instance(connection, instance.parent_instance_id)
        if above is None or above.instance_id in seen:  # a ledger that was edited may go round
            break
        instance = above
    assert instance is not None, "it was found a moment ago"
    return instance


def alive_in(connection: Transaction, ids: tuple[str, ...]) -> tuple[AtWork, ...]:
    """What of these instances is under way, by processes that are there."""
    mine = (one for one in at_work(connection) if one.instance_id in ids)
    return tuple(one for one in mine if is_alive(one.process) is not False)


# --- what a person may do -------------------------------------------------------------------


def suspend(ledger: Ledger, prefix: str, *, by: str = "person") -> Session:
    """Let nothing more of a session begin. The step under way goes on to its end.

    Raises:
        UsageError: It does not run.
    """
    with ledger.write() as connection:
        at = ledger_now(connection)
        root = root_of(connection, prefix)
        ids = family(connection, root.instance_id)
        about: dict[str, Any] = {"reason": f"suspended by {by}", "actor": by}
        moved = [
            move_instance(connection, at, one, _I.RUNNING, _I.SUSPENDED, **about) for one in ids
        ]
        if not any(moved):
            state = STATES[root.state][0]
            raise UsageError(
                f"session {root.instance_id} is {state}; only a running one can be suspended"
            )
        return show_session(connection, root.instance_id)


def resume(ledger: Ledger, prefix: str, *, by: str = "person", force: bool = False) -> Session:
    """Let a suspended session go on, as soon as an engine runs.

    Args:
        force: Also one that was exported, and may go on elsewhere at the same time.

    Raises:
        UsageError: It is not suspended, or waits for a person's answer.
    """
    with ledger.write() as connection:
        at = ledger_now(connection)
        root = root_of(connection, prefix)
        ids = family(connection, root.instance_id)
        _refuse_resume(connection, root, ids, force=force)
        for one in ids:
            move_instance(connection, at, one, _I.SUSPENDED, _I.RUNNING, actor=by)
        return show_session(connection, root.instance_id)


def _refuse_resume(
    connection: Transaction, root: Instance, ids: tuple[str, ...], *, force: bool
) -> None:
    name = f"session {root.instance_id}"
    if root.state != _I.SUSPENDED:
        raise UsageError(f"{name} is {STATES[root.state][0]}; only a suspended one can be resumed")
    if any(pending_approvals(connection, one) for one in ids):
        raise UsageError(
            f"{name} waits for your answer: openry-orchestrator approve {root.instance_id}"
            " (or reject)"
        )
    if root.reason.startswith(EXPORTED) and not force:
        raise UsageError(
            f"{name} was exported and may go on elsewhere: what it does would be done twice;"
            " resume it with --force if it does not"
        )


def end(ledger: Ledger, prefix: str, *, by: str = "person") -> Session:
    """End a session: nothing more begins, what runs is braked, its strays are ended.

    Raises:
        UsageError: It has ended.
    """
    with ledger.write() as connection:
        at = ledger_now(connection)
        root = root_of(connection, prefix)
        ids = family(connection, root.instance_id)
        asked = [request_cancel(connection, at, one, by) for one in ids]
        if not any(asked):
            state, outcome = STATES[root.state]
            raise UsageError(f"session {root.instance_id} is {outcome or state} already")
        busy = alive_in(connection, ids)
        if not busy:
            about: dict[str, Any] = {"reason": "cancelled", "actor": by}
            for one in ids:
                instance = get_instance(connection, one)
                if instance is not None and instance.state == _I.QUEUED:
                    move_instance(connection, at, one, _I.QUEUED, _I.CANCELLED, **about)
    if not busy:
        _end_strays(ids)
    with ledger.read() as connection:
        return show_session(connection, root.instance_id)


def mark_imported(connection: Transaction, at: str, ids: tuple[str, ...]) -> None:
    """A session that comes in waits until somebody says that it is to go on here."""
    states: tuple[Any, ...] = (_I.RUNNING, _I.SUSPENDED)
    for one in ids:
        if not move_instance(connection, at, one, *states, reason="imported", actor="import"):
            instance = get_instance(connection, one)
            if instance is not None and instance.reason.startswith(EXPORTED):
                set_instance(connection, at, one, reason="imported")


def mark_exported(connection: Transaction, at: str, ids: tuple[str, ...], where: str) -> None:
    """A session that is live here must not go on here by itself once it is elsewhere."""
    reason = f"{EXPORTED} to {where}"
    for one in ids:
        if not move_instance(connection, at, one, _I.RUNNING, _I.SUSPENDED, reason=reason):
            instance = get_instance(connection, one)
            if instance is not None and instance.state == _I.SUSPENDED:
                set_instance(connection, at, one, reason=reason)


# --- the sweeper ----------------------------------------------------------------------------


def sweep(config: Config, ledger: Ledger) -> int:
    """End what still runs of sessions that ended, or are idle for too long. How many processes.

    Idle is a suspended one that nobody touched for `session.idle_minutes`. Where background
    processes are kept (`background: keep`), nothing is swept.
    """
    if config.background == "keep":
        return 0
    there = marked_instances()
    with ledger.read() as connection:
        at = ledger_now(connection)
        idle = [
            one.instance_id
            for one in filter(None, (get_instance(connection, each) for each in there))
            if one.state in (_I.COMPLETED, _I.FAILED, _I.CANCELLED)
            or (one.state == _I.SUSPENDED and _idle_s(connection, one, at) > _limit_s(config))
        ]
        busy = {one.instance_id for one in at_work(connection) if is_alive(one.process)}
    return len(_end_strays(tuple(one for one in idle if one not in busy)))


def _limit_s(config: Config) -> float:
    return config.session_idle_minutes * 60


def _idle_s(connection: Transaction, instance: Instance, at: str) -> float:
    moments = [run.ended_at or run.created_at for run in runs_of(connection, instance.instance_id)]
    return seconds_between(max([instance.created_at, *moments]), at)


def _end_strays(ids: tuple[str, ...]) -> tuple[int, ...]:
    """End processes that were started for these instances, whoever their parent is now."""
    marks = (f"OPENRY_IDEMPOTENCY_KEY={one}-".encode() for one in ids)
    return tuple(pid for mark in marks for pid in end_strays(mark))
