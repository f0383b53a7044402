"""Two operations on a table in one breath: which rows, and what of them.

`the names of those in Oslo` says no order of steps and has no place to cut. What chooses the rows
is found first; the text without those words then says what is wanted of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from loop.binding.columns import group, named_columns, several
from loop.binding.costs import no_figure, said_columns, said_of
from loop.binding.files import inputs_of
from loop.binding.filling import fill
from loop.binding.made import as_made
from loop.binding.scene import Filled, Scene, Slot, cells_under, is_number, without_remarks
from loop.choosing import veiled
from loop.mentions import Kind, Mention
from openry.capability.definition import ToolDefinition

#: What chooses rows.
_FIRST = ("csv_filter", "csv_sort")
_HIGH, _LOW = "highest|largest|biggest|greatest|most", "lowest|smallest|least"
_BEST = re.compile(rf"(?i)\b(?:(?P<high>{_HIGH})|{_LOW})\s+(?P<column>\w[\w ]*)")
_COUNTING = re.compile(r"(?i)\b(?:how many|number of|count)\b|多少|几[个人行条]|数量|个数")
_FIGURE = re.compile(
    r"(?i)\b(?:sum|total|add(?:ed)? up|average|mean|highest|lowest|largest|smallest|max(?:imum)?"
    r"|min(?:imum)?)\b|总和|合计|平均|最大|最小|最高|最低"
)
_SORTING = re.compile(r"(?i)\b(?:sort|order|rank|arrange)\w*\b|排序|排列")
_COMPARISONS = ("<", "<=", ">", ">=")
#: So many ways to choose the rows are followed.
_WAYS = 3


@dataclass(frozen=True, slots=True)
class Pair:
    """Two operations that one fragment says: the second works on what the first leaves."""

    first: ToolDefinition
    choosing: Filled
    second: ToolDefinition
    wanted: Filled
    scene: Scene  #: what the second was filled from

    @property
    def alike(self) -> tuple[str, ...]:
        """Tools whose wordings set the tone: `the highest` alone is a figure."""
        best = self.choosing.args.get("count") == 1
        return (self.first.name, self.second.name, *(["csv_aggregate"] if best else ()))


def compounds(tools: Mapping[str, ToolDefinition], scene: Scene) -> Iterator[Pair]:
    """Feasible pairs of operations on one table that a text says together."""
    for tool in (tools[name] for name in _FIRST if name in tools):
        for way in _chosen(tool, scene):
            after = _without(way, tool, scene)
            second = tools.get(_second(tool, way, after))
            for wanted in fill(second, after) if second else ():
                if second and wanted.inputs == way.outputs:
                    yield Pair(tool, way, second, wanted, after)


def _chosen(tool: ToolDefinition, scene: Scene) -> list[Filled]:
    """Ways to choose rows by what the text says; the result passes on to the next operation."""
    inner = replace(
        scene, mentions=tuple(m for m in scene.mentions if not _is_output(m, scene)), answer=""
    )
    ways = [way for way in fill(tool, inner) if _is_grounded(tool, way, inner)]
    ways += _best(tool, inner) if tool.name == "csv_sort" else ()
    return sorted((_alone(tool, way, inner) for way in ways), key=lambda way: way.penalty)[:_WAYS]


def _alone(tool: ToolDefinition, way: Filled, scene: Scene) -> Filled:
    """A choice of rows without the cost of what is left for the next operation."""
    left = said_of(tool, scene, way.inputs).unused(way.args) + no_figure(tool, scene)
    return replace(way, penalty=max(0.0, way.penalty - left))


def _is_output(mention: Mention, scene: Scene) -> bool:
    fresh = mention.kind is Kind.NEW_FILE and mention.text not in scene.made
    return mention.is_target or fresh


def _is_grounded(tool: ToolDefinition, way: Filled, scene: Scene) -> bool:
    """Whether cells or numbers of the table stand behind a choice of rows."""
    info = scene.info(way.inputs[0]) if len(way.inputs) == 1 else None
    column, value = way.args.get("column"), way.args.get("value")
    if info is None or info.kind != "csv" or column not in info.columns:
        return False
    if tool.name == "csv_sort":
        return "count" in way.args or bool(_SORTING.search(scene.veiled))
    cells = cells_under(info, str(column))
    if way.args.get("op") in _COMPARISONS:
        return is_number(str(value)) and any(map(is_number, cells))
    return isinstance(value, str) and value.casefold() in cells


def _best(tool: ToolDefinition, scene: Scene) -> Iterator[Filled]:
    """The row with the highest or lowest value of a column that is named behind the word."""
    for inputs in inputs_of(tool, scene):
        slot = Slot(tool, "", scene, inputs.value)
        named = [] if any(group(slot)) else named_columns(slot)  # each group has its own best
        for match in _BEST.finditer(scene.text):
            start = match.start("column")
            column = next((name for at, name in named if at == start), "")
            if column:
                args: dict[str, Any] = {"path": inputs.value[0], "column": column, "count": 1}
                args |= {"reverse": True} if match["high"] else {}
                args |= {"output": scene.intermediate}
                yield Filled(args, inputs.value, (scene.intermediate,), inputs.used, inputs.cost)


def _without(way: Filled, tool: ToolDefinition, scene: Scene) -> Scene:
    """The scene without the words that chose the rows, as the next operation finds it."""
    words = [several(str(way.args[key])) for key in ("column", "value") if way.args.get(key)]
    if tool.name == "csv_sort":
        words.append(f"{_HIGH}|{_LOW}")
    text = scene.text
    for word in words:
        pattern = rf"(?<![\w.])(?:{word})(?!\w)"
        text = re.sub(pattern, lambda m: _blank(m, scene), text, flags=re.IGNORECASE)
    made = as_made(tool, way, scene)
    kept = [
        m
        for m in scene.mentions
        if _is_output(m, scene) or (m.kind is not Kind.FILE and m.start not in way.used)
    ]
    for m in scene.mentions:
        if m.kind is Kind.FILE and m not in kept:
            text = text[: m.start] + " " * (m.end - m.start) + text[m.end :]
    asked = without_remarks(text)
    return replace(
        scene,
        text=text,
        asked=asked,
        veiled=veiled(asked),
        mentions=tuple(kept),
        previous=(made.name,),
        made={**scene.made, made.name: made},
        sequel=True,
    )


def _blank(match: re.Match[str], scene: Scene) -> str:
    """Spaces instead of a word, so that every place stays what it was; names of files stay."""
    inside = scene.names_file(match.start())
    return match.group() if inside else " " * len(match.group())


def _second(tool: ToolDefinition, way: Filled, after: Scene) -> str:
    """The tool for what is wanted of the chosen rows; "" when the text says nothing of it."""
    slot = Slot(tool, "", after, way.outputs)
    wanted = {name for _, name in said_columns(slot)} - {way.args["column"]}
    if tool.name == "csv_filter" and _COUNTING.search(after.veiled):
        return "csv_count_rows"
    if tool.name == "csv_filter" and wanted and _FIGURE.search(after.veiled):
        return "csv_aggregate"
    return "" if not wanted else "csv_column" if len(wanted) == 1 else "csv_columns"
