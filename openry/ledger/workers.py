"""Engines at work: who they are, and that they still are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from openry.ledger.change import add, change
from openry.ledger.journal import columns, later
from openry.ledger.process import ProcessId
from openry.ledger.schema import LIVE_WORKERS, OPEN_RUNS, task_state, workers

_w, _t = workers.c, task_state.c


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A row of `workers`."""

    worker_id: str
    host: str
    pid: int | None
    pid_started_at: str
    state: str
    data: Mapping[str, Any]
    started_at: str
    heartbeat_at: str | None
    lease_until: str | None
    ended_at: str | None

    @property
    def process(self) -> ProcessId:
        return ProcessId(self.pid or 0, self.pid_started_at, self.host)


_COLUMNS = columns(workers, WorkerRow)


def add_worker(
    connection: Connection,
    at: str,
    owner: str,
    process: ProcessId,
    *,
    lease_s: float,
    **data: Any,
) -> None:
    """An engine begins its work. `data` is what else is to be known of it."""
    row = {
        "worker_id": owner,
        "role": "orchestrator",
        "host": process.host,
        "pid": process.pid,
        "pid_started_at": process.started_at,
        "data": data,
        "started_at": at,
        "heartbeat_at": at,
        "lease_until": later(at, lease_s),
    }
    add(connection, workers, row)


def beat_worker(connection: Connection, at: str, owner: str, *, lease_s: float) -> None:
    values = {"heartbeat_at": at, "lease_until": later(at, lease_s)}
    change(connection, workers, {"worker_id": owner}, values)


def end_worker(connection: Connection, at: str, owner: str, state: str = "stopped") -> None:
    values = {"state": state, "ended_at": at, "lease_until": None}
    change(connection, workers, {"worker_id": owner}, values)


def live_workers(connection: Connection) -> tuple[WorkerRow, ...]:
    """Those that have not said goodbye, the longest at work first."""
    found = connection.execute(select(*_COLUMNS).where(LIVE_WORKERS).order_by(_w.started_at))
    return tuple(WorkerRow(*row) for row in found)


def held_runs(connection: Connection) -> tuple[tuple[str, str, str, str, str | None], ...]:
    """(owner, run, instance, step, lease) of every run somebody is carrying out."""
    wanted = select(_t.owner, _t.run_id, _t.workflow_instance_id, _t.step_id, _t.lease_until)
    found = connection.execute(wanted.where(OPEN_RUNS, _t.status == "in_progress", _t.owner != ""))
    return tuple((row[0], row[1], row[2], row[3], row[4]) for row in found)
