"""Turn the other readings of a task into proposals: the smallest edits that lead to each.

A reading that differs in the calls of some steps becomes `to_capability` edits of just those; one
with other steps is a redraft and recorded as one. Beside a workflow that a person wrote, only the
steps that write the same files are offered another call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loop.contract import checks_for
from loop.edits import Edit, Proposal, StepData, ToCapability
from loop.values import Candidate, RuleData
from openry.capability.registry import Registry

#: More steps than this to change is another draft, not a mended one.
MAX_EDITS = 3
#: From a candidate to the plain data of its workflow.
MakeData = Callable[[Candidate], Mapping[str, Any]]
#: From plain data of a workflow to its text.
Dump = Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Current:
    """The workflow as it stands, and whether it grew from a reading of ours."""

    data: Mapping[str, Any]
    drafted: bool

    @property
    def steps(self) -> Sequence[StepData]:
        return [dict(step) for step in self.data["sub_steps"]]


def alternatives(
    current: Current, candidates: Sequence[Candidate], make: MakeData, dump: Dump
) -> Iterator[Proposal]:
    """A proposal for each candidate, in rank order."""
    for rank, candidate in enumerate(candidates):
        data = make(candidate)
        origin = f"candidate:{rank + 1}"
        edits = _same_shape(current.steps, data["sub_steps"])
        if current.drafted and edits is not None and len(edits) <= MAX_EDITS:
            if edits:
                yield Proposal(edits, origin, edits[0].why)
        elif current.drafted:
            why = "another reading of the task, with other steps"
            yield Proposal((), origin, why, redraft=dump(data))


def same_results(
    current: Current,
    blamed: Sequence[str],
    candidates: Sequence[Candidate],
    make: MakeData,
    registry: Registry,
) -> Iterator[Proposal]:
    """For each blamed step, the calls by which some reading writes the same files.

    Args:
        blamed: Ids of steps, the likeliest culprit first.
    """
    seen: set[str] = set()
    for step_id in blamed:
        step = next((s for s in current.steps if s["id"] == step_id), None)
        if step is None:
            continue
        for rank, candidate in enumerate(candidates):
            made = make(candidate)["sub_steps"]
            for goal, new in zip(candidate.goals, made, strict=True):
                if not _writes(step, goal.outputs) or _call(step) == _call(new):
                    continue
                checks = checks_for(step, new["capability"], new.get("args") or {}, registry)
                edit = _to(step, new, "this call writes the same file", checks)
                key = edit.model_dump_json(exclude={"why"})
                if key not in seen:
                    seen.add(key)
                    yield Proposal((edit,), f"candidate:{rank + 1}", edit.why)


def writes(step: Mapping[str, Any], registry: Registry) -> tuple[str, ...]:
    """The files that a capability step's arguments say it writes."""
    name = step.get("capability")
    if not name or name not in registry:
        return ()
    args = step.get("args") or {}
    values = (args.get(each) for each in registry.get(name).with_role("output"))
    return tuple(str(value).removeprefix("./") for value in values if isinstance(value, str))


def _same_shape(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> tuple[Edit, ...] | None:
    """Edits that turn `old` into `new` when they differ in their calls only; else None."""
    if [step["id"] for step in old] != [step["id"] for step in new]:
        return None
    if any(step.get("kind") != "capability" for step in (*old, *new)):
        return None
    pairs = [
        (one, other) for one, other in zip(old, new, strict=True) if _call(one) != _call(other)
    ]
    return tuple(
        _to(one, other, _difference(one, other), _new_checks(one, other)) for one, other in pairs
    )


def _to(
    step: Mapping[str, Any],
    new: Mapping[str, Any],
    why: str,
    checks: tuple[RuleData, ...] | None,
) -> ToCapability:
    return ToCapability(
        step=step["id"],
        name=new["capability"],
        args=dict(new.get("args") or {}),
        validation=checks,
        why=why,
    )


def _new_checks(step: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[RuleData, ...] | None:
    checks = tuple(new.get("validation") or ())
    return None if checks == tuple(step.get("validation") or ()) else checks


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    if old.get("capability") != new.get("capability"):
        return f"`{new.get('capability')}` may be meant instead of `{old.get('capability')}`"
    before, after = old.get("args") or {}, new.get("args") or {}
    keys = [key for key in (*before, *after) if before.get(key) != after.get(key)]
    shown = ", ".join(dict.fromkeys(f"`{key}`" for key in keys))
    return f"{shown} may be meant otherwise"


def _writes(step: Mapping[str, Any], outputs: Sequence[str]) -> bool:
    """Whether a step names one of `outputs` where it acts."""
    args = step.get("args") or {}
    text = f"{step.get('command') or ''} {step.get('description') or ''}".replace("./", "")
    values = [value for value in args.values() if isinstance(value, str)]
    return any(name in values or name in text for name in outputs)


def _call(step: Mapping[str, Any]) -> tuple[Any, Any]:
    return step.get("capability"), step.get("args") or {}
