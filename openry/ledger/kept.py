"""Connections to a ledger's file that are kept from one transaction to the next.

SQLAlchemy takes longer to hand one out, begin, commit and take it back than most transactions of
ours take inside; so these are begun and ended in SQLite's own words.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from openry.ledger.change import driver
from openry.ledger.engine import speaking_engine
from openry.ledger.fast import FastLedger


@dataclass(slots=True)
class Kept:
    """A connection as SQLAlchemy has it, and SQLite's own below it.

    Attributes:
        durable: Whether its commits wait for the disk.
    """

    connection: Connection
    own: sqlite3.Connection
    durable: bool = True


class _Lent:
    """SQLite's connection as SQLAlchemy gets it: to speak by, neither to end nor to close."""

    def __init__(self, own: sqlite3.Connection) -> None:
        self._own = own
        self.cursor, self.execute, self.executemany = own.cursor, own.execute, own.executemany

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def commit(self) -> None:
        """Whoever began it does that."""

    rollback = close = commit


class KeptConnections:
    """Those of one engine. Safe to share between threads; survives `fork`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle: list[Kept] = []
        self._lent: Kept | None = None
        self._pid = os.getpid()

    @contextmanager
    def transaction(self, *, writing: bool, durable: bool = True) -> Iterator[Connection]:
        """One transaction: kept whole, or absent. See `Ledger.write` and `Ledger.read`."""
        idle = self._of_this_process()
        kept = _taken(idle) or self._opened()
        try:
            if writing and kept.durable is not durable:
                kept.own.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                kept.durable = durable
            kept.own.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            yield kept.connection
            kept.own.execute("COMMIT")
        except BaseException:
            _close(kept)  # which takes back what was not committed
            raise
        idle.append(kept)
        if idle is not self._idle:
            _close_all(idle)

    @contextmanager
    def lent(self, hand: FastLedger, *, durable: bool = True) -> Iterator[Connection]:
        """A writing transaction by the connection of the hand.

        SQLite forgets all that a connection has read of the file where another one has written:
        with two that take turns every page is read anew, twice for each step.
        """
        with hand.lock:
            own = hand.connected()
            try:
                if self._lent is None or self._lent.own is not own:
                    self._lent = self._spoken(own)
                hand.sync(own, durable)
                own.execute("BEGIN IMMEDIATE")
                yield self._lent.connection
                own.execute("COMMIT")
            except BaseException:
                self._lent = None
                hand.close()  # which takes back what was not committed
                raise

    def close(self) -> None:
        """Close those that nobody uses; whoever uses one closes it afterwards."""
        idle, self._idle, self._lent = self._idle, [], None
        _close_all(idle)

    def _spoken(self, own: sqlite3.Connection) -> Kept:
        """SQLAlchemy's words for the hand's connection."""
        engine = speaking_engine(lambda: _Lent(own))
        return Kept(engine.connect(), own)

    def _of_this_process(self) -> list[Kept]:
        if self._pid != os.getpid():
            # A child of `fork` must neither use nor close its parent's connections.
            _inherited.append(self._idle)
            self._idle, self._pid = [], os.getpid()
        return self._idle

    def _opened(self) -> Kept:
        connection = self._engine.connect()
        return Kept(connection, driver(connection))


def _taken(idle: list[Kept]) -> Kept | None:
    try:
        return idle.pop()
    except IndexError:
        return None


def _close_all(idle: list[Kept]) -> None:
    while kept := _taken(idle):
        _close(kept)


def _close(kept: Kept) -> None:
    with suppress(sqlite3.Error, SQLAlchemyError):  # lest it hide what went wrong first
        kept.connection.close()


#: Connections of a parent process, kept from the garbage collector, which would close them.
_inherited: list[list[Kept]] = []
