"""What was tried for failures like one, in all sessions: found by full text, best first."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import select

from openry.ledger.db import Ledger
from openry.ledger.loop_tables import loop_edits, loop_rounds

#: Edits that are looked at, the latest first.
_MOST = 5000
_DECIDED = ("accepted", "rejected", "reverted", "pruned")
_WORD = re.compile(r"\w{2,}|[\u3040-\u9fff]")
#: Signs that are words, or parts of words, without blanks between them.
_SIGN = re.compile(r"([\u3040-\u9fff])")
#: So much of what a command printed is looked at.
_PRINTED_CHARS = 4000


def like(
    ledger: Ledger,
    words: str,
    *,
    before: str = "",
    but: str = "",
    limit: int = 20,
    whole: bool = False,
) -> list[dict[str, Any]]:
    """Edits that were decided on for failures whose words are like `words`.

    Args:
        before: Only edits written before that time; empty means all.
        but: A session whose own edits are left out.
        whole: Compare `words` with all that is known of a failure: what its command printed, and
            the edits as well. For a person's words, which may come from anywhere. Without it only
            its class, rule, cause and program are compared: for the words of another failure.

    Returns:
        Per edit `session`, `operation`, `summary`, `verdict`, `signature`, `failure_class` and
        `cause`, the likest first.
    """
    rows = _rows(ledger, before, but)
    found_words = dict.fromkeys(_WORD.findall(_SIGN.sub(r" \1 ", words.lower())))
    wanted = " OR ".join(f'"{word}"' for word in found_words)
    text_of = _everything if whole else _words
    if not rows or not wanted:
        return []
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE VIRTUAL TABLE seen USING fts5(words, tokenize='porter unicode61')")
        texts = (_SIGN.sub(r" \1 ", text_of(row)) for row in rows)
        memory.executemany("INSERT INTO seen VALUES (?)", [(text,) for text in texts])
        query = "SELECT rowid FROM seen WHERE seen MATCH ? ORDER BY bm25(seen), rowid LIMIT ?"
        found = memory.execute(query, (wanted, limit)).fetchall()
    return [_plain(rows[number - 1]) for (number,) in found]


def _rows(ledger: Ledger, before: str, but: str) -> Sequence[Mapping[str, Any]]:
    edit, round_ = loop_edits.c, loop_rounds.c
    on = (edit.session_id == round_.session_id) & (edit.round == round_.number)
    query = (
        select(
            edit.session_id, edit.operation, edit.arguments, edit.verdict, edit.signature,
            edit.origin, edit.reason,
            round_.failure_class, round_.diagnosis,
        )
        .join(loop_rounds, on)
        .where(edit.verdict.in_(_DECIDED), edit.session_id != but)
        .order_by(edit.id.desc())
        .limit(_MOST)
    )  # fmt: skip
    if before:
        query = query.where(edit.at < before)
    with ledger.read() as db:
        return [dict(row) for row in db.execute(query).mappings()]


def _words(row: Mapping[str, Any]) -> str:
    diagnosis = row["diagnosis"] or {}
    parts = (row["failure_class"], diagnosis.get("rule", ""), diagnosis.get("cause", ""))
    command = (diagnosis.get("command") or {}).get("command", "").partition(" ")[0]
    return " ".join(str(part) for part in (*parts, command))


def _everything(row: Mapping[str, Any]) -> str:
    """All that a person may remember of a failure and of what was done about it."""
    diagnosis, arguments = row["diagnosis"] or {}, row["arguments"]
    command = diagnosis.get("command") or {}
    parts = (
        _words(row), diagnosis.get("step", ""), diagnosis.get("missing", ""),
        *diagnosis.get("broken", ()), command.get("command", ""),
        str(command.get("stderr", ""))[:_PRINTED_CHARS],
        str(command.get("stdout", ""))[:_PRINTED_CHARS],
        row["operation"], row["origin"], row["reason"], arguments.get("why", ""),
        *(value for edit in arguments.get("edits", ()) for value in edit.values()),
    )  # fmt: skip
    return " ".join(str(part) for part in parts)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "session": row["session_id"],
        "operation": row["operation"],
        "edits": row["arguments"].get("edits", []),
        "verdict": row["verdict"],
        "signature": row["signature"],
        "failure_class": row["failure_class"],
        "cause": (row["diagnosis"] or {}).get("cause", ""),
    }
