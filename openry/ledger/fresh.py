"""A ledger where there is none, made at once: `fresh.sql` is what the migrations come to.

To walk through them takes ten times as long, most of it to import alembic. Where they change,
`python -m openry.ledger.fresh` prints the file anew.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing

from openry.clock import utc_now
from openry.ledger.version import BUSY_TIMEOUT_S, HEAD

_END = ";\n\n"
_FILE = os.path.join(os.path.dirname(__file__), "fresh.sql")  # noqa: PTH118, PTH120
_TABLES = "SELECT count(*) FROM sqlite_master"
_SCHEMA = """
SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name != 'sqlite_sequence' ORDER BY rowid
"""
#: What a new ledger says of itself: no row in it is older than hashes.
_BEGIN = """
INSERT INTO checkpoints (at, kind, data) VALUES (?, 'begin', '{"events": 0, "commands_log": 0}')
"""


def make(path: str) -> bool:
    """Make the ledger in the empty file at `path`. False when there is something in it already.

    Raises:
        sqlite3.Error: It could not be made; the file is as it was.
    """
    with open(_FILE, encoding="utf-8") as file:
        statements = file.read().split(_END)
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = FULL")
        db.execute("BEGIN IMMEDIATE")
        if db.execute(_TABLES).fetchone() != (0,):
            return False
        for statement in statements:
            db.execute(statement)
        db.execute("INSERT INTO alembic_version VALUES (?)", (HEAD,))
        db.execute(_BEGIN, (utc_now(),))
        db.execute("COMMIT")
    return True


def statements_of(path: str) -> str:
    """The schema of the ledger at `path`, as `fresh.sql` has it."""
    with closing(sqlite3.connect(path)) as db:
        said = _END.join(sql for (sql,) in db.execute(_SCHEMA))
    return "".join(f"{line.rstrip()}\n" for line in said.splitlines())


def _main() -> None:
    from tempfile import TemporaryDirectory

    from openry.ledger.migrate import migrate

    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "openry.db")  # noqa: PTH118
        migrate(path)
        sys.stdout.write(statements_of(path))


if __name__ == "__main__":
    _main()
