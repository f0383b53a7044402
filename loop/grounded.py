"""Turn a reading into the data of a workflow: one capability step for each goal."""

from __future__ import annotations

from typing import Any

from loop.values import Candidate, Goal
from openry.capability import ensures_for
from openry.capability.registry import Registry


def workflow_data(
    candidate: Candidate, registry: Registry, *, name: str, task: str
) -> dict[str, Any]:
    """Plain data of a workflow file; every step checks its capability's contract.

    A step that fails ends the workflow: its call is the same however often it is made, so trying
    again is the loop's business, with another call.
    """
    return {
        "name": name,
        "description": task,
        "sub_steps": [
            _step(goal, number, registry) for number, goal in enumerate(candidate.goals, 1)
        ],
    }


def _step(goal: Goal, number: int, registry: Registry) -> dict[str, Any]:
    tool = registry.get(goal.tool)
    checks: list[dict[str, Any]] = [{"type": "file_exists", "path": path} for path in goal.outputs]
    checks += [rule for rule in ensures_for(tool, goal.args) if rule not in checks]
    step: dict[str, Any] = {
        "id": f"s{number}",  # no tool in it: an edit may give the step another one
        "kind": "capability",
        "description": goal.text,
        "capability": goal.tool,
        "args": dict(goal.args),
        "on_failure": "abort",
        "on_validation_fail": "abort",
    }
    if checks:
        step["validation"] = checks
    return step
