"""What the loop writes down: its sessions, one row a round, one row an edit that was tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Select, insert, select, update

from openry.clock import utc_now
from openry.ledger.db import Ledger
from openry.ledger.loop_tables import loop_edits, loop_rounds, loop_sessions


def create(ledger: Ledger, session_id: str, values: Mapping[str, Any]) -> None:
    """Write a new session. `values` are columns of `loop_sessions`; `task` is among them."""
    now = utc_now()
    row = {"session_id": session_id, "created_at": now, "updated_at": now, **values}
    with ledger.write() as db:
        db.execute(insert(loop_sessions).values(row))


def change(ledger: Ledger, session_id: str, values: Mapping[str, Any]) -> None:
    """Set columns of a session."""
    with ledger.write() as db:
        _change(db, session_id, values)


def add_round(
    ledger: Ledger, session_id: str, values: Mapping[str, Any], session: Mapping[str, Any]
) -> None:
    """Write one round and what it changed of its session, both or neither."""
    with ledger.write() as db:
        db.execute(insert(loop_rounds).values({"session_id": session_id, **values}))
        _change(db, session_id, session)


def add_edit(ledger: Ledger, session_id: str, values: Mapping[str, Any]) -> None:
    """Write one edit that was tried, with its verdict."""
    row = {"session_id": session_id, "at": utc_now(), **values}
    with ledger.write() as db:
        db.execute(insert(loop_edits).values(row))


def change_edit(
    ledger: Ledger, session_id: str, place: tuple[int, int], values: Mapping[str, Any]
) -> None:
    """Set columns of one edit, named by its round and position."""
    edit = loop_edits.c
    here = (edit.session_id == session_id, edit.round == place[0], edit.position == place[1])
    with ledger.write() as db:
        db.execute(update(loop_edits).where(*here).values(dict(values)))


def change_round(
    ledger: Ledger,
    session_id: str,
    number: int,
    values: Mapping[str, Any],
    runs: tuple[int, int],
) -> None:
    """Set columns of one round, and in its data how many whole runs passed, of how many."""
    here = (loop_rounds.c.session_id == session_id, loop_rounds.c.number == number)
    with ledger.write() as db:
        data = db.execute(select(loop_rounds.c.data).where(*here)).scalar_one()
        more = {**values, "data": {**data, "runs": list(runs)}}
        db.execute(update(loop_rounds).where(*here).values(more))


def session(ledger: Ledger, session_id: str) -> dict[str, Any] | None:
    """The session's columns, or None when there is none."""
    query = select(loop_sessions).where(loop_sessions.c.session_id == session_id)
    with ledger.read() as db:
        row = db.execute(query).mappings().first()
    return None if row is None else dict(row)


def sessions(ledger: Ledger, limit: int = 100) -> list[dict[str, Any]]:
    """The latest sessions, newest first."""
    query = select(loop_sessions).order_by(loop_sessions.c.created_at.desc()).limit(limit)
    return _rows(ledger, query)


def rounds(ledger: Ledger, session_id: str) -> list[dict[str, Any]]:
    """All rounds of a session in order."""
    query = (
        select(loop_rounds)
        .where(loop_rounds.c.session_id == session_id)
        .order_by(loop_rounds.c.number)
    )
    return _rows(ledger, query)


def edits(ledger: Ledger, session_id: str) -> list[dict[str, Any]]:
    """All edits of a session in the order they were tried."""
    query = (
        select(loop_edits)
        .where(loop_edits.c.session_id == session_id)
        .order_by(loop_edits.c.round, loop_edits.c.position)
    )
    return _rows(ledger, query)


def _change(db: Connection, session_id: str, values: Mapping[str, Any]) -> None:
    row = {**values, "updated_at": utc_now()}
    db.execute(update(loop_sessions).where(loop_sessions.c.session_id == session_id).values(row))


def _rows(ledger: Ledger, query: Select[Any]) -> list[dict[str, Any]]:
    with ledger.read() as db:
        return [dict(row) for row in db.execute(query).mappings()]
