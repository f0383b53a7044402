"""Is the ledger what was written? Every hash is made again from the row it stands in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection

from openry.errors import StorageError
from openry.ledger.chain import EVENT_COLUMNS, link
from openry.ledger.heads import OPEN_ENDINGS
from openry.ledger.verify_part import Part, part_of

_BATCH = 2000
#: After so many, more of them say nothing new.
MAX_PROBLEMS = 100
#: Where things stand in the rows that are read: this is a loop over a million of them.
_INSTANCE, _KIND = 2 + EVENT_COLUMNS.index("instance_id"), 2 + EVENT_COLUMNS.index("kind")
_COMMANDS_OF = (
    "SELECT started_hash, ended_hash, ending FROM commands_log WHERE instance_id = {0} ORDER BY id"
)
#: From so many commands on, starting processes pays.
_MANY = 100_000


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
        self._connection = connection
        self._anchor = anchor
        self._text = "data" if connection.dialect.name == "sqlite" else "CAST(data AS text)"
        self._gone: set[str] = set()  # heads of what was pruned, or stayed in another ledger
        self._old = {"events": 0, "commands_log": 0}
        self._heads: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self.found = Verified(anchored=False if anchor else None)

    def run(self) -> Verified:
        self._checkpoints()
        with _Parts(self._connection, self._old["commands_log"], self._anchor) as parts:
            self._events()
            self._compare()
            for part in parts.ended():
                self.found.rows += part.rows
                self.found.unhashed += part.unhashed
                for number, what in part.problems:
                    self._report("commands_log", number, what)
                if part.anchored:
                    self.found.anchored = True
        return self.found

    def _report(self, table: str, number: int, what: str) -> None:
        if len(self.found.problems) < MAX_PROBLEMS:
            self.found.problems.append(Tampered(table, number, what))

    def _meet(self, *hashes: str) -> None:
        if self._anchor in hashes and self._anchor:
            self.found.anchored = True

    def _rows(self, columns: tuple[str, ...], table: str) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY id"  # noqa: S608
        cursor = self._connection.connection.cursor()
        cursor.execute(query)
        while batch := cursor.fetchmany(_BATCH):
            self.found.rows += len(batch)
            yield from batch

    def _checkpoints(self) -> None:
        before = ""
        for number, kind, at, text, stored in self._rows(
            ("id", "kind", "at", self._text, "hash"), "checkpoints"
        ):
            data = json.loads(text)
            if kind == "begin":
                self._old = data
                continue
            if stored != link(before, at, kind, text):
                self._report("checkpoints", number, "it is not what was written")
            before = stored
            self._gone.update(data["heads"])
            self._meet(*data["heads"], stored)

    def _events(self) -> None:
        last: dict[str, str] = {}
        old, anchor, known = self._old["events"], self._anchor, {""}
        columns = tuple(self._text if name == "data" else name for name in EVENT_COLUMNS)
        for row in self._rows(("id", "hash", *columns), "events"):
            stored, instance = row[1], row[_INSTANCE]
            if stored != link(last.get(instance, ""), *row[2:]):
                if not stored and row[0] <= old:
                    self.found.unhashed += 1
                    continue
                what = "it, or the event before it, was changed or removed"
                self._report("events", row[0], what)
            last[instance] = stored
            if row[_KIND] == "head":
                self._head(row[0], stored, row[2:], known)
            if stored == anchor:
                self._meet(stored)

    def _head(self, number: int, stored: str, said: tuple[Any, ...], known: set[str]) -> None:
        try:
            data = json.loads(said[-1])
            previous = data["previous"]
            self._heads.setdefault(said[1], []).append((number, data))
        except (ValueError, KeyError, TypeError):
            return  # its hash was wrong as well
        if previous not in known and previous not in self._gone:
            self._report("events", number, "the instance that ended before this one was removed")
        known.add(stored)
        self.found.head = stored

    def _compare(self) -> None:
        """Whether the commands of each instance are those that its heads were made of."""
        cursor = self._connection.connection.cursor()
        mark = "?" if self._connection.dialect.name == "sqlite" else "%s"
        for instance, heads in self._heads.items():
            cursor.execute(_COMMANDS_OF.format(mark), (instance,))
            rows = [
                (started, "" if ending in OPEN_ENDINGS else ended)
                for started, ended, ending in cursor.fetchall()
            ]
            for number, data in heads:
                digest, still_open = blake2b(digest_size=32), set(data["open"])
                for place, (started, ended) in enumerate(rows[: data["commands"]]):
                    digest.update((started + ("" if place in still_open else ended)).encode())
                if digest.hexdigest() != data["digest"]:
                    what = f"the commands of instance {instance} are not those that it had"
                    self._report("events", number, what)


class _Parts:
    """The commands: many of them in parts, by as many processes as there are processors."""

    def __init__(self, connection: Connection, old: int, anchor: str) -> None:
        self._cursor: Any = connection.connection.cursor()
        self._mark = "?" if connection.dialect.name == "sqlite" else "%s"
        self._path = connection.engine.url.database if self._mark == "?" else None
        self._old, self._anchor = old, anchor
        self._working: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> _Parts:
        self._cursor.execute("SELECT coalesce(max(id), 0) FROM commands_log")
        self._last = self._cursor.fetchone()[0]
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        if self._path and self._last > _MANY and processors > 1:
            step = -(-self._last // processors)
            self._working = [self._start(low, low + step) for low in range(0, self._last, step)]
        return self

    def _start(self, low: int, high: int) -> subprocess.Popen[bytes]:
        about = (str(self._path), str(low), str(high), str(self._old), self._anchor)
        # -P: where we stand, an agent may have put an `openry` of its own.
        argv = (sys.executable, "-P", "-m", "openry.ledger.verify_part", *about)
        return subprocess.Popen(argv, stdout=subprocess.PIPE)

    def ended(self) -> Iterator[Part]:
        """Each part, in the order of its rows.

        Raises:
            StorageError: One could not be read.
        """
        if not self._working:
            yield part_of(self._cursor, self._mark, 0, self._last, self._old, self._anchor)
        for process in self._working:
            said, _ = process.communicate()
            if process.returncode:
                raise StorageError(f"the ledger `{self._path}` could not be read to its end")
            part = json.loads(said)
            part["problems"] = [(number, what) for number, what in part["problems"]]
            yield Part(**part)

    def __exit__(self, *_: object) -> None:
        for process in self._working:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
