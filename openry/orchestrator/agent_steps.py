"""Agent steps: the built-in agent, or a program of somebody else.

Apart from the other kinds because of all that it imports: most workflows ask no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from openry.agent.react import run_agent
from openry.agent.schedule import Together
from openry.agent.task import AgentEnding, AgentOutcome, AgentTask, Block, Mode
from openry.clock import monotonic
from openry.errors import BadFileError, ModelError
from openry.forwarder.hand import Hand
from openry.llm import Budget, Model, Purpose
from openry.llm.budget import Budgeted
from openry.llm.wrapper import Stoppable
from openry.orchestrator.course import Standing
from openry.orchestrator.keeping import keep_every
from openry.orchestrator.outsiders import adapter_of, perform_outside
from openry.orchestrator.overflow import resume_prompt
from openry.orchestrator.room import Job, Room
from openry.orchestrator.settings import agent_of
from openry.orchestrator.spec import AgentSpec, PromptBlock, SubStep
from openry.orchestrator.step_end import StepEnd, failed
from openry.orchestrator.templates import render_text
from openry.output.kinds import task_words

_BLOCK_BYTES = 256 * 1024
_RETRY_TEMPERATURE = 0.4
Scope = Mapping[str, Any]
HandFor = Callable[[Callable[[], object]], Hand]


def act(room: Room, job: Job, step: SubStep, scope: Scope, hand_for: HandFor) -> StepEnd:
    """Have an agent do the step of `job`.

    Args:
        hand_for: Makes its hand, which calls what it is given after each command.
    """
    agent = agent_of(job.standing, step)
    together = Together(keep_every(room, job))
    hand = hand_for(together)
    adapter = adapter_of(agent, job.standing, room.config)
    if adapter is not None:
        task = _task(room, job, step, scope, agent)
        outcome = perform_outside(room, job, adapter, agent, task, hand)
        return _agent_end(outcome, stopped=job.stop.is_set())
    model: Model = room.model(_model_of(agent, step, job.run.attempt, room))
    summarizer = _summarizer(room)
    if agent.max_cost_usd is not None:
        budget = Budget(usd=agent.max_cost_usd)
        model = Budgeted(model, budget)
        summarizer = summarizer and Budgeted(summarizer, budget)
    outcome = run_agent(
        _task(room, job, step, scope, agent),
        Stoppable(model, job.stop.is_set),
        hand,
        room.registry,
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


def _summarizer(room: Room) -> Model | None:
    """Who tells an agent its older turns; where it cannot be had, the digest stands in."""
    name = room.config.context_summary_model
    with suppress(ModelError):
        return room.model(name) if name else None
    return None


def _task(room: Room, job: Job, step: SubStep, scope: Scope, agent: AgentSpec) -> AgentTask:
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
        resume=resume_prompt(room, job.run, may_look=mode is Mode.FREE),
        system=render_text(agent.system, scope),
        max_tool_calls=step.tool_calls,
        temperature=_temperature(agent, job.run.attempt),
        seed=job.run.attempt - 1,
        deadline_s=None if limit_s is None else monotonic() + limit_s,
        parallel_actions=step.parallel_actions,
        blackboard=bool(step.blackboard),
        **{name: cap for name, cap in caps.items() if cap is not None},
    )


def reader_of(room: Room, job: Job, step: SubStep, scope: Scope) -> dict[str, Any]:
    """What the hand's context says of the agent: how it reads what commands answer."""
    agent = agent_of(job.standing, step)
    model = agent.model or room.config.model
    return {
        "watched": True,
        "may_look": _mode(job.standing, step, agent) is Mode.FREE,
        "single_digits": model.startswith("local/") and not agent.adapter,
        "task_words": task_words(render_text(step.description, scope)),
    }


def _mode(standing: Standing, step: SubStep, agent: AgentSpec) -> Mode:
    offered = step.capabilities or standing.spec.capabilities
    return Mode(agent.mode or (Mode.CAPABILITIES if offered else Mode.FREE))


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
