"""Which commands may hold a text: an index of three-letter pieces, in a file beside the ledger.

It promises nothing: it is made when somebody searches, can be deleted at any time, and whoever asks
it looks into each row it names. A row is in it once the command has ended.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection

_parser: Any = re._parser  # type: ignore[attr-defined]  # what `re` itself reads patterns with
_LITERAL, _AT = _parser.LITERAL, _parser.AT
#: Shorter texts have no piece.
SHORTEST = 3
#: Rows that one search adds; the rest is searched without the index, and added by the next ones.
MOST_ADDED = 20_000
_BATCH = 2000
_CANDIDATES = 500
_MAKE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='', detail='none',"
    " columnsize=0, tokenize='trigram case_sensitive 1')",
    "CREATE TABLE IF NOT EXISTS upto (id INTEGER NOT NULL)",
)
_NEW = """
SELECT id, ending, command, stdout, stderr FROM commands_log WHERE id > ? ORDER BY id LIMIT ?
"""


def place_of(ledger: str) -> Path:
    """Where the index of a ledger's file is."""
    return Path(f"{ledger}.words")


def forget_words(ledger: str) -> None:
    """Delete the index: rows were deleted that it may still tell of."""
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{place_of(ledger)}{ending}").unlink(missing_ok=True)


def literals(pattern: str) -> tuple[str, ...]:
    """Texts that everything has which a regular expression finds, as far as they have pieces.

    >>> literals("disk full"), literals("app.log"), literals("^exit [12]: lost$"), literals("a|b")
    (('disk full',), ('app', 'log'), ('exit ', ': lost'), ())
    """
    parsed = _parser.parse(pattern)
    if parsed.state.flags & re.IGNORECASE:
        return ()
    texts = [""]
    for operation, argument in parsed:
        if operation is _LITERAL:
            texts[-1] += chr(argument)
        elif operation is not _AT:  # a place between two signs breaks no text
            texts.append("")
    return tuple(text for text in texts if len(text) >= SHORTEST)


class Words:
    """The index of one ledger, opened; made where there is none."""

    def __init__(self, ledger: str) -> None:
        place = place_of(ledger)
        os.close(os.open(place, os.O_RDWR | os.O_CREAT, 0o600))
        self._db = sqlite3.connect(place, timeout=30.0, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = OFF")  # it can be made again
            for statement in _MAKE:
                self._db.execute(statement)
        except sqlite3.Error:
            self._db.close()
            raise

    def upto(self) -> int:
        """The last row that is in it."""
        row = self._db.execute("SELECT max(id) FROM upto").fetchone()
        return int(row[0] or 0)

    def add(self, connection: Connection, most: int = MOST_ADDED) -> int:
        """Take in up to `most` commands that have ended since. Returns how many those were."""
        added = 0
        self._db.execute("BEGIN IMMEDIATE")
        try:
            last = self.upto()
            while added < most and (rows := self._next(connection, last)):
                ready = ((n, "\n".join(texts)) for n, *texts in rows)
                self._db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", ready)
                added, last = added + len(rows), rows[-1][0]
            self._db.execute("DELETE FROM upto")
            self._db.execute("INSERT INTO upto VALUES (?)", (last,))
            self._db.execute("COMMIT")
        except BaseException:
            # SQLite may have rolled back by itself; a second try would hide the first error.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return added

    def _next(self, connection: Connection, last: int) -> list[tuple[int, str, str, str]]:
        cursor = connection.connection.cursor()
        cursor.execute(_NEW, (last, _BATCH))
        ready = []
        for number, ending, *texts in cursor.fetchall():
            if ending == "started":
                break
            ready.append((number, *texts))
        return ready

    def candidates(self, texts: tuple[str, ...], before: int) -> Iterator[int]:
        """Rows below `before` that have every piece of all `texts`, the newest first."""
        pieces = {
            text[at : at + SHORTEST] for text in texts for at in range(len(text) - SHORTEST + 1)
        }
        wanted = " AND ".join('"' + piece.replace('"', '""') + '"' for piece in sorted(pieces))
        query = (
            "SELECT rowid FROM words WHERE words MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
        )
        while found := self._db.execute(query, (wanted, before, _CANDIDATES)).fetchall():
            yield from (row[0] for row in found)
            before = found[-1][0]

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_words(ledger: str) -> Words | None:
    """The index of a ledger; None where it cannot be: then rows are looked through one by one."""
    with suppress(sqlite3.Error, OSError):
        return Words(ledger)
    with suppress(OSError):
        forget_words(ledger)  # it was broken: the next search makes it anew
    return None
