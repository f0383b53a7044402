"""Whatever order an agent, its policy and a person act in, the gates hold."""

from __future__ import annotations

import sqlite3
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.ledger.fast import FastLedger
from openry.ledger.tokens import hashed
from openry.models import CommandResult, RunContext

FINAL = ("completed", "failed", "cancelled", "overflow")
ACTIONS = st.lists(
    st.sampled_from(
        ["begin", "begin", "begin", "refuse", "finish", "cancel", "in_progress", *FINAL]
    ),
    max_size=14,
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A ledger, a look into it, and numbers for its runs."""
    ledger = FastLedger(tmp_path_factory.mktemp("home") / "openry.db")
    ledger.run("nobody")
    look = sqlite3.connect(ledger.path, isolation_level=None)
    look.execute("PRAGMA synchronous = OFF")
    yield ledger, look, count()
    look.close()
    ledger.close()


@settings(max_examples=50, deadline=None)
@given(actions=ACTIONS, limit=st.integers(0, 4))
def test_the_gates_hold_in_every_order(bench, actions, limit):
    """Every call leaves one row; never more than the limit pass, none after a brake or a final
    status; the first final status stays."""
    ledger, look, numbers = bench
    run_id = f"run-{next(numbers)}"
    look.execute(
        "INSERT INTO task_state (run_id, status, max_tool_calls, token_hash, created_at)"
        " VALUES (?, 'in_progress', ?, ?, '2026-03-01T09:00:00.000Z')",
        (run_id, limit, hashed("the token")),
    )
    context = RunContext(run_id=run_id, token="the token")
    started, calls, passed, closed, final = [], 0, 0, False, ""
    for action in actions:
        if action in ("begin", "refuse"):
            calls += 1
            begun = (
                ledger.begin(context, "true")
                if action == "begin"
                else ledger.refuse(context, "rm", reason="openry: not allowed")
            )
            may_pass = not closed and (not limit or passed < limit)
            assert (begun.braked is None) == may_pass
            assert (begun.command_id is not None) == (may_pass and action == "begin")
            passed += may_pass
            closed = closed or not may_pass
            started += [begun.command_id] if begun.command_id is not None else []
        elif action == "finish" and started:
            assert ledger.finish(started.pop(), CommandResult(0, "", "", 0.0))
        elif action == "cancel":
            look.execute("UPDATE task_state SET cancel_requested = 1 WHERE run_id = ?", (run_id,))
            closed = True
        elif action in FINAL:
            assert ledger.report(context, action).acknowledged == (final in ("", action))
            final, closed = final or action, True
        elif action == "in_progress":
            assert ledger.report(context, action).acknowledged == (not final)

    query = "SELECT count(*), count(DISTINCT seq) FROM commands_log WHERE run_id = ?"
    assert look.execute(query, (run_id,)).fetchone() == (calls, calls)
    query = "SELECT tool_calls, reported_status FROM task_state WHERE run_id = ?"
    assert look.execute(query, (run_id,)).fetchone() == (passed, final)
