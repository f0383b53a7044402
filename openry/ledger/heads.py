"""The head of an instance: one hash that stands for all it did, made when it ends.

It is the hash of an event that names the commands so far and the head before, of whatever instance
that was. So no instance can be taken out without a trace, as long as the newest head is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, bindparam, select

from openry.ledger.chain import OPEN_ENDINGS, link
from openry.ledger.change import add
from openry.ledger.journal import add_event
from openry.ledger.jsontext import to_json
from openry.ledger.schema import HEADS, checkpoints, commands_log, events

_c = commands_log.c

_COMMANDS = (
    select(_c.started_hash, _c.ended_hash, _c.ending)
    .where(_c.instance_id == bindparam("instance_id"))
    .order_by(_c.id)
)
_NEWEST = select(events.c.hash).where(HEADS).order_by(events.c.id.desc()).limit(1)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest head of an instance, and when it was made."""

    hash: str
    at: str


def add_head(connection: Connection, at: str, instance_id: str) -> None:
    """Close the chains of an instance that has ended into its head."""
    digest, count, still_open = blake2b(digest_size=32), 0, []
    for started, ended, ending in connection.execute(_COMMANDS, {"instance_id": instance_id}):
        if ending in OPEN_ENDINGS:
            still_open.append(count)
            ended = ""
        digest.update((started + ended).encode())
        count += 1
    about: dict[str, Any] = {
        "commands": count,
        "digest": digest.hexdigest(),
        "open": still_open,
        "previous": newest_head(connection),
    }
    add_event(connection, at, instance_id=instance_id, kind="head", data=about)


def newest_head(connection: Connection) -> str:
    """The newest head of all; empty before the first instance has ended."""
    return connection.execute(_NEWEST).scalar() or ""


def head_of(connection: Connection, instance_id: str) -> Head | None:
    """The newest head of an instance; None before it has ended."""
    wanted = (
        select(events.c.hash, events.c.at)
        .where(events.c.instance_id == instance_id, events.c.kind == "head")
        .order_by(events.c.id.desc())
        .limit(1)
    )
    row = connection.execute(wanted).one_or_none()
    return None if row is None else Head(*row)


def add_checkpoint(
    connection: Connection,
    at: str,
    kind: str,
    heads: Iterable[str],
    instances: Iterable[str] = (),
) -> None:
    """Write down that rows are missing from here on: which heads stood for them, and of which
    instances they were.
    """
    wanted = select(checkpoints.c.hash).order_by(checkpoints.c.id.desc()).limit(1)
    before = connection.execute(wanted).scalar() or ""
    data = {"heads": sorted(heads), "instances": sorted(instances)}
    row = {"at": at, "kind": kind, "data": data, "hash": link(before, at, kind, to_json(data))}
    add(connection, checkpoints, row)


def pruned(connection: Connection, prefix: str) -> dict[str, str]:
    """The instances with ids that begin so which were pruned, and when."""
    wanted = select(checkpoints.c.at, checkpoints.c.data).where(checkpoints.c.kind == "prune")
    return {
        name: at
        for at, data in connection.execute(wanted)
        for name in data.get("instances", ())  # checkpoints of old have none
        if name.startswith(prefix)
    }


def heads_of(connection: Connection, instance_ids: Iterable[str]) -> tuple[str, ...]:
    """Every head that these instances ever had."""
    wanted = select(events.c.hash).where(HEADS, events.c.instance_id.in_(list(instance_ids)))
    return tuple(connection.execute(wanted).scalars())
