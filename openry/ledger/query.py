"""Questions to a ledger from Python, and from nobody's agent: everything is read-only.

from openry.ledger.query import commands, events, sql
commands("~/.openry/openry.db", step_id="count", failed=True)
events("~/.openry/openry.db", kind="transition", new="failed")
sql("~/.openry/openry.db", "SELECT ending, count(*) AS n FROM commands_log GROUP BY ending")
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, select, text

from openry.errors import UsageError
from openry.ledger.commands import CommandRecord, find
from openry.ledger.db import Ledger
from openry.ledger.engine import open_engine, renamed_errors
from openry.ledger.journal import Event
from openry.ledger.place import Where, shown, sqlite_path
from openry.ledger.schema import commands_log, outputs
from openry.ledger.schema import events as _events

_BATCH = 1000


def commands(where: Where, *, limit: int = 100, **given: Any) -> tuple[CommandRecord, ...]:
    """The last `limit` commands, oldest first.

    Args:
        given: `run_id`, `step_id`, `workflow`, `fingerprint`, `since` (a time as the ledger
            writes it), `failed`.
    """
    with Ledger(where) as ledger, ledger.read() as connection:
        return find(connection, limit=limit, **given)


def events(where: Where, *, since: str = "", limit: int = 1000, **given: str) -> tuple[Event, ...]:
    """The last `limit` events whose columns equal what is given, oldest first.

    Args:
        given: `instance_id`, `run_id`, `step_id`, `kind`, `old`, `new`, `actor`.
    """
    columns = [_events.c[name] for name in Event.__dataclass_fields__]
    wanted = select(*columns).order_by(_events.c.id.desc()).limit(limit)
    for name, value in given.items():
        if name not in Event.__dataclass_fields__:
            raise UsageError(f"an event has no `{name}`")
        wanted = wanted.where(_events.c[name] == value)
    if since:
        wanted = wanted.where(_events.c.at >= since)
    with Ledger(where) as ledger, ledger.read() as connection:
        return tuple(Event(*row) for row in connection.execute(wanted))[::-1]


def sql(
    where: Where, statement: str, given: Mapping[str, Any] | Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """The rows that one SELECT gives.

    Args:
        given: Values for `:name` or, in SQLite, `?`.

    Raises:
        UsageError: It cannot be answered, or would change something.
    """
    path = sqlite_path(where)
    if path is None:
        with renamed_errors(where), open_engine(where).connect() as connection:
            connection.execute(text("SET TRANSACTION READ ONLY"))
            found = connection.execute(text(statement), dict(given))
            return [dict(row) for row in found.mappings()]
    if not Path(path).is_file():
        raise UsageError(f"there is no ledger at `{shown(where)}`")
    place = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    try:
        with closing(sqlite3.connect(place, uri=True)) as opened:
            cursor = opened.execute(statement, given)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise UsageError(f"the query cannot be answered: {error}") from error


def export(connection: Connection, *, since: str = "") -> Iterator[dict[str, Any]]:
    """Commands, events and outputs since a time, as JSON values with their table's name."""
    for table, moment in ((commands_log, "started_at"), (_events, "at"), (outputs, "at")):
        last = 0
        while True:
            wanted = select(table).where(table.c.id > last).order_by(table.c.id).limit(_BATCH)
            if since:
                wanted = wanted.where(table.c[moment] >= since)
            rows = connection.execute(wanted).mappings().all()
            yield from ({"table": table.name, **row} for row in rows)
            if len(rows) < _BATCH:
                break
            last = rows[-1]["id"]
