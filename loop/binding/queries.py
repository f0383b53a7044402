"""Paths into JSON, SQL statements and patterns of file names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from loop.binding.columns import spoken
from loop.binding.scene import Choice, Slot, from_mention
from loop.mentions import Kind

_SELECT = re.compile(r"(?i)\bselect\b.+\bfrom\b.+")
#: What leads from a statement to the file that it is about, or that its rows go to.
_TO_FILE = re.compile(
    r"(?i)[\s,;]*(?:\b(?:and|then)\s+)?(?:\b(?:save|write|put|keep|store)\b[\w\s]*?)?"
    r"\b(?:on|in|against|over|of|to|into|as)\b(?:\s+(?:the|file|database|db))*\s*$"
)

_OF_ELEMENT = re.compile(r"^(?:.*\.)?\d+\.")


def queries(slot: Slot) -> Iterator[Choice]:
    """Dotted paths into the JSON input whose last key the text names, the most words first."""
    if not any(info.kind == "json" for info in slot.infos):
        yield from _statement(slot)
        return
    yield from map(from_mention, slot.scene.of(Kind.LITERAL))
    for value in _heads_parsed(slot):
        paths = [p for p in _paths(value) if slot.parameter.required or _is_list(value, p)]
        said = [(path, _said_keys(path, slot.scene)) for path in paths]
        ranked = sorted((p for p in said if p[1]), key=lambda p: (-p[1], p[0].count(".")))
        if slot.parameter.role == "field":  # one of each element, whatever its place
            fields = dict.fromkeys(_OF_ELEMENT.sub("", path) for path, _ in ranked)
            yield from (Choice(field, cost=0.02 * i) for i, field in enumerate(fields))
            continue
        yield from (Choice(path, cost=0.02 * i) for i, (path, _) in enumerate(ranked))


def _statement(slot: Slot) -> Iterator[Choice]:
    """A SELECT as it is said, as far as the file named after it."""
    match = _SELECT.search(slot.scene.text)
    if match is None:
        return
    after = [m.start for m in slot.scene.of(Kind.FILE, Kind.NEW_FILE) if m.start > match.start()]
    told = slot.scene.text[match.start() : min(after, default=match.end())]
    if after:
        told = _TO_FILE.sub("", told)
    if _SELECT.search(told):
        yield Choice(told.strip(" '\"`,;"))


def _heads_parsed(slot: Slot) -> Iterator[Any]:
    for info in slot.infos:
        try:
            yield json.loads(info.head)
        except ValueError:
            continue


def _paths(value: Any, prefix: str = "") -> Iterator[str]:
    items: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        items = [(str(key), inner) for key, inner in value.items()]
    elif isinstance(value, list):
        items = [(str(index), inner) for index, inner in enumerate(value[:20])]
    for key, inner in items:
        path = f"{prefix}.{key}" if prefix else key
        yield path
        yield from _paths(inner, path)


def _is_list(value: Any, path: str) -> bool:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return isinstance(value, list)


def _said_keys(path: str, scene: Any) -> int:
    """How many keys of `path` the text says outside of file names; 0 without the last one."""
    said = [
        any(
            not scene.names_file(match.start())
            for match in re.finditer(
                rf"(?<![A-Za-z0-9]){spoken(key)}(?![A-Za-z0-9])", scene.text, re.IGNORECASE
            )
        )
        for key in path.split(".")
    ]
    return sum(said) if said[-1] else 0


def patterns(slot: Slot) -> Iterator[Choice]:
    """Patterns of file names, from a named kind of file or a quoted pattern."""
    yield from map(from_mention, slot.scene.of(Kind.EXTENSION))
    for m in slot.scene.of(Kind.LITERAL):
        if re.search(r"[*?]", m.text):
            yield from_mention(m)
        elif m.text.startswith("."):
            yield Choice(f"*{m.text}", frozenset({m.start}))
