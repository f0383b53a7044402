"""Carry out one sub step, whatever its kind, and say how it ended. Nothing here moves a state."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from openry.agent.react import run_agent
from openry.agent.schedule import Together
from openry.agent.task import AgentEnding, AgentOutcome, AgentTask, Block, Mode
from openry.capability import ToolResult, invoke
from openry.clock import monotonic
from openry.errors import BadFileError, ModelError, OpenRYError, StorageError
from openry.forwarder.hand import Hand
from openry.ledger.runs import Run
from openry.llm import Budget, Model, Purpose
from openry.llm.budget import Budgeted
from openry.llm.wrapper import Stoppable
from openry.models import Command, CommandResult, Ending, RunContext
from openry.orchestrator.course import Standing
from openry.orchestrator.items import expand
from openry.orchestrator.keeping import keep_every
from openry.orchestrator.outsiders import adapter_of, perform_outside
from openry.orchestrator.overflow import resume_prompt
from openry.orchestrator.room import Job, Room
from openry.orchestrator.scope import scope_of
from openry.orchestrator.settings import (
    agent_of,
    blackboard_of,
    policies_of,
    sandbox_of,
    secrets_of,
)
from openry.orchestrator.spec import AgentSpec, Kind, PromptBlock, SubStep
from openry.orchestrator.templates import render_command, render_text, render_value
from openry.output.kinds import task_words

_REASON_CHARS = 300
_BLOCK_BYTES = 256 * 1024
_RETRY_TEMPERATURE = 0.4
Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How the work of one run ended, before anybody validated it.

    Attributes:
        reason: Why it failed; empty when it did not.
        result: What is kept beside the payload, e.g. a capability's ToolResult.
        interrupted: It was ended from outside: brake, cancel or shutdown; the ledger knows which.
        items: Those of a `for_each`, whose own runs do the work.
    """

    ok: bool
    payload: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    result: Mapping[str, Any] | None = None
    interrupted: bool = False
    items: Sequence[Any] | None = None
    tokens: int = 0
    cost_usd: float = 0.0


def failed(reason: str, **more: Any) -> StepEnd:
    shown = " ".join(reason.split())
    cut = shown if len(shown) <= _REASON_CHARS else shown[:_REASON_CHARS] + " …"
    return StepEnd(False, reason=cut, **more)


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
        agent = agent_of(job.standing, step)
        together = Together(keep_every(self.room, job))
        hand = self._hand(job, step, scope, after=together)
        adapter = adapter_of(agent, job.standing, self.room.config)
        if adapter is not None:
            task = self._task(job, step, scope, agent)
            outcome = perform_outside(self.room, job, adapter, agent, task, hand)
            return _agent_end(outcome, stopped=job.stop.is_set())
        model: Model = self.room.model(_model_of(agent, step, job.run.attempt, self.room))
        summarizer = self._summarizer()
        if agent.max_cost_usd is not None:
            budget = Budget(usd=agent.max_cost_usd)
            model = Budgeted(model, budget)
            summarizer = summarizer and Budgeted(summarizer, budget)
        outcome = run_agent(
            self._task(job, step, scope, agent),
            Stoppable(model, job.stop.is_set),
            hand,
            self.room.registry,
            purpose=Purpose(
                purpose="agent",
                instance_id=job.run.workflow_instance_id,
                run_id=job.run_id,
                step_id=step.id,
            ),
            redact=hand.redactor.text,
            should_stop=job.stop.is_set,
            together=together,
            summarizer=summarizer and Stoppable(summarizer, job.stop.is_set),
        )
        return _agent_end(outcome, stopped=job.stop.is_set())

    def _summarizer(self) -> Model | None:
        """Who tells an agent its older turns; where it cannot be had, the digest stands in."""
        name = self.room.config.context_summary_model
        with suppress(ModelError):
            return self.room.model(name) if name else None
        return None

    def _task(self, job: Job, step: SubStep, scope: Scope, agent: AgentSpec) -> AgentTask:
        offered = step.capabilities or job.standing.spec.capabilities
        caps = {"max_turns": agent.max_turns, "max_tokens": agent.max_tokens}
        limit_s = step.timeout_s
        return AgentTask(
            text=render_text(step.description, scope),
            workspace=Path(job.standing.workspace),
            mode=(mode := _mode(job.standing, step, agent)),
            offered=offered,
            blocks=tuple(_blocks(step.prompt_blocks, scope, job.standing)),
            payload={key: each for key, each in scope["payload"].items() if key != "overflow"},
            expect_payload=step.expect_payload,
            payload_keys=step.payload_keys,
            last_failure=scope["last_failure"],
            resume=resume_prompt(self.room, job.run, may_look=mode is Mode.FREE),
            system=render_text(agent.system, scope),
            max_tool_calls=step.tool_calls,
            temperature=_temperature(agent, job.run.attempt),
            seed=job.run.attempt - 1,
            deadline_s=None if limit_s is None else monotonic() + limit_s,
            parallel_actions=step.parallel_actions,
            blackboard=bool(step.blackboard),
            **{name: cap for name, cap in caps.items() if cap is not None},
        )

    def _hand(
        self, job: Job, step: SubStep, scope: Scope, after: Callable[[], object] | None = None
    ) -> Hand:
        """The hand of this run: its limits, its sandbox, its secrets, its way to be stopped."""
        standing, config = job.standing, self.room.config
        secrets = secrets_of(step, os.environ, config.home)
        board = blackboard_of(step, config)
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
            watched=step.kind is Kind.AGENT,
            programs=board.get("programs", ""),
            **self._reader(job, step, scope),
        )
        if secrets:
            config = replace(config, redact=(*config.redact, *secrets.values()))
        return Hand(self.room.fast, context, config, wake_fd=job.stop.fd, after=after)

    def _reader(self, job: Job, step: SubStep, scope: Scope) -> dict[str, Any]:
        """How an agent reads what commands answer."""
        if step.kind is not Kind.AGENT:
            return {"may_look": False}
        agent = agent_of(job.standing, step)
        model = agent.model or self.room.config.model
        return {
            "may_look": _mode(job.standing, step, agent) is Mode.FREE,
            "single_digits": model.startswith("local/") and not agent.adapter,
            "task_words": task_words(render_text(step.description, scope)),
        }


def _mode(standing: Standing, step: SubStep, agent: AgentSpec) -> Mode:
    offered = step.capabilities or standing.spec.capabilities
    return Mode(agent.mode or (Mode.CAPABILITIES if offered else Mode.FREE))


def idempotency_key(run: Run) -> str:
    """The same for a run that was cut off and is run again; another for each counted attempt."""
    turn = f"{run.workflow_instance_id}-{run.data['visit']}-{run.data['folded']}-{run.step_id}"
    return f"{turn}-{run.item}-{run.attempt}" if run.item else turn


def _model_of(agent: AgentSpec, step: SubStep, attempt: int, room: Room) -> str:
    """The step's model; each retry takes the next of its ladder, the last one stays."""
    ladder = (agent.model or room.config.model, *step.model_ladder)
    return ladder[min(attempt, len(ladder)) - 1]


def _temperature(agent: AgentSpec, attempt: int) -> float:
    """The step's own; else none at first, and some in a retry, lest it say the same again."""
    if agent.temperature is not None:
        return agent.temperature
    return 0.0 if attempt == 1 else _RETRY_TEMPERATURE


def _blocks(
    blocks: tuple[PromptBlock, ...] | list[PromptBlock], scope: Scope, standing: Standing
) -> Iterator[Block]:
    """The texts before the task, rendered; a missing file is an error unless it is optional.

    Files are the workspace's, or those whose full path a person's workflow has: the loader puts
    it in for files beside the workflow.
    """
    workspace = Path(standing.workspace)
    for block in blocks:
        if block.type == "text":
            yield Block(block.label, render_text(block.content or "", scope))
            continue
        name = render_text(block.path or "", scope)
        path = (workspace / name).resolve()
        named = Path(name).is_absolute() and name == block.path and not standing.drafted
        if not named and not path.is_relative_to(workspace.resolve()):
            raise BadFileError(f"prompt block `{name}` is not in the workspace")
        if path.is_file():
            with path.open("rb") as file:
                text = file.read(_BLOCK_BYTES).decode("utf-8", "replace")
            yield Block(block.label or name, text)
        elif not block.optional:
            raise BadFileError(f"prompt block `{name}` is not in the workspace")


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


def _agent_end(outcome: AgentOutcome, *, stopped: bool) -> StepEnd:
    """What an agent reported is in the ledger already; here is what it did not say itself."""
    spent: dict[str, Any] = {
        "tokens": outcome.prompt_tokens + outcome.completion_tokens,
        "cost_usd": outcome.cost_usd,
    }
    if outcome.ending is AgentEnding.COMPLETED:
        return StepEnd(True, outcome.payload, **spent)
    reason = outcome.reason or str(outcome.ending)
    return failed(reason, interrupted=stopped or reason == "braked", **spent)
