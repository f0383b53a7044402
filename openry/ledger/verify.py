"""Is the ledger what was written? Every hash is made again from the row it stands in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from openry.errors import StorageError
from openry.ledger.verify_part import MAX_PROBLEMS, UNREADABLE, Part, Task, fits, part_of

#: From so many rows on, starting processes pays.
_MANY = 100_000
#: Ids that are looked at together. Parts take turns, so each has its share of large rows.
_STRIDE = 5000
#: In which order what was found is told.
_TABLES = ("checkpoints", "events", "commands_log")


@dataclass(frozen=True, slots=True)
class Tampered:
    """A row that is not what was written, or before which one is gone."""

    table: str
    id: int
    what: str

    def __str__(self) -> str:
        return f"{self.table} row {self.id}: {self.what}"


@dataclass(slots=True)
class Verified:
    """What was found. `unhashed` rows are older than the hashes; nothing is known of them."""

    rows: int = 0
    unhashed: int = 0
    head: str = ""
    anchored: bool | None = None
    problems: list[Tampered] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems and self.anchored is not False


def verify(connection: Connection, anchor: str = "") -> Verified:
    """Go through all events, commands and checkpoints.

    Args:
        anchor: A hash of this ledger that was kept elsewhere; it must still be there.
    """
    return _Verification(connection, anchor).run()


class _Verification:
    def __init__(self, connection: Connection, anchor: str) -> None:
        self._anchor = anchor
        self._cursor: Any = connection.connection.cursor()
        self._path = connection.engine.url.database
        self._of_sqlite = connection.dialect.name == "sqlite"
        self.found = Verified(anchored=False if anchor else None)

    def run(self) -> Verified:
        gone, task = self._checkpoints()
        whole = Part(gone=gone)
        with _Parts(self._path if self._of_sqlite else None, task) as parts:
            whole.add(part_of(self._cursor, "?" if self._of_sqlite else "%s", parts.own))
            for part in parts.ended():
                whole.add(part)
        self._heads(whole)
        self.found.rows += whole.rows
        self.found.unhashed += whole.unhashed
        if whole.anchored:
            self.found.anchored = True
        self.found.problems += [Tampered(*problem) for problem in whole.problems]
        self.found.problems.sort(key=lambda one: (_TABLES.index(one.table), one.id))
        del self.found.problems[MAX_PROBLEMS:]
        return self.found

    def _checkpoints(self) -> tuple[list[str], Task]:
        """The heads that are gone: pruned, or left in another ledger; and what is to be read."""
        text = "data" if self._of_sqlite else "CAST(data AS text)"
        columns = f"id, kind, at, {text}, hash"
        self._cursor.execute(f"SELECT {columns} FROM checkpoints ORDER BY id")  # noqa: S608
        before, newest, gone, old = "", 0, list[str](), {"events": 0, "commands_log": 0}
        for newest, kind, at, said, stored in self._cursor.fetchall():
            self.found.rows += 1
            try:
                data = json.loads(said)
                if kind == "begin":
                    old = {table: int(data[table]) for table in old}
                    continue
                heads = [str(head) for head in data["heads"]]
            except UNREADABLE:
                heads = None
            if heads is None or not fits(stored, before, (at, kind, said)):
                what = "it is not what was written"
                self.found.problems.append(Tampered("checkpoints", newest, what))
            before = stored
            gone += heads or ()
            if self._anchor and self._anchor in (*(heads or ()), stored):
                self.found.anchored = True
        first = {table: self._ask(f"coalesce(min(id), 1) FROM {table}") for table in old}
        upto = {table: self._ask(f"coalesce(max(id), 0) FROM {table}") for table in old}
        return gone, Task(first, upto, old, newest, self._anchor, _STRIDE)

    def _ask(self, what: str) -> int:
        self._cursor.execute(f"SELECT {what}")
        number: int = self._cursor.fetchone()[0]
        return number

    def _heads(self, whole: Part) -> None:
        """Whether the head before each is there, or known to be gone."""
        known = {"", *whole.gone}
        for number, stored, previous in sorted(whole.heads):
            if previous not in known:
                what = "the instance that ended before this one was removed"
                self.found.problems.append(Tampered("events", number, what))
            known.add(stored)
            self.found.head = stored


class _Parts:
    """Many rows are read in parts, by as many processes as there are processors."""

    def __init__(self, path: str | None, task: Task) -> None:
        self._path, self.own = path, task
        self._working: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> _Parts:
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        if self._path and processors > 1 and sum(self.own.upto.values()) > _MANY:
            self.own = replace(self.own, parts=processors)
            self._working = [self._start(number) for number in range(1, processors)]
        return self

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        about = (str(self._path), json.dumps(asdict(replace(self.own, number=number))))
        # -P: where we stand, an agent may have put an `openry` of its own.
        argv = (sys.executable, "-P", "-m", "openry.ledger.verify_part", *about)
        return subprocess.Popen(argv, stdout=subprocess.PIPE)

    def ended(self) -> Iterator[Part]:
        """What the others found.

        Raises:
            StorageError: One could not read its part.
        """
        for process in self._working:
            said, _ = process.communicate()
            if process.returncode:
                raise StorageError(f"the ledger `{self._path}` could not be read to its end")
            part = Part(**json.loads(said))
            part.heads = [(number, stored, before) for number, stored, before in part.heads]
            yield part

    def __exit__(self, *_: object) -> None:
        for process in self._working:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
