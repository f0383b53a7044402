"""A CSV file: its delimiter, whether it has a header, and its records beside their own text.

Records keep the text they were read from, so a row that is only moved or kept stays as it was.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

from openry.capability.builtin.failure import ToolFailure, nearest, note
from openry.capability.builtin.lines import raw_lines
from openry.capability.builtin.numbers import parse_number

_SAMPLE = 200
_DELIMITERS = (",", ";", "\t", "|")
csv.field_size_limit(sys.maxsize)


class Record:
    """One row: its cells and the text it stood in, without the line end."""

    __slots__ = ("cells", "text")

    def __init__(self, cells: list[str], text: str) -> None:
        self.cells = cells
        self.text = text

    def cell(self, place: int) -> str:
        return self.cells[place] if place < len(self.cells) else ""


class Table:
    """A CSV file being read once, from top to bottom.

    Attributes:
        header: The first record where it holds the names, else None.
        names: Column names; `column_1` and so on without a header.
    """

    def __init__(
        self, path: str, *, header: str = "auto", delimiter: str = "auto", column: object = None
    ) -> None:
        self.path = path
        text = _decoded(raw_lines(path))
        head = list(islice(text, _SAMPLE))
        self.end = "\r\n" if head and head[0].endswith("\r\n") else "\n"
        self.delimiter = sniffed(head) if delimiter == "auto" else delimiter
        if len(self.delimiter) != 1:
            raise ToolFailure(
                "bad_arguments", f"`delimiter` must be one character, got `{delimiter}`"
            )
        self._records = _records(head, text, self.delimiter)
        first = list(islice(self._records, 50))
        self.header = first.pop(0) if first and self._has_header(first, header, column) else None
        self._waiting = first
        widest = max((len(record.cells) for record in first), default=0)
        self.names = (
            [cell.strip() for cell in self.header.cells]
            if self.header
            else [f"column_{place}" for place in range(1, widest + 1)]
        )

    def _has_header(self, first: list[Record], header: str, column: object) -> bool:
        if header != "auto":
            return header == "present"
        named = isinstance(column, str) and not column.strip().isdigit()
        there = (named and column in [c.strip() for c in first[0].cells]) or looks_like_header(
            first[0].cells
        )
        said = "the first row is taken as the header" if there else "there is no header row"
        note(f"`{self.path}`: {said}")
        return there

    def __iter__(self) -> Iterator[Record]:
        while self._waiting:
            yield self._waiting.pop(0)
        yield from self._records

    def place(self, column: str | int) -> int:
        """Where a column is, counted from 0: by name, else by its number counted from 1."""
        wanted = str(column).strip()
        if self.header is not None:
            for same in (lambda name: name == wanted, lambda name: _plain(name) == _plain(wanted)):
                found = [place for place, name in enumerate(self.names) if same(name)]
                if found:
                    return found[0]
        if wanted.lstrip("-").isdigit():
            return self._by_number(int(wanted))
        if self.header is None:
            raise ToolFailure(
                "bad_arguments",
                f"`{self.path}` has no header, so name a column by its number, not `{wanted}`",
            )
        hint = nearest(wanted, self.names)
        raise ToolFailure("bad_arguments", f"`{self.path}` has no column `{wanted}`{hint}")

    def _by_number(self, number: int) -> int:
        if 1 <= number <= len(self.names):
            return number - 1
        raise ToolFailure(
            "bad_arguments",
            f"`{self.path}` has {len(self.names)} columns, counted from 1; there is no {number}",
        )

    def line(self, cells: Iterable[str]) -> bytes:
        """A row of cells as the file would write it."""
        out = io.StringIO()
        csv.writer(out, delimiter=self.delimiter, lineterminator=self.end).writerow(cells)
        return out.getvalue().encode("utf-8", "surrogateescape")

    def same(self, record: Record) -> bytes:
        """A record as it stood in the file."""
        return (record.text + self.end).encode("utf-8", "surrogateescape")

    def head(self) -> Iterator[bytes]:
        """The header as it stood in the file, if there is one."""
        if self.header is not None:
            yield self.same(self.header)


def _plain(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def looks_like_header(cells: list[str]) -> bool:
    """No empty cell, no number, no name twice."""
    names = [cell.strip() for cell in cells]
    return (
        all(names)
        and len(set(names)) == len(names)
        and all(parse_number(name) is None for name in names)
    )


def sniffed(head: list[str]) -> str:
    """The delimiter that parts the first lines into the same number of fields, at least two."""
    best, most = ",", 0.0
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in csv.reader(head, delimiter=delimiter) if row]
        if widths and widths[0] > 1:
            same = sum(width == widths[0] for width in widths) / len(widths)
            score = same * 1000 + widths[0]
            if score > most:
                best, most = delimiter, score
    return best


def _decoded(raw: Iterable[bytes]) -> Iterator[str]:
    for line in raw:
        yield line.decode("utf-8", "surrogateescape")


def _records(head: list[str], rest: Iterator[str], delimiter: str) -> Iterator[Record]:
    """Records with their text; empty lines are left out."""
    taken: list[str] = []

    def remembered() -> Iterator[str]:
        for source in (head, rest):
            for line in source:
                taken.append(line)
                yield line

    try:
        for cells in csv.reader(remembered(), delimiter=delimiter):
            text = "".join(taken).rstrip("\r\n")
            taken.clear()
            if len(cells) > 1 or text.strip():
                yield Record(cells, text)
    except csv.Error as error:
        raise ToolFailure("bad_arguments", f"this is no CSV: {error}") from None
