"""Rules about the payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openry.orchestrator import rules as R  # noqa: N812 - the shapes, by one letter
from openry.orchestrator.rules_scene import (
    MISSING,
    CannotEvaluate,
    Finding,
    Scene,
    as_json,
    look_up,
    search,
    shown,
)


def has_key(rule: R.PayloadHasKey, scene: Scene) -> Finding:
    found = look_up(scene.payload, rule.key)
    keys = ", ".join(map(str, list(scene.payload)[:20])) or "nothing"
    message = f"the payload has no `{rule.key}`"
    return Finding(found is not MISSING, f"key `{rule.key}`", f"keys: {keys}", message)


def value_matches(rule: R.PayloadValueMatches, scene: Scene) -> Finding:
    value = scene.value(rule.key)
    text = value if isinstance(value, str) else as_json(value)
    message = f"`{rule.key}` does not match the pattern"
    return Finding(search(rule.regex, text), f"/{rule.regex}/", shown(text), message)


def values_equal(rule: R.PayloadValuesEqual, scene: Scene) -> Finding:
    a, b = scene.value(rule.key_a), scene.value(rule.key_b)
    message = f"`{rule.key_a}` and `{rule.key_b}` differ"
    return Finding(same(a, b), f"{rule.key_b} = {shown(b)}", f"{rule.key_a} = {shown(a)}", message)


def values_not_equal(rule: R.PayloadValuesNotEqual, scene: Scene) -> Finding:
    a, b = scene.value(rule.key_a), scene.value(rule.key_b)
    message = f"`{rule.key_a}` and `{rule.key_b}` are the same"
    return Finding(not same(a, b), f"anything but {shown(b)}", shown(a), message)


def value_equals(rule: R.PayloadValueEquals, scene: Scene) -> Finding:
    value = scene.value(rule.key)
    message = f"`{rule.key}` is not the expected value"
    return Finding(same(value, rule.value), _typed(rule.value), _typed(value), message)


def value_in_set(rule: R.PayloadValueInSet, scene: Scene) -> Finding:
    value = scene.value(rule.key)
    inside = any(same(value, allowed) for allowed in rule.values)
    allow = rule.mode == "allow"
    expected = f"{'one' if allow else 'none'} of {shown(list(rule.values))}"
    message = f"`{rule.key}` is {'not ' if allow else ''}in the set"
    return Finding(inside is allow, expected, _typed(value), message)


def greater_than(rule: R.PayloadValueGreaterThan, scene: Scene) -> Finding:
    number = _number(scene, rule.key)
    passed = number > rule.threshold or (rule.or_equal and number == rule.threshold)
    sign = "≥" if rule.or_equal else ">"
    return Finding(
        passed, f"{sign} {rule.threshold:g}", shown(number), f"`{rule.key}` is too small"
    )


def less_than(rule: R.PayloadValueLessThan, scene: Scene) -> Finding:
    number = _number(scene, rule.key)
    passed = number < rule.threshold or (rule.or_equal and number == rule.threshold)
    sign = "≤" if rule.or_equal else "<"
    return Finding(
        passed, f"{sign} {rule.threshold:g}", shown(number), f"`{rule.key}` is too large"
    )


def has_type(rule: R.PayloadType, scene: Scene) -> Finding:
    value = scene.value(rule.key)
    actual = type_word(value)
    passed = actual == rule.expected_type or (rule.expected_type == "float" and actual == "int")
    return Finding(passed, rule.expected_type, actual, f"`{rule.key}` has another type")


def yaml_valid(rule: R.PayloadYamlValid, scene: Scene) -> Finding:
    from openry.orchestrator import yaml12

    value = scene.value(rule.key)
    if not isinstance(value, str):
        raise CannotEvaluate(f"`{rule.key}` is {type_word(value)}, not text")
    problems = yaml12.compose(value, rule.key).problems
    actual = str(problems[0]) if problems else "valid"
    return Finding(not problems, "valid YAML", shown(actual), f"`{rule.key}` is not valid YAML")


def type_word(value: Any) -> str:
    """The rule language's word for a value's type.

    >>> [type_word(v) for v in (True, 1, 1.5, "1", [], {}, None)]
    ['bool', 'int', 'float', 'str', 'list', 'dict', 'null']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "int" if isinstance(value, int) else "float"
    if isinstance(value, Mapping):
        return "dict"
    return "list" if isinstance(value, list | tuple) else "str"


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: numbers by value, but `true`, 1 and "1" are three things.

    >>> same(1, 1.0), same(True, 1), same(1, "1"), same([1, {"a": True}], [1, {"a": 1}])
    (True, False, False, False)
    """
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in (a, b)]
    if all(numbers):
        return bool(a == b)
    if type_word(a) != type_word(b):
        return False
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _typed(value: Any) -> str:
    return f"{shown(as_json(value))} ({type_word(value)})"


def _number(scene: Scene, key: str) -> int | float:
    value = scene.value(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CannotEvaluate(f"`{key}` is {type_word(value)}, not a number")
    return value
