"""Commands whose text or output fits an expression, the newest first."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from openry.ledger.commands import CommandRecord, at, find
from openry.ledger.words import Words, forget_words, literals, open_words

#: Rows read at once.
_PAGE = 500
Progress = Callable[[int], object]


def search(
    connection: Connection,
    pattern: re.Pattern[str],
    *,
    ledger: str | None,
    progress: Progress = lambda _: None,
    **given: Any,
) -> Iterator[CommandRecord]:
    """Every command that `pattern` finds in its text or output, and that is `given`.

    What has a plain text of three characters and more in it is looked up in an index; anything
    else, and what the index has not got yet, is looked through row by row.

    Args:
        ledger: The ledger's file; None for a database without such an index.
        progress: Told now and then how many rows were looked through.
        given: As for `commands.find`, but for `before` and `limit`.
    """
    texts = literals(pattern.pattern) if pattern.flags == re.compile("").flags else ()
    narrow = any(given.get(name) for name in ("run_id", "step_id", "fingerprint"))
    words = open_words(ledger) if ledger and texts and not narrow else None
    if words is None:
        yield from _scan(connection, pattern, 0, progress, given)
        return
    last = 0
    try:
        with words:
            words.add(connection)
            upto = words.upto()
            yield from _scan(connection, pattern, upto, progress, given)
            last = upto + 1
            for record in _indexed(connection, words, texts, upto, pattern, given):
                last = record.id
                yield record
    except sqlite3.Error as error:
        if not isinstance(error, sqlite3.OperationalError):
            forget_words(str(ledger))  # it is damaged: the next search makes it anew
        yield from _scan(connection, pattern, 0, progress, given, before=last)


def _scan(
    connection: Connection,
    pattern: re.Pattern[str],
    down_to: int,
    progress: Progress,
    given: dict[str, Any],
    *,
    before: int = 0,
) -> Iterator[CommandRecord]:
    """Rows above `down_to`; with `before`, only those below that."""
    seen = 0
    while page := find(connection, **given, before=before, limit=_PAGE):
        seen += len(page)
        progress(seen)
        newer = [one for one in reversed(page) if one.id > down_to]
        yield from (one for one in newer if has(one, pattern))
        if len(newer) < len(page):
            return
        before = page[0].id


def _indexed(
    connection: Connection,
    words: Words,
    texts: tuple[str, ...],
    upto: int,
    pattern: re.Pattern[str],
    given: dict[str, Any],
) -> Iterator[CommandRecord]:
    ids = words.candidates(texts, upto + 1)
    while some := list(islice(ids, _PAGE)):
        found = at(connection, some)
        yield from (one for one in found if has(one, pattern) and _is(one, given))
        if given.get("since") and found and found[-1].started_at < given["since"]:
            return


def has(record: CommandRecord, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(text) for text in (record.command, record.stdout, record.stderr))


def _is(record: CommandRecord, given: dict[str, Any]) -> bool:
    """What `find` asks of a row, but for what keeps a search from using the index."""
    if given.get("failed") and (record.ok or record.ending == "started"):
        return False
    if given.get("workflow") and record.workflow != given["workflow"]:
        return False
    return record.started_at >= str(given.get("since", ""))
