"""Hard validation: rules decide what is done, not what anybody says.

`check_rules` gives one verdict per rule and never raises over what it finds: a rule that cannot
be evaluated has failed, with the reason.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from openry.models import Problem, RuleResult, RunCommand
from openry.orchestrator import rules as R  # noqa: N812 - the shapes, by one letter
from openry.orchestrator import (
    rules_files,
    rules_outside,
    rules_payload,
    rules_relations,
    yaml12,
)
from openry.orchestrator.loader import load_rules, read_model
from openry.orchestrator.report import visible
from openry.orchestrator.rules_scene import CannotEvaluate, Finding, Scene
from openry.orchestrator.template_checks import RULE_TEXTS
from openry.texts import did_you_mean

Evaluate = Callable[[Any, Scene], Finding]
_TEMPLATE_MARKS = ("{{", "{%", "${")


def check_rules(
    rules: Iterable[R.Rule],
    *,
    workspace: Path,
    payload: Mapping[str, Any],
    run: RunCommand | None = None,
    readable: Iterable[Path] = (),
    query: Callable[[str], bool] | None = None,
    fetch: Callable[[str, str, float], int] | None = None,
    changed: Callable[[], Iterable[str]] | None = None,
    scope: Mapping[str, Any] | None = None,
) -> tuple[RuleResult, ...]:
    """One verdict per rule, in order. See `Scene` for what the callables are.

    `run` decides under which policy and sandbox `command` rules run; give it one that holds the
    workspace read-only.
    """
    scene = Scene(workspace, payload, run, tuple(readable), query, fetch, changed, scope)
    return tuple(check_rule(rule, scene) for rule in rules)


def check_rule(rule: R.Rule, scene: Scene) -> RuleResult:
    """One rule's verdict."""
    wording = rule.wording()
    try:
        finding = evaluate(rule, scene)
    except CannotEvaluate as reason:
        said = f"cannot be evaluated: {reason}"
        return RuleResult(wording, False, message=_with(rule.message, said))
    except Exception as trouble:  # never crash the patrol, never pass
        said = f"cannot be evaluated: {type(trouble).__name__}: {trouble}"
        return RuleResult(wording, False, message=_with(rule.message, said))
    message = "" if finding.passed else rule.message or finding.message
    return RuleResult(
        wording, finding.passed, finding.expected, finding.actual, message, finding.vacuous
    )


def _with(message: str, said: str) -> str:
    return f"{message} ({said})" if message else said


def said(result: RuleResult) -> str:
    """A failed rule for a person or a model: what was expected and what was there."""
    parts = [f"`{result.rule}`"]
    if result.message:
        parts.append(result.message)
    if result.expected or result.actual:
        parts.append(f"expected {result.expected or 'nothing'}, got {result.actual or 'nothing'}")
    return ": ".join(parts[:2]) + (f" ({parts[2]})" if len(parts) > 2 else "")


def evaluate(rule: R.Rule, scene: Scene) -> Finding:
    """What `rule` finds.

    Raises:
        CannotEvaluate: Its question has no answer here.
    """
    evaluator: Evaluate = _EVALUATORS[rule.type]  # type: ignore[attr-defined]
    return evaluator(_filled(rule, scene), scene)


def has_template(rule: R.Rule) -> bool:
    """Whether `rule`, or one inside it, has something to be filled in."""
    said = [repr(getattr(rule, name)) for name in rule.model_fields_set]
    return any(mark in text for mark in _TEMPLATE_MARKS for text in said)


def _filled(rule: R.Rule, scene: Scene) -> R.Rule:
    """The rule with its paths filled in; a rule without templates is returned as it is."""
    filled: dict[str, Any] = {}
    for key in RULE_TEXTS:
        value = getattr(rule, key, None)
        texts = (value,) if isinstance(value, str) else value
        if texts and any(mark in text for text in texts for mark in _TEMPLATE_MARKS):
            new = tuple(map(scene.fill, texts))
            filled[key] = new[0] if isinstance(value, str) else new
    return rule.model_copy(update=filled) if filled else rule


def _not(rule: R.Not, scene: Scene) -> Finding:
    inner = evaluate(rule.rule, scene)
    message = f"holds, and must not: {rule.rule.wording()}"
    return Finding(not inner.passed, f"not: {inner.expected}", inner.actual, message)


def _any_of(rule: R.AnyOf, scene: Scene) -> Finding:
    """Passes with the first that passes. If none does and one has no answer, neither has this."""
    failed: list[Finding] = []
    unanswered: list[str] = []
    for one in rule.rules:
        try:
            finding = evaluate(one, scene)
        except CannotEvaluate as reason:
            unanswered.append(str(reason))
            continue
        if finding.passed:
            return finding
        failed.append(finding)
    if unanswered:
        raise CannotEvaluate("none of the rules passes, and " + "; ".join(unanswered))
    expected = " or ".join(finding.expected for finding in failed)
    return Finding(False, expected, failed[0].actual, "none of the rules passes")


def _all_of(rule: R.AllOf, scene: Scene) -> Finding:
    findings = [evaluate(one, scene) for one in rule.rules]
    bad = next((finding for finding in findings if not finding.passed), None)
    expected = " and ".join(finding.expected for finding in findings)
    if bad is not None:
        return Finding(False, expected, bad.actual, bad.message)
    vacuous = all(finding.vacuous for finding in findings)
    return Finding(True, expected, findings[0].actual, vacuous=vacuous)


_EVALUATORS: dict[str, Evaluate] = {
    "payload_has_key": rules_payload.has_key,
    "payload_value_matches": rules_payload.value_matches,
    "payload_values_equal": rules_payload.values_equal,
    "payload_values_not_equal": rules_payload.values_not_equal,
    "payload_value_equals": rules_payload.value_equals,
    "payload_value_in_set": rules_payload.value_in_set,
    "payload_value_greater_than": rules_payload.greater_than,
    "payload_value_less_than": rules_payload.less_than,
    "payload_type": rules_payload.has_type,
    "payload_yaml_valid": rules_payload.yaml_valid,
    "file_exists": rules_files.exists,
    "file_contains": rules_files.contains,
    "file_size_greater_than": rules_files.size_greater_than,
    "command": rules_outside.command,
    "command_output_contains": rules_outside.command_output_contains,
    "db_query": rules_outside.db_query,
    "http_status": rules_outside.http_status,
    "json_schema": rules_files.json_schema,
    "file_matches_schema": rules_files.matches_schema,
    "files_count": rules_files.count,
    "unchanged": rules_outside.unchanged,
    "relation": rules_relations.relation,
    "sorted": rules_files.in_order,
    "no_line_matches": rules_files.no_line_matches,
    "all_lines_match": rules_files.all_lines_match,
    "not": _not,
    "any_of": _any_of,
    "all_of": _all_of,
}


def parse_rules(data: Any, file: str = "<rules>") -> tuple[tuple[R.Rule, ...], tuple[Problem, ...]]:
    """Rules from whatever a person gives, or every problem at once.

    `data` is a file (`Path`), a list or mapping, YAML or JSON text, or the inline form
    `file_exists path=out.txt`; several inline rules stand on lines of their own.
    """
    if isinstance(data, Path):
        return load_rules(data)
    if isinstance(data, str):
        return _inline(data, file) if _is_inline(data) else load_rules(data, file=file)
    return load_rules(_as_yaml(data), file=file)


def _as_yaml(data: Any) -> str:
    import yaml

    return yaml.safe_dump(yaml12.plain(data), allow_unicode=True, sort_keys=False)


def _is_inline(text: str) -> bool:
    first = text.strip().split(None, 1)[:1]
    return bool(first) and (first[0] in R.RULE_TYPES or first[0].isidentifier())


def _inline(text: str, file: str) -> tuple[tuple[R.Rule, ...], tuple[Problem, ...]]:
    found: list[R.Rule] = []
    problems: list[Problem] = []
    for number, line in _whole_lines(text):
        rule, trouble = _inline_rule(line, file, number)
        found += rule
        problems += trouble
    return (tuple(found) if not problems else ()), tuple(map(visible, problems))


def _whole_lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines, one that ends inside a quote joined with what closes it."""
    begun = ""
    first = 1
    for number, line in enumerate(text.split("\n"), 1):
        first = first if begun else number
        begun = f"{begun}\n{line}" if begun else line
        try:
            shlex.split(begun)
        except ValueError:
            continue
        if begun.strip():
            yield first, begun
        begun = ""
    if begun:
        yield first, begun


def _inline_rule(line: str, file: str, number: int) -> tuple[list[R.Rule], list[Problem]]:
    try:
        kind, *rest = shlex.split(line)
    except ValueError as error:
        return [], [Problem(file, number, f"cannot be read: {str(error).lower()}")]
    if kind not in R.RULE_TYPES:
        said = f"unknown rule type `{kind}`"
        return [], [Problem(file, number, said, did_you_mean(kind, R.RULE_TYPES))]
    data: dict[str, Any] = {"type": kind}
    for word in rest:
        key, sign, value = word.partition("=")
        if not sign:
            return [], [Problem(file, number, f"`{word}` is not `key=value`")]
        data[key] = _inline_value(kind, key, value)
    document = yaml12.Document(file, yaml12.Node(number, 1, entries={}), ())
    rules, problems = read_model(R.read_rules(), [data], document)
    return list(rules or ()), problems


def _inline_value(kind: str, key: str, value: str) -> Any:
    """Text where text is wanted, `a,b` for several, otherwise what YAML makes of it."""
    form = R.takes(R.RULE_TYPES[kind], key)
    if form == "texts" and not value.startswith("["):
        return value.split(",")
    if form == "text":
        return value
    document = yaml12.compose(value, key)
    return value if document.problems else document.data
