"""Notice at once, and almost for nothing, that somebody wrote to the ledger."""

from __future__ import annotations

from sqlalchemy.engine.interfaces import DBAPICursor

from openry.ledger.db import Ledger


class Watch:
    """Says whether another connection, of this process or another, has committed since.

    A look costs some ten microseconds on SQLite. Other databases cannot say; there it is always
    False, and the patrol's interval is what notices.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._cursor: DBAPICursor | None = None
        if ledger.path is not None:
            # A raw connection: one that begins transactions would go on seeing its first look.
            self._connection = ledger.engine.raw_connection()
            self._cursor = self._connection.cursor()
        self._seen = self._version()

    def changed(self) -> bool:
        version = self._version()
        changed, self._seen = version != self._seen, version
        return changed

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor = None
            self._connection.close()

    def _version(self) -> int:
        if self._cursor is None:
            return 0
        self._cursor.execute("PRAGMA data_version")
        row = self._cursor.fetchone()
        return int(row[0]) if row else 0
