"""The frozen plan: what an instance was started with, as plain data with its SHA-256.

Editing a file never changes a running instance: the engine reads only what stands here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from openry import __version__
from openry.errors import BadFileError, NotFoundError, StorageError, UsageError
from openry.models import Problem
from openry.orchestrator import yaml12
from openry.orchestrator.loader import Loaded
from openry.orchestrator.spec import (
    BigStep,
    Composition,
    NotifySpec,
    WorkflowSpec,
    plan_data,
    plan_hash,
)
from openry.sandbox.hosts import HOST_HINT, is_pattern

#: Finds the workflow that a composition refers to by name.
Resolve = Callable[[str], Loaded]
FORMAT = 1


@dataclass(frozen=True)
class Plan:
    """One workflow, or a composition with the workflows its big steps name.

    Attributes:
        payload: What the first step inherits.
        steps: Payloads of steps that are not part of the plan, for a step replayed alone.
    """

    composition: Composition | None
    workflows: Mapping[str, WorkflowSpec]
    payload: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.composition.name if self.composition else next(iter(self.workflows))

    @property
    def kind(self) -> str:
        return "composition" if self.composition else "workflow"

    @cached_property
    def big_steps(self) -> tuple[BigStep, ...]:
        """A workflow started alone is a composition of one."""
        if self.composition:
            return tuple(self.composition.big_steps)
        return (BigStep.model_construct(ref=self.name),)

    @cached_property
    def as_composition(self) -> Composition:
        if self.composition:
            return self.composition
        return Composition.model_construct(name=self.name, big_steps=self.big_steps)

    @property
    def notify(self) -> NotifySpec | None:
        """Whom to tell: as the composition says, else its first workflow."""
        if self.composition is not None and self.composition.notify is not None:
            return self.composition.notify
        return self.workflow_at(0).notify

    def workflow_at(self, place: int) -> WorkflowSpec:
        return self.workflows[self.big_steps[place].ref]

    def to_text(self) -> str:
        """Canonical JSON: equal plans, equal texts."""
        data = {
            "format": FORMAT,
            "interpreter": __version__,
            "composition": plan_data(self.composition) if self.composition else None,
            "workflows": {name: plan_data(spec) for name, spec in self.workflows.items()},
            "payload": dict(self.payload),
            "steps": dict(self.steps),
        }
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def with_policies(plan: Plan, folders: Sequence[Path]) -> Plan:
    """The plan with what its command policies say in it: a file that changes later changes nothing.

    Args:
        folders: Where policies are looked for by name, after the shipped ones.

    Raises:
        UsageError: With every policy that cannot be read or held to.
    """
    problems: list[str] = []

    def frozen(policy: Any, whose: str) -> Any:
        if policy is None:
            return None
        from openry.policy.load import policy_data

        try:
            wrong = next((one for one in _hosts(policy, folders) if not is_pattern(one)), "")
            if wrong:
                said = f"`{wrong}` in its `command_policy` is no host; {HOST_HINT}"
                problems.append(f"{whose}: {said}")
            return policy_data(policy, folders=folders)
        except (BadFileError, NotFoundError) as error:
            said = "; ".join(str(error).splitlines())
            problems.append(f"{whose}: its `command_policy` cannot be read: {said}")
            return policy

    workflows = {}
    for name, spec in plan.workflows.items():
        steps = [
            step.model_copy(
                update={
                    "command_policy": frozen(step.command_policy, f"step `{step.id}` of `{name}`")
                }
            )
            for step in spec.sub_steps
        ]
        own = frozen(spec.command_policy, f"`{name}`")
        update = {"command_policy": own, "sub_steps": type(spec.sub_steps)(steps)}
        workflows[name] = spec.model_copy(update=update)
    if problems:
        raise UsageError("; ".join(problems))
    return replace(plan, workflows=workflows)


def _hosts(policy: Any, folders: Sequence[Path]) -> Sequence[str]:
    from openry.policy import load_policy

    return load_policy(policy, folders=folders).hosts or ()


def sha256_of(text: str) -> str:
    """The plan's hash, whatever the order of its keys."""
    return plan_hash(json.loads(text))


def read_plan(text: str) -> Plan:
    """The plan that an instance was started with.

    Raises:
        StorageError: A newer program froze it.
    """
    data = json.loads(text)
    if data["format"] > FORMAT:
        raise StorageError(
            f"this instance was started by openry {data['interpreter']}, whose plans openry"
            f" {__version__} cannot read; upgrade openry"
        )
    composition = data["composition"]
    return Plan(
        Composition.model_validate(composition) if composition else None,
        {name: WorkflowSpec.model_validate(spec) for name, spec in data["workflows"].items()},
        data["payload"],
        data["steps"],
    )


def refs_of(loaded: Loaded) -> Iterator[tuple[int, str]]:
    """The workflows that a composition names, each once, with its place among the big steps."""
    seen: set[str] = set()
    for place, step in enumerate(loaded.composition.big_steps if loaded.composition else ()):
        if step.ref not in seen:
            yield place, step.ref
        seen.add(step.ref)


def no_workflow(loaded: Loaded, place: int, error: Exception) -> Problem:
    """A big step's workflow that cannot be found, where it is named."""
    document = yaml12.compose(loaded.text, loaded.file)
    line = document.line(("big_steps", place, "ref")) or document.line(("big_steps", place))
    return Problem(loaded.file, line, str(error))


def make_plan(loaded: Loaded, resolve: Resolve, payload: Mapping[str, Any]) -> Plan:
    """Freeze what was loaded, with every workflow it refers to.

    Raises:
        BadFileError: With every problem of every file concerned, and every big step that names a
            workflow nobody has.
    """
    loaded.required()
    if loaded.workflow is not None:
        return Plan(None, {loaded.workflow.name: loaded.workflow}, payload)
    composition = loaded.composition
    if composition is None:
        raise BadFileError(f"{loaded.file}: neither a workflow nor a composition")
    workflows: dict[str, WorkflowSpec] = {}
    problems: list[str] = []
    for place, ref in refs_of(loaded):
        try:
            found = resolve(ref)
        except NotFoundError as error:
            problems.append(str(no_workflow(loaded, place, error)))
            continue
        problems += map(str, found.errors)
        if found.workflow is not None:
            workflows[ref] = found.workflow
        elif not found.errors:
            problems.append(f"{found.file}: `{ref}` is a composition; a big step is a workflow")
    if problems:
        raise BadFileError("", tuple(problems))
    return Plan(composition, workflows, payload)
