"""What definition files held when they were last read and found sound: reading YAML is most of the
time that loading a registry takes.

An entry counts only while its file is the same: inode, size, time of writing and of change, and the
last cannot be set back. What was written just now is read again, since two writings within one
tick of the clock look alike. A cache that others could have written is not used.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openry import __version__
from openry.files import write_private

_FORM = f"2 {__version__} {sys.version_info[:2]}"
_TOO_NEW_S = 2.0
_MOST_FILES = 5000


class DefinitionCache:
    """Entries by path, kept in one file; `save` it when loading is done.

    Args:
        file: Where it is kept; None for nowhere.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known = _read(file) if file else {}
        self._changed = False

    def get(self, path: Path) -> Mapping[str, Any] | None:
        """What the file holds, if it is known and sound; else None."""
        entry = self._known.get(str(path))
        if entry is None:
            return None
        stamp = _stamp(path)
        return entry[1] if stamp is not None and entry[0] == stamp else None

    def put(self, path: Path, data: Mapping[str, Any]) -> None:
        """Remember what a sound file holds."""
        stamp = _stamp(path)
        if self._file is None or stamp is None or not _is_json(data):
            return
        if time.time() - max(stamp[0], stamp[1]) / 1e9 >= _TOO_NEW_S:
            self._known[str(path)] = [stamp, data]
            self._changed = True

    def save(self) -> None:
        """Write it down if anything is new; one that cannot be written only costs time."""
        if self._file is None or not self._changed:
            return
        there = {path: entry for path, entry in self._known.items() if os.path.exists(path)}  # noqa: PTH110
        kept = dict(list(there.items())[-_MOST_FILES:])
        text = json.dumps({"form": _FORM, "files": kept}, ensure_ascii=False, separators=(",", ":"))
        try:
            write_private(self._file, text)
        except (OSError, UnicodeEncodeError):
            return
        self._changed = False


def _read(file: Path) -> dict[str, Any]:
    try:
        about = file.lstat()
        if about.st_uid != os.geteuid() or about.st_mode & 0o022 or file.is_symlink():
            return {}
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict) or data.get("form") != _FORM:
        return {}
    files = data.get("files")
    if not isinstance(files, dict):
        return {}
    return {path: entry for path, entry in files.items() if _is_entry(entry)}


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], dict)


def _stamp(path: Path) -> list[int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev]


def _is_json(data: Mapping[str, Any]) -> bool:
    """Whether it comes back from JSON as it is: no keys but texts, no dates."""
    try:
        return bool(json.loads(json.dumps(data)) == data)
    except (TypeError, ValueError, RecursionError):
        return False
