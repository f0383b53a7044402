"""One question to the ledger by somebody who may only see what is about one instance.

The tables are seen through views that hold nothing else. An authorizer lets through reading those
views and nothing more; the file is opened for reading, and the clock ends what takes too long.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from openry.errors import UsageError
from openry.ledger.schema import metadata

MAX_SECONDS = 2.0
MAX_ROWS = 1000
_MAX_VALUE_BYTES = 16 * 1024 * 1024
#: Which rows of a table are about an instance.
_ROWS = {
    "workflow_instances": "instance_id = {id}",
    "task_state": "workflow_instance_id = {id}",
    "validation_results": "run_id IN (SELECT run_id FROM main.task_state"
    " WHERE workflow_instance_id = {id})",
    **dict.fromkeys(
        (
            "events", "payloads", "retries", "approvals", "snapshots", "commands_log", "outputs",
            "llm_calls",
        ),
        "instance_id = {id}",
    ),
}  # fmt: skip
_HIDDEN = frozenset({"token_hash"})
_FORBIDDEN = frozenset({"load_extension", "fts3_tokenizer", "randomblob", "zeroblob"})
_STEPS = 1000  # of SQLite's machine, between two looks at the clock
#: Quoted text and comments stay; the run's id stands at `:run_id` and `?`.
_PLACES = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/"""
    r"|(?P<place>:run_id\b|\?(?!\d))",
    re.DOTALL,
)


def rows_of(path: str, query: str, *, instance_id: str, run_id: str) -> int:
    """How many rows one SELECT gives, counted up to 1,000; `:run_id` and `?` are the run's id.

    Raises:
        UsageError: It is no such question, or takes longer than two seconds.
    """
    marked, places = _marked(query)
    try:
        with closing(_open(path, instance_id)) as connection:
            found = connection.execute(marked, (run_id,) if places else ())
            if found.description is None:
                raise UsageError("a `db_query` is one SELECT")
            return len(found.fetchmany(MAX_ROWS))
    except sqlite3.Warning:
        raise UsageError("a `db_query` is one statement") from None
    except sqlite3.Error as error:
        raise UsageError(f"the query cannot be answered: {_said(error)}") from None


def _said(error: sqlite3.Error) -> str:
    text = str(error)
    if text == "interrupted":
        return f"it takes longer than {MAX_SECONDS:g} s"
    if any(word in text for word in ("prohibited", "not authorized", "cannot modify")):
        return "only SELECT on the tables of this instance is allowed"
    return text


def _marked(query: str) -> tuple[str, int]:
    found = 0

    def number(match: re.Match[str]) -> str:
        nonlocal found
        if match["place"] is None:
            return match[0]
        found += 1
        return "?1"

    return _PLACES.sub(number, query), found


def _open(path: str, instance_id: str) -> sqlite3.Connection:
    place = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    connection = sqlite3.connect(place, uri=True, isolation_level=None)
    # The views that read the tables have names nobody can guess: a query that gave a name of its
    # own to such a view's would be let through in its stead.
    secret = os.urandom(8).hex()
    for statement in _views(secret, instance_id):
        connection.execute(statement)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    until = time.monotonic() + MAX_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)

    def may(
        action: int, first: str | None, second: str | None, base: str | None, view: str | None
    ) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            named = (second or "").lower()
            return sqlite3.SQLITE_DENY if named in _FORBIDDEN else sqlite3.SQLITE_OK
        inside = (view or "").endswith(secret)
        seen = base == "temp" and (first or "") in _ROWS
        own = (first or "").endswith(secret) and view in _ROWS
        if action == sqlite3.SQLITE_READ and (inside or seen or own or not base):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    connection.set_authorizer(may)
    return connection


def _views(secret: str, instance_id: str) -> Iterator[str]:
    literal = "'" + instance_id.replace("'", "''") + "'"
    for name, condition in _ROWS.items():
        columns = ", ".join(
            each.name for each in metadata.tables[name].c if each.name not in _HIDDEN
        )
        where = condition.format(id=literal)
        inner = f"{name}_{secret}"
        yield f"CREATE TEMP VIEW {inner} AS SELECT {columns} FROM main.{name} WHERE {where}"  # noqa: S608
        yield f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM temp.{inner}"  # noqa: S608
