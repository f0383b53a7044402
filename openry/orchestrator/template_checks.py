"""Templates of a file, looked at before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from openry.orchestrator.report import Report, Where, as_text, mappings
from openry.orchestrator.templates import check_template

Names = Mapping[str, frozenset[str] | None]
#: Keys of a rule that are filled from the payload before it is evaluated.
RULE_TEXTS = ("path", "glob", "input", "output", "url")
_WORTH_A_LOOK = ("{{", "{%", "${")


def names(data: dict[str, Any], ids: Iterable[str]) -> Names:
    """What templates of a workflow may use; None where it is only known at run time."""
    inputs = data.get("inputs")
    declared = frozenset(map(str, inputs)) if isinstance(inputs, dict) else frozenset()
    return {
        "inputs": declared,
        "steps": frozenset(ids),
        "payload": None,
        "env": None,
        "run": None,
        "last_failure": None,
    }


def step(step: dict[str, Any], where: Where, known: Names, report: Report) -> None:
    """Every template of one sub step."""
    whole, loop = known, step.get("for_each")
    if isinstance(loop, dict):
        _deep(loop.get("items"), (*where, "for_each", "items"), known, report)
        known = {**known, "item": None, as_text(loop.get("as")) or "item": None}
    for key in ("description", "prompt"):
        _text(step.get(key), (*where, key), known, report)
    for place, block in mappings(step.get("prompt_blocks")):
        for key in ("content", "path"):
            _text(block.get(key), (*where, "prompt_blocks", place, key), known, report)
    _text(step.get("command"), (*where, "command"), known, report, command=True)
    _deep(step.get("args"), (*where, "args"), known, report)
    variables(step.get("env"), (*where, "env"), known, report)
    _rules(step.get("validation"), (*where, "validation"), known, report)
    for place, route in mappings(step.get("validation_routing")):
        at = (*where, "validation_routing", place)
        for key in ("when", "when_any", "when_all"):
            _rules(route.get(key), (*at, key), whole, report)


def variables(env: Any, where: Where, known: Names, report: Report) -> None:
    for name, text in env.items() if isinstance(env, dict) else ():
        _text(text, (*where, name), known, report, references=True)


def values(inputs: Any, where: Where, data: dict[str, Any], report: Report) -> None:
    """Inputs that a composition hands to a big step."""
    known = {**names(data, ()), "steps": None}
    _deep(inputs, where, known, report)


def _deep(value: Any, where: Where, known: Names, report: Report) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _deep(inner, (*where, key), known, report)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            _deep(inner, (*where, place), known, report)
    else:
        _text(value, where, known, report, references=True)


def _rules(value: Any, where: Where, known: Names, report: Report) -> None:
    """Rules at any depth: paths are texts, `run` is a command."""
    if isinstance(value, list):
        for place, rule in enumerate(value):
            _rules(rule, (*where, place), known, report)
    elif isinstance(value, dict):
        for key, inner in value.items():
            at = (*where, key)
            if key == "run":
                _text(inner, at, known, report, command=True)
            elif key in RULE_TEXTS and isinstance(inner, str):
                _text(inner, at, known, report, references=True)
            elif key in ("input", "rule", "rules") or isinstance(inner, dict):
                _rules(inner, at, known, report)


def _text(
    value: Any, where: Where, known: Names, report: Report,
    *, command: bool = False, references: bool = False,
) -> None:  # fmt: skip
    if not isinstance(value, str) or not any(mark in value for mark in _WORTH_A_LOOK):
        return
    for flaw in check_template(value, known, command=command, references=references):
        said = f"`{where[-1]}`: {flaw.message}"
        report.add(where, said, flaw.hint, shown=flaw.shown)
