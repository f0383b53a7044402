"""One SELECT on an SQLite file, as CSV. Run as a child process by the `sqlite_query` capability."""

# Importing pathlib costs more than most calls take.
# ruff: noqa: PTH100, PTH113

from __future__ import annotations

import csv
import io
import os
import sqlite3
import time
from collections.abc import Iterator
from urllib.parse import quote

from openry.capability.builtin.failure import ToolFailure

_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_LIMIT_S = 50


def sqlite_query(path: str, query: str, keep_header: bool) -> Iterator[bytes]:
    if not os.path.isfile(path):
        raise ToolFailure("not_found", f"`{path}`: no such file")
    try:
        yield from _rows(path, query, keep_header)
    except sqlite3.Error as error:
        raise ToolFailure(*_explained(error, path, query)) from None


def _rows(path: str, query: str, keep_header: bool) -> Iterator[bytes]:
    place = f"file:{quote(os.path.abspath(path))}?mode=ro"
    connection = sqlite3.connect(place, uri=True, timeout=5)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.set_authorizer(_only_reading)
    end = time.monotonic() + _LIMIT_S
    connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
    cursor = connection.execute(query)
    if cursor.description is None:
        raise ToolFailure("bad_arguments", "`query` must be one SELECT")
    if keep_header:
        yield _line(column[0] for column in cursor.description)
    for row in cursor:
        yield _line(map(_cell, row))


def _only_reading(action: int, first: object, second: object, *_: object) -> int:
    loads = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
    return sqlite3.SQLITE_OK if action in _READING and not loads else sqlite3.SQLITE_DENY


def _line(cells: object) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)  # type: ignore[arg-type]
    return out.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _explained(error: sqlite3.Error, path: str, query: str) -> tuple[str, str]:
    text = str(error)
    if "not a database" in text:
        return "bad_arguments", f"`{path}` is no SQLite database"
    if "not authorized" in text or "prohibited" in text:
        return "refused", "only a SELECT may be run; the database is never changed"
    if text == "interrupted":
        return "timeout", f"the query ran longer than {_LIMIT_S} s"
    if "unable to open" in text or "readonly" in text:
        return "permission", f"`{path}` cannot be opened: {text}"
    return "bad_arguments", f"{text} in `{query}`"
