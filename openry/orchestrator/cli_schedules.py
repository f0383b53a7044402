"""`schedule` and `service`: what begins by the clock, and what keeps the clock going."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from openry.errors import StorageError, UsageError
from openry.ledger.schedules import Schedule
from openry.orchestrator import terminal
from openry.orchestrator.engine import Engine
from openry.orchestrator.schedules import local_zone, preview, zone
from openry.orchestrator.terminal import NAME, OK, AsJson

schedule_app = typer.Typer(
    name="schedule", help="Have workflows begin by the clock.", no_args_is_help=True
)
service_app = typer.Typer(name="service", help="Keep `run` going.", no_args_is_help=True)
_CATCH_UP, _OVERLAP = ("none", "last", "all"), ("skip", "queue", "cancel")
_SHOWN = 6


@schedule_app.command()
def add(
    workflow: Annotated[str, typer.Argument(metavar="NAME|FILE")],
    cron: Annotated[str, typer.Option(help="Such as `0 8 * * 1-5`.")],
    tz: Annotated[str, typer.Option(help="Time zone; default this machine's.")] = "",
    catch_up: Annotated[str, typer.Option(help="Missed times: none, last or all.")] = "none",
    overlap: Annotated[str, typer.Option(help="While one runs: skip, queue, cancel.")] = "skip",
    name: Annotated[str, typer.Option(help="The schedule's own name.")] = "",
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="K=V", help="An input; repeatable.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Folder its steps work in.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the next times.")] = False,
    after: Annotated[str, typer.Option("--from", help="With --dry-run: from this time.")] = "",
    as_json: AsJson = False,
) -> int:
    """Have a workflow begin whenever a cron line is due, as long as `run` runs."""
    _one_of("--catch-up", catch_up, _CATCH_UP)
    _one_of("--overlap", overlap, _OVERLAP)
    if dry_run:
        return _show_times(cron, tz or local_zone(), after, as_json)
    if after:
        raise UsageError("`--from` goes with `--dry-run`")
    with Engine(terminal.settings()) as engine:
        about: dict[str, Any] = {"catch_up": catch_up, "overlap": overlap, "name": name}
        about |= {"inputs": terminal.pairs(inputs or []), "workspace": folder, "zone": tz}
        made = engine.clockwork.add(workflow, cron, **about)
    if as_json:
        terminal.answer({"schedule": _data(made)})
    else:
        terminal.out(f"{made.name}: next {_local(made)}; begun by `{NAME} run`")
    return OK


def _one_of(option: str, given: str, words: tuple[str, ...]) -> None:
    if given not in words:
        raise UsageError(f"`{option}` must be one of {', '.join(words)}, got `{given}`")


def _show_times(cron: str, zone_name: str, after: str, as_json: bool) -> int:
    try:
        start = datetime.fromisoformat(after) if after else datetime.now(UTC)
    except ValueError:
        raise UsageError(f"`--from {after}` is no time (2026-03-29T00:00)") from None
    if start.tzinfo is None:
        start = start.replace(tzinfo=zone(zone_name))
    times = preview(cron, zone_name, start, _SHOWN)
    if as_json:
        terminal.answer({"cron": cron, "tz": zone_name, "next": times})
    else:
        for each in times:
            terminal.out(f"{each['local']}  {each['utc']}")
    return OK


@schedule_app.command("list")
def list_all(as_json: AsJson = False) -> int:
    """Every schedule, when it is due next, and what came of it last."""
    with Engine(terminal.settings()) as engine:
        found = engine.clockwork.all()
        latest = {each.name: engine.clockwork.firings(each.name)[:1] for each in found}
    if as_json:
        rows = [
            {**_data(each), "last": asdict(latest[each.name][0]) if latest[each.name] else None}
            for each in found
        ]
        terminal.answer({"schedules": rows})
        return OK
    table = Table("name", "workflow", "cron", "next", "last", box=None, pad_edge=False)
    for each in found:
        last = " ".join(f"{f.outcome} {f.due_at[:16]}" for f in latest[each.name])
        table.add_row(each.name, each.workflow, each.cron, _local(each), last)
    terminal.out(table)
    return OK


@schedule_app.command()
def remove(name: str, as_json: AsJson = False) -> int:
    """Take a schedule away; what it began goes on."""
    with Engine(terminal.settings()) as engine:
        engine.clockwork.remove(name)
    if as_json:
        terminal.answer({"removed": name})
    else:
        terminal.out(f"{name}: removed")
    return OK


def _data(schedule: Schedule) -> dict[str, Any]:
    return {**asdict(schedule), "next_local": _local(schedule)}


def _local(schedule: Schedule) -> str:
    if schedule.next_at is None:
        return "never"
    moment = datetime.fromisoformat(schedule.next_at)
    return moment.astimezone(zone(schedule.zone)).isoformat(timespec="minutes")


# --- service ------------------------------------------------------------------------------

_UNIT = """\
[Unit]
Description=OpenRY: runs workflows and begins schedules
After=network-online.target

[Service]
ExecStart={program} run
Environment=OPENRY_HOME={home}
Restart=on-failure
RestartSec=5
KillSignal=SIGTERM
TimeoutStopSec=60

[Install]
WantedBy=default.target
"""


@service_app.command()
def install(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the unit.")] = False,
    as_json: AsJson = False,
) -> int:
    """Write a systemd unit for this user that keeps `run` going."""
    config = terminal.settings()
    program = shutil.which(NAME) or f"{sys.executable} -m openry.orchestrator"
    text = _UNIT.format(program=_escaped(program), home=_escaped(str(config.home)))
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    path = Path(base, "systemd", "user", "openry.service")
    if not dry_run:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise StorageError(f"cannot write `{path}`: {why}") from None
    if as_json:
        terminal.answer({"path": str(path), "unit": text, "written": not dry_run})
    elif dry_run:
        terminal.out(text.rstrip())
    else:
        terminal.out(f"written to {path}; start it: systemctl --user enable --now openry")
    return OK


def _escaped(text: str) -> str:
    """`%` means something to systemd."""
    return text.replace("%", "%%")
