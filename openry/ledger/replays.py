"""Which instance was done once more, and as which; and the newest one of a workflow."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from openry.ledger.schema import workflow_instances
from openry.models import InstanceState

_i = workflow_instances.c
_ORIGIN = select(_i.replay_of, _i.replay_from_step).where(
    _i.instance_id == bindparam("instance_id")
)
_REPLAYS = (
    select(_i.instance_id)
    .where(_i.replay_of == bindparam("instance_id"))
    .order_by(_i.created_at, _i.instance_id)
)
_NEWEST = (
    select(_i.instance_id)
    .where(_i.workflow == bindparam("workflow"), _i.parent_instance_id.is_(None))
    .order_by(_i.created_at.desc(), _i.instance_id.desc())
    .limit(1)
)
_NEWEST_COMPLETED = _NEWEST.where(_i.state == InstanceState.COMPLETED.value)


@dataclass(frozen=True, slots=True)
class Links:
    """From a replay to its original and back. `replay_of` is empty for what is no replay."""

    replay_of: str = ""
    from_step: str = ""
    replayed_by: tuple[str, ...] = ()


def links_of(connection: Connection, instance_id: str) -> Links:
    """What an instance is a replay of, and its own replays, the oldest first."""
    about = {"instance_id": instance_id}
    row = connection.execute(_ORIGIN, about).one_or_none()
    origin, step = (row[0] or "", row[1] or "") if row else ("", "")
    return Links(origin, step, tuple(connection.execute(_REPLAYS, about).scalars()))


def newest_completed(connection: Connection, workflow: str) -> str:
    """The newest instance of a workflow that ended well; empty when none did."""
    return connection.execute(_NEWEST_COMPLETED, {"workflow": workflow}).scalar() or ""


def newest_of(connection: Connection, workflow: str) -> str:
    """The newest instance of a workflow, however it stands; empty when there is none."""
    return connection.execute(_NEWEST, {"workflow": workflow}).scalar() or ""
