"""Statements made once and used again: building one costs more than running it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    Connection,
    Insert,
    Table,
    Update,
    bindparam,
    func,
    insert,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import IntegrityError

from openry.ledger.jsontext import to_json

#: What a statement raises that breaks a rule of the schema.
BROKEN_RULE = (IntegrityError, sqlite3.IntegrityError)
_NONE: frozenset[str] = frozenset()
_SQLITE = sqlite.dialect(json_serializer=to_json)


def driver(connection: Connection) -> sqlite3.Connection:
    """SQLite's own connection below one of SQLAlchemy's: for statements in its own words."""
    own: Any = connection.connection.driver_connection
    return cast(sqlite3.Connection, own)


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
    given = {f"where_{name}": value for name, value in where.items()}
    given |= {f"new_{name}": value for name, value in values.items()}
    shape = (table, tuple(where), tuple(values), once)
    if connection.dialect.name == _SQLITE.name:
        written = _written_update(*shape)
        return driver(connection).execute(written.text, written.values(given)).rowcount
    return connection.execute(_update(*shape), given).rowcount


def add(connection: Connection, table: Table, *rows: Mapping[str, Any]) -> None:
    """INSERT rows that all have the same columns."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name == _SQLITE.name:
        written = _written_insert(table, names)
        driver(connection).executemany(written.text, [written.values(row) for row in rows])
    else:
        connection.execute(_insert(table, names), [dict(row) for row in rows])


@dataclass(frozen=True, slots=True)
class Written:
    """A statement in SQLite's own words, which costs a fifth of one that is looked up each time.

    Attributes:
        names: Its parameters, in order; each with what makes a value fit for the driver.
    """

    text: str
    names: Sequence[tuple[str, Callable[[Any], Any] | None]]

    def values(self, given: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(given[name] if fit is None else fit(given[name]) for name, fit in self.names)


def _written(statement: Insert | Update) -> Written:
    made: Any = statement.compile(dialect=_SQLITE)
    types = {name: bind.type.dialect_impl(_SQLITE) for name, bind in made.binds.items()}
    names = [(name, types[name].bind_processor(_SQLITE)) for name in made.positiontup]
    return Written(made.string, names)


@cache
def _written_update(*shape: Any) -> Written:
    return _written(_update(*shape))


@cache
def _written_insert(table: Table, names: tuple[str, ...]) -> Written:
    return _written(_insert(table, names))


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
