"""Agent steps that a program of somebody else carries out: what it is given, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from openry.agent.adapters import Adapter, adapter_named, is_adapter
from openry.agent.attendant import Attendant
from openry.agent.outside import Ended, Outside, run_outside
from openry.agent.task import AgentEnding, AgentOutcome, AgentTask
from openry.config import Config
from openry.errors import SandboxError, UsageError
from openry.forwarder.hand import Hand
from openry.models import SandboxSpec
from openry.orchestrator.course import Standing
from openry.orchestrator.judging import Judge
from openry.orchestrator.room import Job, Room
from openry.orchestrator.routing import Ended as HowEnded
from openry.orchestrator.spec import AgentSpec, SubStep

#: Limits of a step's commands; its agent is held by the step's own clock and brakes.
_NO_LIMITS: Mapping[str, Any] = dict.fromkeys(
    ("memory_mb", "processes", "cpu_s", "file_mb", "tmp_mb", "disk_mb", "output_mb", "time_s"), 0
)


def adapter_of(agent: AgentSpec, standing: Standing, config: Config) -> Adapter | None:
    """The program that acts; None for the built-in agent.

    A plain name under `agent` may be an adapter's or a model's.

    Raises:
        NotFoundError: No adapter of that name is installed.
        UsageError: A drafted workflow names one.
    """
    shorthand = agent.model if is_adapter(agent.model, config.home) else ""
    name = agent.adapter or shorthand
    if not name:
        return None
    if standing.drafted:
        raise UsageError(f"a drafted workflow cannot start `{name}`; a person has to name it")
    return adapter_named(name, config.home)


def perform_outside(
    room: Room, job: Job, adapter: Adapter, agent: AgentSpec, task: AgentTask, hand: Hand
) -> AgentOutcome:
    """Have `adapter`'s program do `task`, through the door of the run of `job`."""
    step = job.standing.step(job.run.step_id)
    attendant = Attendant(hand, lambda: room.registry, task.offered, _judge(room, job, step))
    outside = Outside(
        adapter,
        task,
        hand,
        attendant,
        around(hand.context.sandbox, room.config),
        model="" if agent.model == adapter.name else agent.model,
        max_turns=agent.max_turns,
        env={
            "OPENRY_WORKFLOW": hand.context.workflow,
            "OPENRY_STEP_ID": step.id,
            "OPENRY_WORKSPACE": hand.context.workspace,
            "OPENRY_IDEMPOTENCY_KEY": hand.context.env["OPENRY_IDEMPOTENCY_KEY"],
        },
        stop_fd=job.stop.fd,
    )
    try:
        ended = run_outside(outside)
    except SandboxError as error:
        return _failed(f"125: sandbox unavailable: {error}")
    keep_output(room.config.home / "runs" / job.run_id, ended)
    return _outcome(room, job, ended)


def around(spec: SandboxSpec, config: Config) -> SandboxSpec:
    """What surrounds an agent: its step's sandbox, and one even where its commands have none.

    Only a person's settings can do without, by `agent_sandbox: none`.
    """
    spec = replace(spec, **_NO_LIMITS)
    if config.agent_sandbox == "none":
        return replace(spec, backend="none")
    backend = config.agent_sandbox if spec.backend in ("none", "auto") else spec.backend
    return replace(spec, backend=backend)


def _judge(room: Room, job: Job, step: SubStep) -> Any:
    """Says what validation will say, for an agent that asks before it goes."""

    def judge(payload: Mapping[str, Any]) -> tuple[str, str]:
        inherited = job.standing.payload if step.inherit_payload and not job.run.item else {}
        verdict = Judge(room).verdict(job.standing, job.run, {**inherited, **payload})
        if verdict.ended is HowEnded.VALIDATED:
            return "passed", ""
        missing = ", ".join(f"`{name}`" for name in verdict.missing)
        return "failed", verdict.reason or f"the payload lacks {missing}"

    return judge


def _outcome(room: Room, job: Job, ended: Ended) -> AgentOutcome:
    """What it reported is in the ledger; an end without a report is a failure."""
    row = room.fast.run(job.run_id)
    if row is not None and row.reported_status in ("completed", "failed", "cancelled", "overflow"):
        return AgentOutcome(AgentEnding(row.reported_status), row.reason, dict(row.payload))
    if job.stop.is_set():
        return _failed("braked")
    if ended.trouble:
        return _failed(ended.trouble)
    last = f": {ended.last_line}" if ended.last_line else ""
    return _failed(f"no_status: the agent ended with exit {ended.exit_code}{last}")


def _failed(reason: str) -> AgentOutcome:
    return AgentOutcome(AgentEnding.STOPPED, reason)


def keep_output(folder: Path, ended: Ended) -> None:
    """What the program printed last, for whoever wants to know why."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in (("agent.stdout", ended.stdout), ("agent.stderr", ended.stderr)):
        place = folder / name
        place.touch(0o600)
        place.write_text(text, "utf-8", errors="replace")
