"""`workers`, `prune`, `replay` and `snapshot`: who works, and what is kept of what was done."""

from __future__ import annotations

import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from openry.errors import UsageError
from openry.ledger.journal import later, ledger_now
from openry.ledger.process import is_alive
from openry.ledger.prune import count_ended_before
from openry.ledger.records import snapshots_of
from openry.ledger.workers import WorkerRow, held_runs, live_workers
from openry.orchestrator import terminal
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.lookup import find_file
from openry.orchestrator.terminal import NAME, OK, AsJson, Id
from openry.sandbox.quarantine import forget as forget_quarantined
from openry.session.keeper import Keeper
from openry.session.retention import prune_ended

snapshot_app = typer.Typer(
    name="snapshot", help="Keep a folder as it is, and bring it back.", no_args_is_help=True
)
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def workers(as_json: AsJson = False) -> int:
    """Engines at work, and the runs they hold."""
    with Engine(terminal.settings()) as engine, engine.ledger.read() as connection:
        now, rows, held = ledger_now(connection), live_workers(connection), held_runs(connection)
    found: list[dict[str, Any]] = [
        {
            "worker": row.worker_id,
            "state": _state(row, now),
            "host": row.host,
            "pid": row.pid,
            "slots": row.data.get("slots"),
            "started_at": row.started_at,
            "heartbeat_at": row.heartbeat_at,
            "lease_until": row.lease_until,
            "runs": [
                {"run_id": run, "instance": instance, "step": step, "lease_until": lease}
                for owner, run, instance, step, lease in held
                if owner == row.worker_id
            ],
        }
        for row in rows
    ]
    if as_json:
        terminal.answer({"workers": found})
        return OK
    table = Table("worker", "state", "host", "pid", "heartbeat", "runs", box=None, pad_edge=False)
    for each in found:
        runs = ", ".join(f"{run['instance']}/{run['step']}" for run in each["runs"])
        cells = (each["worker"], each["state"], each["host"], each["pid"], each["heartbeat_at"])
        table.add_row(*map(str, cells), runs)
    terminal.out(table)
    return OK


def _state(row: WorkerRow, now: str) -> str:
    """`lost` when its process is gone, or nobody has heard of it for too long."""
    late = row.lease_until is not None and row.lease_until < now
    return "lost" if late or is_alive(row.process) is False else row.state


# --- pruning ------------------------------------------------------------------------------


def prune(
    older_than: Annotated[str, typer.Option("--older-than", help="Such as 30d, 12h, 4w.")] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many.")] = False,
    as_json: AsJson = False,
) -> int:
    """Delete what ended long ago, with its rows, outputs and folders. Live instances never."""
    config, seconds = terminal.settings(), _seconds(older_than)
    with Engine(config) as engine:
        with engine.ledger.read() as connection:
            before = later(ledger_now(connection), -seconds)
            count = count_ended_before(connection, before)
        if not dry_run:
            count = prune_ended(config, engine.ledger, before)
            forget_quarantined(f"{config.home_dir}/quarantine", time.time() - seconds)
    what = "would go" if dry_run else "are gone"
    if as_json:
        terminal.answer({"instances": count, "before": before, "dry_run": dry_run})
    else:
        terminal.out(f"{count} instances that ended before {before[:19]} {what}")
    return OK


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6})\s*([mhdw])", text.strip())
    if match is None:
        raise UsageError(f"`--older-than {text}` is no time (30d, 12h, 4w)")
    return float(match[1]) * _UNITS[match[2]]


# --- replay -------------------------------------------------------------------------------


def replay(
    instance: Id,
    from_step: Annotated[str, typer.Option("--from", help="Step to begin at.")] = "",
    model: Annotated[str, typer.Option("--model", help="Acts in its agent steps instead.")] = "",
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Agents say what they said; no model is asked.")
    ] = False,
    mended: Annotated[
        str, typer.Option("--with", help="The workflow, mended since.", metavar="NAME|FILE")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run.")] = False,
    as_json: AsJson = False,
) -> int:
    """Run an instance once more from a step, as a new one on the files as they were before it."""
    if model and recorded:
        raise UsageError("`--recorded` asks no model: leave `--model` out")
    config = terminal.settings()
    with Engine(config) as engine:
        old = engine.find(instance)
        how: dict[str, Any] = {"model": model, "recorded": recorded, "dry_run": dry_run}
        if mended:
            how["mended"] = load(find_file(mended, config))
        made = engine.replay(old, from_step, **how)
    about = {
        "replay_of": old,
        "from": made.step_id,
        "steps": list(made.steps),
        "snapshot": made.snapshot_id,
        "kept": made.kept,
        "saved_s": round(made.saved_s, 3),
    }
    saved = f"; {made.kept} steps before are not done again, which saves {made.saved_s:.1f} s"
    saved = saved if made.kept else ""
    if as_json:
        new = {} if dry_run else {"instance": made.row["instance_id"], "state": "queued"}
        terminal.answer({**new, **about, "dry_run": dry_run})
    elif dry_run:
        files = f"the files of snapshot {made.snapshot_id[:12]}" if made.snapshot_id else "no files"
        terminal.out(f"would run {', '.join(made.steps)} of {old} with {files}{saved}")
    else:
        terminal.out(f"{made.row['instance_id']}: queued; `{NAME} run` goes on with it{saved}")
    return OK


# --- snapshots ----------------------------------------------------------------------------


@snapshot_app.command()
def create(
    folder: Annotated[Path, typer.Option("--dir", help="Folder to keep.")] = Path(),
    as_json: AsJson = False,
) -> int:
    """Keep a folder as it is now."""
    config = terminal.settings()
    with Engine(config) as engine:
        made = Keeper(config, engine.ledger).keep(folder)
    if as_json:
        about = {"files": made.files, "bytes": made.bytes, "seconds": made.seconds}
        terminal.answer({"snapshot": made.id, **about})
    else:
        terminal.out(f"{made.id}  {made.files} files, {made.bytes} bytes")
    return OK


@snapshot_app.command("list")
def list_snapshots(
    instance: Annotated[str, typer.Option(help="Only of this instance.")] = "",
    as_json: AsJson = False,
) -> int:
    """What was kept, the newest first."""
    with Engine(terminal.settings()) as engine:
        instance_id = engine.find(instance) if instance else ""
        with engine.ledger.read() as connection:
            found = snapshots_of(connection, instance_id)
    if as_json:
        terminal.answer({"snapshots": [asdict(row) for row in found]})
        return OK
    for row in found:
        about = row.reason + (f" of {row.instance_id}/{row.step_id}" if row.instance_id else "")
        terminal.out(f"{row.at[:19]}  {row.snapshot_id[:16]}  {row.files} files  {about}")
    return OK


@snapshot_app.command()
def diff(before: str, after: str, as_json: AsJson = False) -> int:
    """What differs between two snapshots."""
    with Engine(terminal.settings()) as engine:
        changes = Keeper(engine.config, engine.ledger).diff(before, after)
    if as_json:
        rows = [{"change": str(each.kind), "path": each.path} for each in changes]
        terminal.answer({"changes": rows})
    else:
        for each in changes:
            terminal.out(f"{each.kind}  {each.path}")
    return OK


@snapshot_app.command()
def restore(
    snapshot: str,
    to: Annotated[Path, typer.Option("--to", help="Folder that becomes as it was.")],
    force: Annotated[bool, typer.Option("--force", help="Also over changes; kept first.")] = False,
    as_json: AsJson = False,
) -> int:
    """Make a folder what it was; refused over what no snapshot has."""
    config = terminal.settings()
    with Engine(config) as engine:
        done = Keeper(config, engine.ledger).put_back(snapshot, to, force=force)
    if as_json:
        about = {"snapshot": done.snapshot_id, "to": str(done.folder), "saved": done.saved}
        terminal.answer(about)
    else:
        terminal.out(f"{to} is as in {done.snapshot_id[:16]}")
        if done.saved:
            terminal.out(f"what it was before is kept as {done.saved[:16]}")
    return OK
