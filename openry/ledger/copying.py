"""A copy of a ledger that is whole, whoever writes to it meanwhile."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from openry.errors import StorageError
from openry.ledger.place import Where, shown, sqlite_path
from openry.ledger.trouble import storage_error
from openry.ledger.version import BUSY_TIMEOUT_S, refuse_newer


def copy_ledger(where: Where, target: Path) -> int:
    """Copy the SQLite ledger at `where` into the new file `target`. Returns its size in bytes.

    The copy is what the ledger was at one moment, and was looked through for damage.

    Raises:
        StorageError: There is none, it is damaged, or the copy cannot be written.
    """
    path = sqlite_path(where)
    if path is None or not Path(path).is_file():
        raise StorageError(f"there is no SQLite ledger at `{shown(where)}` to copy")
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise StorageError(f"`{target}` cannot be made: {error.strerror}") from error
    source = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)
    copy = sqlite3.connect(target)
    try:
        source.backup(copy)  # in one step: writers neither wait nor make it start again
        # One file by itself: no journal beside it that could be left behind.
        copy.execute("PRAGMA journal_mode = DELETE")
        check_ledger(copy, str(target))
    except sqlite3.Error as error:
        raise storage_error(error, path) from error
    finally:
        copy.close()
        source.close()
    return target.stat().st_size


def check_ledger(copy: sqlite3.Connection, where: str) -> None:
    """Whether this is a sound ledger of a schema we know.

    Raises:
        StorageError: It is damaged, or something else.
        LedgerTooNewError: A newer OpenRY wrote it.
    """
    (said,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        raise StorageError(f"the ledger `{where}` is damaged: {' '.join(said.split())}")
    row = copy.execute("SELECT version_num FROM alembic_version").fetchone()
    refuse_newer(row[0] if row else None, where)


def check_ledger_file(path: Path) -> None:
    """The same for a file.

    Raises:
        StorageError: It is damaged, or no ledger.
    """
    copy = sqlite3.connect(path)
    try:
        check_ledger(copy, str(path))
    except sqlite3.Error as error:
        raise storage_error(error, str(path)) from error
    finally:
        copy.close()
