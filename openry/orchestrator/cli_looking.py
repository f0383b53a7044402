"""`status`, `list`, `logs`, `inspect`: how things stand, and how they came to."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from openry.errors import UsageError
from openry.ledger.commands import of_run
from openry.ledger.journal import events_after
from openry.ledger.replays import links_of
from openry.ledger.runs import find_runs, get_run
from openry.models import InstanceState
from openry.orchestrator import show
from openry.orchestrator.engine import Engine
from openry.orchestrator.outcomes import step_of
from openry.orchestrator.terminal import OK, AsJson, Id, answer, out, settings
from openry.texts import did_you_mean

#: How a run's work ends: its commands are shown then.
_ENDS = ("completed", "failed", "cancelled")


def status(
    instance: Annotated[str | None, typer.Argument(metavar="[ID]")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until it has ended.")] = False,
    as_json: AsJson = False,
) -> int:
    """How an instance stands; without an id, those that have not ended."""
    with Engine(settings()) as engine:
        if watch:
            if instance is None:
                raise UsageError("`--watch` needs the id of an instance")
            from openry.orchestrator.cli_waiting import watch as watch_it

            return watch_it(engine, instance, as_json=as_json)
        if instance is None:
            live = [each for each in engine.instances() if each.ended_at is None]
            out(show.list_json(live) if as_json else show.instance_table(live), as_json)
            return OK
        outcome = engine.outcome(engine.find(instance))
        with engine.ledger.read() as connection:
            links = links_of(connection, outcome.instance_id)
    found = show.status_json(outcome, links) if as_json else show.instance_tree(outcome, links)
    out(found, as_json)
    return OK


def list_(
    state: Annotated[str, typer.Option(help="Only in this state.")] = "",
    limit: Annotated[int, typer.Option(min=1)] = 50,
    as_json: AsJson = False,
) -> int:
    """The newest instances."""
    states = [each.value for each in InstanceState]
    if state and state not in states:
        hint = did_you_mean(state, states) or f"there are {', '.join(states)}"
        raise UsageError(f"no instance is ever `{state}` ({hint})")
    with Engine(settings()) as engine:
        found = engine.instances(state=state, limit=limit)
    out(show.list_json(found) if as_json else show.instance_table(found), as_json)
    return OK


def logs(
    instance: Id,
    step: Annotated[str, typer.Option(help="Only of this step.")] = "",
    followed: Annotated[bool, typer.Option("--follow", help="Go on until it has ended.")] = False,
    as_json: AsJson = False,
) -> int:
    """What happened to an instance, and what its steps asked of the hand."""
    with Engine(settings()) as engine:
        instance_id = engine.find(instance)
        if followed:
            return _follow(engine, instance_id, step, as_json=as_json)
        with engine.ledger.read() as connection:
            events = events_after(connection, 0, instance_id, limit=100_000)
        outcome = engine.outcome(instance_id)
    if step:
        outcome.step(step)
        events = tuple(event for event in events if event.step_id == step)
    if as_json:
        answer({"instance": instance_id, "events": [show.event_json(event) for event in events]})
        return OK
    for event in events:
        out(show.event_line(event), as_json)
        if event.new in _ENDS and event.run_id:
            _print_commands(engine, event.run_id)
    return OK


def _follow(engine: Engine, instance_id: str, step: str, *, as_json: bool) -> int:
    if step:
        engine.outcome(instance_id).step(step)
    from openry.orchestrator.tree import follow

    for event in follow(engine, instance_id):
        if step in ("", event.step_id):
            if as_json:
                answer(show.event_json(event))
            else:
                out(show.event_line(event), False)
                if event.new in _ENDS and event.run_id:
                    _print_commands(engine, event.run_id)
    return OK


def _print_commands(engine: Engine, run_id: str) -> None:
    with engine.ledger.read() as connection:
        for each in of_run(connection, run_id):
            code = each.ending if each.exit_code is None else f"exit {each.exit_code}"
            out(f"    $ {each.command}\n    {code}, {each.duration_ms or 0} ms", False)
            for line in (each.stdout + each.stderr).splitlines()[:20]:
                out(f"    | {line}", False)


def inspect(run_id: Annotated[str, typer.Argument(metavar="RUN")], as_json: AsJson = False) -> int:
    """One run: its payload, what validation said, and every command."""
    with Engine(settings()) as engine, engine.ledger.read() as connection:
        found = find_runs(connection, run_id) if run_id else ()
        if len(found) != 1:
            said = (
                f"could be {', '.join(found)}"
                if found
                else "is none: it never was, or it was pruned"
            )
            raise UsageError(f"run `{run_id}` {said}")
        run = get_run(connection, found[0])
        assert run is not None
        step = step_of(connection, (run,))
    if as_json:
        out(show.inspect_json(step), as_json)
        return OK
    out(f"{step.run_id}  {step.id}  {step.state}  {step.reason}", False)
    out(json.dumps(dict(step.payload), ensure_ascii=False, indent=2), False)
    for rule in step.rules:
        mark = "passed" if rule.passed else "FAILED"
        out(f"{mark}  {rule.rule}  {rule.message}", False)
    for each in step.commands:
        out(f"$ {each.command}\n{each.stdout}{each.stderr}exit {each.exit_code}", False)
    return OK
