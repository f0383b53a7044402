"""Instances: every change of state is a compare-and-set with its event beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, false, func, select, update

from openry.errors import NotFoundError
from openry.ledger.change import add, change
from openry.ledger.heads import add_head, pruned
from openry.ledger.journal import add_event, columns
from openry.ledger.schema import (
    LIVE_INSTANCES,
    OPEN_RUNS,
    PENDING_APPROVALS,
    approvals,
    task_state,
    workflow_instances,
)
from openry.models import InstanceState
from openry.models.states import instance_may_become

_I = InstanceState
_i = workflow_instances.c
_t = task_state.c


@dataclass(frozen=True, slots=True)
class Instance:
    """A row of `workflow_instances`. `payload` is what the next step inherits."""

    instance_id: str
    workflow: str
    kind: str
    state: str
    reason: str
    plan: str
    plan_hash: str
    source_file: str
    inputs: Mapping[str, Any]
    payload: Mapping[str, Any]
    data: Mapping[str, Any]
    workspace: str
    drafted: bool
    parent_instance_id: str | None
    current_step: str
    big_step_retry_count: int
    cancel_requested: bool
    deadline_at: str | None
    created_at: str
    started_at: str | None
    ended_at: str | None


@dataclass(frozen=True, slots=True)
class Glance:
    """As much of an instance as the patrol looks at in every scan."""

    instance_id: str
    state: str
    cancel_requested: bool
    deadline_at: str | None


_GLANCE_COLUMNS = columns(workflow_instances, Glance)
_INSTANCE_COLUMNS = columns(workflow_instances, Instance)
_GET_INSTANCE = select(*_INSTANCE_COLUMNS).where(_i.instance_id == bindparam("instance_id"))
_IDS = _i.instance_id.in_(bindparam("ids", expanding=True))
_GLANCE_AT = select(*_GLANCE_COLUMNS).where(_IDS)
_QUEUED = (
    select(_i.instance_id, _i.workflow)
    .where(LIVE_INSTANCES, _i.state == "queued")
    .order_by(_i.created_at)
)
_QUEUED_OF = _QUEUED.where(_IDS)
_LIVE_CHILDREN = select(_i.instance_id).where(
    LIVE_INSTANCES, _i.parent_instance_id.in_(bindparam("ids", expanding=True))
)
#: How the reason begins why an instance is suspended that asks nobody anything.
SUSPENDED_BY_HAND = ("suspended by ", "exported to ", "imported")
_ONCE = frozenset({"started_at"})


def add_instance(connection: Connection, at: str, values: Mapping[str, Any]) -> None:
    """A new instance, `queued`. `values` are columns; `instance_id`, `plan` and its hash too."""
    row = {**values, "state": _I.QUEUED.value, "created_at": at, "updated_at": at}
    add(connection, workflow_instances, row)
    add_event(connection, at, instance_id=values["instance_id"], kind="instance", new=_I.QUEUED)


def move_instance(
    connection: Connection,
    at: str,
    instance_id: str,
    old: InstanceState,
    new: InstanceState,
    *,
    reason: str = "",
    actor: str = "engine",
    **values: Any,
) -> bool:
    """Take an instance from `old` to `new`; False when it was not in `old` any more."""
    if not instance_may_become(old, new):
        raise ValueError(f"an instance cannot go from `{old}` to `{new}`")
    values |= {"state": new.value, "reason": reason, "updated_at": at}
    if new is _I.RUNNING:
        values |= {"started_at": at, "ended_at": None}
    elif new is not _I.SUSPENDED:
        values["ended_at"] = at
    where = {"instance_id": instance_id, "state": old.value}
    if change(connection, workflow_instances, where, values, once=_ONCE) != 1:
        return False
    if values.get("ended_at") is not None:
        _ask_no_longer(connection, at, instance_id)
    about: dict[str, Any] = {"old": old, "new": new, "reason": reason, "actor": actor}
    add_event(connection, at, instance_id=instance_id, kind="instance", **about)
    if values.get("ended_at"):
        add_head(connection, at, instance_id)
    return True


def _ask_no_longer(connection: Connection, at: str, instance_id: str) -> None:
    """What a person was asked about an instance is moot when that has ended.

    A yes to a command is not: it holds when the instance is taken up again.
    """
    a = approvals.c
    moot = (PENDING_APPROVALS, a.instance_id == instance_id, a.kind != "command")
    connection.execute(update(approvals).where(*moot).values(state="expired", answered_at=at))


def set_instance(connection: Connection, at: str, instance_id: str, **values: Any) -> None:
    """Write down more of what the engine knows of an instance; its state stays."""
    where = {"instance_id": instance_id}
    change(connection, workflow_instances, where, {**values, "updated_at": at})


def set_uncancelled(connection: Connection, at: str, instance_id: str, **values: Any) -> bool:
    """The same, but only while it runs and nobody has asked it to end; False otherwise."""
    where = {"instance_id": instance_id, "cancel_requested": False, "state": _I.RUNNING.value}
    return change(connection, workflow_instances, where, {**values, "updated_at": at}) == 1


def get_instance(connection: Connection, instance_id: str) -> Instance | None:
    row = connection.execute(_GET_INSTANCE, {"instance_id": instance_id}).one_or_none()
    return None if row is None else Instance(*row)


def glance_at(connection: Connection, instance_ids: Collection[str]) -> dict[str, Glance]:
    """The instances of these ids, at a glance."""
    if not instance_ids:
        return {}
    found = connection.execute(_GLANCE_AT, {"ids": list(instance_ids)})
    return {row[0]: Glance(*row) for row in found}


def queued_instances(
    connection: Connection, only: Collection[str] | None = None
) -> tuple[tuple[str, str], ...]:
    """(id, workflow) of the instances not started yet, the oldest first."""
    if only is None:
        found = connection.execute(_QUEUED)
    else:
        found = connection.execute(_QUEUED_OF, {"ids": list(only)})
    return tuple((row[0], row[1]) for row in found)


def live_children(connection: Connection, parents: Collection[str]) -> tuple[str, ...]:
    """Instances that have not ended and were started for one of `parents`."""
    return tuple(connection.execute(_LIVE_CHILDREN, {"ids": list(parents)}).scalars())


def end_child(connection: Connection, at: str, instance_id: str, actor: str) -> None:
    """Ask an instance to end that nobody waits for any more."""
    if request_cancel(connection, at, instance_id, actor):
        about = {"reason": "cancelled", "actor": actor}
        move_instance(connection, at, instance_id, _I.QUEUED, _I.CANCELLED, **about)


def running_count(connection: Connection, workflow: str) -> int:
    """Instances of one name that are under way."""
    wanted = (
        select(func.count())
        .select_from(workflow_instances)
        .where(LIVE_INSTANCES, _i.state != "queued", _i.workflow == workflow)
    )
    return int(connection.execute(wanted).scalar_one())


def count_instances(connection: Connection) -> int:
    return int(
        connection.execute(select(func.count()).select_from(workflow_instances)).scalar_one()
    )


def list_instances(
    connection: Connection, *, state: str = "", limit: int = 100
) -> tuple[Instance, ...]:
    """The newest instances first."""
    wanted = select(*_INSTANCE_COLUMNS).order_by(_i.created_at.desc()).limit(limit)
    if state:
        wanted = wanted.where(_i.state == state)
    return tuple(Instance(*row) for row in connection.execute(wanted))


def find_instance(connection: Connection, prefix: str) -> str:
    """The id of the one instance whose id begins with `prefix`.

    Raises:
        NotFoundError: None does, or several do.
    """
    wanted = select(_i.instance_id).where(_i.instance_id.startswith(prefix, autoescape=True))
    found = tuple(connection.execute(wanted.limit(5)).scalars()) if prefix else ()
    if prefix in found or len(found) == 1:
        return prefix if prefix in found else found[0]
    if found:
        raise NotFoundError(f"`{prefix}` could be {', '.join(found)}; give more of the id")
    for name, at in pruned(connection, prefix).items() if prefix else ():
        raise NotFoundError(f"instance `{name}` was pruned at {at}: nothing of it is left")
    raise NotFoundError(
        f"there is no instance `{prefix}`: it never was, or it was pruned"
        " (`openry-orchestrator list` shows all)"
    )


def request_cancel(connection: Connection, at: str, instance_id: str, actor: str) -> bool:
    """A person's soft brake on an instance and on whatever of it is under way."""
    live = (_i.instance_id == instance_id, LIVE_INSTANCES, _i.cancel_requested == false())
    changed = connection.execute(
        update(workflow_instances).where(*live).values(cancel_requested=True, updated_at=at)
    )
    if changed.rowcount != 1:
        return False
    connection.execute(
        update(task_state)
        .where(_t.workflow_instance_id == instance_id, OPEN_RUNS)
        .values(cancel_requested=True, braked_at=func.coalesce(_t.braked_at, at), updated_at=at)
    )
    add_event(connection, at, instance_id=instance_id, kind="cancel_requested", actor=actor)
    return True
