"""Brings a ledger to this program's schema, and makes it where there is none."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

from openry.errors import StorageError
from openry.ledger import fresh
from openry.ledger.locking import alone_in
from openry.ledger.place import Where, shown, sqlite_path
from openry.ledger.trouble import storage_error
from openry.ledger.version import BUSY_TIMEOUT_S, HEAD, refuse_newer

if TYPE_CHECKING:  # only who upgrades a ledger waits for it to be imported
    from sqlalchemy import Connection

_POSTGRES_LOCK = 0x0FE9_7279  # any number, as long as all of us take the same


def upgrade(where: Where) -> None:
    """Make the ledger at `where`, a path or URL, what this program needs. Quick when it is.

    Many processes may do so at once: one works, the others wait for it. What fails half-way
    leaves the ledger as it was.

    Raises:
        StorageError: It cannot be written, its folder is missing, it is something else, or it was
            damaged and is set aside now.
        LedgerTooNewError: A newer OpenRY wrote it.
    """
    path = sqlite_path(where)
    if path is None:
        migrate(where)
    elif not _is_current(path):
        try:
            # Elsewhere the transaction alone keeps two upgrades apart: slower, and as safe.
            with alone_in(Path(path).parent):
                _make_file(path)
                _use_wal(path)
                if not _is_made(path):
                    migrate(path)
        except StorageError as error:
            from openry.ledger.damage import told

            raise told(error, path) from error


def migrate(where: Where) -> None:
    """Walk what is there, or nothing, through the migrations that it has not seen."""
    from openry.ledger.engine import open_engine, renamed_errors

    engine = open_engine(where)
    try:
        with renamed_errors(where), engine.connect() as connection:
            connection = connection.execution_options(openry_writing=True)
            with connection.begin():
                _upgrade_inside(connection, where)
    finally:
        engine.dispose()


def _upgrade_inside(connection: Connection, where: Where) -> None:
    from sqlalchemy import text

    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _POSTGRES_LOCK})
    found = _revision(connection, where)
    refuse_newer(found, shown(where))
    if found != HEAD:
        _run_migrations(connection)


def _run_migrations(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "openry.ledger:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)


def _revision(connection: Connection, where: Where) -> str | None:
    from sqlalchemy import inspect, text

    tables = set(inspect(connection).get_table_names())
    if "alembic_version" in tables:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if tables:
        raise StorageError(
            f"`{shown(where)}` is a database of something else (it has a table"
            f" `{min(tables)}`); set OPENRY_DB to a file of its own"
        )
    return None


def _is_current(path: str) -> bool:
    """Whether the file at `path` has our newest schema already."""
    if not Path(path).is_file():
        return False
    try:
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        finally:
            connection.close()
    except sqlite3.Error:
        return False  # the slow way round finds out what it is, and says so
    return bool(row) and row[0] == HEAD


def _is_made(path: str) -> bool:
    """Whether the file at `path` was empty, and is a ledger now."""
    try:
        return fresh.make(path)
    except sqlite3.Error as error:
        raise storage_error(error, path) from error


def _make_file(path: str) -> None:
    """An empty file that only its owner may read; SQLite's own would follow the umask."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise storage_error(error, path) from error


def _use_wal(path: str) -> None:
    """Let readers and a writer work at once. SQLite does not wait for this by itself."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            if not busy or time.monotonic() > deadline:
                raise storage_error(error, path) from error
        else:
            return
        finally:
            connection.close()
        time.sleep(0.05)
