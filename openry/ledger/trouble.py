"""What SQLite and the file system complain of, said in one sentence with the fix."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from openry.errors import DamagedLedgerError, StorageError
from openry.ledger.version import BUSY_TIMEOUT_S

_ELSEWHERE = "or set OPENRY_DB to another file"


def storage_error(error: sqlite3.Error | OSError, where: str) -> StorageError:
    """The error to raise instead of `error`, which befell the ledger at `where`."""
    path = Path(where)
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "")
        damaged = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
        return (DamagedLedgerError if damaged else StorageError)(_sqlite_sentence(error, path))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(_full(path))
    return StorageError(_place_sentence(path) or f"the ledger `{path}`: {error.strerror}")


def _sqlite_sentence(error: sqlite3.Error, path: Path) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return _place_sentence(path) or f"the ledger `{path}` cannot be opened; {error}"
    if name.startswith("SQLITE_NOTADB"):
        return f"`{path}` is not a SQLite database; move it away, {_ELSEWHERE}"
    if name.startswith("SQLITE_CORRUPT"):
        return f"the ledger `{path}` is damaged; restore a backup of it, {_ELSEWHERE}"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return (
            f"the ledger `{path}` was locked by another process for {BUSY_TIMEOUT_S:.0f} s;"
            " end that process, or try again"
        )
    if name.startswith("SQLITE_FULL"):
        return _full(path)
    return f"the ledger `{path}`: {error}"


def _full(path: Path) -> str:
    return f"no space is left on the disk of the ledger `{path}`; free some, {_ELSEWHERE}"


def _place_sentence(path: Path) -> str:
    """What is wrong with the place itself; empty when nothing can be seen from here."""
    folder = path.parent
    if path.is_dir():
        return f"`{path}` is a folder, not a ledger; set OPENRY_DB to a file in it"
    if not folder.exists():
        return f"the folder `{folder}` for the ledger does not exist; create it, {_ELSEWHERE}"
    if not folder.is_dir():
        return f"`{folder}` is a file, so the ledger `{path}` cannot be in it; set OPENRY_DB"
    for place in (folder, path):
        if place.exists() and not os.access(place, os.W_OK):
            return f"`{place}` is not writable; make it so for this user, {_ELSEWHERE}"
    return ""
