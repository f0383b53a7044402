"""Statements made once and used again: building one costs more than running it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert, Table, Update, bindparam, func, insert, update

_NONE: frozenset[str] = frozenset()


def change(
    connection: Connection,
    table: Table,
    where: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    once: frozenset[str] = _NONE,
) -> int:
    """UPDATE the rows whose columns equal `where`. Returns how many those were.

    What `once` names is set only where it is NULL so far.
    """
    statement = _update(table, tuple(where), tuple(values), once)
    given = {f"where_{name}": value for name, value in where.items()}
    given |= {f"new_{name}": value for name, value in values.items()}
    return connection.execute(statement, given).rowcount


def add(connection: Connection, table: Table, *rows: Mapping[str, Any]) -> None:
    """INSERT rows that all have the same columns."""
    if rows:
        connection.execute(_insert(table, tuple(rows[0])), [dict(row) for row in rows])


@cache
def _update(
    table: Table, where: tuple[str, ...], names: tuple[str, ...], once: Iterable[str]
) -> Update:
    new: dict[str, Any] = {}
    for name in names:
        parameter = bindparam(f"new_{name}", type_=table.c[name].type)
        new[name] = func.coalesce(table.c[name], parameter) if name in once else parameter
    same = (table.c[name] == bindparam(f"where_{name}", type_=table.c[name].type) for name in where)
    return update(table).where(*same).values(new)


@cache
def _insert(table: Table, names: tuple[str, ...]) -> Insert:
    return insert(table).values({name: bindparam(name, type_=table.c[name].type) for name in names})
