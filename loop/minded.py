"""Whether a reading minds every column that a text says of the tables it reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loop.binding.columns import several, tells
from loop.binding.costs import is_meant
from loop.binding.scene import cells_under
from loop.mentions import Kind, Mention
from loop.tables import name_among
from loop.values import Candidate, FileInfo, Survey
from loop.wording import Op


def minds_columns(
    ops: Sequence[Op], text: str, mentions: Sequence[Mention], survey: Survey
) -> bool:
    """False where a column or a cell is said that no operation of `ops` uses: `names` may be the
    result's lines, or what stands under `name`; of `the managers whose …` not all are meant."""
    tables = {name for op in ops for name in op.inputs}
    infos = [info for name in tables if (info := survey.get(name)) and info.kind == "csv"]
    if any(op.kind in ("table_join", "headers", "json_keys") for op in ops):
        return True  # it is about all of them
    columns = [column for info in infos for column in info.columns]
    said = {word for op in ops for value in op.args.values() for word in _words(value)}
    used = {name_among(list(dict.fromkeys(columns)), word) for word in said}
    if not all(column in used or not _is_said(column, text, mentions) for column in columns):
        return False
    folded = {word.strip().casefold() for word in said}
    return not any(_is_said(c, text, mentions) for info in infos for c in _cells(info) - folded)


def _cells(info: FileInfo) -> set[str]:
    """The cells of a table that say which they are, and that are no column's name."""
    found: set[str] = set()
    for column in info.columns:
        cells = set(cells_under(info, column))
        signs = all(re.fullmatch("[\u4e00-\u9fff]", cell) for cell in cells)  # such as 男, 女
        found |= {cell for cell in cells if signs or tells(cell)}
    return found - {column.casefold() for column in info.columns}


def unminded_cells(
    candidate: Candidate, text: str, mentions: Sequence[Mention], survey: Survey
) -> tuple[str, ...]:
    """The columns and cells of its tables that a text says and that a plan makes nothing of."""
    names = {name for goal in candidate.goals for name in goal.inputs}
    infos = [info for name in sorted(names) if (info := survey.get(name)) and info.kind == "csv"]
    used = {w.casefold() for g in candidate.goals for v in g.args.values() for w in _words(v)}
    found: list[str] = []
    for info in infos:
        columns = {column.casefold() for column in info.columns}
        found += [cell for cell in sorted(_cells(info) - used) if _is_said(cell, text, mentions)]
        if any(goal.tool == "csv_sort" for goal in candidate.goals):
            found += [c for c in columns - used if _is_said(c, text, mentions)]
    return tuple(found)


def _words(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list | tuple) else (value,):
        if isinstance(each, Mapping):
            yield from (word for inner in each.values() for word in _words(inner))
        else:
            yield from str(each).split(".")


def _is_said(column: str, text: str, mentions: Sequence[Mention]) -> bool:
    hidden = [m for m in mentions if m.kind in (Kind.FILE, Kind.NEW_FILE, Kind.LITERAL)]
    pattern = rf"(?<![A-Za-z0-9_]){several(column)}(?![A-Za-z0-9_])"
    return any(
        is_meant(column, text, match.start())
        for match in re.finditer(pattern, text, re.IGNORECASE)
        if not any(m.start <= match.start() < m.end for m in hidden)
    )
