"""What starting a workflow would come to: its steps, their commands, the policy's verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from openry.errors import OpenRYError, TemplateError
from openry.forwarder.judging import policy_of, verdict_of
from openry.models import Command, RunContext
from openry.orchestrator.course import Standing
from openry.orchestrator.intake import Row
from openry.orchestrator.plan import Plan
from openry.orchestrator.room import Room
from openry.orchestrator.routing import start
from openry.orchestrator.settings import policies_of, sandbox_of
from openry.orchestrator.spec import Kind, SubStep
from openry.orchestrator.templates import render_command, render_value


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step as it would be run.

    Attributes:
        does: Its command, capability with arguments, task or question; templates as they are
            where their values are known only at run time.
        verdict: `allow`, `confirm` or `deny`; empty where there is nothing to judge yet.
        note: Why it cannot be said yet, or the rule that decided.
    """

    big_step: str
    id: str
    kind: str
    does: str
    verdict: str = ""
    note: str = ""
    sandbox: str = ""
    for_each: bool = False

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


def foresee(room: Room, plan: Plan, row: Row) -> tuple[PlannedStep, ...]:
    """Every step of every workflow of the plan, in the order of the files. Nothing is started."""
    return tuple(_steps(room, plan, row))


def _steps(room: Room, plan: Plan, row: Row) -> Iterator[PlannedStep]:
    for place, big_step in enumerate(plan.big_steps):
        spec = plan.workflow_at(place)
        standing = Standing(
            instance_id="",
            plan=plan,
            workspace=row["workspace"],
            drafted=row["drafted"],
            inputs=row["inputs"],
            payload=dict(plan.payload),
            cursor=start(spec),
            place=place,
        )
        inputs = {name: each.default for name, each in spec.inputs.items()} | row["inputs"]
        scope = {"inputs": inputs, "payload": dict(plan.payload), "env": {}, "run": {"attempt": 1}}
        for step in spec.sub_steps:
            yield _step(room, standing, step, scope, big_step.ref if plan.composition else "")


def _step(
    room: Room, standing: Standing, step: SubStep, scope: Mapping[str, Any], big_step: str
) -> PlannedStep:
    about: dict[str, Any] = {
        "big_step": big_step,
        "id": step.id,
        "kind": str(step.kind),
        "for_each": step.for_each is not None,
    }
    try:
        about["sandbox"] = sandbox_of(standing, step, room.config).backend
    except OpenRYError as error:
        return PlannedStep(does=step.command or "", verdict="deny", note=str(error), **about)
    if step.kind is Kind.SHELL:
        return _shell(room, standing, step, scope, about)
    if step.kind is Kind.CAPABILITY:
        return PlannedStep(does=_capability(step, scope), **about)
    return PlannedStep(does=step.prompt or step.description, **about)


def _shell(
    room: Room,
    standing: Standing,
    step: SubStep,
    scope: Mapping[str, Any],
    about: Mapping[str, Any],
) -> PlannedStep:
    source = (step.command or "").strip()
    try:
        text, env = render_command(step.command or "", scope)
    except TemplateError as error:
        return PlannedStep(does=source, note=f"known when it runs: {error}", **about)
    context = RunContext(workspace=standing.workspace, policy=policies_of(standing, step))
    policy = policy_of(context, room.config.home_dir)
    if policy is None:
        return PlannedStep(does=source, verdict="allow", note="no policy is in force", **about)
    command, folder = Command(text=text, env=env), standing.workspace
    seen = verdict_of(policy, command, cwd=folder, workspace=folder, env=env)
    note = seen.reason or seen.rule or ", ".join(dict.fromkeys(part.rule for part in seen.parts))
    return PlannedStep(does=source, verdict=seen.decision.word, note=note, **about)


def _capability(step: SubStep, scope: Mapping[str, Any]) -> str:
    try:
        arguments = render_value(step.args, scope)
    except TemplateError:
        arguments = step.args
    given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{step.capability}({given})"
