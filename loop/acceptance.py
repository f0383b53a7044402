"""What must hold at the end: what the person stated, else what the named results say themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loop.values import Acceptance, Reading, RuleData
from openry.orchestrator.validation import parse_rules

#: Formats that a file's name promises and that code can judge.
_FORMATS = {".json": "json", ".csv": "csv", ".yaml": "yaml", ".yml": "yaml"}


def settle(reading: Reading, given: tuple[RuleData, ...]) -> Acceptance:
    """The acceptance of a task. Stated rules stand alone; what is inferred never rejects.

    Without stated rules the results that the task names must exist and be what their names say.
    """
    if given:
        return Acceptance(given, "given")
    best = reading.candidates[0].results if reading.candidates else ()
    names = dict.fromkeys((*reading.artefacts, *best))
    hard: list[RuleData] = []
    for name in names:
        hard.append({"type": "file_exists", "path": name})
        suffix = name[name.rfind(".") :].lower() if "." in name else ""
        if suffix in _FORMATS:
            format_ = _FORMATS[suffix]
            hard.append({"type": "file_matches_schema", "path": name, "format": format_})
    return Acceptance(tuple(hard), "derived")


def rule_words(rule: Mapping[str, Any]) -> str:
    """A rule in one line, as an inline `--accept` writes it."""
    rules, _ = parse_rules([dict(rule)])
    return rules[0].wording() if rules else str(rule)
