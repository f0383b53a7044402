"""Which tool a request asks for, best first, and why: likeness, cues, and what arguments need.

A tool whose required arguments have no evidence in the request and the folder comes after all
those that have it, however like its wordings are: `unpack docs.zip` needs a docs.zip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openry.agent.evidence import Evidence, gather
from openry.capability import Registry
from openry.capability.choosing import Chooser, file_kind
from openry.capability.definition import ToolDefinition

#: What an argument of a role or format looks like in a request.
_SHAPES: Mapping[str, tuple[str, re.Pattern[str]]] = {
    "url": ("an address `https://…`", re.compile(r"https?://\w", re.I)),
    "address": ("an e-mail address", re.compile(r"[\w.+-]+@[\w-]+\.\w", re.ASCII)),
    "host": ("the name of a server", re.compile(r"\b[\w-]+(?:\.[\w-]+){2,}|localhost", re.ASCII)),
    "date": (
        "a date",
        re.compile(
            r"\d{4}|\d[./]\d|\d+ ?[:点月日]|\b(?:today|tomorrow|yesterday|now|noon|midnight"
            r"|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b|今天|明天|昨天|现在",
            re.I,
        ),
    ),
    "zone": (
        "a time zone such as Europe/Paris",
        re.compile(r"\b[A-Z]\w+/[A-Z]\w+|\b(?:UTC|GMT|[A-Z]{2,3}T)\b|[+-]\d\d:?\d\d", re.ASCII),
    ),
}
#: A column by its number.
_COUNTED = re.compile(r"\d|(?i:\b(?:first|second|third|fourth|fifth|last)\b)|第")
#: A clause that says what is not meant, which is what the nearest neighbour does.
_NOT_MEANT = re.compile(
    r"(?i)(?:^|(?<=[,;:.(] )|(?<=[,;])|\b(?:but|and) )(?:please )?(?:don't|do not)\b[^,;:.?!()]*"
    r"(?:[,;:.?!)]|$)|,? not the (?:others|rest)\b|(?:^|[，；])别[^，。；]*[，。；]"
)
_LEAST_CHARS = 10


@dataclass(frozen=True, slots=True)
class Ranked:
    """One tool of a ranking.

    Attributes:
        score: How well its wordings fit, about 0 to 1.
        nearest: The wordings of its examples that speak most for it, each with its share.
        cues: The words of the request that its cues match.
        lacks: What its required arguments need and neither request nor folder gives.
    """

    tool: ToolDefinition
    score: float
    nearest: tuple[tuple[str, float], ...] = ()
    cues: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """As JSON: the tool by its name."""
        return {
            "tool": self.tool.name,
            "score": round(self.score, 3),
            "nearest": [{"wording": text, "adds": round(adds, 3)} for text, adds in self.nearest],
            "cues": list(self.cues),
            "lacks": list(self.lacks),
        }


def in_words(place: str, each: Ranked) -> str:
    """One tool of a ranking for a person, and why it stands there."""
    lines = [f"{place} {each.tool.name}  {each.score:.2f}  {_first_sentence(each.tool)}"]
    lines += [f"     {adds:+.2f}  like: {text}" for text, adds in each.nearest]
    if each.cues:
        lines.append(f"     says: {', '.join(each.cues)}")
    lines += [f"     lacks {what}" for what in each.lacks]
    return "\n".join(lines) + "\n"


def set_aside(ranked: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """The tools whose wordings fit better than the first one's, but that lack something."""
    return tuple(each for each in ranked if each.lacks and each.score > ranked[0].score)


def _first_sentence(tool: ToolDefinition) -> str:
    return " ".join(tool.description.split()).split(". ")[0]


def rank_tools(
    registry: Registry, text: str, folder: Path, cache: Path | None = None
) -> list[Ranked]:
    """All tools of a registry for a request, best first.

    Args:
        folder: What the request speaks of.
        cache: Where embeddings of the tools' wordings are kept between runs.

    Raises:
        ModelError: `no_weights`: the encoder is not installed.
    """
    tools = registry.tools()
    return rank(Chooser(tools, cache), tools, text, folder)


def rank(
    chooser: Chooser, tools: Sequence[ToolDefinition], text: str, folder: Path
) -> list[Ranked]:
    """All `tools`, those that `chooser` was built from, best first."""
    seen, text = gather(text, folder), meant(text)
    scores = dict(zip(chooser.names, chooser.scores([text])[0], strict=True))
    found = [
        Ranked(
            tool,
            float(scores[tool.name]),
            chooser.nearest(text, tool.name),
            chooser.cue_words(text, tool.name),
            lacks(tool, text, seen),
        )
        for tool in tools
    ]
    return sorted(found, key=lambda each: (bool(each.lacks), -each.score))


def meant(text: str) -> str:
    """`text` without the clauses that say what is not meant.

    >>> meant("don't unpack, make a zip of the folder docs")
    'make a zip of the folder docs'
    """
    left = _NOT_MEANT.sub(" ", text).strip(" ,;:")
    return left if len(left) >= _LEAST_CHARS else text


def lacks(tool: ToolDefinition, text: str, seen: Evidence) -> tuple[str, ...]:
    """What the tool's required arguments need and neither `text` nor the folder gives, in words."""
    return tuple(_lacks(tool, text, seen))


def _lacks(tool: ToolDefinition, text: str, seen: Evidence) -> Iterator[str]:
    named = tuple(file for file in seen.files if file in text)
    inputs = [
        name for name, each in tool.parameters.items() if each.role == "input" and each.required
    ]
    for name in inputs:
        yield from _no_input(tool, name, seen, named)
    if len(inputs) > 1 and len(named) == 1 and len(seen.files) > 1:
        yield f"`{inputs[1]}`: a second file that is there"
    kinds = _kinds(tool, "input")
    for name, parameter in tool.parameters.items():
        if not parameter.required or parameter.default is not None:
            continue
        wanted = _SHAPES.get(parameter.role) or _SHAPES.get(parameter.format or "")
        answers = parameter.role == "address" and any(file_kind(file) == "mail" for file in named)
        if wanted and not answers and not wanted[1].search(text):
            yield f"`{name}`: {wanted[0]}"
        implied = tool.with_role("value")  # `guests from Rome`: a cell tells the column
        if parameter.role in ("column", "columns") and not implied and "table" in kinds:
            yield from _no_column(name, text, seen)
        if parameter.role == "output":
            yield from _no_output(tool, name, seen, named)


def _kinds(tool: ToolDefinition, role: str) -> frozenset[str]:
    """The kinds of files that the tool's examples give to parameters of a role."""
    paths = [
        path
        for example in tool.examples
        for name in tool.with_role(role)
        if (given := example.arguments.get(name)) is not None
        for path in (given if isinstance(given, list) else [given])
    ]
    return frozenset(file_kind(str(path)) for path in paths)


def _no_input(
    tool: ToolDefinition, name: str, seen: Evidence, named: tuple[str, ...]
) -> Iterator[str]:
    kinds = _kinds(tool, "input")
    if not kinds or "file" in kinds:
        return
    there = named or (() if seen.new_files else seen.files)
    if "folder" in kinds or any(file_kind(file) in kinds for file in there):
        return
    yield f"`{name}`: a file that is there ({' or '.join(sorted(kinds))})"


def _no_output(
    tool: ToolDefinition, name: str, seen: Evidence, named: tuple[str, ...]
) -> Iterator[str]:
    kinds = _kinds(tool, "output")
    if not kinds or kinds & {"file", "folder"}:
        return
    if not any(file_kind(file) in kinds for file in (*seen.new_files, *named)):
        yield f"`{name}`: the name of a file to write ({' or '.join(sorted(kinds))})"


def _no_column(name: str, text: str, seen: Evidence) -> Iterator[str]:
    said = text.casefold()
    named = any(column.casefold() in said for column in seen.columns) or _COUNTED.search(text)
    if seen.columns and not named:
        yield f"`{name}`: a column of the table ({', '.join(seen.columns[:5])})"
