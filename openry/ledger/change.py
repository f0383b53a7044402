"""Statements made once and used again: building one costs more than running it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_PART = 500  # some SQLites take no more than 999 values
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
    shape = (table, tuple(where), tuple(values), once)
    if connection.dialect.name == _SQLITE.name:
        written = _written_update(*shape)
        found = written.values((*where.values(), *values.values()))
        return driver(connection).execute(written.text, found).rowcount
    given = {f"where_{name}": value for name, value in where.items()}
    given |= {f"new_{name}": value for name, value in values.items()}
    return connection.execute(_update(*shape), given).rowcount


def add(connection: Connection, table: Table, *rows: Mapping[str, Any]) -> None:
    """INSERT rows that all have the same columns."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name == _SQLITE.name:
        written = _written_insert(table, names)
        found = [written.values([row[name] for name in names]) for row in rows]
        driver(connection).executemany(written.text, found)
    else:
        connection.execute(_insert(table, names), [dict(row) for row in rows])


def parts(ids: Sequence[str]) -> Iterator[list[str]]:
    """`ids` in parts that a statement may hold."""
    for start in range(0, len(ids), _PART):
        yield list(ids[start : start + _PART])


@dataclass(frozen=True, slots=True)
class Written:
    """A statement in SQLite's own words, which costs a fifth of one that is looked up each time.

    Attributes:
        order: For each of its parameters, which of the given values that is.
        fits: Parameters that the driver does not take as they are, with what makes them so.
    """

    text: str
    order: tuple[int, ...]
    fits: tuple[tuple[int, Callable[[Any], Any]], ...]

    def values(self, given: Sequence[Any]) -> list[Any]:
        found = [given[place] for place in self.order]
        for place, fit in self.fits:
            found[place] = fit(found[place])
        return found


def _written(statement: Insert | Update, names: Sequence[str]) -> Written:
    made: Any = statement.compile(dialect=_SQLITE)
    types = [made.binds[name].type.dialect_impl(_SQLITE) for name in made.positiontup]
    fits = enumerate(each.bind_processor(_SQLITE) for each in types)
    return Written(
        made.string,
        tuple(names.index(name) for name in made.positiontup),
        tuple((place, fit) for place, fit in fits if fit is not None),
    )


@cache
def _written_update(
    table: Table, where: tuple[str, ...], names: tuple[str, ...], once: frozenset[str]
) -> Written:
    given = (*(f"where_{name}" for name in where), *(f"new_{name}" for name in names))
    return _written(_update(table, where, names, once), given)


@cache
def _written_insert(table: Table, names: tuple[str, ...]) -> Written:
    return _written(_insert(table, names), names)


@cache
def _update(
    table: Table, where: tuple[str, ...], names: tuple[str, ...], once: frozenset[str]
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
