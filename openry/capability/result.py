"""What came of a call, and which class of error a failure is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from openry.capability.registry import read_mapping
from openry.data import data_root
from openry.models import CommandResult, Ending


class ToolError(BaseModel):
    """Why a call failed.

    Attributes:
        error_class: One of `error_classes()`; `class` in JSON.
        message: One sentence, mostly the tool's own words.
        hint: What to do about it.
    """

    model_config = ConfigDict(frozen=True, serialize_by_alias=True, validate_by_name=True)

    error_class: str = Field(alias="class")
    message: str
    hint: str = ""


class ToolResult(BaseModel):
    """What came of a call. A failure is a value.

    Attributes:
        data: What the parser made of the output; `{"output": PATH}` when it went to a file.
        raw_output: The output as it came, also when it could not be parsed.
        execution_time: Seconds of wall time, retries included.
        notes: What the tool assumed, e.g. that the first row is a header.
        attempts: How often the command was run.
    """

    model_config = ConfigDict(frozen=True)

    success: bool
    data: Any = None
    error: ToolError | None = None
    raw_output: str = ""
    execution_time: float = 0.0
    notes: tuple[str, ...] = ()
    attempts: int = 1

    def to_json(self) -> str:
        """One line, for the answer of `openry --call`."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """One row of the table `templates/errors.yaml`.

    Attributes:
        exit_codes: The command's own exit codes that mean this class.
        endings: Ways a command ends that mean it, e.g. `timeout`.
        patterns: Searched in what the tool wrote, case ignored.
        says: `model` when a model can mend it by other arguments, else `person`.
        attempts: Runs in all for an idempotent tool.
    """

    name: str
    hint: str
    exit_codes: frozenset[int] = frozenset()
    endings: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    says: str = "model"
    attempts: int = 1
    backoff_s: float = 1.0


@cache
def error_classes() -> Mapping[str, ErrorClass]:
    """The shipped table, in order: the first pattern that is found decides."""
    table = read_mapping(data_root() / "templates" / "errors.yaml")
    return {name: _row(name, about) for name, about in table.items()}


def _row(name: str, about: Mapping[str, Any]) -> ErrorClass:
    return ErrorClass(
        name,
        about["hint"],
        frozenset(about.get("exit_codes", ())),
        frozenset(about.get("endings", ())),
        tuple(re.compile(pattern, re.IGNORECASE) for pattern in about.get("patterns", ())),
        about.get("says", "model"),
        about.get("attempts", 1),
        about.get("backoff_s", 1.0),
    )


_OWN = re.compile(r"^error\[(?P<name>[a-z_]+)\]: (?P<message>.*)$", re.MULTILINE)
#: The program that is not there, as a shell, we ourselves or Python say it.
_MISSING = re.compile(
    r"cannot start: `([\w.+-]+)`|([\w.+-]+): (?:command )?not found|No module named '([\w.+-]+)'"
)
_NOTE = re.compile(r"^note: (.*)$", re.MULTILINE)


def notes_in(stderr: str) -> tuple[str, ...]:
    return tuple(_NOTE.findall(stderr))


def classify(result: CommandResult) -> ToolError:
    """The error of a command that failed: by its ending, our tools' own word, text, exit code."""
    own = _OWN.search(result.stderr)
    if own and own["name"] in error_classes():
        return explained(own["name"], own["message"])
    words = _last_words(result)
    for each in error_classes().values():
        if result.ending.value in each.endings:
            return explained(each.name, result.note or words or f"it {result.ending.value}")
    if result.ending is Ending.SIGNALLED:
        return explained("internal", words or f"it was killed by signal {result.exit_code - 128}")
    said = f"{result.stderr}\n{result.stdout[-4000:]}"
    name = _by_text(said) or _by_exit_code(result.exit_code) or "internal"
    return explained(name, words or f"it ended with exit code {result.exit_code}")


def explained(name: str, message: str) -> ToolError:
    hint = error_classes()[name].hint
    missing = _MISSING.search(message) if name == "missing_dependency" else None
    if missing:
        program = next(filter(None, missing.groups()))
        command = "brew" if sys.platform == "darwin" else "apt-get"
        hint = f"install `{program}`, for instance: {command} install {program}"
    return ToolError.model_validate({"class": name, "message": message, "hint": hint})


def _by_text(text: str) -> str:
    classes = error_classes().values()
    return next((c.name for c in classes if any(p.search(text) for p in c.patterns)), "")


def _by_exit_code(exit_code: int) -> str:
    classes = error_classes().values()
    return next((each.name for each in classes if exit_code in each.exit_codes), "")


def _last_words(result: CommandResult) -> str:
    """The last line a tool wrote that says something, at most 300 characters."""
    for text in (result.stderr, result.stdout):
        for line in reversed(text.splitlines()):
            if line.strip() and not line.startswith("note: "):
                return line.strip()[:300]
    return ""


def says_error(patterns: Iterable[str], result: CommandResult) -> str:
    """The line of an output with exit code 0 that one of the tool's `error_patterns` finds."""
    for pattern in patterns:
        match = re.search(pattern, f"{result.stdout}\n{result.stderr}", re.MULTILINE)
        if match:
            return match.group().strip()[:300]
    return ""
