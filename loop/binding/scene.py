"""What is known when a goal is filled, and what filling it gives."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loop.mentions import Kind, Mention
from loop.values import FileInfo, Goal, Survey
from openry.capability.definition import Parameter, ToolDefinition

#: Folder of the files that only pass from one goal to the next.
WORK = ".work/"

_HEADING = (
    r"(?:csv )?(?:headers?|headings?|titles?|(?:header|heading) row|column names?)"
    r"(?:\s+(?:row|line|included|kept|on top|on it))*"
)
#: What a task says of form and order only; it tells nothing of which tool is meant.
_REMARKS = re.compile(
    "|".join(
        (
            r"\([^)]*\)|（[^）]*）",
            r",?\s*\b(?:with(?:out)?|(?:keep|skip)(?:p?ing)?|includ(?:e|ing)"
            rf"|no|minus|leave out|not)\s+(?:the |its |their |a |any )?{_HEADING}",
            r",?\s*\b(?:and )?(?:keep|leav)(?:e|ing)? the head(?:er|ing)s?(?: row)?"
            r" (?:out|in|on top)",
            r",?\s*\b(?:the )?head(?:er|ing)s?(?: row)? (?:stays?|included|kept|remains?|on top)"
            r"(?: on top)?",
            r",?\s*\b(?:one per line|(?:file ?)?names only|only the (?:file ?)?names"
            r"|(?:only|just) the numbers?|values only|only the values"
            r"|in (?:that|this) order|same order as before)\b",
            r",?\s*\b(?:and )?keep(?:ing)? (?:the |their )?(?:original |same )?order\b",
            r",?\s*\bin (?:the|their) (?:same|original) order\b",
            r",?\s*(?:保持|保留)(?:原来的?|原有的?)?顺序",
            r",?\s*(?:不要|不含|不带|保留|包括|去掉|带)表头",
        )
    ),
    re.IGNORECASE,
)


def without_remarks(text: str) -> str:
    """`text` without what it says in brackets or about headings, order and form."""
    return re.sub(r"\s+", " ", _REMARKS.sub("", text)).strip()


@dataclass(frozen=True, slots=True)
class Scene:
    """What is known when a goal is filled: the fragment and the goals before it.

    Attributes:
        asked: `text` without remarks on form (headings, brackets), for choosing by.
        veiled: `asked` with names and quoted words hidden, for cues.
        previous: Outputs of the goals before, the latest first.
        before: The goals before, in order.
        sequel: Whether a word such as `then` leads to the fragment.
        made: Files that earlier goals write, as they will look.
        intermediate: Name for an output that the fragment does not name.
        answer: Where the result goes when the whole task names no new file; else "".
    """

    text: str
    mentions: tuple[Mention, ...]
    survey: Survey
    asked: str = ""
    veiled: str = ""
    previous: tuple[str, ...] = ()
    before: tuple[Goal, ...] = ()
    sequel: bool = False
    made: Mapping[str, FileInfo] = field(default_factory=dict)
    intermediate: str = ""
    answer: str = ""

    @property
    def last(self) -> Goal | None:
        return self.before[-1] if self.before else None

    def info(self, name: str) -> FileInfo | None:
        return self.made.get(name) or self.survey.get(name)

    def of(self, *kinds: Kind) -> tuple[Mention, ...]:
        return tuple(m for m in self.mentions if m.kind in kinds)

    def inside(self, at: int, kinds: Sequence[Kind]) -> bool:
        """Whether place `at` of the text lies in a mention of one of `kinds`."""
        return any(m.start <= at < m.end for m in self.mentions if m.kind in kinds)

    def names_file(self, at: int) -> bool:
        return self.inside(at, (Kind.FILE, Kind.NEW_FILE))


@dataclass(frozen=True, slots=True)
class Filled:
    """One way to fill a tool: arguments, which mentions were used, what it costs."""

    args: dict[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    used: frozenset[int] = frozenset()
    penalty: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """One value for a parameter: the mention starts it rests on, and its cost."""

    value: Any
    used: frozenset[int] = frozenset()
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter that wants a value, with the files that the tool would read."""

    tool: ToolDefinition
    name: str
    scene: Scene
    inputs: tuple[str, ...]

    @property
    def parameter(self) -> Parameter:
        return self.tool.parameters[self.name]

    @property
    def infos(self) -> tuple[FileInfo, ...]:
        return tuple(info for name in self.inputs if (info := self.scene.info(name)))

    @property
    def heads(self) -> str:
        """The beginnings of the inputs."""
        return "\n".join(info.head for info in self.infos)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for info in self.infos for column in info.columns)


def from_mention(mention: Mention, cost: float = 0.0) -> Choice:
    return Choice(mention.text, frozenset({mention.start}), cost)


def rows_of(info: FileInfo) -> list[list[str]]:
    """The rows in the head of a table, its header among them."""
    lines = info.head.splitlines()
    delimiter = max(",;\t|", key=lines[0].count) if lines else ","
    return list(csv.reader(io.StringIO(info.head, newline=None), delimiter=delimiter))


def cells_under(info: FileInfo, column: str) -> list[str]:
    """The cells of a column in the head of a table, in small letters."""
    at = info.columns.index(column)
    return [row[at].strip().casefold() for row in rows_of(info)[1:] if len(row) > at]


def is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\s*[-+]?[$€£]?\d+(?:[.,]\d+)*\s*%?\s*", text))


def stands_in(word: str, text: str) -> bool:
    """Whether `word` stands in `text` as a word, in any case."""
    return bool(re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text, re.I))
