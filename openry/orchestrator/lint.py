"""What a workflow may do wrong although it loads: warnings, each with its line.

`lint` looks at a file that loaded; errors are the loader's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from openry.capability import Registry, load_registry
from openry.models import Problem
from openry.orchestrator import yaml12
from openry.orchestrator.loader import Loaded
from openry.orchestrator.report import Report, Where, visible
from openry.orchestrator.routing import BigNext, BigOutcome, big_route
from openry.orchestrator.rules import COMMANDS, rule_types
from openry.orchestrator.spec import (
    ABORT,
    CONTINUE,
    DONE,
    RETRY,
    RETRY_CURRENT,
    Composition,
    Kind,
    SubStep,
    WorkflowSpec,
)
from openry.orchestrator.templates import program_from_value, uses_raw
from openry.output.redact import Redactor, is_secret_name

_KNOWN_SHAPES = Redactor()
#: More tools than this confuse a small model.
MAX_OFFERED = 20
_WIDE_POLICIES = {"permissive", "unrestricted"}


def lint(loaded: Loaded) -> tuple[Problem, ...]:
    """Warnings about a workflow or composition, in the order of their lines."""
    report = Report(yaml12.compose(loaded.text, loaded.file))
    if loaded.workflow is not None:
        for check in _WORKFLOW_CHECKS:
            check(loaded.workflow, report)
    elif loaded.composition is not None:
        _unreachable_big_steps(loaded.composition, report)
    _secrets(report.document.data, (), report)
    return tuple(sorted(map(visible, report.found), key=lambda problem: problem.line))


def _warn(report: Report, where: Where, message: str, hint: str = "", shown: str = "") -> None:
    report.add(where, message, hint, level="warning", shown=shown)


def targets(step: SubStep, success: str) -> Iterator[str]:
    """Every route out of a step that may be taken; `success` is where it goes by default."""
    continues = True
    for route in step.validation_routing:
        yield from (route.on_match, route.on_mismatch)
        continues &= CONTINUE in (route.on_match, route.on_mismatch)
    if continues:
        yield success
    yield from (step.on_failure, step.on_validation_fail)
    yield from (target for target in (step.on_payload_missing, step.on_dropped) if target)


def _map(workflow: WorkflowSpec) -> dict[str, set[str]]:
    """For each step, where its routes lead; words that stay on it left out."""
    following = [step.id for step in workflow.sub_steps[1:]] + [DONE]
    return {
        step.id: set(targets(step, step.on_success or success)) - {RETRY, RETRY_CURRENT, CONTINUE}
        for step, success in zip(workflow.sub_steps, following, strict=True)
    }


def _spread(start: Iterable[str], ways: Mapping[str, Iterable[str]]) -> set[str]:
    """Everything that can be reached."""
    reached, waiting = set[str](), list(start)
    while waiting:
        here = waiting.pop()
        if here not in reached:
            reached.add(here)
            waiting += ways.get(here, ())
    return reached


def _unreachable(workflow: WorkflowSpec, report: Report) -> None:
    reached = _spread([workflow.sub_steps[0].id], _map(workflow))
    for place, step in enumerate(workflow.sub_steps):
        if step.id not in reached:
            said = f"step `{step.id}` is never reached"
            _warn(report, ("sub_steps", place), said, "no route leads to it")


def _no_exit(workflow: WorkflowSpec, report: Report) -> None:
    """Steps from which no route ever leads to the end, or to another workflow."""
    ways = _map(workflow)
    back: dict[str, set[str]] = {}
    for step_id, outs in ways.items():
        for target in outs:
            back.setdefault(target, set()).add(step_id)
    ends = {target for outs in ways.values() for target in outs} - set(ways) - {ABORT}
    reached, saved = _spread([workflow.sub_steps[0].id], ways), _spread(ends, back)
    for place, step in enumerate(workflow.sub_steps):
        if step.id in reached - saved:
            said = f"from step `{step.id}` no route leads to `done`: the loop has no exit"
            _warn(report, ("sub_steps", place), said, "give a route `done`")


def _unchecked_shell(workflow: WorkflowSpec, report: Report) -> None:
    for place, step in enumerate(workflow.sub_steps):
        checked = step.validation or step.payload_keys or step.expect_payload
        if step.kind is Kind.SHELL and not checked and not step.validation_routing:
            said = f"nothing checks what step `{step.id}` did"
            _warn(report, ("sub_steps", place), said, "add `validation`")


def _raw(workflow: WorkflowSpec, report: Report) -> None:
    for place, step in enumerate(workflow.sub_steps):
        where = ("sub_steps", place, "command")
        if step.command and uses_raw(step.command):
            said = f"`| raw` puts a value into the command of step `{step.id}` as program text"
            _warn(report, where, said, "leave it out, or use `env:`", "raw")
        if step.command and (shown := program_from_value(step.command)):
            said = f"in step `{step.id}` the value of `{shown}` decides which program runs"
            _warn(report, where, said, "name the program", shown)


def _policies(workflow: WorkflowSpec, report: Report) -> None:
    places: list[tuple[Where, Any]] = [(("command_policy",), workflow.command_policy)]
    for place, step in enumerate(workflow.sub_steps):
        places.append((("sub_steps", place, "command_policy"), step.command_policy))
    for where, policy in places:
        mode = policy.get("mode") if isinstance(policy, dict) else policy
        if mode in _WIDE_POLICIES:
            hint = "name the commands it needs"
            _warn(report, where, f"policy `{mode}` allows more than any step needs", hint)
        elif mode == "blocklist":
            hint = "an allowlist and the sandbox hold"
            _warn(report, where, "a blocklist is no boundary: most can be got round", hint)


def _offered(workflow: WorkflowSpec, report: Report) -> None:
    places: list[tuple[Where, str, Sequence[str]]] = [
        (("sub_steps", place, "capabilities"), f"step `{step.id}`", step.capabilities)
        for place, step in enumerate(workflow.sub_steps)
    ]
    if any(step.kind == Kind.AGENT and not step.capabilities for step in workflow.sub_steps):
        places.append((("capabilities",), "the workflow", workflow.capabilities))
    for where, who, names in places:
        count = _count_offered(names)
        if count > MAX_OFFERED:
            hint = f"{MAX_OFFERED} are as many as a model can tell apart"
            _warn(report, where, f"{who} offers {count} capabilities", hint)


@cache
def _shipped() -> Registry:
    return load_registry()


def _count_offered(names: Sequence[str]) -> int:
    """How many tools a step offers; of a group, the shipped ones that it names."""
    if not any(sign in name for name in names for sign in "*?["):
        return len(names)
    tools = _shipped()
    known = {tool.name for name in names for tool in tools.matching(name)}
    return len(known) + sum(not tools.matching(name) for name in names)


def _unused_steps_payload(workflow: WorkflowSpec, report: Report) -> None:
    """`on_payload_missing` without a promise that could be broken."""
    for place, step in enumerate(workflow.sub_steps):
        if step.on_payload_missing and not (step.expect_payload or step.payload_keys):
            said = f"step `{step.id}` promises no payload, so none can be missing"
            where = ("sub_steps", place, "on_payload_missing")
            _warn(report, where, said, "add `expect_payload: true` or `payload_keys`")


def _unused_parallel_actions(workflow: WorkflowSpec, report: Report) -> None:
    """`parallel_actions` where no agent of ours acts."""
    for place, step in enumerate(workflow.sub_steps):
        agents = (agent for agent in (step.agent, workflow.agent) if agent is not None)
        outside = any(agent.adapter for agent in agents)
        if step.parallel_actions > 1 and (step.kind is not Kind.AGENT or outside):
            said = f"`parallel_actions` of step `{step.id}` is for the built-in agent alone"
            _warn(report, ("sub_steps", place, "parallel_actions"), said, "leave it out")


def _unused_blackboard(workflow: WorkflowSpec, report: Report) -> None:
    """`blackboard` where nothing runs commands, the step's own or those of its rules."""
    for place, step in enumerate(workflow.sub_steps):
        routed = [rule for route in step.validation_routing for rule in route.rules]
        if rule_types([*step.validation, *routed]) & COMMANDS:
            continue
        agents = [agent for agent in (step.agent, workflow.agent) if agent is not None]
        calls_alone = step.kind is Kind.AGENT and (step.capabilities or workflow.capabilities)
        free = any(agent.mode == "free" or agent.adapter for agent in agents)
        if not step.blackboard or (calls_alone and free):
            continue
        if calls_alone or step.kind not in (Kind.AGENT, Kind.SHELL):
            said = f"step `{step.id}` runs no commands, so it cannot use its blackboard"
            hint = "give its agent `mode: free`" if calls_alone else "leave it out"
            _warn(report, ("sub_steps", place, "blackboard"), said, hint)


_WORKFLOW_CHECKS: tuple[Callable[[WorkflowSpec, Report], None], ...] = (
    _unreachable,
    _no_exit,
    _unchecked_shell,
    _raw,
    _policies,
    _offered,
    _unused_steps_payload,
    _unused_parallel_actions,
    _unused_blackboard,
)


def _unreachable_big_steps(plan: Composition, report: Report) -> None:
    reached: set[int] = set()
    waiting = [0]
    while waiting:
        here = waiting.pop()
        if here in reached:
            continue
        reached.add(here)
        waiting += [n.place for n in _after_big_step(plan, here) if n.place >= 0]
    for place, step in enumerate(plan.big_steps):
        if place not in reached:
            said = f"big step `{step.ref}` is never reached"
            _warn(report, ("big_steps", place), said, "no route leads to it")


def _after_big_step(plan: Composition, place: int) -> Iterator[BigNext]:
    for completed in (True, False):
        yield big_route(plan, BigOutcome(place, completed))
    if plan.big_steps[place].when is not None:
        yield big_route(plan, BigOutcome(place, completed=True, skipped=True))


def _secrets(value: Any, where: Where, report: Report) -> None:
    """Values that look like keys, and values under a name that says so."""
    if isinstance(value, dict):
        for key, inner in value.items():
            at = (*where, key)
            named = len(where) and where[-1] == "env" and is_secret_name(str(key))
            if (
                named
                and isinstance(inner, str)
                and inner
                and "{{" not in inner
                and "$" not in inner
            ):
                said = f"`{key}` is a secret written into the file"
                _warn(report, at, said, "list its name under `secrets:` instead")
            else:
                _secrets(inner, at, report)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            _secrets(inner, (*where, place), report)
    elif isinstance(value, str) and _KNOWN_SHAPES.text(value) != value:
        said = "a value here looks like a secret"
        _warn(report, where, said, "list its name under `secrets:` instead")
