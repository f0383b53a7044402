"""The rules that a capability call ensures by itself; with another call they give way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loop.values import RuleData
from openry.capability.registry import Registry
from openry.capability.rendering import ensures_for
from openry.errors import NotFoundError


def contract_of(step: Mapping[str, Any], registry: Registry) -> tuple[RuleData, ...]:
    """The post-conditions of a step's call; none when it is no capability step."""
    name = step.get("capability")
    if not name or name not in registry:
        return ()
    return call_contract(str(name), step.get("args") or {}, registry)


def call_contract(name: str, args: Mapping[str, Any], registry: Registry) -> tuple[RuleData, ...]:
    """The post-conditions of one call: its outputs exist, and what the capability ensures."""
    tool = registry.get(name)
    outputs = (args.get(each) for each in tool.with_role("output"))
    exist = [{"type": "file_exists", "path": path} for path in outputs if isinstance(path, str)]
    return (*exist, *(rule for rule in ensures_for(tool, args) if rule not in exist))


def checks_for(
    step: Mapping[str, Any], name: str, args: Mapping[str, Any], registry: Registry
) -> tuple[RuleData, ...] | None:
    """The step's checks once it makes another call: the old call's own ones give way to the new's.

    Other rules stay as they are. None when nothing changes.
    """
    old = list(step.get("validation") or [])
    before = contract_of(step, registry)
    if not any(rule in before for rule in old):
        return None
    after = call_contract(name, args, registry)
    kept = [rule for rule in old if rule not in before or rule in after]
    checks = (*kept, *(rule for rule in after if rule not in kept and _had_like(rule, before, old)))
    return None if list(checks) == old else checks


def _had_like(rule: RuleData, before: tuple[RuleData, ...], old: list[RuleData]) -> bool:
    """Whether the old call's rule of the same type was among the step's checks."""
    same = [each for each in before if each.get("type") == rule.get("type")]
    return not same or any(each in old for each in same)


#: Effects that do not stay in the folder, or cannot be taken back.
_BEYOND = ("network", "irreversible")


def reaches_out(pattern: str, registry: Registry) -> bool:
    """Whether a capability, or any that a pattern means, acts beyond the folder or for good."""
    try:
        tools = registry.scope([pattern])
    except NotFoundError:
        return False
    return any(tool.side_effects in _BEYOND for tool in tools)
