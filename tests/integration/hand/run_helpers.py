"""A run in progress with an open door, as an engine has it while an agent works."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hand_helpers import OpenRY

from openry.agent.attendant import Attendant
from openry.capability import Registry, load_registry
from openry.config import load_config
from openry.forwarder import Hand
from openry.forwarder.door import Door
from openry.ledger.fast import FastLedger
from openry.ledger.tokens import hashed
from openry.models import RunContext, SandboxSpec

AT = "2026-03-01T09:00:00.000Z"
TOKEN = "5" * 64
RUN_ID = "run-1"


def sql(openry: OpenRY, text: str, *values: object) -> list[tuple]:
    database = sqlite3.connect(openry.home / "openry.db", timeout=30)
    try:
        with database:
            return database.execute(text, values).fetchall()
    finally:
        database.close()


def add_run(openry: OpenRY, **columns: object) -> None:
    """The run `run-1` in progress, whose workspace is the folder of `openry`."""
    openry.home.mkdir(mode=0o700, exist_ok=True)
    with FastLedger(openry.home / "openry.db") as ledger:
        ledger.run("nobody")
    sql(
        openry,
        "INSERT INTO workflow_instances (instance_id, plan, plan_hash, workspace, created_at)"
        " VALUES ('i-1', 'steps: []', '0', ?, ?)",
        str(openry.cwd),
        AT,
    )
    row = {
        "run_id": RUN_ID,
        "workflow_instance_id": "i-1",
        "workflow": "demo",
        "step_id": "step",
        "status": "in_progress",
        "token_hash": hashed(TOKEN),
        "created_at": AT,
        **columns,
    }
    marks = ", ".join("?" for _ in row)
    sql(openry, f"INSERT INTO task_state ({', '.join(row)}) VALUES ({marks})", *row.values())


@contextmanager
def worker(
    openry: OpenRY,
    *,
    sandbox: str = "none",
    offered: Sequence[str] = (),
    registry: Registry | None = None,
    **context: Any,
) -> Iterator[Door]:
    """The worker's end, in this process; `openry` becomes the agent's, which knows no home."""
    add_run(openry)
    config = load_config(openry.home, env={})
    spec = SandboxSpec(sandbox, (str(openry.cwd),))
    given = {"workspace": str(openry.cwd), "workflow": "demo", "step_id": "step", "sandbox": spec}
    given |= {"instance_id": "i-1", "run_id": RUN_ID, "token": TOKEN}
    own = {name: openry.env[name] for name in ("PATH", "HOME")}
    before = dict(openry.env)
    with FastLedger(config.ledger) as ledger:
        hand = Hand(ledger, RunContext(**(given | context)), config, env=own)
        attendant = Attendant(hand, lambda: registry or load_registry(), offered)
        door = Door(attendant.answer)
        openry.env = {
            "PATH": openry.env["PATH"],
            "OPENRY_SOCKET": door.path,
            "OPENRY_RUN_ID": RUN_ID,
            "OPENRY_RUN_TOKEN": TOKEN,
        }
        try:
            yield door
        finally:
            door.close()
            openry.env = before
