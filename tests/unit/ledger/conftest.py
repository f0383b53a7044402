"""A home and ledgers for the tests of this folder."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from openry.ledger.fast import FastLedger
from openry.ledger.tokens import hashed

AT = "2026-03-01T09:00:00.000Z"
#: What the agents of these tests show.
TOKEN = "the token"


class Home:
    """A folder with a ledger in it, and a look into it that passes by our own code."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "openry.db"
        self.fast = FastLedger(self.path)

    def rows(self, sql: str, *values: object) -> list[tuple]:
        connection = sqlite3.connect(self.path)
        try:
            with connection:
                return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def add_run(self, run_id: str = "run-1", **columns: object) -> str:
        """A run in progress, of the instance `i-1` in the workspace `/ws`."""
        self.fast.run(run_id)  # makes the ledger
        row = {
            "run_id": run_id,
            "workflow_instance_id": "i-1",
            "workflow": "demo",
            "step_id": f"step of {run_id}",
            "status": "in_progress",
            "token_hash": hashed(TOKEN),
            "created_at": AT,
            **columns,
        }
        self.rows(
            "INSERT OR IGNORE INTO workflow_instances"
            " (instance_id, plan, plan_hash, workspace, created_at) VALUES (?, ?, ?, ?, ?)",
            *("i-1", "steps: []", "0", "/ws", AT),
        )
        marks = ", ".join("?" for _ in row)
        self.rows(f"INSERT INTO task_state ({', '.join(row)}) VALUES ({marks})", *row.values())
        return run_id


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path)
    yield made
    made.fast.close()
