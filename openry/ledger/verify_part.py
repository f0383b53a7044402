"""Some of a ledger's rows, their hashes made again: as a program of its own, one of several.

SQLite itself writes the text that a row's hash is made of, which is cheaper than reading thirty
columns. Where that does not fit, the rows round it are read again, column by column.

Imports nothing heavy: it is started once for each processor.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

from openry.ledger.chain import ENDED_COLUMNS, EVENT_COLUMNS, OPEN_ENDINGS, STARTED_COLUMNS, link
from openry.ledger.jsontext import clean

#: After so many, more of them say nothing new.
MAX_PROBLEMS = 100
#: What reading a cell raises that nobody of ours wrote: too deep, too large, of another shape.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
_MOST_ROWS = 2**63 - 1
_EMPTY = blake2b(digest_size=32)

#: Whether a hash is that of the hash before it and of a row: its text, or its columns.
_Fits = Callable[[str, str, Any], bool]


@dataclass(frozen=True, slots=True)
class Task:
    """What a part has to look at. All of it is found out once: a part begins a moment later than
    the others, when rows may be gone, and would count its turns from another row.

    Attributes:
        first: The oldest row of each table that has hashes.
        upto: The newest row of each.
        old: The newest row of each that has no hash.
        checkpoint: The newest checkpoint that is known.
        stride: Ids that are looked at together; parts take turns.
        number: Which of the `parts` this is, from 0.
    """

    first: dict[str, int]
    upto: dict[str, int]
    old: dict[str, int]
    checkpoint: int
    anchor: str
    stride: int
    number: int = 0
    parts: int = 1


@dataclass(slots=True)
class Part:
    """What was found.

    Attributes:
        problems: Table, row, and what is wrong with it.
        heads: Event, its hash, and the head before it.
        gone: Heads that newer checkpoints name.
    """

    rows: int = 0
    unhashed: int = 0
    anchored: bool = False
    problems: list[tuple[str, int, str]] = field(default_factory=list)
    heads: list[tuple[int, str, str]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def add(self, other: Part) -> None:
        self.rows += other.rows
        self.unhashed += other.unhashed
        self.anchored |= other.anchored
        self.problems = (self.problems + other.problems)[:MAX_PROBLEMS]
        self.heads += other.heads
        self.gone += other.gone


def part_of(cursor: Any, mark: str, task: Task) -> Part:
    """What a part finds; `cursor` is in a transaction, and `mark` stands for a parameter."""
    found = Part()
    for chain in (_Events(cursor, mark, task), _Commands(cursor, mark, task)):
        for seen in chain.strides():
            found.add(seen)
    cursor.execute(f"SELECT data FROM checkpoints WHERE id > {mark}", (task.checkpoint,))  # noqa: S608
    for (data,) in cursor.fetchall():
        with suppress(*UNREADABLE):  # whoever verifies next names it
            about = json.loads(data) if isinstance(data, str) else data
            found.gone += [str(head) for head in about.get("heads", ())]
    return found


def _fits_text(stored: str, before: str, text: str) -> bool:
    """The same, of the text that SQLite made of the columns."""
    digest = _EMPTY.copy()
    digest.update(f"{before}{text}".encode())
    return digest.hexdigest() == stored


def fits(stored: str, before: str, columns: tuple[Any, ...]) -> bool:
    """Whether a hash is that of the hash before it and of a row, in today's form or the older."""
    try:
        return stored == _older_link(before, *columns) or stored == link(before, *columns)
    except UnicodeEncodeError:  # bytes that are no text: nobody wrote them
        return False


def _older_link(*parts: Any) -> str:
    """`link` before rows were hashed as JSON. What it hashes is never what `link` hashes."""
    return blake2b(ascii(parts).encode("ascii"), digest_size=32).hexdigest()


class _Chain(ABC):
    """A table whose rows lead to each other by hashes."""

    table: str
    #: What is read of a row as it is, and what each of its hashes is made of.
    plain: tuple[str, ...]
    hashed: tuple[tuple[str, ...], ...]
    #: Finds the hash before a row, by the name of its chain and a number.
    before: str

    def __init__(self, cursor: Any, mark: str, task: Task) -> None:
        self._cursor, self._mark, self._task = cursor, mark, task
        self._other = cursor.connection.cursor()  # for questions while rows are read
        self._old = task.old[self.table]
        self._anchor = task.anchor or None  # which no hash is

    def strides(self) -> Iterator[Part]:
        """What is found in each of our strides."""
        task = self._task
        upto, stride = task.upto[self.table], task.stride
        first = (task.first[self.table] - 1) // stride + task.number
        for low in range(first * stride, upto, task.parts * stride):
            yield self._stride(low, min(low + stride, upto))

    def _stride(self, low: int, high: int) -> Part:
        if self._mark == "?":
            try:
                if seen := self._check(self._texts(low, high), _fits_text, careful=False):
                    return seen
            except sqlite3.Error:  # a value that JSON has not, or bytes that are no text
                pass
        with self._bytes_as_they_are():
            seen = self._check(self._columns(low, high), fits, careful=True)
        assert seen is not None
        return seen

    def _texts(self, low: int, high: int) -> Iterable[tuple[Any, ...]]:
        wanted = (f"json_array({', '.join(columns)})" for columns in self.hashed)
        return self._select((*self.plain, *wanted), low, high)

    def _columns(self, low: int, high: int) -> Iterator[tuple[Any, ...]]:
        wanted = [name for columns in self.hashed for name in columns]
        if self._mark != "?":
            wanted = ["CAST(data AS text)" if name == "data" else name for name in wanted]
        begin, middle = len(self.plain), len(self.plain) + len(self.hashed[0])
        for row in self._select((*self.plain, *wanted), low, high):
            yield *row[:begin], row[begin:middle], row[middle:]

    def _select(self, what: Iterable[str], low: int, high: int) -> Iterable[tuple[Any, ...]]:
        among = f"FROM {self.table} WHERE id > {self._mark} AND id <= {self._mark} ORDER BY id"
        self._cursor.execute(f"SELECT {', '.join(what)} {among}", (low, high))
        rows: Iterable[tuple[Any, ...]] = self._cursor
        return rows

    def _hash_before(self, chain: str, number: int) -> str:
        """Where its own stride has not shown it."""
        rows = self._ask(self.before.format(self._mark), chain, number)
        return rows[0][0] if rows else ""

    def _ask(self, query: str, name: str, *values: int) -> list[Any]:
        try:
            str(name).encode()
        except UnicodeEncodeError:  # bytes that are no text: nobody wrote anything for them
            return []
        self._other.execute(query, (name, *values))
        rows: list[Any] = self._other.fetchall()
        return rows

    @contextmanager
    def _bytes_as_they_are(self) -> Iterator[None]:
        """A text that is no UTF-8 is read as well: somebody may have put it there."""
        connection = self._cursor.connection
        if self._mark == "?":
            connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        try:
            yield
        finally:
            if self._mark == "?":
                connection.text_factory = str

    @abstractmethod
    def _check(self, rows: Iterable[tuple[Any, ...]], fits: _Fits, *, careful: bool) -> Part | None:
        """What is found in `rows`; None when something is, and it has to be looked at carefully."""


class _Commands(_Chain):
    table = "commands_log"
    plain = ("id", "run_id", "seq", "ending", "started_hash", "ended_hash")
    hashed = (STARTED_COLUMNS, ENDED_COLUMNS)
    before = (
        "SELECT started_hash FROM commands_log WHERE run_id = {0} AND seq < {0}"
        " ORDER BY seq DESC LIMIT 1"
    )

    def _check(self, rows: Iterable[tuple[Any, ...]], fits: _Fits, *, careful: bool) -> Part | None:
        seen, last = Part(), dict[str, str]()
        for number, run_id, seq, ending, started, ended, begun, over in rows:
            seen.rows += 1
            before = last.get(run_id)
            if before is None:
                before = self._hash_before(run_id, seq) if seq != 1 else ""
            if not fits(started, before, begun):
                if not careful:
                    return None
                if not started and number <= self._old:
                    seen.unhashed += 1
                    continue
                what = "it was changed, or the command before it was changed or removed"
                self._report(seen, number, what, run_id, seq)
            if not (ended == "" if ending == "started" else fits(ended, started, over)):
                if not careful:
                    return None
                self._report(seen, number, "how it ended was changed", run_id, seq)
            last[run_id] = started
            if self._anchor in (started, ended):
                seen.anchored = True
        return seen

    def _report(self, seen: Part, number: int, what: str, run_id: str, seq: int) -> None:
        seen.problems.append((self.table, number, f"{what} (run {clean(str(run_id))}, #{seq})"))


class _Events(_Chain):
    table = "events"
    plain = ("id", "instance_id", "kind", "hash")
    hashed = (EVENT_COLUMNS,)
    before = "SELECT hash FROM events WHERE instance_id = {0} AND id < {0} ORDER BY id DESC LIMIT 1"

    def _check(self, rows: Iterable[tuple[Any, ...]], fits: _Fits, *, careful: bool) -> Part | None:
        seen, last = Part(), dict[str, str]()
        for number, instance_id, kind, stored, said, *_ in rows:
            seen.rows += 1
            before = last.get(instance_id)
            if before is None:
                before = self._hash_before(instance_id, number)
            if not fits(stored, before, said):
                if not careful:
                    return None
                if not stored and number <= self._old:
                    seen.unhashed += 1
                    continue
                what = "it, or the event before it, was changed or removed"
                seen.problems.append((self.table, number, what))
            last[instance_id] = stored
            if kind == "head":
                self._head(seen, number, instance_id, stored, said)
            if self._anchor == stored:
                seen.anchored = True
        return seen

    def _head(self, seen: Part, number: int, instance_id: str, stored: str, said: Any) -> None:
        """Whether the commands of an instance are those that its head was made of."""
        try:
            data = json.loads((json.loads(said) if isinstance(said, str) else said)[-1])
            previous, count = str(data["previous"]), int(data["commands"])
            digest, still_open = data["digest"], set(data["open"])
        except UNREADABLE:
            return  # its hash was wrong as well
        if not 0 <= count <= _MOST_ROWS:
            return  # the same
        seen.heads.append((number, str(stored), previous))
        if self._digest(instance_id, count, still_open) != digest:
            what = f"the commands of instance {clean(str(instance_id))} are not those that it had"
            seen.problems.append((self.table, number, what))

    def _digest(self, instance_id: str, count: int, still_open: set[int]) -> str:
        """Of the first commands' hashes; of those that were open then, only how they began."""
        rows = self._ask(
            "SELECT started_hash, ended_hash, ending FROM commands_log"  # noqa: S608
            f" WHERE instance_id = {self._mark} ORDER BY id LIMIT {count}",
            instance_id,
        )
        said = [
            f"{started}{'' if place in still_open or ending in OPEN_ENDINGS else ended}"
            for place, (started, ended, ending) in enumerate(rows)
        ]
        return blake2b("".join(said).encode("utf-8", "replace"), digest_size=32).hexdigest()


def main(path: str, task: str) -> None:
    """Print what was found in a part of the ledger's file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        found = part_of(connection.cursor(), "?", Task(**json.loads(task)))
    json.dump(asdict(found), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
