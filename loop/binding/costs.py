"""What speaks against a filled tool: named things it leaves unused, files it does not suit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loop.binding.columns import column_numbers, named_columns, tells
from loop.binding.scene import Scene, Slot, cells_under, is_number, rows_of
from loop.binding.words import EMPTY
from loop.mentions import Kind
from loop.values import FileInfo
from openry.capability.definition import ToolDefinition

_UNUSED = {Kind.LITERAL: 0.5, Kind.NUMBER: 0.35, Kind.EXTENSION: 0.3, Kind.FILE: 0.6}
_COUNTED_COLUMN = re.compile(r"(?i)\s*(?:column|field|col\b|[列栏])")
_CONTAINING = re.compile(
    r"""(?ix)\b(?:contain(?:s|ing)?|mention(?:s|ing)?|(?:start|end|begin)(?:s|ning|ing)?\ with
    |with(?:out)?\ the\ word|that\ says?)\b(?!\ of\b)|包含|含有|提到"""
)
#: A part of a line that is told exactly: no other tool is asked with it.
_EDGE = re.compile(r"(?i)\b(?:start|begin|end)(?:s|ning|ing)? (?:with|in)\b")


#: Tools that leave rows or columns of a table, and words that ask for a figure instead.
_ROWS = ("csv_filter", "csv_sort", "csv_column", "csv_columns")
_COUNTED = re.compile(
    r"(?i)\b(?:how many|(?<!the )number of|the number of|count the|add up)\b"
    r"|(?:^|[,;.:]\s*|\b(?:the|and|get|find|take)\s+)(?:sum|average|mean|total) (?:of )?(?:the )?\w"
    r"|多少|总和|平均|数量"
)


def no_figure(tool: ToolDefinition, scene: Scene) -> float:
    """What it costs that a tool leaves rows or columns where a figure is asked for."""
    return 0.25 if tool.name in _ROWS and _COUNTED.search(scene.veiled) else 0.0


def unused(scene: Scene, used: frozenset[int]) -> float:
    """What the named things that nothing used cost. An ordinal counts only before `column`."""
    left = [m for m in scene.mentions if m.start not in used]
    ordinals = [m for m in left if m.kind is Kind.ORDINAL]
    counted = [m for m in ordinals if _COUNTED_COLUMN.match(scene.text[m.end :])]
    return sum(_UNUSED.get(m.kind, 0.0) for m in left) + 0.4 * len(counted)


def misfit(
    tool: ToolDefinition, scene: Scene, inputs: tuple[str, ...], output: str | None
) -> float:
    """What it costs that the tool suits the input, the fragment or the output badly."""
    slot = Slot(tool, "", scene, inputs)
    cost = _wrong_pack(tool, slot)
    takes_columns = tool.with_role("column", "columns", "query", "group", "value")
    if not takes_columns and tool.pack == "data" and named_columns(slot):
        cost += 0.3
    if not tool.with_role("needle", "value") and _CONTAINING.search(scene.veiled):
        cost += 0.6 if _EDGE.search(scene.veiled) else 0.3
    if output and output in inputs and not scene.answer:
        cost += 0.6
    cost += no_figure(tool, scene)
    if tool.pack == "files" and inputs and tool.name in {"copy", "move", "delete"}:
        cost += 0.25
    if tool.returns.format == "none" and output and not inputs and "." in output:
        cost += 2.0
    return cost


def _wrong_pack(tool: ToolDefinition, slot: Slot) -> float:
    if tool.pack != "text":
        return 0.0
    cost = 0.6 if any(info.kind == "json" for info in slot.infos) else 0.0
    tables = [i for i in slot.infos if i.kind == "csv" and _is_wide(i)]
    if tables:
        cost += 0.5 if tool.name.endswith(("_numbers", "_number")) else 0.1
        cost += 0.4 if named_columns(slot) or any(column_numbers(slot)) else 0.0
    return cost


#: Column names that are everyday words: only said where something points to them.
_POINTING = re.compile(
    r"(?i)(?:\b(?:the|their|its|his|her|only|just|whose|by|each|every|per|of)\s+|的\s*)$"
)
_OF = re.compile(r"(?i)\w+\s+(?:of|from)\b")
#: What it costs to leave a column or a cell that is said out of account.
_COLUMN_UNSAID, _CELL_UNSAID = 0.2, 0.45


@dataclass(frozen=True, slots=True)
class Said:
    """Columns and cells of a table that a text says, in small letters."""

    columns: frozenset[str] = frozenset()
    cells: frozenset[str] = frozenset()

    def unused(self, args: Mapping[str, Any]) -> float:
        """What it costs that a tool for tables makes nothing of some of them."""
        values = [each for value in args.values() for each in _listed(value)]
        used = {str(value).casefold() for value in values}
        columns = min(len(self.columns - used), 2)
        return _COLUMN_UNSAID * columns + _CELL_UNSAID * bool(self.cells - used)


def said_of(tool: ToolDefinition, scene: Scene, inputs: tuple[str, ...]) -> Said:
    """What a text says of the table that `tool` would read; nothing for other tools."""
    if not tool.name.startswith("csv_"):
        return Said()
    slot = Slot(tool, "", scene, inputs)
    takes_columns = tool.with_role("column", "columns", "group")
    columns = {name.casefold() for _, name in said_columns(slot)} if takes_columns else ()
    return Said(frozenset(columns), frozenset(said_cells(slot)))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def said_columns(slot: Slot) -> list[tuple[int, str]]:
    """`named_columns` without everyday words that may mean something else."""
    text = slot.scene.text
    return [(at, name) for at, name in named_columns(slot) if is_meant(name, text, at)]


def is_meant(column: str, text: str, at: int) -> bool:
    """Whether a column's name at `at` speaks of the column; everyday words must be pointed to."""
    if column.casefold() not in EMPTY:
        return True
    return bool(_POINTING.search(text[:at]) or _OF.match(text[at:]))


def said_cells(slot: Slot) -> list[str]:
    """The cells, in small letters, that the text says as words and that are no column's name."""
    columns = {name.casefold() for name in slot.columns}
    cells = {
        cell
        for info in slot.infos
        if info.kind == "csv"
        for name in info.columns
        for cell in cells_under(info, name)
    }
    return sorted(cell for cell in cells - columns if tells(cell) and _is_word(cell, slot.scene))


def _is_word(cell: str, scene: Scene) -> bool:
    """Whether the text says a cell outside of file names."""
    places = re.finditer(rf"(?<![\w.]){re.escape(cell)}(?![\w])", scene.text, re.IGNORECASE)
    return any(not scene.names_file(match.start()) for match in places)


def _is_wide(info: FileInfo) -> bool:
    return len(info.columns) > 1 or len((rows_of(info) or [[]])[0]) > 1


def strange_values(
    tool: ToolDefinition, scene: Scene, args: Mapping[str, Any], inputs: tuple[str, ...]
) -> float:
    """What it costs that a column does not hold what is looked for, or no numbers to add."""
    column, info = args.get("column"), scene.info(inputs[0]) if inputs else None
    cost = 0.0
    if column is not None and column == args.get("group_by"):
        cost += 1.0
    if "where" in args and args["where"] == "whole" and "needle" not in args:
        cost += 0.3
    if not info or info.kind != "csv" or column not in info.columns:
        return cost
    cells = cells_under(info, str(column))
    numbers = any(map(is_number, cells))
    if "function" in tool.parameters:
        counts = args.get("function") == "count"
        cost += 0.2 if counts and numbers else 0.0
        return cost + (0.5 if cells and not numbers and not counts else 0.0)
    value, op = args.get("value"), args.get("op", "==")
    if not isinstance(value, str):
        nothing = value is None and op not in ("empty", "not_empty")
        return cost + (1.0 if nothing and tool.with_role("value") else 0.0)
    if op in ("==", "!=") and cells and value.casefold() not in cells:
        cost += 0.3
    if op in ("<", "<=", ">", ">=") and (not numbers or not is_number(value)):
        cost += 1.0
    return cost
