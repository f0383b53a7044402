"""What the templates of a run see, and what its prompt says of the attempt before."""

from __future__ import annotations

import os
from typing import Any

from openry.ledger.commands import CommandRecord, of_run
from openry.ledger.records import validation_of
from openry.ledger.runs import Run, get_run, payloads_of
from openry.orchestrator.course import Standing
from openry.orchestrator.room import Room
from openry.orchestrator.spec import SubStep
from openry.orchestrator.templates import render_env, render_value
from openry.orchestrator.validation import said
from openry.texts import shortened

#: What templates see of our own environment; a workflow's `env:` comes to it.
_ENV = ("HOME", "LANG", "LOGNAME", "PATH", "TZ", "USER")
_LAST_COMMANDS = 3
_SHOWN_CHARS = 400


def scope_of(room: Room, standing: Standing, run: Run) -> dict[str, Any]:
    """`inputs`, `payload`, `steps`, `env`, `run`, `last_failure` and, in a `for_each`, `item`."""
    step = standing.step(run.step_id)
    payload = dict(standing.payload)
    if "overflow" in run.data and "overflow" in run.payload:
        payload["overflow"] = run.payload["overflow"]
    steps: dict[str, Any] = dict(standing.plan.steps)
    if step.payload_from or _speaks_of_steps(step):
        steps |= _step_payloads(room, standing.instance_id)
    if step.payload_from:
        payload |= steps.get(step.payload_from, {}).get("payload", {})
    defaults = {
        n: each.default for n, each in standing.spec.inputs.items() if each.default is not None
    }
    scope: dict[str, Any] = {
        "inputs": {**defaults, **standing.inputs},
        "payload": payload,
        "steps": steps,
        "env": {name: os.environ[name] for name in _ENV if name in os.environ},
        "run": {"attempt": run.attempt, "id": run.run_id},
        "last_failure": failure_before(room, run),
    }
    if step.for_each is not None and run.item:
        scope |= dict.fromkeys(("item", step.for_each.as_), run.data["item"])
    if standing.big_step.inputs:
        scope["inputs"] |= render_value(standing.big_step.inputs, scope)
    scope["env"] |= render_env(standing.spec.env, scope)
    scope["env"] |= render_env(step.env, scope)
    return scope


def _speaks_of_steps(step: SubStep) -> bool:
    """Whether a template of the step may use what another step ended with."""
    return any("steps." in repr(getattr(step, name)) for name in step.model_fields_set)


def _step_payloads(room: Room, instance_id: str) -> dict[str, Any]:
    with room.ledger.read() as connection:
        found = payloads_of(connection, instance_id)
    return {step_id: {"payload": payload} for step_id, payload in found.items()}


def failure_before(room: Room, run: Run) -> str:
    """What failed in the attempt before: its reason, the rules, its last commands.

    Where another step's failure led here, that step's reason.
    """
    if "overflow" in run.data and "requeue_of" in run.data:
        return ""  # nothing failed: it was interrupted, and its prompt says so
    if not run.previous_run_id:
        because = run.data.get("because", "")
        return f"- {because}" if because else ""
    with room.ledger.read() as connection:
        before = get_run(connection, run.previous_run_id)
        results = validation_of(connection, run.previous_run_id)
        commands = of_run(connection, run.previous_run_id)
    lines = [f"- {said(result)}" for result in results if not result.passed]
    if not lines and before is not None and before.reason:
        lines = [f"- {before.reason}"]
    lines += [f"- you ran {_shown(command)}" for command in commands[-_LAST_COMMANDS:]]
    return "\n".join(lines)


def _shown(command: CommandRecord) -> str:
    said_ = (command.stderr or command.stdout).strip().replace("\n", " ")
    code = command.ending if command.exit_code is None else f"exit {command.exit_code}"
    text = f"`{command.command}`: {code}" + (f": {said_}" if said_ else "")
    return shortened(text, _SHOWN_CHARS)
