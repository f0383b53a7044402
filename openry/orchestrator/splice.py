"""Cutting new text into a workflow's text, line by line.

Places come from the parsed document; text is written as `canonical` writes it, at the place's
own indentation. Line ends and a byte order mark are kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from openry.errors import BadFileError
from openry.orchestrator import canonical, keypaths
from openry.orchestrator.yaml12 import Document, Entry, Node, plain, to_data


class Splice:
    """One text to be cut once."""

    def __init__(self, document: Document, text: str) -> None:
        self.text = document.text  # newlines are \n here, as the places count them
        self.original = text
        root = document.root
        assert root is not None and root.entries is not None
        self.entry = root.entries["sub_steps"]
        self.steps = self.entry.node
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    # -- whole steps ----------------------------------------------------------------------------

    def insert(self, place: int, step: dict[str, Any], *, parted: bool = True) -> str:
        """Put a step in; `parted` follows the file's habit of blank lines between steps."""
        items = self._items()
        if self._in_one_piece():
            return self._rewrite_steps([*items[:place], step, *items[place:]])
        lines = canonical.item_lines(canonical.ordered_step(step), self._dash_column())
        spaced = parted and self._spaced()
        if place == 0:
            at = self._first_line()
            return self._cut_lines(at, at, [*lines, ""] if spaced else lines)
        at = self._end_line(place - 1) + 1
        return self._cut_lines(at, at, ["", *lines] if spaced else lines)

    def replace(self, place: int, step: dict[str, Any]) -> str:
        items = self._items()
        if self._in_one_piece():
            return self._rewrite_steps([*items[:place], step, *items[place + 1 :]])
        lines = canonical.item_lines(canonical.ordered_step(step), self._dash_column())
        return self._cut_lines(self._dash_line(place), self._end_line(place) + 1, lines)

    def remove(self, place: int) -> str:
        items = self._items()
        if self._in_one_piece():
            return self._rewrite_steps([*items[:place], *items[place + 1 :]])
        start, end = self._dash_line(place), self._end_line(place) + 1
        first = self._first_line()
        while start > first and self._line(start - 1).lstrip().startswith("#"):
            start -= 1
        if end < len(self.line_starts) and not self._line(end).strip():
            end += 1  # the blank line that parted it from the next
        elif start > first and not self._line(start - 1).strip():
            start -= 1
        return self._cut_lines(start, end, [])

    def _items(self) -> list[Any]:
        return [plain(to_data(item)) for item in self.steps.items or ()]

    def _in_one_piece(self) -> bool:
        """Whether the list of steps has no lines of its own: `[…]`, or an alias."""
        return self.steps.flow or self.steps.alias or not self.steps.items

    def _rewrite_steps(self, steps: list[Any]) -> str:
        lines = [
            line for step in steps for line in canonical.item_lines(canonical.ordered_step(step), 2)
        ]
        at = self._after_colon(self.entry)
        end = max(self.steps.end, at)
        return self._cut(at, end, "\n" + "\n".join(lines))

    # -- values ---------------------------------------------------------------------------------

    def put(self, step: int, path: Sequence[str | int], value: Any) -> str:
        """Set the value at `path` below a step."""
        node = (self.steps.items or [])[step]
        if self._in_one_piece() or node.alias or node.flow or node.entries is None:
            raise BadFileError("the step has no lines of its own")
        return self._put(node, path, value)

    def _put(self, node: Node, path: Sequence[str | int], value: Any) -> str:
        part, rest = path[0], path[1:]
        if node.entries is not None:
            entry = node.entries.get(str(part))
            if entry is None or entry.merged:
                return self._add_key(node, str(part), _wrapped(rest, value))
            if not rest or not _has_lines(entry.node):
                return self._replace_value(entry, _with(entry.node, rest, value))
            return self._put(entry.node, rest, value)
        items = node.items or []
        assert isinstance(part, int)
        if part == len(items):
            return self._add_item(node, _wrapped(rest, value))
        if not rest or not _has_lines(items[part]):
            return self._replace_item(node, part, _with(items[part], rest, value))
        return self._put(items[part], rest, value)

    def drop(self, step: int, path: Sequence[str | int]) -> str:
        """Take the key or item at `path` below a step away."""
        node = (self.steps.items or [])[step]
        if self._in_one_piece() or node.alias or node.flow or node.entries is None:
            raise BadFileError("the step has no lines of its own")
        return self._drop(node, path)

    def _drop(self, node: Node, path: Sequence[str | int]) -> str:
        part, rest = path[0], path[1:]
        if node.entries is not None:
            entry = node.entries[str(part)]
            if not rest:
                return self._drop_entry(node, entry)
            if not _has_lines(entry.node):
                return self._replace_value(entry, _without(entry.node, rest))
            return self._drop(entry.node, rest)
        items = node.items or []
        assert isinstance(part, int)
        if not rest:
            return self._drop_item(node, part)
        if not _has_lines(items[part]):
            return self._replace_item(node, part, _without(items[part], rest))
        return self._drop(items[part], rest)

    def _replace_value(self, entry: Entry, value: Any) -> str:
        at = self._after_colon(entry)
        end = max(at, self._content_end(entry.node))
        indent = entry.key_column - 1
        head, *body = canonical.entry_lines("k", value, indent)
        return self._cut_value(at, end, head[indent + 2 :], body)

    def _replace_item(self, node: Node, place: int, value: Any) -> str:
        item = (node.items or [])[place]
        indent = node.column - 1
        line = self._item_line(node, place)
        at = self.line_starts[line] + indent + 1
        head, *body = canonical.item_lines(value, indent)
        return self._cut_value(at, max(at, self._content_end(item)), head[indent + 1 :], body)

    def _cut_value(self, at: int, end: int, head: str, body: list[str]) -> str:
        """Put a value's first line and the others; a comment behind the old one stays behind."""
        eol = self._eol(end)
        comment = self.text[end:eol]
        keep = comment if comment.strip().startswith("#") else ""
        lines = [head + keep, *body]
        return self._cut(at, eol if keep or not comment.strip() else end, "\n".join(lines))

    def _add_key(self, node: Node, key: str, value: Any) -> str:
        """A new key stands after the last one that belongs before it."""
        own = [entry for entry in (node.entries or {}).values() if not entry.merged]
        if not own:
            raise BadFileError("the mapping has no keys of its own")
        rank = canonical.step_rank(key)
        is_step = any(node is item for item in self.steps.items or ())
        before = [e for k, e in (node.entries or {}).items()
                  if not e.merged and canonical.step_rank(k) <= rank]  # fmt: skip
        after = max(before or own[:1], key=lambda e: e.key_start) if is_step else own[-1]
        indent = own[0].key_column - 1
        at = self._line_of(self._entry_end(after)) + 1
        return self._cut_lines(at, at, canonical.entry_lines(key, value, indent))

    def _add_item(self, node: Node, value: Any) -> str:
        items = node.items or []
        at = self._line_of(self._content_end(items[-1])) + 1
        return self._cut_lines(at, at, canonical.item_lines(value, node.column - 1))

    def _drop_entry(self, node: Node, entry: Entry) -> str:
        first = min(e.key_start for e in (node.entries or {}).values() if not e.merged)
        start = self._line_of(entry.key_start)
        end = self._line_of(self._entry_end(entry)) + 1
        shares_line = self.text[self.line_starts[start] : entry.key_start].strip()
        if entry.key_start == first and shares_line:
            raise BadFileError("the key stands behind the step's dash")
        return self._cut_lines(start, end, [])

    def _drop_item(self, node: Node, place: int) -> str:
        items = node.items or []
        if len(items) == 1:
            raise BadFileError("the list would be empty")
        start = self._item_line(node, place)
        return self._cut_lines(start, self._line_of(self._content_end(items[place])) + 1, [])

    # -- places -----------------------------------------------------------------------------

    def _line_of(self, index: int) -> int:
        """0-based line of a place in the text."""
        return bisect_right(self.line_starts, index) - 1

    def _line(self, number: int) -> str:
        start = self.line_starts[number]
        return self.text[start : self._eol(start)]

    def _eol(self, index: int) -> int:
        end = self.text.find("\n", index)
        return end if end >= 0 else len(self.text)

    def _after_colon(self, entry: Entry) -> int:
        return self.text.index(":", entry.key_end) + 1

    def _entry_end(self, entry: Entry) -> int:
        return max(self._after_colon(entry) - 1, self._content_end(entry.node) - 1)

    def _content_end(self, node: Node) -> int:
        """The place after a value's last character, blank lines and comments behind it left out."""
        if node.alias or node.flow:
            return node.end
        if node.entries is not None:
            own = [entry for entry in node.entries.values() if not entry.merged]
            ends = [self._entry_end(entry) + 1 for entry in own]
            return max(ends, default=node.end)
        if node.items is not None:
            return max((self._content_end(item) for item in node.items), default=node.end)
        if node.style in ("|", ">"):
            header = self.text[node.start : self._eol(node.start)]
            kept = "+" in header.split("#")[0]
            body = self.text[node.start : node.end]
            return node.start + len(body.rstrip("\n") if kept else body.rstrip())
        return node.start if node.value is None and node.start == node.end else node.end

    def _dash_column(self) -> int:
        return self.steps.column - 1

    def _item_line(self, node: Node, place: int) -> int:
        """0-based line with the dash of an item of a block list."""
        column = node.column - 1
        line = self._line_of((node.items or [])[place].start)
        while line >= 0:
            text = self._line(line)
            if text[column : column + 1] == "-" and not text[:column].strip(" -"):
                return line
            line -= 1
        raise BadFileError("the list's dash cannot be found")

    def _dash_line(self, place: int) -> int:
        return self._item_line(self.steps, place)

    def _end_line(self, place: int) -> int:
        return self._line_of(self._content_end((self.steps.items or [])[place]) - 1)

    def _first_line(self) -> int:
        """The line after `sub_steps:`."""
        return self._line_of(self._after_colon(self.entry) - 1) + 1

    def _spaced(self) -> bool:
        """Whether blank lines part the steps."""
        places = range(1, len(self.steps.items or ()))
        gaps = [(self._end_line(place - 1) + 1, self._dash_line(place)) for place in places]
        return any(not self._line(n).strip() for start, end in gaps for n in range(start, end))

    # -- cuts -------------------------------------------------------------------------------

    def _cut_lines(self, start: int, end: int, lines: list[str]) -> str:
        """Lines `start` up to `end` become `lines`."""
        total = len(self.line_starts)
        if start >= total:  # behind a last line without its end
            return self._cut(len(self.text), len(self.text), "".join("\n" + line for line in lines))
        at = self.line_starts[start]
        until = self.line_starts[end] if end < total else len(self.text)
        new = "".join(line + "\n" for line in lines)
        if at == len(self.text) and self.text and not self.text.endswith("\n"):
            new = "\n" + new
        return self._cut(at, until, new)

    def _cut(self, start: int, end: int, new: str) -> str:
        """The original text with `start` to `end` of the normalised one replaced."""
        body = self.original.removeprefix("\ufeff")
        bom = self.original[: len(self.original) - len(body)]
        if "\r" not in body:
            return bom + body[:start] + new + body[end:]
        places = _original_places(body)
        ending = "\r\n" if "\r\n" in body else "\r"
        return bom + body[: places[start]] + new.replace("\n", ending) + body[places[end] :]


def _original_places(body: str) -> list[int]:
    """For each place of the text with plain newlines, the place in the text as it is."""
    places: list[int] = []
    at = 0
    while at < len(body):
        places.append(at)
        at += 2 if body.startswith("\r\n", at) else 1
    places.append(len(body))
    return places


def _has_lines(node: Node) -> bool:
    """Whether a value has lines of its own to cut between."""
    if node.alias or node.flow:
        return False
    return bool(node.entries or node.items)


def _wrapped(path: Sequence[str | int], value: Any) -> Any:
    """`value` in the mappings and lists that the rest of its path asks for."""
    for part in reversed(path):
        value = {part: value} if isinstance(part, str) else [value]
    return value


def _with(node: Node, path: Sequence[str | int], value: Any) -> Any:
    if not path:
        return value
    data = plain(to_data(node))
    if not isinstance(data, dict | list):
        return _wrapped(path, value)
    keypaths.put(data, path, value)
    return data


def _without(node: Node, path: Sequence[str | int]) -> Any:
    data = plain(to_data(node))
    holder = keypaths.at(data, path[:-1])
    del holder[path[-1]]
    return data
