"""`start`, `run`, `cancel`, `retry`, `approve`, `reject`: to begin, and to steer what has begun."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from openry.errors import UsageError
from openry.models.command import MANUAL_RUN
from openry.orchestrator.engine import Engine
from openry.orchestrator.intake import plan_of, row_of
from openry.orchestrator.loader import Loaded, load
from openry.orchestrator.lookup import find_file
from openry.orchestrator.references import refer
from openry.orchestrator.room import Times
from openry.orchestrator.terminal import (
    INTERRUPTED,
    OK,
    AsJson,
    Id,
    answer,
    inputs_of,
    out,
    person,
    settings,
)

TokenFile = Annotated[
    Path | None,
    typer.Option(help="For scripts: the operator's token.", show_default=False),
]


def start(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE")],
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="K=V", help="An input; repeatable.")
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option(help="Inputs of a YAML or JSON file.", metavar="FILE", show_default=False),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Run it here, to its end.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show plan, commands and verdicts.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Folder its steps work in.", show_default=False)
    ] = None,
    model: Annotated[str, typer.Option("--model", help="Model of its agent steps.")] = "",
    as_json: AsJson = False,
) -> int:
    """Start a workflow or composition."""
    config = settings(model)
    loaded = load(find_file(name, config))
    given = inputs_of(input_file, inputs or [])
    with Engine(config) as engine:
        if dry_run:
            return _foresee(engine, loaded, given, folder, as_json=as_json)
        instance_id = engine.submit(loaded, inputs=given, workspace=folder)
        if not wait:
            if as_json:
                answer({"instance": instance_id, "state": "queued"})
            else:
                out(instance_id)
            return OK
        from openry.orchestrator.cli_waiting import wait as wait_for

        return wait_for(engine, instance_id, as_json=as_json)


def _foresee(
    engine: Engine,
    loaded: Loaded,
    inputs: Mapping[str, Any],
    folder: Path | None,
    *,
    as_json: bool,
) -> int:
    """What it would come to. Nothing is started and nothing kept."""
    plan, file = plan_of(loaded, engine.config, {})
    row = row_of(plan, engine.config, file=file, inputs=inputs, workspace=folder)
    with engine.ledger.read() as connection:
        row = refer(connection, row)
    from openry.orchestrator.foresight import foresee

    steps = foresee(engine.room, plan, row)
    if as_json:
        about = {"workflow": plan.name, "plan": row["plan_hash"], "workspace": row["workspace"]}
        answer({**about, "inputs": row["inputs"], "steps": [step.to_data() for step in steps]})
        return OK
    out(f"{plan.name} in {row['workspace']}")
    for step in steps:
        name = f"{step.big_step}/{step.id}" if step.big_step else step.id
        out(f"  {name}  {step.kind}{', for each item' if step.for_each else ''}")
        for line in step.does.splitlines():
            out(f"    {line}")
        if step.verdict or step.note:
            out(f"    -> {' '.join(filter(None, (step.verdict, step.note and f'({step.note})')))}")
    return OK


def run(
    once: Annotated[
        bool, typer.Option("--once", help="Until nothing can go on by itself.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Steps at the same time.")] = 8,
    interval: Annotated[float, typer.Option(min=0.05, help="Seconds between scans.")] = 5.0,
) -> int:
    """Patrol: run whatever is queued. SIGTERM and Ctrl-C end it cleanly."""
    from openry.orchestrator.cli_waiting import stop_signals

    config = settings()
    times = Times(interval_s=interval, grace_s=config.brake_grace_s)
    with Engine(config, times=times, slots=workers) as engine, stop_signals() as stopped:
        engine.serve(once=once, should_stop=stopped)
        return INTERRUPTED if stopped() and once else OK


def cancel(instance: Id, as_json: AsJson = False) -> int:
    """Ask an instance to end: the soft brake first, the hard one after the grace."""
    with Engine(settings()) as engine:
        instance_id = engine.find(instance)
        if not engine.cancel(instance_id, by=person()):
            raise UsageError(f"instance `{instance_id}` has ended, or is asked to end already")
    return _told(instance_id, "asked to end", as_json)


def _told(instance_id: str, what: str, as_json: bool) -> int:
    if as_json:
        answer({"instance": instance_id, "done": what})
    else:
        out(f"{instance_id}: {what}")
    return OK


def retry(
    instance: Id,
    from_step: Annotated[str, typer.Option("--from", help="Step to begin at.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Run it here, to its end.")] = False,
    as_json: AsJson = False,
) -> int:
    """Take up an instance that failed or was cancelled."""
    with Engine(settings()) as engine:
        instance_id = engine.find(instance)
        engine.retry(instance_id, from_step=from_step, by=person())
        if wait:
            from openry.orchestrator.cli_waiting import wait as wait_for

            return wait_for(engine, instance_id, as_json=as_json)
    return _told(instance_id, "queued again", as_json)


def approve(
    instance: Id, comment: str = "", token_file: TokenFile = None, as_json: AsJson = False
) -> int:
    """Say yes to what an instance waits for."""
    return _answer(instance, comment, token_file, approve=True, as_json=as_json)


def reject(
    instance: Id, comment: str = "", token_file: TokenFile = None, as_json: AsJson = False
) -> int:
    """Say no to what an instance waits for."""
    return _answer(instance, comment, token_file, approve=False, as_json=as_json)


def _answer(
    instance: str, comment: str, token_file: Path | None, *, approve: bool, as_json: bool
) -> int:
    from openry.orchestrator.operator import require_operator

    config = settings()
    require_operator(config, token_file, interactive=sys.stdin.isatty())
    with Engine(config) as engine:
        instance_id = instance if instance == MANUAL_RUN else engine.find(instance)
        said = {"by": person(), "comment": comment}
        if not engine.answer(instance_id, approve=approve, **said):
            raise UsageError(f"instance `{instance_id}` waits for nobody")
    return _told(instance_id, "approved" if approve else "rejected", as_json)
