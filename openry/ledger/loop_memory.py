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
_WORD = re.compile(r"\w{2,}")


def like(
    ledger: Ledger, words: str, *, before: str = "", but: str = "", limit: int = 20
) -> list[dict[str, Any]]:
    """Edits that were decided on for failures whose words are like `words`.

    Args:
        before: Only edits written before that time; empty means all.
        but: A session whose own edits are left out.

    Returns:
        Per edit `session`, `operation`, `summary`, `verdict`, `signature`, `failure_class` and
        `cause`, the likest first.
    """
    rows = _rows(ledger, before, but)
    wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(words.lower())))
    if not rows or not wanted:
        return []
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE VIRTUAL TABLE seen USING fts5(words)")
        memory.executemany("INSERT INTO seen VALUES (?)", [(_words(row),) for row in rows])
        query = "SELECT rowid FROM seen WHERE seen MATCH ? ORDER BY bm25(seen), rowid LIMIT ?"
        found = memory.execute(query, (wanted, limit)).fetchall()
    return [_plain(rows[number - 1]) for (number,) in found]


def _rows(ledger: Ledger, before: str, but: str) -> Sequence[Mapping[str, Any]]:
    edit, round_ = loop_edits.c, loop_rounds.c
    on = (edit.session_id == round_.session_id) & (edit.round == round_.number)
    query = (
        select(
            edit.session_id, edit.operation, edit.arguments, edit.verdict, edit.signature,
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
