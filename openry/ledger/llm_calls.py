"""One row a call of a model: written before it is made, completed when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, insert, select, update

from openry.clock import utc_now
from openry.ledger.db import Ledger
from openry.ledger.loop_tables import llm_calls

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallTotals:
    """What calls have used; those answered from a cassette count nothing."""

    calls: int
    tokens: int
    usd: float


def reserve(ledger: Ledger, values: _Row) -> int:
    """Write that a call is about to be made, and give its id."""
    row = {"at": utc_now(), "state": "reserved", **values}
    with ledger.write() as db:
        key = db.execute(insert(llm_calls).values(row)).inserted_primary_key
    assert key is not None
    return int(key[0])


def end(ledger: Ledger, call_id: int, state: str, values: _Row) -> None:
    """Write how a reserved call ended: `settled` with a reply, or `failed` with an error."""
    row = {"state": state, "ended_at": utc_now(), **values}
    with ledger.write() as db:
        db.execute(update(llm_calls).where(llm_calls.c.id == call_id).values(row))


def calls(ledger: Ledger, *, session_id: str = "", run_id: str = "") -> list[dict[str, Any]]:
    """The calls of a session or a run, or all, in the order they were made."""
    query = select(llm_calls).where(*_of(session_id, run_id)).order_by(llm_calls.c.id)
    with ledger.read() as db:
        return [dict(row) for row in db.execute(query).mappings()]


def totals(ledger: Ledger, *, session_id: str = "", run_id: str = "") -> CallTotals:
    """What the calls of a session or a run have used."""
    query = select(
        func.count(),
        func.coalesce(func.sum(llm_calls.c.prompt_tokens + llm_calls.c.completion_tokens), 0),
        func.coalesce(func.sum(llm_calls.c.cost_usd), 0.0),
    ).where(llm_calls.c.state == "settled", ~llm_calls.c.cached, *_of(session_id, run_id))
    with ledger.read() as db:
        count, tokens, usd = db.execute(query).one()
    return CallTotals(int(count), int(tokens), float(usd))


def _of(session_id: str, run_id: str) -> list[ColumnElement[bool]]:
    wanted = {llm_calls.c.session_id: session_id, llm_calls.c.run_id: run_id}
    return [column == text for column, text in wanted.items() if text]
