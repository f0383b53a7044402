"""Connections to a ledger's file, for the hand: `sqlite3` alone, once the ledger is there."""

from __future__ import annotations

import os

import openry.ledger.sqlite as sqlite3
from openry.errors import StorageError
from openry.ledger.version import BUSY_TIMEOUT_S, HEAD, refuse_newer


def connect(path: str) -> sqlite3.Connection:
    """A connection to a ledger of our schema, made or upgraded first if need be."""
    connection = open_current(path)
    if connection is None:
        from openry.ledger.migrate import upgrade

        upgrade(path)
        connection = open_current(path)
    if connection is None:
        raise StorageError(f"the ledger `{path}` was replaced while it was opened; try again")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def open_current(path: str) -> sqlite3.Connection | None:
    """A connection, if a ledger of exactly our schema is there."""
    if not os.path.isfile(path):  # noqa: PTH113  # pathlib costs the forwarder 8 ms
        return None
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    found = None
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        found = row[0] if row else None
        refuse_newer(found, path)
    except sqlite3.OperationalError as error:
        if not str(error).startswith("no such table"):
            raise
    finally:
        if found != HEAD:
            connection.close()
    return connection if found == HEAD else None
