"""Workflow texts: read, written once in canonical form, checked, and changed by typed edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loop.edits import (
    Change,
    DropItem,
    DropKey,
    DropStep,
    Edit,
    JoinSteps,
    PutFallback,
    PutItem,
    PutSteps,
    SetKey,
    StepData,
)
from loop.guards import draft_objections
from loop.order import Order
from loop.values import Acceptance
from openry.capability.arguments import complete
from openry.capability.registry import Registry
from openry.errors import BadArgumentsError, BadFileError, NotFoundError
from openry.orchestrator import canonical, editing, yaml12
from openry.orchestrator.lint import lint
from openry.orchestrator.loader import Loaded, load

#: Hints of lint warnings that a workflow may run with.
_ADVICE = ("add `validation`", "as many as a model can tell apart")
_ROUTES = ("on_success", "on_failure", "on_validation_fail", "on_payload_missing", "on_dropped")


def data_of(text: str) -> dict[str, Any]:
    """The plain data of a workflow text that loads."""
    data = yaml12.plain(yaml12.compose(text, "workflow").data)
    assert isinstance(data, dict), "only texts that load come here"
    return data


def read_workflow(text: str, file: str) -> dict[str, Any]:
    """The plain data of a workflow that a person gives.

    Raises:
        BadFileError: With every problem of the file.
    """
    loaded = load(text, file=file).required()
    if loaded.workflow is None:
        raise BadFileError(f"{file}: is a composition; start from one of its workflows")
    return data_of(text)


def dump(data: Mapping[str, Any]) -> str:
    """Canonical text: the form in which a workflow begins its life here."""
    return canonical.dump(data)


def check_text(text: str, registry: Registry, before: str = "") -> tuple[str, ...]:
    """What keeps a text from being run: loader, lint, and calls that cannot be made.

    What lint said of the text `before` already is no objection: it came from a person.
    """
    loaded = load(text, file="workflow")
    if loaded.errors:
        return tuple(map(str, loaded.errors))
    known = _warnings(load(before, file="workflow")) if before else frozenset()
    found = sorted(_warnings(loaded) - known)
    return (*found, *_bad_calls(data_of(text), registry))


def check_draft(data: Mapping[str, Any], task: str, registry: Registry) -> tuple[str, ...]:
    """What keeps a draft from being run: the above, and what no generated text may do."""
    return check_text(dump(data), registry) or draft_objections(data, task)


def apply(text: str, edits: Sequence[Edit]) -> str:
    """`text` with the edits carried out; lines that none of them means stay byte for byte.

    Raises:
        BadFileError: An edit names a step or a place that is not there, or cannot be written.
    """
    for edit in edits:
        for change in edit.changes(_step(text, edit.step)):
            try:
                text = _carry_out(text, change)
            except NotFoundError as error:
                raise BadFileError(str(error)) from error
    return text


def agent_step_data(
    name: str, order: Order, acceptance: Acceptance, tools: Sequence[str] = ()
) -> dict[str, Any]:
    """A workflow of one agent step, for a task that no capability fits; `tools` are offered."""
    files = [rule for rule in acceptance.hard if str(rule.get("type")).startswith("file_")]
    step: StepData = {
        "id": "work",
        "kind": "agent",
        "description": order.task,
        "capabilities": list(tools) or ["files.*", "text.*", "data.*"],
        "max_sub_step_retries": 1,
        "on_failure": "abort",
    }
    if files:
        step["validation"] = files
    return {"name": name, "description": order.task, "sub_steps": [step]}


def _warnings(loaded: Loaded) -> frozenset[str]:
    """What lint finds wrong, without what is mere advice."""
    return frozenset(
        each.message for each in lint(loaded) if not any(word in each.hint for word in _ADVICE)
    )


def _bad_calls(data: Mapping[str, Any], registry: Registry) -> Iterator[str]:
    for step in data.get("sub_steps") or []:
        name = step.get("capability")
        if not name:
            continue
        args = step.get("args") or {}
        try:
            tool = registry.get(str(name))
            if not any("{{" in str(value) or "${" in str(value) for value in args.values()):
                complete(tool, args)
        except NotFoundError as error:
            yield f"step `{step.get('id')}`: {error}"
        except BadArgumentsError as error:
            yield from (f"step `{step.get('id')}`: {problem}" for problem in error.problems)


def _step(text: str, step_id: str) -> StepData:
    steps = data_of(text).get("sub_steps") or []
    found = next((step for step in steps if str(step.get("id")) == step_id), None)
    if found is None:
        known = ", ".join(f"`{step.get('id')}`" for step in steps)
        raise BadFileError(f"no step is called `{step_id}` (there are {known})")
    return dict(found)


def _carry_out(text: str, change: Change) -> str:
    match change:
        case SetKey(step, key, value):
            return _set(text, step, key, value)
        case DropKey(step, key):
            return editing.remove_value(text, step, key)
        case PutItem(step, key, value, index):
            place = len(_step(text, step).get(key) or []) if index is None else index
            return editing.set_value(text, step, (key, place), value)
        case DropItem(step, key, index):
            alone = len(_step(text, step).get(key) or []) == 1 and index == 0
            return editing.remove_value(text, step, key if alone else (key, index))
        case PutSteps(step, steps, place):
            return _put_steps(text, step, steps, place)
        case DropStep(step):
            return _drop_step(text, step)
        case JoinSteps(step, other):
            return _join_steps(text, step, other)
        case PutFallback(step, data):
            return _put_fallback(text, step, data)


def _set(text: str, step: str, key: str, value: Any) -> str:
    """Set a key; of a mapping or an equally long list only what differs."""
    old = _step(text, step).get(key)
    if isinstance(old, dict) and isinstance(value, dict) and old and value:
        for gone in [name for name in old if name not in value]:
            text = editing.remove_value(text, step, (key, gone))
        for name, inner in value.items():
            if name not in old or old[name] != inner or type(old[name]) is not type(inner):
                text = editing.set_value(text, step, (key, name), inner)
        return text
    if isinstance(old, list) and isinstance(value, list) and len(old) == len(value) > 0:
        for place, (before, after) in enumerate(zip(old, value, strict=True)):
            if before != after:
                text = editing.set_value(text, step, (key, place), after)
        return text
    return editing.set_value(text, step, key, value)


def _put_steps(text: str, step_id: str, steps: Sequence[StepData], place: str) -> str:
    if place == "instead":
        text = editing.replace_step(text, step_id, steps[0])
        return _behind(text, steps[0]["id"], steps[1:])
    ids = [str(step["id"]) for step in data_of(text)["sub_steps"]]
    if place == "before":
        here = ids.index(step_id)
        text = _rerouted(text, step_id, str(steps[0]["id"]))
        return _behind(text, ids[here - 1] if here else None, steps)
    ahead = _step(text, step_id).get("on_success")
    if ahead is not None:
        text = editing.set_value(text, step_id, "on_success", steps[0]["id"])
        steps = [*steps[:-1], {**steps[-1], "on_success": ahead}]
    return _behind(text, step_id, steps)


def _behind(text: str, after: str | None, steps: Sequence[StepData]) -> str:
    for step in steps:
        text = editing.insert_step(text, after, dict(step))
        after = str(step["id"])
    return text


def _drop_step(text: str, step_id: str) -> str:
    target = _after(text, step_id)
    return editing.remove_step(_rerouted(text, step_id, target), step_id)


def _put_fallback(text: str, step_id: str, data: StepData) -> str:
    """Success passes the new step by; failure leads to it, and it leads to where success does."""
    target = _after(text, step_id)
    text = editing.set_value(text, step_id, "on_success", target)
    text = editing.set_value(text, step_id, "on_failure", str(data["id"]))
    return editing.insert_step(text, step_id, {**data, "on_success": target})


#: What two steps must have in common to be made one: who acts, and with which powers.
_SHARED = (
    "kind", "agent", "capabilities", "sandbox", "command_policy", "secrets", "env", "on_failure",
    "on_validation_fail", "on_payload_missing", "on_dropped", "model_ladder", "payload_from",
    "parallel_actions", "blackboard",
)  # fmt: skip
#: What cannot be joined at all.
_ALONE = ("for_each", "validation_routing", "prompt_blocks", "overflow_strategy")


def _join_steps(text: str, first_id: str, second_id: str) -> str:
    first, second = _step(text, first_id), _step(text, second_id)
    ids = [str(step["id"]) for step in data_of(text)["sub_steps"]]
    if ids.index(second_id) != ids.index(first_id) + 1 or first.get("on_success"):
        raise BadFileError(f"step `{second_id}` does not follow `{first_id}`")
    led = [step["id"] for step in data_of(text)["sub_steps"] if second_id in _targets(step)]
    if led:
        raise BadFileError(f"step `{led[0]}` leads to `{second_id}`, so it stays by itself")
    unlike = [key for key in _SHARED if first.get(key) != second.get(key)]
    unlike += [key for key in _ALONE if key in first or key in second]
    if unlike or first.get("kind", "agent") not in ("agent", "shell"):
        why = f"their `{unlike[0]}` stands in the way" if unlike else "they are calls"
        raise BadFileError(f"steps `{first_id}` and `{second_id}` cannot be made one: {why}")
    text = editing.remove_step(text, second_id)
    for key, value in _joined(first, second).items():
        text = _set(text, first_id, key, value)
    return text


def _targets(step: StepData) -> list[Any]:
    routes = step.get("validation_routing") or []
    ways = [route.get(key) for route in routes for key in ("on_match", "on_mismatch")]
    return [*ways, *(step.get(key) for key in _ROUTES)]


def _joined(first: StepData, second: StepData) -> StepData:
    """The keys of the first step that change when the second becomes a part of it."""
    shell = first.get("kind") == "shell"
    key = "command" if shell else "description"
    parts = [str(each.get(key) or "") for each in (first, second)]
    rules = list(first.get("validation") or [])
    rules += [rule for rule in second.get("validation") or [] if rule not in rules]
    limits = [each.get("timeout_seconds") for each in (first, second)]
    keys = dict.fromkeys((*(first.get("payload_keys") or ()), *(second.get("payload_keys") or ())))
    found: StepData = {key: _both(parts) if shell else "\n".join(parts)}
    if rules:
        found["validation"] = rules
    if all(isinstance(each, int | float) for each in limits):
        found["timeout_seconds"] = sum(limits)
    if keys:
        found["payload_keys"] = list(keys)
    if second.get("expect_payload") and not first.get("expect_payload"):
        found["expect_payload"] = True
    if second.get("on_success"):
        found["on_success"] = second["on_success"]
    return found


def _both(commands: Sequence[str]) -> str:
    """Two commands as one that fails when either does, each in a shell of its own."""
    if any("\n" in each or "#" in each for each in commands):
        return " && ".join(f"(\n{each.rstrip()}\n)" for each in commands) + "\n"
    return " && ".join(f"( {each.strip()} )" for each in commands)


def _after(text: str, step_id: str) -> str:
    """Where success of a step leads."""
    ids = [str(step["id"]) for step in data_of(text)["sub_steps"]]
    here = ids.index(step_id)
    following = ids[here + 1] if here + 1 < len(ids) else "done"
    return str(_step(text, step_id).get("on_success") or following)


def _rerouted(text: str, old: str, new: str) -> str:
    """Every other step's route to `old` leads to `new`."""
    for step in data_of(text)["sub_steps"]:
        for key in _ROUTES:
            if step.get(key) == old and str(step["id"]) != old:
                text = editing.set_value(text, str(step["id"]), key, new)
    return text
