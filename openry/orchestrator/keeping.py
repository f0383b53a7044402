"""The workspace before a step: made, kept for later, or put back for a big step's retry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

from openry.errors import SnapshotError
from openry.ledger.journal import add_event, ledger_now
from openry.ledger.records import add_snapshot, last_snapshot
from openry.ledger.runs import set_run
from openry.orchestrator.room import Job, Room
from openry.orchestrator.rules import rule_types
from openry.orchestrator.spec import Kind


def prepare(room: Room, job: Job) -> None:
    """Make the workspace ready for `job`. Safe to be done again after a crash in between."""
    workspace = Path(job.standing.workspace)
    data, spec = job.run.data, job.standing.spec
    if data.get("enters"):
        workspace.mkdir(parents=True, exist_ok=True)
    if data.get("restarts"):
        _restore(room, job, workspace)
    elif data.get("enters") and spec.max_retries:
        _keep_for_retries(room, job, workspace)
    step = spec.step(job.run.step_id)
    is_whole = step.for_each is not None and not job.run.item
    compares = "unchanged" in rule_types(step.validation) and not is_whole
    if compares or (not job.run.item and step.snapshot_when in ("before", "both")):
        snapshot_id = _keep(room, job, workspace, "before step")
        with room.write() as connection:
            set_run(connection, ledger_now(connection), job.run_id, snapshot_id=snapshot_id)
        job.run = replace(job.run, snapshot_id=snapshot_id)


def keep_after(room: Room, job: Job) -> None:
    """The workspace after a step's work, where the step says so."""
    step = job.standing.step(job.run.step_id)
    if step.snapshot_when in ("after", "both") and not job.run.item:
        _keep(room, job, Path(job.standing.workspace), "after step")


def keep_every(room: Room, job: Job) -> Callable[[], None] | None:
    """Keeps the workspace after every so many actions of an agent's step; None for never."""
    every = room.config.snapshot_every
    step = job.standing.step(job.run.step_id)
    if not every or step.kind is not Kind.AGENT or job.run.item:
        return None
    numbers = count(1)

    def after() -> None:
        number = next(numbers)
        if number % every:
            return
        try:
            _keep(room, job, Path(job.standing.workspace), f"after action {number}")
        except SnapshotError as error:  # the agent's work does not depend on it
            with room.write() as connection:
                about = {"kind": "snapshot_failed", "reason": str(error), "run_id": job.run_id}
                who = {"instance_id": job.standing.instance_id, "step_id": step.id}
                add_event(connection, ledger_now(connection), **who, **about)

    return after


def _reason(job: Job) -> str:
    """What a big step's snapshot is kept for: a restart within this visit."""
    return f"big step, visit {job.run.data['visit']}"


def _keep_for_retries(room: Room, job: Job, workspace: Path) -> None:
    """Once per visit: after a crash the workspace is not what it was at the start."""
    with room.ledger.read() as connection:
        known = last_snapshot(connection, job.standing.instance_id, _reason(job))
    if not known:
        _keep(room, job, workspace, _reason(job))


def _restore(room: Room, job: Job, workspace: Path) -> None:
    with room.ledger.read() as connection:
        snapshot_id = last_snapshot(connection, job.standing.instance_id, _reason(job))
    if snapshot_id:
        room.snapshots.restore(snapshot_id, workspace)


def _keep(room: Room, job: Job, workspace: Path, reason: str) -> str:
    snapshot = room.snapshots.create(workspace)
    row = {
        "snapshot_id": snapshot.id,
        "instance_id": job.standing.instance_id,
        "run_id": job.run_id,
        "big_step": job.run.big_step,
        "step_id": job.run.step_id,
        "reason": reason,
        "workspace": str(workspace),
        "files": snapshot.files,
        "bytes": snapshot.bytes,
        "seconds": snapshot.seconds,
        "state": {"payload": dict(job.standing.payload), "current_step": job.run.step_id},
    }
    with room.write() as connection:
        add_snapshot(connection, ledger_now(connection), row)
    return snapshot.id
