"""The ledger's clock, and its journal: one event for everything that changed.

All functions here and in `instances`, `runs` and `records` take the connection of
`Ledger.write()` or `Ledger.read()`; what belongs together is called inside one of them, and is
then kept whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, bindparam, func, select

from openry.ledger.chain import EVENT_COLUMNS, link
from openry.ledger.change import add, driver
from openry.ledger.jsontext import to_json
from openry.ledger.schema import events

#: What `Ledger.write()` and `Ledger.read()` give, for floors that do not speak SQL.
Transaction = Connection

_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Event:
    """A row of `events`: what changed, for whoever watches."""

    id: int
    at: str
    instance_id: str
    run_id: str
    step_id: str
    kind: str
    old: str
    new: str
    reason: str
    actor: str
    data: Mapping[str, Any] = field(default_factory=dict)


def columns(table: Table, row: type[Any]) -> list[Any]:
    return [table.c[each.name] for each in fields(row)]


_EVENT_COLUMNS = columns(events, Event)


def ledger_now(connection: Connection) -> str:
    """The time on the ledger's clock: leases are given and judged by one clock only.

    A file of SQLite is on this machine, so its clock is this machine's.
    """
    if connection.dialect.name == "sqlite":
        return _text(datetime.now(UTC))
    return _text(connection.execute(select(func.clock_timestamp())).scalar_one())


def later(at: str, seconds: float) -> str:
    """`seconds` after `at`.

    >>> later("2026-03-01T09:00:59.750Z", 0.5)
    '2026-03-01T09:01:00.250Z'
    """
    return _text(datetime.fromisoformat(at) + timedelta(seconds=seconds))


def seconds_between(earlier: str, at: str) -> float:
    """Seconds from `earlier` to `at`; negative when `at` comes first."""
    return (datetime.fromisoformat(at) - datetime.fromisoformat(earlier)).total_seconds()


def _text(moment: datetime) -> str:
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def event_row(
    at: str,
    *,
    instance_id: str,
    run_id: str = "",
    step_id: str = "",
    kind: str = "transition",
    old: str = "",
    new: str = "",
    reason: str = "",
    actor: str = "engine",
    data: Mapping[str, Any] = _NOTHING,
) -> dict[str, Any]:
    """An event as its row."""
    return {
        "at": at,
        "instance_id": instance_id,
        "run_id": run_id,
        "step_id": step_id,
        "kind": kind,
        "old": old,
        "new": new,
        "reason": reason,
        "actor": actor,
        "data": dict(data),
    }


def add_event(connection: Connection, at: str, **about: Any) -> None:
    """Note one event; see `event_row` for what can be said of it."""
    add_events(connection, event_row(at, **about))


def add_events(connection: Connection, *rows: dict[str, Any]) -> None:
    """Note events, each with its hash; see `chain`."""
    last: dict[str, str] = {}
    for row in rows:
        instance_id = row["instance_id"]
        if instance_id not in last:
            last[instance_id] = _last_hash(connection, instance_id)
        said = [str(row[name]) for name in EVENT_COLUMNS[:-1]]
        row["hash"] = last[instance_id] = link(last[instance_id], *said, to_json(row["data"]))
    add(connection, events, *rows)


_LAST_HASH = (
    select(events.c.hash)
    .where(events.c.instance_id == bindparam("instance_id"))
    .order_by(events.c.id.desc())
    .limit(1)
)
#: The same in SQLite's words: it is asked with every event.
_LAST_HASH_SQLITE = "SELECT hash FROM events WHERE instance_id = ? ORDER BY id DESC LIMIT 1"


def _last_hash(connection: Connection, instance_id: str) -> str:
    """The newest event's; nobody else adds one to that chain before this transaction ends."""
    if connection.dialect.name == "sqlite":
        row = driver(connection).execute(_LAST_HASH_SQLITE, (instance_id,)).fetchone()
        return row[0] if row else ""
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(instance_id))))
    return connection.execute(_LAST_HASH, {"instance_id": instance_id}).scalar() or ""


def events_after(
    connection: Connection, event_id: int, instance_id: str, *, limit: int = 1000
) -> tuple[Event, ...]:
    """What happened after the event of that id, in order; to every instance when none is named."""
    wanted = select(*_EVENT_COLUMNS).where(events.c.id > event_id)
    if instance_id:
        wanted = wanted.where(events.c.instance_id == instance_id)
    found = connection.execute(wanted.order_by(events.c.id).limit(limit))
    return tuple(Event(*row) for row in found)


def last_event_id(connection: Connection) -> int:
    """The id of the newest event; 0 in an empty ledger."""
    return connection.execute(select(func.max(events.c.id))).scalar() or 0
