"""YAML 1.2 read with care: scalars mean what a person expects, and every value knows its line.

`compose` never raises over the text: what is wrong with it comes back as problems. `on`, `yes`
and `NO` stay strings, `1e3` is a number, a key given twice is an error, and aliases may not blow
the file up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from openry.models import Problem

MAX_EXPANDED_BYTES = 10 * 1024 * 1024
MAX_LEVELS = 100
#: What a node costs beside its text, so that a million empty nodes count too.
_NODE_COST = 8

_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: Line breaks for YAML 1.1's scanner but not in YAML 1.2: hidden from it and put back.
_HIDE = {0x85: 0x100085, 0x2028: 0x102028, 0x2029: 0x102029}
_SHOW = {hidden: char for char, hidden in _HIDE.items()}
_CORE = "tag:yaml.org,2002:"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class SourceInt(int):
    """An int that remembers how it was written, for places that want text (`version: 1.10`)."""

    text: str


class SourceFloat(float):
    """A float that remembers how it was written."""

    text: str


@dataclass(slots=True)
class Node:
    """A value with its place in the text: `start` to `end`, `line` 1-based.

    `alias` marks a value that stands elsewhere: its own place is that of the `*name`.
    """

    line: int
    column: int
    start: int = 0
    end: int = 0
    value: Any = None
    style: str = ""
    flow: bool = False
    items: list[Node] | None = None
    entries: dict[str, Entry] | None = None
    weight: int = _NODE_COST
    alias: bool = False


@dataclass(slots=True)
class Entry:
    """One key of a mapping. `merged` ones came by `<<` and stand elsewhere."""

    key_line: int
    key_column: int
    key_start: int
    key_end: int
    node: Node
    merged: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A composed text. `root` is None when it could not be read at all."""

    file: str
    root: Node | None
    problems: tuple[Problem, ...]
    text: str = ""

    @property
    def data(self) -> Any:
        return None if self.root is None else to_data(self.root)

    def node(self, path: tuple[str | int, ...]) -> Node | None:
        """The node at `path`, or the nearest one above it that exists."""
        node = self.root
        for part in path:
            below = child(node, part)
            if below is None:
                break
            node = below
        return node

    def line(self, path: tuple[str | int, ...]) -> int:
        """The line of the key or list item at `path`, else of what holds it."""
        holder = self.node(path[:-1]) if path else None
        if holder is not None and path and holder.entries is not None:
            entry = holder.entries.get(str(path[-1]))
            if entry is not None:
                return entry.key_line
        node = self.node(path)
        return node.line if node is not None else 0

    def line_of(self, path: tuple[str | int, ...], shown: str) -> int:
        """The line on which `shown` stands in the value at `path`, else the value's own line."""
        node = self.node(path)
        if node is None or node.value is None:
            return self.line(path)
        first = shown.split("\n", 1)[0]
        found = self.text.find(first, node.start, node.end)
        return self.text.count("\n", 0, found) + 1 if found >= 0 else node.line


def child(node: Node | None, part: str | int) -> Node | None:
    if node is None:
        return None
    if node.entries is not None:
        entry = node.entries.get(str(part))
        return entry.node if entry else None
    if node.items is not None and isinstance(part, int) and 0 <= part < len(node.items):
        return node.items[part]
    return None


def to_data(node: Node) -> Any:
    """Plain data of `node`; numbers keep their spelling in `.text`."""
    if node.entries is not None:
        return {key: to_data(entry.node) for key, entry in node.entries.items()}
    if node.items is not None:
        return [to_data(item) for item in node.items]
    return node.value


def plain(value: Any) -> Any:
    """`value` without the memory of how numbers were written."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, SourceInt):
        return int(value)
    return float(value) if isinstance(value, SourceFloat) else value


def resolve(text: str) -> Any:
    """What a plain scalar means in YAML 1.2's core schema.

    >>> [resolve(t) for t in ("on", "NO", "012", "1e3", "0o17", "~", "1.10", "true", "2026-01-01")]
    ['on', 'NO', 12, 1000.0, 15, None, 1.1, True, '2026-01-01']
    """
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> SourceInt | SourceFloat | None:
    if not text[:1] or text[0] not in "+-.0123456789" or len(text) > 4000:
        return None
    number: SourceInt | SourceFloat
    if _INT.fullmatch(text):
        number = SourceInt(text)
    elif _OCTAL.fullmatch(text):
        number = SourceInt(text[2:], 8)
    elif _HEX.fullmatch(text):
        number = SourceInt(text, 16)
    elif _FLOAT.fullmatch(text):
        number = SourceFloat(text)
    elif _SPECIAL_FLOAT.fullmatch(text):
        number = SourceFloat(text.replace(".", "").lower())
    else:
        return None
    number.text = text
    return number


def decode(raw: bytes, file: str) -> tuple[str, tuple[Problem, ...]]:
    """Text of a file: UTF-8, with or without a byte order mark."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or raw[:4].count(0) >= 2:
        return "", (
            Problem(file, 1, "the file is UTF-16 or UTF-32 (column 1)", "save it as UTF-8"),
        )
    try:
        return raw.decode("utf-8-sig"), ()
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        return "", (Problem(file, line, f"not UTF-8 (column {column})", "save the file as UTF-8"),)


def compose(text: str, file: str = "<text>") -> Document:
    """Read one YAML document. CRLF and a byte order mark are tolerated."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    bad = _UNPRINTABLE.search(text)
    if bad:
        line, column = _place(text, bad.start())
        what = f"character U+{ord(bad.group()):04X} is not allowed in YAML (column {column})"
        return Document(file, None, (Problem(file, line, what, "remove it"),))
    composer = _Composer(file)
    try:
        root = composer.run(yaml.parse(text.translate(_HIDE), Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        return Document(file, None, (*composer.problems, _syntax_problem(error, text, file)))
    except yaml.YAMLError as error:  # pragma: no cover - the reader's, caught above by characters
        return Document(file, None, (Problem(file, 0, " ".join(str(error).split())),))
    except _RefusedError as refused:
        return Document(file, None, (*composer.problems, refused.problem))
    if root is None:
        return Document(file, None, (Problem(file, 1, "the file is empty"),))
    return Document(file, root, tuple(composer.problems), text)


def _place(text: str, index: int) -> tuple[int, int]:
    return text.count("\n", 0, index) + 1, index - (text.rfind("\n", 0, index) + 1) + 1


class _RefusedError(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


@dataclass(slots=True)
class _Composer:
    """Builds nodes from parser events, with every bound checked as it goes."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    anchors: dict[str, Node | None] = field(default_factory=dict)
    total: int = 0

    def run(self, events: Iterator[Any]) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.refuse(event, "a second document starts here", "a file holds one")
                self.anchors.clear()
            elif not isinstance(
                event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentEndEvent
            ):
                root = self.node(event, events, 0)
        return None if root is None or _is_nothing(root) else root

    def refuse(self, event: Any, message: str, hint: str = "") -> None:
        raise _RefusedError(Problem(self.file, event.start_mark.line + 1, message, hint))

    def note(self, line: int, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.file, line, message, hint))

    def node(self, event: Any, events: Iterator[Any], level: int) -> Node:
        if level > MAX_LEVELS:
            self.refuse(event, f"nested deeper than {MAX_LEVELS} levels")
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        mark = event.start_mark
        made = Node(mark.line + 1, mark.column + 1, mark.index, event.end_mark.index)
        if event.anchor:
            self.anchors[event.anchor] = None  # until it is whole
        if isinstance(event, yaml.ScalarEvent):
            self.scalar(made, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            made.flow = bool(event.flow_style)
            self.sequence(made, events, level)
        else:
            made.flow = bool(event.flow_style)
            self.mapping(made, events, level)
        if event.anchor:
            self.anchors[event.anchor] = made
        return made

    def spend(self, event: Any, weight: int) -> None:
        self.total += weight
        if self.total > MAX_EXPANDED_BYTES:
            self.refuse(event, "the file expands past 10 MB", "use fewer or smaller aliases")

    def alias(self, event: Any) -> Node:
        name = event.anchor
        if name not in self.anchors:
            self.refuse(event, f"unknown alias `*{name}`", "define it above with `&" + name + "`")
        target = self.anchors[name]
        if target is None:
            self.refuse(event, f"anchor `{name}` contains itself")
        assert target is not None
        self.spend(event, target.weight)
        mark = event.start_mark
        return replace(
            target,
            line=mark.line + 1,
            column=mark.column + 1,
            start=mark.index,
            end=_index(event.end_mark),
            alias=True,
        )

    def scalar(self, made: Node, event: Any) -> None:
        text = event.value.translate(_SHOW)
        made.style = event.style or ""
        made.weight += len(text)
        self.spend(event, made.weight)
        made.value = self.value_of(event, text)

    def value_of(self, event: Any, text: str) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            return resolve(text) if event.implicit[0] else text
        value = resolve(text)
        wanted = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None)}
        kind = wanted.get(tag.removeprefix(_CORE)) if tag.startswith(_CORE) else None
        if kind is None:
            self.note(
                event.start_mark.line + 1, f"tag `{_shown(tag)}` is not understood", "remove it"
            )
            return text
        if kind is str:
            return text
        if kind is float and isinstance(value, SourceInt):
            return float(value)
        if not isinstance(value, kind):
            self.note(event.start_mark.line + 1, f"`{text[:40]}` is not of type `{_shown(tag)}`")
        return value

    def sequence(self, made: Node, events: Iterator[Any], level: int) -> None:
        made.items = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                made.end = _index(event.end_mark)
                self.spend(event, _NODE_COST)
                return
            item = self.node(event, events, level + 1)
            made.weight += item.weight
            made.items.append(item)

    def mapping(self, made: Node, events: Iterator[Any], level: int) -> None:
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                made.end = _index(event.end_mark)
                break
            mark, key_end = event.start_mark, _index(event.end_mark)
            key = self.key(event, events, level)
            node = self.node(next(events), events, level + 1)
            made.weight += node.weight + len(key)
            self.spend(event, _NODE_COST + len(key))
            if key == "<<" and isinstance(event, yaml.ScalarEvent) and not event.style:
                merged += node.items if node.items is not None else [node]
            elif key in entries:
                self.twice(key, entries[key], mark.line + 1, node)
            else:
                entries[key] = Entry(mark.line + 1, mark.column + 1, mark.index, key_end, node)
        for base in merged:
            if base.entries is None:
                self.note(base.line, "`<<` takes a mapping or a list of mappings")
            for key, entry in (base.entries or {}).items():
                entries.setdefault(key, replace(entry, merged=True))
        made.entries = entries

    def key(self, event: Any, events: Iterator[Any], level: int) -> str:
        """A key as it is written: `on`, `yes` and `1` are words here."""
        if isinstance(event, yaml.ScalarEvent):
            if event.anchor:
                self.node(event, events, level)
            return str(event.value.translate(_SHOW))
        if isinstance(event, yaml.AliasEvent):
            target = self.alias(event)
            return str(getattr(target.value, "text", target.value))
        hint = "quote a value that begins with `{{`, `{` or `[`"
        self.refuse(event, "a key must be a plain word, not a list or a mapping", hint)
        raise AssertionError

    def twice(self, key: str, first: Entry, line: int, node: Node) -> None:
        hint = f"first on line {first.key_line}; keep one of them"
        values = f": `{_brief(first.node)}` and `{_brief(node)}`"
        self.note(line, f"key `{key}` is given twice{values}", hint)


def _is_nothing(root: Node) -> bool:
    """An empty document; a written `null` is a value."""
    scalar = root.entries is None and root.items is None
    return scalar and root.value is None and root.start == root.end


def _index(mark: Any) -> int:
    return int(mark.index)


def _brief(node: Node) -> str:
    if node.entries is not None:
        return "{…}"
    if node.items is not None:
        return "[…]"
    return " ".join(str(getattr(node.value, "text", node.value)).split())[:40]


def _shown(tag: str) -> str:
    return tag.replace(_CORE, "!!")


_ESCAPES = "in double quotes a backslash starts an escape: single quotes take 'C:\\Users' as it is"
_QUOTE = "check the indentation, and quote values that begin with `{{` or a quote"
_HINTS = (
    ("cannot start any token", "quote a value that starts with `%`, `@` or a backtick"),
    (
        "mapping values are not allowed",
        "quote a value that has `: ` in it, and check the indentation",
    ),
    ("did not find expected '-' indicator", "check the indentation of this list"),
    ("expected <block end>", "check the indentation"),
    ("did not find expected key", _QUOTE),
    ("unknown escape character", _ESCAPES),
    ("hexdecimal", _ESCAPES),
    ("unexpected end of stream", "a quote is not closed"),
    ("did not find expected ',' or", "close the bracket, or quote a value that begins with `[`"),
    ("undefined tag handle", "quote a value that begins with `!`"),
)


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    """One sentence for a syntax error, with the line the person should look at."""
    mark: Any = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 0
    column = mark.column + 1 if mark else 0
    said = (error.problem or error.context or "cannot be read").rstrip(".")
    lines = text.split("\n")
    if line > len(lines) or (line == len(lines) and not lines[-1] and line > 1):
        line = max(1, line - 1)  # the end of the file: the last line is what can be looked at
    here = lines[line - 1] if 0 < line <= len(lines) else ""
    for number in (line, line - 1):
        indent = re.match(r"\s*", lines[number - 1]) if 0 < number <= len(lines) else None
        if indent and "\t" in indent.group():
            column = indent.group().index("\t") + 1
            return Problem(
                file, number, f"a tab is used for indentation (column {column})", "use spaces"
            )
    if "context" in said and error.context:
        said = error.context
    hint = next((hint for words, hint in _HINTS if words in said), "")
    context: Any = error.context_mark
    where = (
        f", in what began on line {context.line + 1}"
        if context and context.line + 1 != line
        else ""
    )
    if "{{" in here and not hint.startswith("in double"):
        hint = "quote a value that begins with `{{`"
    return Problem(file, line, f"not valid YAML: {said} (column {column}{where})", hint)
