"""Folders of sessions that were killed before their journal began: found, named, cleared."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from openry.ledger import loops
from openry.ledger.db import Ledger
from openry.ledger.process import ProcessId, is_alive, this_process

#: In a session's folder: the process that made it.
_OWNER = "process.json"
_NEW_S = 60.0


def mark(folder: Path) -> None:
    """Make a session's folder, and write down which process is at work in it."""
    own = this_process()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = {"pid": own.pid, "started_at": own.started_at, "host": own.host}
    (folder / _OWNER).write_text(json.dumps(owner), "utf-8")


def clear(sessions: Path, ledger: Ledger) -> None:
    """Remove the folders in `sessions` that no journal knows and no living process works in."""
    if not sessions.is_dir():
        return
    for folder in sessions.iterdir():
        if loops.session(ledger, folder.name) is None and not _is_owned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_owned(folder: Path) -> bool:
    """Whether a process is at work there, or may be: one elsewhere cannot be judged from here."""
    try:
        owner = json.loads((folder / _OWNER).read_text("utf-8"))
        return is_alive(ProcessId(owner["pid"], owner["started_at"], owner["host"])) is not False
    except (OSError, ValueError, KeyError):
        return _is_new(folder)


def _is_new(folder: Path) -> bool:
    """Whether a folder without an owner may just be getting one."""
    try:
        return time.time() - folder.stat().st_mtime < _NEW_S
    except OSError:
        return False
