"""What no generated change may do, whatever its figures: judged in plain code, on plain data.

A guard compares a workflow with the one it came from and returns what is wrong in words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from loop.values import RuleData

#: From a step's data to the rules that its call ensures by contract.
Contract = Callable[[Mapping[str, Any]], Sequence[RuleData]]
#: From the id of a step that was split or merged to those that stand for it.
Heirs = Mapping[str, Sequence[str]]
_NONE: Heirs = MappingProxyType({})
_FAILURE_ROUTES = ("on_failure", "on_validation_fail", "on_payload_missing", "on_dropped")
#: What may never grow without a person: a new step, or a changed one, may not name them anew.
_POWERS = ("sandbox", "command_policy", "secrets", "env", "agent", "model_ladder", "blackboard")
_HIDING = (
    (re.compile(r"\|\|\s*(true|:|exit\s+0)(\s|;|\)|$)"), "hides a failure with `|| true`"),
    (re.compile(r";\s*(true|:|exit\s+0)\s*$"), "ends with a command that cannot fail"),
    (re.compile(r"(2|&)>\s*/dev/null|2>&-"), "throws its error messages away"),
    (re.compile(r"(^|[\s;])set\s+\+e"), "turns failing off with `set +e`"),
    (re.compile(r"(^|[\s;])trap\s"), "sets a trap, which can change how it ends"),
)
_ELSEWHERE = re.compile(r"\b(?:https?|ftps?|sftp|ssh|wss?)://[^\s'\"]+|/dev/(?:tcp|udp)/\S+")
_CONSTANT = re.compile(
    r"^\s*(echo|printf)\s+(?P<text>'[^']*'|\"[^\"$`]*\"|[^\s|;&<>$`]+)(\s+[^|;&<>$`]*)?"
    r"\s*>>?\s*\S+\s*$"
)
_WORD = re.compile(r"[\w./-]+[\w-]")
_PRESETS = {"strict": 0, "moderate": 1, "permissive": 2}


def objections(
    parent: Mapping[str, Any],
    child: Mapping[str, Any],
    *,
    task: str,
    results: Sequence[str] = (),
    contract: Contract = lambda step: (),
    heirs: Heirs = _NONE,
    reaches_out: Callable[[str], bool] = lambda capability: False,
) -> tuple[str, ...]:
    """Why `child` may not replace `parent` without a person; empty when nothing speaks against it.

    Args:
        parent: Plain data of the workflow as it was.
        child: Plain data of the workflow as it would be.
        task: The person's words; a constant that stands there is meant.
        results: Files that the task asks for.
        contract: The rules that a step's call itself ensures; they go when the call goes.
        heirs: Steps that stand together for one that was split or merged.
        reaches_out: Whether a capability acts beyond the workspace, by its name.
    """
    old = {step["id"]: step for step in _steps(parent)}
    new = {step["id"]: step for step in _steps(child)}
    found: list[str] = _grown_powers(parent, child, "the workflow")
    for step in _steps(child):
        before = old.get(step["id"])
        if before == step:
            continue
        found += [f"step `{step['id']}` {what}" for what in _step_objections(step, before, task)]
        found += _grown_powers(before or {}, step, f"step `{step['id']}`")
        found += _own_evidence(step, before, (*results, *_WORD.findall(task)))
        found += _reaching(step, parent, reaches_out)
    for step_id, before in old.items():
        stands = [new[each] for each in heirs.get(step_id, (step_id,)) if each in new]
        if not stands:
            found.append(f"step `{step_id}` would be gone")
        elif stands != [before]:
            found += _weaker(before, stands, contract)
    return (*found, *_avoidable_checks(parent, child, heirs))


def _weaker(
    before: Mapping[str, Any], stands: Sequence[Mapping[str, Any]], contract: Contract
) -> list[str]:
    """What the steps that stand for `before` no longer hold to."""
    rules = [rule for step in stands for rule in step.get("validation") or []]
    keys = {key for step in stands for key in step.get("payload_keys") or []}
    place = f"step `{before['id']}`"
    found = [
        f"{place} would accept what `{_brief(rule)}` rejected"
        for rule in lost_rules(before, {**stands[-1], "validation": rules}, contract)
    ]
    if before.get("expect_payload") and not any(step.get("expect_payload") for step in stands):
        found.append(f"{place} would no longer have to report")
    lost = [key for key in before.get("payload_keys") or [] if key not in keys]
    found += [f"{place} would no longer have to report `{key}`" for key in lost]
    skips = [step for step in stands if _skips_items(step) and not _skips_items(before)]
    return [*found, *(f"step `{step['id']}` would skip items that fail" for step in skips)]


def _skips_items(step: Mapping[str, Any]) -> bool:
    each = step.get("for_each")
    return isinstance(each, Mapping) and each.get("on_item_failure") == "skip"


def _reaching(
    step: Mapping[str, Any], parent: Mapping[str, Any], reaches_out: Callable[[str], bool]
) -> list[str]:
    """Tools that act beyond the workspace, and that no step was given before."""
    known = {name for each in _steps(parent) for name in _tools(each)}
    new = [name for name in _tools(step) if name not in known and reaches_out(name)]
    return [
        f"step `{step['id']}` would use `{name}`, which reaches beyond the folder" for name in new
    ]


def _tools(step: Mapping[str, Any]) -> list[str]:
    return [
        str(name) for name in (step.get("capability"), *(step.get("capabilities") or ())) if name
    ]


def _avoidable_checks(
    parent: Mapping[str, Any], child: Mapping[str, Any], heirs: Heirs
) -> list[str]:
    """Steps that no run could pass by, and that some run now could.

    A step may be passed by only through another that holds up all its rules.
    """
    found = []
    for step in _steps(parent):
        if _avoidable(parent, {step["id"]}):
            continue
        rules = step.get("validation") or []
        keepers = set(heirs.get(step["id"], (step["id"],))[-1:])
        if rules:
            keepers |= {
                other["id"]
                for other in _steps(child)
                if all(
                    any(stricter(rule, new) for new in other.get("validation") or [])
                    for rule in rules
                )
            }
        if _avoidable(child, keepers):
            found.append(f"a run could end well without step `{step['id']}` and its checks")
    return found


def _avoidable(workflow: Mapping[str, Any], keepers: set[str]) -> bool:
    """Whether some run is done without the success of any of `keepers`."""
    steps = list(_steps(workflow))
    following = {step["id"]: after["id"] for step, after in pairwise(steps)}
    by_id = {step["id"]: step for step in steps}
    open_, seen = [step["id"] for step in steps[:1]], set[str]()
    while open_:
        here = open_.pop()
        if here == "done":
            return True
        if here in seen or here not in by_id:
            continue
        seen.add(here)
        step = by_id[here]
        open_ += [str(step[key]) for key in _FAILURE_ROUTES if step.get(key)]
        if here not in keepers:
            ways = step.get("validation_routing") or []
            open_ += [str(way.get(key)) for way in ways for key in ("on_match", "on_mismatch")]
            open_.append(str(step.get("on_success") or following.get(here, "done")))
    return False


def draft_objections(draft: Mapping[str, Any], task: str) -> tuple[str, ...]:
    """Why a draft may not be run: it hides failures, writes constants, or takes powers."""
    found = _grown_powers({}, draft, "the workflow")
    for step in _steps(draft):
        place = f"step `{step.get('id')}`"
        found += [f"{place} {what}" for what in _step_objections(step, None, task)]
        found += _grown_powers({}, step, place)
    return tuple(found)


def lost_rules(
    before: Mapping[str, Any], after: Mapping[str, Any], contract: Contract
) -> tuple[RuleData, ...]:
    """Rules of `before` that no rule of `after` holds up: equal or provably stricter.

    What only the old call's contract said may go with that call.
    """
    new = list(after.get("validation") or [])
    replaced = _call(before) != _call(after)
    own = list(contract(before)) if replaced else []
    return tuple(
        rule
        for rule in before.get("validation") or []
        if rule not in own and not any(stricter(rule, other) for other in new)
    )


def stricter(old: RuleData, new: RuleData) -> bool:
    """Whether `new` provably accepts nothing that `old` rejects. Unsure means no.

    >>> stricter({"type": "file_exists", "path": "a"}, {"type": "file_contains", "path": "a",
    ...     "contains": "x"})
    True
    >>> stricter({"type": "file_contains", "path": "a", "contains": "ab"},
    ...     {"type": "file_contains", "path": "a", "contains": "a"})
    False
    """
    if old == new:
        return True
    kind = old.get("type")
    return kind in _STRICTER and _STRICTER[kind](old, new)


def hides_failure(command: str) -> tuple[str, ...]:
    """In which ways a shell command keeps its own failure from being seen."""
    return tuple(words for pattern, words in _HIDING if pattern.search(command))


def writes_constant(command: str) -> str:
    """The literal that a command does nothing but write into a file; else empty."""
    match = _CONSTANT.match(command)
    return match["text"].strip("'\"") if match else ""


def _steps(workflow: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return [step for step in workflow.get("sub_steps") or [] if isinstance(step, Mapping)]


def _step_objections(
    step: Mapping[str, Any], before: Mapping[str, Any] | None, task: str
) -> Iterable[str]:
    was = "" if before is None else str(before.get("command") or "")
    command = str(step.get("command") or "")
    yield from (words for words in hides_failure(command) if words not in hides_failure(was))
    for address in _ELSEWHERE.findall(command):
        if address not in was and address not in task:
            yield f"names `{address[:60]}`, which the task does not"
    constant = writes_constant(command)
    if step.get("capability") == "write_file":
        constant = str((step.get("args") or {}).get("content") or "").strip()
    if constant and constant not in task:
        yield f"writes the constant `{constant[:40]}`, which the task does not name"


def _grown_powers(before: Mapping[str, Any], after: Mapping[str, Any], place: str) -> list[str]:
    found = []
    for key in _POWERS:
        new, old = after.get(key), before.get(key)
        if new is None or new == old or (key == "command_policy" and _narrower(old, new)):
            continue
        found.append(f"{place} changes `{key}`, which only a person may")
    return found


def _narrower(old: Any, new: Any) -> bool:
    """Whether preset `new` lets through no more than `old`; a missing one is `moderate`."""
    if not isinstance(new, str) or not isinstance(old, str | None):
        return False
    ranks = _PRESETS.get(new), _PRESETS.get(old or "moderate")
    return None not in ranks and ranks[0] <= ranks[1]  # type: ignore[operator]  # both are int


def _own_evidence(
    step: Mapping[str, Any], before: Mapping[str, Any] | None, results: Sequence[str]
) -> list[str]:
    """New checks on a file that only this step's command writes and nobody asked for."""
    command = str(step.get("command") or "")
    old = (before or {}).get("validation") or []
    return [
        f"step `{step['id']}` would be judged by `{path}`, which it writes itself as evidence"
        for rule in step.get("validation") or []
        if rule not in old
        and (path := str(rule.get("path") or ""))
        and path not in results
        and re.search(rf"(>>?|touch|tee)\s*['\"]?(\./)?{re.escape(path)}", command)
    ]


def _call(step: Mapping[str, Any]) -> tuple[Any, ...]:
    keys = ("kind", "capability", "args", "command", "description")
    return tuple(repr(step.get(key)) for key in keys)


def _brief(rule: RuleData) -> str:
    rest = " ".join(f"{k}={v}" for k, v in rule.items() if k != "type")
    return f"{rule.get('type')} {rest}"[:80].strip()


def _same(key: str, old: RuleData, new: RuleData) -> bool:
    return old.get(key) is not None and old.get(key) == new.get(key)


def _file_exists(old: RuleData, new: RuleData) -> bool:
    reads = {"file_contains", "file_size_greater_than", "file_matches_schema", "sorted", "relation"}
    return new.get("type") in reads and _path(old) in (new.get("path"), new.get("output"))


def _path(rule: RuleData) -> Any:
    return rule.get("path")


def _file_contains(old: RuleData, new: RuleData) -> bool:
    words, more = old.get("contains"), new.get("contains")
    return (
        new.get("type") == "file_contains"
        and _same("path", old, new)
        and isinstance(words, str)
        and isinstance(more, str)
        and words in more
    )


def _file_size(old: RuleData, new: RuleData) -> bool:
    place = _same("path", old, new) or _same("path_key", old, new)
    same = new.get("type") == "file_size_greater_than" and place
    return same and _number(new.get("min_bytes")) >= _number(old.get("min_bytes"))


def _has_key(old: RuleData, new: RuleData) -> bool:
    kind = str(new.get("type"))
    return kind.startswith("payload_") and kind != "payload_has_key" and _same("key", old, new)


def _matches(old: RuleData, new: RuleData) -> bool:
    value = new.get("value")
    if new.get("type") != "payload_value_equals" or not _same("key", old, new):
        return False
    try:
        return isinstance(value, str) and re.search(str(old.get("regex")), value) is not None
    except re.error:
        return False


def _in_set(old: RuleData, new: RuleData) -> bool:
    if not _same("key", old, new) or old.get("mode", "allow") != "allow":
        return False
    allowed = old.get("values") or []
    if new.get("type") == "payload_value_equals":
        return new.get("value") in allowed
    same = new.get("type") == "payload_value_in_set" and new.get("mode", "allow") == "allow"
    return same and all(value in allowed for value in new.get("values") or [])


def _count(old: RuleData, new: RuleData) -> bool:
    if new.get("type") != "files_count" or not _same("glob", old, new):
        return False
    low = _number(new.get("min"), 0) >= _number(old.get("min"), 0)
    return low and _number(new.get("max"), 1e18) <= _number(old.get("max"), 1e18)


def _number(value: Any, missing: float = 0.0) -> float:
    return float(value) if isinstance(value, int | float) else missing


_STRICTER = {
    "file_exists": _file_exists,
    "file_contains": _file_contains,
    "file_size_greater_than": _file_size,
    "payload_has_key": _has_key,
    "payload_value_matches": _matches,
    "payload_value_in_set": _in_set,
    "files_count": _count,
}
