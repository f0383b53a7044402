"""What the ledger knows of a folder: whose it is, who works in it, what was kept of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, select

from openry.ledger.process import ProcessId
from openry.ledger.schema import (
    LIVE_INSTANCES,
    OPEN_RUNS,
    STARTED_COMMANDS,
    commands_log,
    loop_rounds,
    loop_sessions,
    snapshots,
    task_state,
    workflow_instances,
)
from openry.texts import one_line

_i, _t, _c, _s = workflow_instances.c, task_state.c, commands_log.c, snapshots.c


@dataclass(frozen=True, slots=True)
class AtWork:
    """Something under way in a folder: `what` names it for a person."""

    what: str
    folder: str
    process: ProcessId
    instance_id: str = ""


def at_work(connection: Connection) -> tuple[AtWork, ...]:
    """Steps and commands that are under way, as far as the ledger knows."""
    steps = connection.execute(
        select(_t.step_id, _i.instance_id, _i.workspace, _t.pid, _t.pid_started_at, _t.host)
        .join(workflow_instances, _i.instance_id == _t.workflow_instance_id)
        .where(OPEN_RUNS, _t.status == "in_progress")
    )
    found = [
        AtWork(
            f"step `{step}` of instance {instance}",
            folder,
            ProcessId(pid or 0, started, host),
            instance,
        )
        for step, instance, folder, pid, started, host in steps
    ]
    commands = connection.execute(
        select(_c.id, _c.command, _c.cwd, _c.pid, _c.pid_started_at, _c.host, _c.instance_id).where(
            STARTED_COMMANDS
        )
    )
    found += [
        AtWork(
            f"command {number} (`{one_line(text, 40)}`)",
            folder,
            ProcessId(pid or 0, started, host),
            instance,
        )
        for number, text, folder, pid, started, host, instance in commands
    ]
    return tuple(found)


def state_at(connection: Connection, workspace: str) -> dict[str, Any]:
    """How the newest instance that works in a folder stands, as JSON; empty without one."""
    wanted = (
        select(_i.instance_id, _i.session_id, _i.state, _i.current_step, _i.payload, _i.plan_hash)
        .where(_i.workspace == workspace, LIVE_INSTANCES)
        .order_by(_i.created_at.desc())
        .limit(1)
    )
    row = connection.execute(wanted).mappings().one_or_none()
    return dict(row) if row is not None else {}


def newest_at(connection: Connection, workspace: str, *, limit: int = 50) -> tuple[str, ...]:
    """The last snapshots of a folder, the newest first, each once."""
    wanted = select(_s.snapshot_id).where(_s.workspace == workspace).order_by(_s.id.desc())
    return tuple(dict.fromkeys(connection.execute(wanted.limit(limit)).scalars()))


def kept_for_good(connection: Connection) -> frozenset[str]:
    """Snapshots that something still leads to: live instances, runs that are kept, sessions."""
    live = (
        select(_s.snapshot_id)
        .join(workflow_instances, _i.instance_id == _s.instance_id)
        .where(LIVE_INSTANCES)
    )
    of_runs = select(_t.snapshot_id).where(_t.snapshot_id != "", OPEN_RUNS)
    of_loops = select(loop_sessions.c.snapshot_id)
    rounds = select(loop_rounds.c.snapshot_before), select(loop_rounds.c.snapshot_after)
    found = (connection.execute(each).scalars() for each in (live, of_runs, of_loops, *rounds))
    return frozenset(each for ids in found for each in ids if each)


def kept_ids(connection: Connection) -> tuple[str, ...]:
    """Every snapshot that has a row, the newest first."""
    newest = func.max(_s.id)
    wanted = select(_s.snapshot_id).group_by(_s.snapshot_id).order_by(newest.desc())
    return tuple(connection.execute(wanted).scalars())


def runs_snapshots(connection: Connection) -> frozenset[str]:
    """Snapshots that runs name as the files before them."""
    wanted = select(_t.snapshot_id).where(_t.snapshot_id != "").distinct()
    return frozenset(connection.execute(wanted).scalars())


def forget_snapshots(connection: Connection, ids: Iterable[str]) -> None:
    """Delete the rows of these snapshots."""
    connection.execute(delete(snapshots).where(_s.snapshot_id.in_(list(ids))))
