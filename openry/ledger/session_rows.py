"""All rows of a session: read as plain values, and put down in another ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Connection, Table, func, insert, select

from openry.ledger.heads import add_checkpoint
from openry.ledger.schema import (
    approvals,
    commands_log,
    events,
    llm_calls,
    outputs,
    payloads,
    retries,
    snapshots,
    task_state,
    validation_results,
    workflow_instances,
)

Row = Mapping[str, Any]
#: In the order in which they may be put down. Numbers are given anew where they are no names.
_TABLES: dict[Table, Column[Any]] = {
    workflow_instances: workflow_instances.c.instance_id,
    task_state: task_state.c.workflow_instance_id,
    commands_log: commands_log.c.instance_id,
    **{
        table: table.c.instance_id
        for table in (events, payloads, retries, approvals, snapshots, outputs, llm_calls)
    },
    validation_results: validation_results.c.run_id,
}
TABLES = {table.name: table for table in _TABLES}
_i = workflow_instances.c


def family(connection: Connection, instance_id: str) -> tuple[str, ...]:
    """An instance and every one that was started for it, itself first."""
    found, waiting = [instance_id], [instance_id]
    while waiting:
        wanted = select(_i.instance_id).where(_i.parent_instance_id.in_(waiting))
        waiting = [one for one in connection.execute(wanted).scalars() if one not in found]
        found += waiting
    return tuple(found)


def newest_event(connection: Connection, ids: Sequence[str]) -> int:
    """The number of the last thing that happened in these instances; 0 for nothing."""
    wanted = select(func.max(events.c.id)).where(events.c.instance_id.in_(ids))
    return connection.execute(wanted).scalar() or 0


def known(connection: Connection, ids: Sequence[str]) -> tuple[str, ...]:
    """Those of these instances that are in the ledger."""
    wanted = select(_i.instance_id).where(_i.instance_id.in_(ids))
    return tuple(connection.execute(wanted).scalars())


def rows_of(connection: Connection, ids: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """(table, row) of everything that is about these instances, in the order it was written."""
    runs = select(task_state.c.run_id).where(task_state.c.workflow_instance_id.in_(ids))
    for table, column in _TABLES.items():
        which = column.in_(runs) if table is validation_results else column.in_(ids)
        order = table.c.id if "id" in table.c else table.c.created_at
        wanted = select(table).where(which).order_by(order)
        for row in connection.execute(wanted).mappings():
            yield table.name, dict(row)


def put_down(connection: Connection, at: str, rows: Iterable[tuple[str, Row]]) -> int:
    """Write the rows of a session that comes from another ledger. Returns how many.

    Raises:
        ValueError: A row is of no such table, or has no such columns.
    """
    commands: dict[int, int] = {}
    heads: list[str] = []
    count = 0
    for name, row in rows:
        table, values = TABLES.get(name), dict(row)
        if table is None or not set(values) <= set(table.c.keys()):
            raise ValueError(f"`{name}` with {', '.join(sorted(values))}")
        number = values.pop("id", None)
        if values.get("command_id") is not None:
            values["command_id"] = commands.get(values["command_id"])
        made = connection.execute(insert(table).values(values))
        if table is commands_log and made.inserted_primary_key:
            commands[number] = made.inserted_primary_key[0]
        if table is events and values.get("kind") == "head":
            heads.append(values["data"].get("previous", ""))
        count += 1
    if heads:
        # What ended before it in its own ledger is not in this one.
        add_checkpoint(connection, at, "import", {one for one in heads if one})
    return count
