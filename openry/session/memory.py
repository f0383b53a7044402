"""What a folder looked like when it was last recorded, so that it need not be read again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection
from contextlib import suppress
from hashlib import blake2b
from stat import S_ISDIR
from typing import NamedTuple

from openry.session.contents import Batch
from openry.session.tree import Entry, Tree

_VERSION = 1
#: A file changed less than this before it was read may change once more with the same time.
_TICK_NS = 50_000_000
#: The same where times are kept in whole seconds, or in two.
_COARSE_NS = 2_100_000_000
_SECOND_NS = 1_000_000_000


class Known(NamedTuple):
    """One thing as it was recorded, and by what it is recognised."""

    entry: Entry
    ctime_ns: int
    inode: int

    def is_of(self, status: os.stat_result) -> bool:
        """Whether nobody changed it since: its time of change is the system's own to set."""
        entry = self.entry
        return (
            status.st_mtime_ns == entry.mtime_ns
            and status.st_ctime_ns == self.ctime_ns
            and status.st_ino == self.inode
            and (entry.kind != "f" or status.st_size == entry.size)
        )


class Memory:
    """What is remembered of one folder; nothing, when that cannot be read.

    Attributes:
        snapshot_id: Its last snapshot; empty when nothing is remembered.
        entries: What it held then, by path; files that may change unseen are left out.
    """

    def __init__(self, folder: str, place: str, ignored: Collection[str]) -> None:
        about = "\0".join([place, *sorted(ignored)])
        name = blake2b(about.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        self._path = f"{folder}/{name}"
        self._begun_ns = time.time_ns()
        self._stamps: dict[str, tuple[int, int]] = {}
        self.snapshot_id = ""
        self.entries: dict[str, Known] = {}
        # A half-written or foreign file is nothing remembered.
        with suppress(OSError, ValueError, TypeError, KeyError), open(self._path, "rb") as file:
            said = json.loads(file.read())
            if said["version"] == _VERSION:
                entries = {
                    path: Known(Entry(kind, mode, mtime_ns, size, content), ctime_ns, inode)
                    for path, kind, mode, mtime_ns, size, content, ctime_ns, inode in said["rows"]
                }
                self.snapshot_id, self.entries = said["snapshot"], entries

    def note(self, path: str, status: os.stat_result) -> None:
        """What is there was read whole; it is remembered if no later change can look the same."""
        newest_ns = max(status.st_ctime_ns, status.st_mtime_ns)
        is_coarse = not status.st_ctime_ns % _SECOND_NS and not status.st_mtime_ns % _SECOND_NS
        oldest_ns = self._begun_ns - (_COARSE_NS if is_coarse else _TICK_NS)
        if newest_ns < oldest_ns or S_ISDIR(status.st_mode):
            self._stamps[path] = status.st_ctime_ns, status.st_ino

    def note_made(self, path: str, entry: Entry, status: os.stat_result) -> None:
        """It was made what `entry` says: whoever writes to it later gives it a later time."""
        is_coarse = not status.st_ctime_ns % _SECOND_NS and not status.st_mtime_ns % _SECOND_NS
        oldest_ns = self._begun_ns - (_COARSE_NS if is_coarse else _TICK_NS)
        made = Known(entry, status.st_ctime_ns, status.st_ino)
        if made.is_of(status) and (entry.mtime_ns < oldest_ns or S_ISDIR(status.st_mode)):
            self._stamps[path] = status.st_ctime_ns, status.st_ino

    def keep(self, batch: Batch, snapshot_id: str, tree: Tree) -> None:
        """Remember this look for the next one."""
        rows = []
        for path, entry in tree.items():
            known = self.entries.get(path)
            stamp = self._stamps.get(path)
            if stamp is None and known is not None and known.entry is entry:
                stamp = known.ctime_ns, known.inode
            if stamp is not None:
                rows.append([path, *entry, *stamp])
        said = {"version": _VERSION, "snapshot": snapshot_id, "rows": rows}
        text = json.dumps(said, separators=(",", ":"))
        os.rename(batch.write(text.encode("ascii")), self._path)  # noqa: PTH104
