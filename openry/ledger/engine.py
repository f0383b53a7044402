"""Engines for the ledger, and a database's trouble under our own name."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    IntegrityError,
    InterfaceError,
    ProgrammingError,
)

from openry.errors import StorageError
from openry.ledger.change import driver
from openry.ledger.jsontext import to_json
from openry.ledger.place import Where, shown, sqlalchemy_url, sqlite_path
from openry.ledger.trouble import storage_error
from openry.ledger.version import BUSY_TIMEOUT_S

#: Mistakes of ours, which keep their name and traceback.
_OURS = (IntegrityError, ProgrammingError)


@contextmanager
def renamed_errors(where: Where) -> Iterator[None]:
    """Give a database's trouble our name, with place and fix."""
    try:
        yield
    except _OURS:
        raise
    except (DatabaseError, InterfaceError) as error:
        path = sqlite_path(where)
        if path is not None and isinstance(error.orig, sqlite3.Error):
            raise storage_error(error.orig, path) from error
        raise StorageError(f"the ledger `{shown(where)}`: {error.orig}") from error
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.Error as error:
        raise storage_error(error, os.fspath(sqlite_path(where) or "")) from error


def open_engine(where: Where) -> Engine:
    """An engine for `where` as it is: nothing is created or upgraded.

    Raises:
        StorageError: It is no address, or of a kind of database that this install cannot open.
    """
    if sqlite_path(where) is None:
        try:
            return create_engine(sqlalchemy_url(where), json_serializer=to_json, pool_pre_ping=True)
        except (ArgumentError, ModuleNotFoundError) as error:
            why = str(error).partition("\n")[0].lower()
            raise StorageError(
                f"the ledger `{shown(where)}` cannot be opened: {why}; set OPENRY_DB to a file, or"
                " install that database's driver"
            ) from error
    return _listening(
        create_engine(
            sqlalchemy_url(where),
            json_serializer=to_json,
            connect_args={"timeout": BUSY_TIMEOUT_S},
            poolclass=NullPool,  # `kept` keeps them, where it is worth it
        )
    )


def speaking_engine(connect: Callable[[], Any]) -> Engine:
    """An engine on a file of SQLite whose connections are what `connect` gives."""
    options: dict[str, Any] = {"json_serializer": to_json, "poolclass": NullPool}
    return _listening(create_engine("sqlite:///lent", creator=connect, **options))


def _listening(engine: Engine) -> Engine:
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: sqlite3.Connection, _: Any) -> None:
    # We say BEGIN ourselves: the driver's own is deferred, and would fail instead of wait.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    if not driver(connection).in_transaction:  # else it was begun in SQLite's own words
        writing = connection.get_execution_options().get("openry_writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
