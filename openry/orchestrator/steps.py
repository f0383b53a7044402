"""Carry out one sub step, whatever its kind, and say how it ended. Nothing here moves a state."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openry.errors import OpenRYError, StorageError
from openry.forwarder.hand import Hand
from openry.ledger.runs import Run
from openry.models import Command, CommandResult, Ending, RunContext
from openry.orchestrator.items import expand
from openry.orchestrator.room import Job, Room
from openry.orchestrator.scope import scope_of
from openry.orchestrator.settings import blackboard_of, policies_of, sandbox_of, secrets_of
from openry.orchestrator.spec import Kind, SubStep
from openry.orchestrator.step_end import StepEnd, failed
from openry.orchestrator.templates import render_command, render_value

if TYPE_CHECKING:  # a shell step needs no tools, and no agent
    from openry.capability import ToolResult

Scope = Mapping[str, Any]


class Steps:
    """Performs the runs of one engine."""

    def __init__(self, room: Room) -> None:
        self.room = room

    def perform(self, job: Job) -> StepEnd:
        """Do the work of `job`. What goes wrong in it is its end, not an exception.

        Raises:
            StorageError: The ledger could not be written.
        """
        step = job.standing.step(job.run.step_id)
        kinds = {Kind.SHELL: self._shell, Kind.CAPABILITY: self._capability}
        try:
            scope = scope_of(self.room, job.standing, job.run)
            if step.for_each is not None and not job.run.item:
                return StepEnd(
                    True, items=expand(step.for_each, scope, Path(job.standing.workspace))
                )
            return kinds.get(step.kind, self._agent)(job, step, scope)
        except StorageError:
            raise
        except OpenRYError as error:
            return failed(str(error))

    # --- the kinds --------------------------------------------------------------------------

    def _shell(self, job: Job, step: SubStep, scope: Scope) -> StepEnd:
        text, env = render_command(step.command or "", scope)
        hand = self._hand(job, step, scope)
        result = hand.forward(Command(text=text, env=env))
        return _shell_end(step, result) if result.ok else _not_ok(result)

    def _capability(self, job: Job, step: SubStep, scope: Scope) -> StepEnd:
        from openry.capability import invoke

        tool = self.room.registry.get(step.capability or "")
        arguments = render_value(step.args, scope)
        hand = self._hand(job, step, scope)
        seen: list[CommandResult] = []

        def run(command: Command) -> CommandResult:
            result = hand.forward(command)
            seen.append(result)
            return result

        result = invoke(tool, arguments, run, Path(job.standing.workspace), hand_asks=True)
        kept = result.model_dump(mode="json")
        if seen and seen[-1].ending in (Ending.BRAKED, Ending.INTERRUPTED, Ending.TIMEOUT):
            return replace(_not_ok(seen[-1]), result=kept)
        if not result.success:
            return failed(_why(result), result=kept)
        return StepEnd(True, hand.clean(_capability_payload(result)), result=kept)

    def _agent(self, job: Job, step: SubStep, scope: Scope) -> StepEnd:
        from openry.orchestrator.agent_steps import act, reader_of

        def hand_for(after: Callable[[], object]) -> Hand:
            reads = reader_of(self.room, job, step, scope)
            return self._hand(job, step, scope, after=after, **reads)

        return act(self.room, job, step, scope, hand_for)

    def _hand(
        self,
        job: Job,
        step: SubStep,
        scope: Scope,
        after: Callable[[], object] | None = None,
        **reader: Any,
    ) -> Hand:
        """The hand of this run: its limits, its sandbox, its secrets, its way to be stopped.

        Args:
            reader: What the context says of who reads the answers.
        """
        standing, config = job.standing, self.room.config
        secrets = secrets_of(step, os.environ, config.home)
        board = blackboard_of(standing, step, config)
        context = RunContext(
            run_id=job.run_id,
            workflow=standing.spec.name,
            step_id=step.id,
            instance_id=standing.instance_id,
            workspace=standing.workspace,
            max_tool_calls=step.tool_calls,
            max_output_tokens=step.max_output_tokens,
            max_step_output_tokens=step.max_step_output_tokens,
            timeout_s=step.timeout_s,
            env={
                **{name: scope["env"][name] for name in (*standing.spec.env, *step.env)},
                **secrets,
                **board.get("env", {}),
                "OPENRY_IDEMPOTENCY_KEY": idempotency_key(job.run),
            },
            sandbox=sandbox_of(standing, step, config),
            policy=policies_of(standing, step),
            token=self.room.token(job),
            once=step.irreversible,
            programs=board.get("programs", ""),
            **{"may_look": False, **reader},
        )
        if secrets:
            config = replace(config, redact=(*config.redact, *secrets.values()))
        return Hand(self.room.fast, context, config, wake_fd=job.stop.fd, after=after)


def idempotency_key(run: Run) -> str:
    """The same for a run that was cut off and is run again; another for each counted attempt."""
    turn = f"{run.workflow_instance_id}-{run.data['visit']}-{run.data['folded']}-{run.step_id}"
    return f"{turn}-{run.item}-{run.attempt}" if run.item else turn


# --- how it ended -------------------------------------------------------------------------


def _not_ok(result: CommandResult) -> StepEnd:
    match result.ending:
        case Ending.TIMEOUT:
            return failed(f"timeout: {result.note.removeprefix('openry: ') or 'stopped'}")
        case Ending.INTERRUPTED:
            return failed("interrupted", interrupted=True)
        case Ending.BRAKED:
            return failed("braked", interrupted=True)
        case Ending.REFUSED:
            return failed(result.stderr.strip().removeprefix("openry: ") or "refused")
    last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), "")
    return failed(f"exit {result.exit_code}" + (f": {last.strip()}" if last else ""))


def _shell_end(step: SubStep, result: CommandResult) -> StepEnd:
    """Standard output as payload: `_stdout`, and the keys of the JSON object it may be."""
    payload: dict[str, Any] = {"_stdout": result.stdout}
    said = _json_object(result.stdout)
    if said is not None:
        wanted = step.payload_keys or tuple(said)
        payload |= {key: said[key] for key in wanted if key in said}
    return StepEnd(True, payload)


def _json_object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _capability_payload(result: ToolResult) -> dict[str, Any]:
    """`data`; an object's keys beside it, for rules and templates; `_stdout` as a shell's."""
    payload: dict[str, Any] = {"_stdout": result.raw_output, "data": result.data}
    if isinstance(result.data, dict):
        payload |= {str(key): value for key, value in result.data.items()}
    return payload


def _why(result: ToolResult) -> str:
    if result.error is None:
        return "the capability failed"
    hint = f" ({result.error.hint})" if result.error.hint else ""
    return f"{result.error.error_class}: {result.error.message}{hint}"
