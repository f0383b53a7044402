"""The ledger for everyone who is not in a hurry: SQLAlchemy on SQLite, or on a database by URL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from openry.errors import DamagedLedgerError
from openry.ledger.damage import told
from openry.ledger.engine import open_engine, renamed_errors
from openry.ledger.fast import FastLedger
from openry.ledger.kept import KeptConnections
from openry.ledger.migrate import upgrade
from openry.ledger.place import Where, sqlite_path


class Ledger:
    """The ledger at `where`, a path or an SQLAlchemy URL; made or brought up to date if need be.

    Raises:
        StorageError: It cannot be opened, or is not a ledger.
        LedgerTooNewError: A newer OpenRY wrote it.
    """

    def __init__(self, where: Where) -> None:
        self.where = where
        self.path = sqlite_path(where)
        upgrade(where)
        self.engine = open_engine(where)
        self._kept = KeptConnections(self.engine)

    @contextmanager
    def write(
        self, *, durable: bool = True, hand: FastLedger | None = None
    ) -> Iterator[Connection]:
        """One short transaction that holds the write lock from its first moment.

        Everything inside is kept, or nothing. Never wait for a process or a model in here.

        Args:
            durable: Wait until the disk has it. Else a power cut (nothing less) may undo it, until
                anybody's next durable one.
            hand: Whose connection to write by, where the ledger is a file that it writes as well.
        """
        with self._transaction(writing=True, durable=durable, hand=hand) as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent look at the ledger, which delays no writer."""
        with self._transaction(writing=False) as connection:
            yield connection

    def close(self) -> None:
        self._kept.close()
        self.engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(
        self, *, writing: bool, durable: bool = True, hand: FastLedger | None = None
    ) -> Iterator[Connection]:
        try:
            with renamed_errors(self.where):
                if self.path is None:
                    with self.engine.begin() as connection:
                        yield connection
                elif hand is not None:
                    with self._kept.lent(hand, durable=durable) as connection:
                        yield connection
                else:
                    with self._kept.transaction(writing=writing, durable=durable) as connection:
                        yield connection
        except DamagedLedgerError as error:
            self._kept.close()  # the next transaction opens what is there then
            raise told(error, os.fspath(self.path or "")) from error
