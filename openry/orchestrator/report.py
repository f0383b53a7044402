"""Collecting what is wrong with a document, each with its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from openry.models import Problem
from openry.orchestrator.yaml12 import Document

#: Keys and list places from the root of a document.
Where = tuple[str | int, ...]


@dataclass(slots=True)
class Report:
    """Problems of one document."""

    document: Document
    found: list[Problem] = field(default_factory=list)

    def add(
        self, where: Where, message: str, hint: str = "", *, level: str = "error", shown: str = ""
    ) -> None:
        """Note a problem at `where`; `shown` is the part of the value there that is meant."""
        line = self.document.line_of(where, shown) if shown else self.document.line(where)
        self.found.append(Problem(self.document.file, line, message, hint, level))


def mappings(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The mappings of a list, with their places; what is no list or no mapping is passed over."""
    for place, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            yield place, item


def as_text(value: Any) -> str | None:
    """A name as it was written; None when it is no scalar."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(getattr(value, "text", value)) if isinstance(value, str | int | float) else None


def visible(problem: Problem) -> Problem:
    """The problem on one line, control characters of the file spelt out."""
    message, hint = _shown(problem.message), _shown(problem.hint)
    if (message, hint) == (problem.message, problem.hint):
        return problem
    return Problem(problem.file, problem.line, message, hint, problem.level)


def _shown(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
