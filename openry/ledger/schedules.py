"""Schedules, what each of them began, and notices that wait to be sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection, delete, select

from openry.errors import UsageError
from openry.ledger.change import BROKEN_RULE, add, change
from openry.ledger.journal import columns
from openry.ledger.schema import (
    LIVE_INSTANCES,
    PENDING_NOTICES,
    firings,
    notices,
    schedules,
    workflow_instances,
)

_s, _f, _n, _i = schedules.c, firings.c, notices.c, workflow_instances.c


@dataclass(frozen=True, slots=True)
class Schedule:
    """A row of `schedules`.

    Attributes:
        next_at: When it is due next, in UTC; None when it never is again.
    """

    name: str
    workflow: str
    cron: str
    zone: str
    catch_up: str = "none"
    overlap: str = "skip"
    inputs: Mapping[str, Any] = field(default_factory=dict)
    workspace: str = ""
    paused: bool = False
    created_at: str = ""
    next_at: str | None = None


_COLUMNS = columns(schedules, Schedule)


@dataclass(frozen=True, slots=True)
class Firing:
    """What came of one due time. `instance_id` is empty unless it was started."""

    schedule: str
    due_at: str
    instance_id: str
    outcome: str
    reason: str


_FIRING_COLUMNS = columns(firings, Firing)


def add_schedule(connection: Connection, schedule: Schedule) -> None:
    """Put down a new schedule.

    Raises:
        UsageError: There is one of that name.
    """
    try:
        with connection.begin_nested():
            add(connection, schedules, asdict(schedule))
    except BROKEN_RULE:
        raise UsageError(
            f"there is a schedule `{schedule.name}` already; remove it, or give another name"
        ) from None


def remove_schedule(connection: Connection, name: str) -> bool:
    return connection.execute(delete(schedules).where(_s.name == name)).rowcount == 1


def list_schedules(connection: Connection) -> tuple[Schedule, ...]:
    found = connection.execute(select(*_COLUMNS).order_by(_s.name))
    return tuple(Schedule(*row) for row in found)


def move_on(connection: Connection, schedule: Schedule, next_at: str | None) -> bool:
    """Take a schedule to its next time; False when another engine was first, or it is gone."""
    where = {"name": schedule.name, "next_at": schedule.next_at, "paused": False}
    return change(connection, schedules, where, {"next_at": next_at}) == 1


def add_firing(connection: Connection, at: str, firing: Firing) -> None:
    add(connection, firings, {"at": at, **asdict(firing)})


def firings_of(connection: Connection, name: str, *, limit: int = 20) -> tuple[Firing, ...]:
    """What came of the latest due times, the newest first."""
    wanted = select(*_FIRING_COLUMNS).where(_f.schedule == name).order_by(_f.due_at.desc())
    return tuple(Firing(*row) for row in connection.execute(wanted.limit(limit)))


def live_of_schedule(connection: Connection, name: str) -> tuple[str, ...]:
    """Instances that a schedule began and that have not ended, the oldest first."""
    wanted = (
        select(_i.instance_id)
        .join(firings, _f.instance_id == _i.instance_id)
        .where(LIVE_INSTANCES, _f.schedule == name)
        .order_by(_f.due_at)
    )
    return tuple(connection.execute(wanted).scalars())


# --- notices ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notice:
    """Somebody is to be told of an instance; `about` is `failed`, `completed` …"""

    id: int
    instance_id: str
    about: str


_NOTICE_COLUMNS = columns(notices, Notice)


def add_notice(connection: Connection, at: str, instance_id: str, about: str) -> None:
    add(connection, notices, {"at": at, "instance_id": instance_id, "about": about})


def pending_notices(connection: Connection) -> tuple[Notice, ...]:
    wanted = select(*_NOTICE_COLUMNS).where(PENDING_NOTICES).order_by(_n.id)
    return tuple(Notice(*row) for row in connection.execute(wanted))


def take_notice(connection: Connection, at: str, notice: Notice) -> bool:
    """Mark a notice as sent before it is; False when another engine was first."""
    where = {"id": notice.id, "state": "pending"}
    return change(connection, notices, where, {"state": "sent", "ended_at": at}) == 1


def end_notice(connection: Connection, at: str, notice: Notice, state: str, reason: str) -> None:
    change(
        connection, notices, {"id": notice.id}, {"state": state, "reason": reason, "ended_at": at}
    )
