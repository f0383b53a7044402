"""What is old enough to go: instances that ended, and everything that is about them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Table, delete, func, select, update

from openry.ledger.heads import add_checkpoint, heads_of
from openry.ledger.journal import ledger_now
from openry.ledger.schema import (
    LIVE_INSTANCES,
    approvals,
    commands_log,
    events,
    firings,
    notices,
    outputs,
    payloads,
    retries,
    snapshots,
    task_state,
    workers,
    workflow_instances,
)

_ABOUT = (
    events, payloads, retries, approvals, commands_log, snapshots, notices, firings,
)  # fmt: skip
_i = workflow_instances.c
#: Instances that go in one transaction, so that nobody waits long.
BATCH = 200


def ended_before(connection: Connection, at: str, *, limit: int = BATCH) -> tuple[str, ...]:
    """Instances that ended before `at`, the oldest first. Live ones, and a session's, never."""
    wanted = (
        select(_i.instance_id)
        .where(_i.ended_at.is_not(None), _i.ended_at < at, _i.session_id == "")
        .order_by(_i.ended_at)
        .limit(limit)
    )
    return tuple(connection.execute(wanted).scalars())


def count_ended_before(connection: Connection, at: str) -> int:
    wanted = select(func.count()).select_from(workflow_instances)
    where = (_i.ended_at.is_not(None), _i.ended_at < at, _i.session_id == "")
    return int(connection.execute(wanted.where(*where)).scalar_one())


def spills_of(connection: Connection, instance_ids: Iterable[str]) -> tuple[str, ...]:
    """Files in which outputs of these instances are kept whole."""
    which = outputs.c.instance_id.in_(list(instance_ids))
    return tuple(connection.execute(select(outputs.c.path).where(which)).scalars())


def forget(connection: Connection, instance_ids: Iterable[str]) -> None:
    """Delete instances and what is about them; what models cost stays.

    A checkpoint says which heads are gone, so that `openry log verify` does not miss them.
    """
    ids = list(instance_ids)
    if ids:
        heads = heads_of(connection, ids)
        add_checkpoint(connection, ledger_now(connection), "prune", heads, ids)
    table: Table
    for table in (*_ABOUT, outputs):
        connection.execute(delete(table).where(table.c.instance_id.in_(ids)))
    connection.execute(delete(task_state).where(task_state.c.workflow_instance_id.in_(ids)))
    connection.execute(delete(workflow_instances).where(_i.instance_id.in_(ids)))


def outputs_by_age(connection: Connection) -> tuple[tuple[int, str, bool], ...]:
    """(number, file, whether its instance is live) of every kept output, the newest first."""
    live = select(_i.instance_id).where(LIVE_INSTANCES)
    wanted = (
        select(outputs.c.id, outputs.c.path, outputs.c.instance_id.in_(live))
        .where(outputs.c.deleted_at.is_(None))
        .order_by(outputs.c.id.desc())
    )
    return tuple((row[0], row[1], bool(row[2])) for row in connection.execute(wanted))


def delete_outputs(connection: Connection, at: str, ids: Iterable[int]) -> None:
    """Note that the files of these outputs are deleted; their rows stay."""
    which = outputs.c.id.in_(list(ids))
    connection.execute(update(outputs).where(which).values(deleted_at=at))


def forget_workers(connection: Connection, before: str) -> int:
    """Rows of engines that ended before; how many."""
    ended = delete(workers).where(workers.c.ended_at.is_not(None), workers.c.ended_at < before)
    return connection.execute(ended).rowcount
