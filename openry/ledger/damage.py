"""A damaged ledger is set aside, whole and never deleted, so that work can go on with a new one."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from openry.clock import utc_now
from openry.errors import DamagedLedgerError, StorageError
from openry.ledger.locking import alone_in
from openry.ledger.version import BUSY_TIMEOUT_S

#: The ledger's own file, and what SQLite keeps beside it.
_PARTS = ("", "-wal", "-shm")
#: What stands in a ledger's first pages, also when its header is gone.
_OURS = b"commands_log"
_LOOKED_AT_BYTES = 1024 * 1024


def told(error: StorageError, where: str) -> StorageError:
    """`error` as it is; but if it says that the ledger at `where` is damaged, that is set aside.

    Nothing is moved that is no ledger, nor one that is sound when looked at again: somebody else
    may have been first.
    """
    path = Path(where)
    if not isinstance(error, DamagedLedgerError) or not _is_ours(path):
        return error
    try:
        with alone_in(path.parent):
            place = None if _is_sound(path) else _set_aside(path)
    except OSError as trouble:
        return StorageError(f"{error}; it could not be set aside: {trouble.strerror}")
    what = f"was set aside as `{place}`" if place else "has been set aside"
    return StorageError(
        f"the ledger `{path}` was damaged and {what}; nothing was started; call again to begin a"
        " new one, or bring a backup back first: openry backup FILE --restore"
    )


def _is_ours(path: Path) -> bool:
    if path.name == "openry.db":
        return True
    try:
        with open(path, "rb") as file:
            return _OURS in file.read(_LOOKED_AT_BYTES)
    except FileNotFoundError:  # somebody has just set it aside
        return True
    except OSError:
        return False


def _is_sound(path: Path) -> bool:
    if not path.exists():  # looking would make it
        return True
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        return not name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def _set_aside(path: Path) -> Path:
    """Rename it with all its parts. The new names say when; nothing is ever overwritten."""
    at = utc_now().replace(":", "").replace("-", "").partition(".")[0]
    place = path.with_name(f"{path.name}.damaged-{at}Z-{os.urandom(2).hex()}")
    for part in _PARTS:
        old = path.with_name(f"{path.name}{part}")
        if old.exists():
            old.rename(place.with_name(f"{place.name}{part}"))
    return place
