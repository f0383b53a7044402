"""Name what went wrong, in code: which step, which cause, which class, which signature."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Self

from loop.evidence import CommandSeen, StepRun, Trial
from loop.values import RuleData
from openry.models import RuleResult


class FailureClass(StrEnum):
    """What kind of failure it is, by who can mend it."""

    INFRA = "infra"
    NEEDS_SETUP = "needs_setup"
    SPEC_CONFLICT = "spec_conflict"
    WRONG_COMMAND = "wrong_command"
    NOT_ALLOWED = "not_allowed"
    BAD_FORMAT = "bad_format"
    WRONG_CONTENT = "wrong_content"
    MISSING_CONTEXT = "missing_context"
    FLAKY = "flaky"
    SILENT_WRONG = "silent_wrong"  #: every step passes, the acceptance fails
    CHECK_FALSE_ALARM = "check_false_alarm"  #: the acceptance holds, a step's own check fails
    UPSTREAM_DAMAGE = "upstream_damage"
    LOOPED = "looped"
    OVERFLOWED = "overflowed"
    BUDGET = "budget"
    TIMEOUT = "timeout"


#: No edit of the workflow mends these: a person must do something first.
FOR_A_PERSON = frozenset({FailureClass.INFRA, FailureClass.NEEDS_SETUP, FailureClass.SPEC_CONFLICT})


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Where and why a trial failed.

    Attributes:
        step: Id of the step to blame; empty when no step can be named.
        cause: One sentence for a person.
        signature: Equal for failures of the same kind at the same place, whatever the paths,
            numbers and times in their messages.
        rule: Type of the rule that broke, or empty.
        broken: What was expected and what was there, for every rule that broke.
        missing: A path or name that something looked for in vain; else empty.
        suspects: Steps before the blamed one whose output it read, latest first.
        command: The command that shows the failure best.
    """

    step: str
    failure_class: FailureClass
    cause: str
    signature: str
    rule: str = ""
    broken: tuple[str, ...] = ()
    missing: str = ""
    suspects: tuple[str, ...] = ()
    command: CommandSeen | None = None

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The diagnosis that `to_data` wrote."""
        command = data["command"]
        return cls(
            **{
                **data,
                "failure_class": FailureClass(data["failure_class"]),
                "broken": tuple(data["broken"]),
                "suspects": tuple(data["suspects"]),
                "command": CommandSeen(**command) if command else None,
            }
        )


def diagnose(trial: Trial, hard: Sequence[RuleData], soft: Sequence[RuleData] = ()) -> Diagnosis:
    """Why `trial` is not what was asked for.

    Args:
        trial: A trial that is not satisfied.
        hard: The hard acceptance rules, in the order of `trial.hard`.
        soft: The soft ones, in the order of `trial.soft`.
    """
    failed = next((step for step in trial.steps if step.ran and not step.passed), None)
    if failed is not None:
        return _of_step(trial, failed)
    for rules, verdicts in ((hard, trial.hard), (soft, trial.soft)):
        for rule, verdict in zip(rules, verdicts, strict=True):
            if not verdict.passed:
                return _of_acceptance(trial, rule, verdict)
    cause = f"the run ended `{trial.state}` though every step that ran passed"
    return Diagnosis("", FailureClass.INFRA, cause, signature("", "", trial.state, "", None))


def signature(
    step: str, rule: str, error_class: str, verb: str, exit_code: int | None, words: str = ""
) -> str:
    """Sixteen hex digits that say which failure it is; `words` are normalised first.

    >>> signature("a", "", "x", "grep", 2, "grep: a.log: line 3") == signature(
    ...     "a", "", "x", "grep", 2, "grep: b.log: line 9")
    True
    """
    parts = [step, rule, error_class, verb, exit_code, normalised(words)]
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=8)
    return digest.hexdigest()


_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?|\d\d:\d\d:\d\d")
_PATH = re.compile(r"(?:[\w.~-]*/)+[\w.~-]*|\b[\w-]+\.[A-Za-z]\w{0,7}\b")
_NUMBER = re.compile(r"0x[0-9a-f]+|\b\d+(?:\.\d+)?\b", re.I)


def normalised(text: str) -> str:
    """First line of `text` without what differs between two runs of one failure.

    >>> normalised("grep: logs/a.log: No such file (line 12, 09:00:01)")
    'grep: PATH: No such file (line N, TIME)'
    """
    line = text.strip().splitlines()[0] if text.strip() else ""
    for pattern, word in ((_TIME, "TIME"), (_PATH, "PATH"), (_NUMBER, "N")):
        line = pattern.sub(word, line)
    return line[:200]


def _of_step(trial: Trial, step: StepRun) -> Diagnosis:
    command = _telling(step)
    failure, cause, missing = _classify(trial, step, command)
    rule = rule_type(step.broken_rules[0]) if step.broken_rules else ""
    words = step.error or (command.stderr if command else "") or step.reason
    verb = _verb(command.command) if command else ""
    code = command.exit_code if command else None
    return Diagnosis(
        step.id,
        failure,
        cause,
        signature(step.id, rule, str(failure), verb, code, words),
        rule,
        tuple(map(said, step.broken_rules)),
        missing,
        _suspects(trial, step),
        command,
    )


def _of_acceptance(trial: Trial, rule: RuleData, verdict: RuleResult) -> Diagnosis:
    path = rule_path(rule)
    writer = trial.writer(path) if path else None
    writer = writer or _writer_of_some(trial, str(rule.get("run") or ""))
    blamed = writer or (trial.steps[-1] if trial.steps else None)
    step_id = blamed.id if blamed else ""
    wrote = f"step `{step_id}` wrote `{path}` but" if writer else "every step passed but"
    if path and writer is None and path not in trial.changed:
        wrote = f"no step wrote `{path}`:"
    return Diagnosis(
        step_id,
        FailureClass.SILENT_WRONG,
        f"{wrote} {said(verdict)}",
        signature(step_id, rule_type(verdict), "silent_wrong", "", None, path),
        rule_type(verdict),
        (said(verdict),),
        path if path and writer is None else "",
        _suspects(trial, blamed) if blamed else (),
        _telling(blamed) if blamed else None,
    )


def _writer_of_some(trial: Trial, command: str) -> StepRun | None:
    """The last step that changed a file which a rule's command names by a pattern."""
    patterns = [word.strip("'\"") for word in command.split() if "*" in word and "/" in word]
    for step in reversed(trial.steps):
        if any(fnmatchcase(path, pattern) for path in step.changed for pattern in patterns):
            return step
    return None


def rule_type(verdict: RuleResult) -> str:
    """The type of a judged rule; `verdict.rule` is its whole wording."""
    return verdict.rule.partition(" ")[0]


def said(verdict: RuleResult) -> str:
    """A verdict in words."""
    if verdict.message:
        return verdict.message
    there = f", got {verdict.actual}" if verdict.actual else ""
    return f"`{verdict.rule}` expected {verdict.expected or 'to hold'}{there}"


_PATH_IN_COMMAND = re.compile(r"(?<![\w./*-])[\w./-]*[\w-]+\.[A-Za-z]\w{0,7}(?![\w/])")


def rule_path(rule: RuleData) -> str:
    """The file that a rule is about: its path, or the last file name in its command."""
    for key in ("path", "output", "glob"):
        if isinstance(rule.get(key), str):
            return str(rule[key])
    if isinstance(rule.get("rule"), dict):
        return rule_path(rule["rule"])
    names = _PATH_IN_COMMAND.findall(str(rule.get("run") or ""))
    return names[-1].removeprefix("./") if names else ""


_MODEL_TROUBLE = re.compile(
    r"\b(no_key|no_network|no_weights|unknown_model|rate_limited|provider|unpriced|api key"
    r"|connection (refused|reset|error)|network is unreachable)\b",
    re.I,
)
_NOT_FOUND = (
    re.compile(r"[:\s]['\"‘`]?(?P<name>[^\s'\"‘’`:]+)['\"’`]?: No such file or directory"),
    re.compile(
        r"(?:can't open|cannot open|cannot access|cannot stat|can't read)(?: file)? "
        r"['\"‘`]?(?P<name>[^\s'\"’`:]+)"
    ),
    re.compile(r"No such file or directory: ['\"](?P<name>[^'\"]+)['\"]"),
    re.compile(r"`(?P<name>[^`]+)`:? (?:no such file|does not exist|is not there|was not found)"),
    re.compile(r"(?:no file|no such file)(?: called| named)?:? `(?P<name>[^`]+)`", re.I),
)
_NO_PROGRAM = (
    re.compile(r"(?:^|: )(?:line )?\d*:? ?(?P<name>[\w./+-]+): (?:command )?not found"),
    re.compile(r"(?:not installed|missing program)[: ]+`?(?P<name>[\w.+-]+)", re.I),
)
_NO_COLUMN = (
    re.compile(r"no column(?: called| named)? `(?P<name>[^`]+)`", re.I),
    re.compile(r"column `(?P<name>[^`]+)`[^.]*(?:not|missing|does not exist|unknown)", re.I),
    re.compile(r"columns, counted from 1; there is no (?P<name>-?\d+)"),
    re.compile(r"so name a column by its number, not `(?P<name>[^`]+)`"),
    re.compile(r"no (?:such )?(?:key|field)(?: called| named)? `(?P<name>[^`]+)`", re.I),
)
_FORMAT_RULES = (
    "payload_has_key",
    "payload_type",
    "json_schema",
    "file_matches_schema",
    "payload_value_matches",
)


def _classify(
    trial: Trial, step: StepRun, command: CommandSeen | None
) -> tuple[FailureClass, str, str]:
    """(class, cause in one sentence, the name that was looked for in vain)."""
    at = f"step `{step.id}`"
    words = "\n".join(filter(None, (step.error, command.stderr if command else "", step.reason)))
    code = command.exit_code if command else None
    ending = command.ending if command else ""
    if code == 125 or step.error_class == "sandbox" or "sandbox unavailable" in words:
        return FailureClass.INFRA, f"{at}: {_line(words, 'the sandbox cannot be built')}", ""
    if "internal error" in words:
        return FailureClass.INFRA, f"{at}: {_line(words)}", ""
    if step.kind == "agent" and _MODEL_TROUBLE.search(words):
        return FailureClass.INFRA, f"{at}: its model cannot be asked: {_line(words)}", ""
    if "budget" in step.reason:
        return FailureClass.BUDGET, f"{at}: {step.reason}", ""
    if step.error_class in ("auth", "missing_dependency"):
        return FailureClass.NEEDS_SETUP, f"{at}: {_line(words)}", ""
    if step.reason.startswith("loop"):
        return FailureClass.LOOPED, f"{at} repeats itself: {step.reason}", ""
    if step.state.startswith("overflow"):
        return FailureClass.OVERFLOWED, f"{at} printed more than it may", ""
    if ending == "timeout" or "timeout" in step.reason or step.error_class == "timeout":
        return FailureClass.TIMEOUT, f"{at} was stopped when its time was over", ""
    if code == 126 or ending == "refused" or step.error_class == "refused":
        return FailureClass.NOT_ALLOWED, f"{at}: {_line(words, 'a command was refused')}", ""
    name = _first(_NO_COLUMN, words)
    if name:
        return FailureClass.WRONG_COMMAND, f"{at} asks for `{name}`, which is no column", name
    name = _first(_NO_PROGRAM, words) if code == 127 or step.error_class else ""
    if name:
        return FailureClass.WRONG_COMMAND, f"{at} calls `{name}`, which is no program here", name
    name = _first(_NOT_FOUND, words).removeprefix("./")
    if name:
        return _missing_file(trial, step, name)
    if step.error_class:
        return FailureClass.WRONG_COMMAND, f"{at}: {_line(words)}", ""
    if step.broken_rules:
        broken = step.broken_rules[0]
        kind = (
            FailureClass.BAD_FORMAT
            if rule_type(broken) in _FORMAT_RULES
            else FailureClass.WRONG_CONTENT
        )
        if trial.hard and all(rule.passed for rule in trial.hard):
            kind = FailureClass.CHECK_FALSE_ALARM
        return kind, f"{at}: {said(broken)}", ""
    if "payload" in step.reason:
        return FailureClass.BAD_FORMAT, f"{at}: {step.reason}", ""
    if code:
        first = _line(words, "nothing on its error output")
        return FailureClass.WRONG_COMMAND, f"{at} ended with exit code {code}: {first}", ""
    return FailureClass.WRONG_CONTENT, f"{at}: {step.reason or step.state}", ""


def _missing_file(trial: Trial, step: StepRun, name: str) -> tuple[FailureClass, str, str]:
    """A file is not there: an earlier step did not make it, or the name is wrong."""
    cause = f"step `{step.id}` reads `{name}`, which does not exist"
    return FailureClass.WRONG_COMMAND, cause, name


def _telling(step: StepRun) -> CommandSeen | None:
    """The command that shows a step's failure best: the last one that failed, else the last."""
    failing = [each for each in step.commands if each.exit_code != 0]
    return failing[-1] if failing else (step.commands[-1] if step.commands else None)


def _suspects(trial: Trial, step: StepRun) -> tuple[str, ...]:
    """Earlier steps that changed a file which `step`'s commands name, latest first."""
    earlier = trial.steps[: trial.steps.index(step)]
    text = " ".join(command.command for command in step.commands)
    return tuple(
        each.id for each in reversed(earlier) if any(path in text for path in each.changed)
    )


def _verb(command: str) -> str:
    words = command.split()
    return words[0] if words else ""


def _first(patterns: Sequence[re.Pattern[str]], text: str) -> str:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            return match["name"]
    return ""


def _line(text: str, default: str = "") -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else default)[:200]
