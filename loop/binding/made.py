"""How the output of a goal will look to the goals after it."""

from __future__ import annotations

from loop.binding.scene import Filled, Scene, cells_under
from loop.values import FileInfo
from openry.capability.definition import ToolDefinition


def as_made(tool: ToolDefinition, filled: Filled, scene: Scene) -> FileInfo:
    """The output of `filled`, guessed from its input and what the tool gives."""
    name = filled.outputs[0]
    source = scene.info(filled.inputs[0]) if filled.inputs else None
    gives, columns = tool.returns.format, source.columns if source else ()
    if "group_by" in tool.parameters:
        return _aggregated(name, filled)
    if gives == "number":
        return FileInfo(name, 0, "number")
    if gives == "json":
        return FileInfo(name, 0, "json", "", columns)
    head = _left(tool, filled, source.head) if source and gives in ("csv", "lines", "text") else ""
    if gives == "csv":
        wanted = filled.args.get("columns")
        if isinstance(wanted, list) and all(isinstance(w, str) for w in wanted):
            kept = [c for c in columns if c not in wanted] if "drop" in tool.name else wanted
            return FileInfo(name, 0, "csv", _projected(source, kept), tuple(kept))
        return FileInfo(name, 0, "csv", head, columns)
    column = filled.args.get("column")
    if source and column in columns and tool.pack == "data":
        return FileInfo(name, 0, "text", "\n".join(cells_under(source, str(column))))
    if source and source.kind == "csv" and gives in ("lines", "text") and tool.pack == "text":
        return FileInfo(name, 0, "csv", head, columns)
    return FileInfo(name, 0, "text", head)


def _left(tool: ToolDefinition, filled: Filled, head: str) -> str:
    """What choosing lines by a text leaves of `head`; other tools leave it as it is."""
    needle = filled.args.get("needle")
    if tool.name not in ("filter_lines", "remove_lines") or not isinstance(needle, str):
        return head
    keeps = tool.name == "filter_lines"
    return "\n".join(line for line in head.splitlines() if (needle in line) is keeps)


def _aggregated(name: str, filled: Filled) -> FileInfo:
    group = filled.args.get("group_by")
    if group is None:
        return FileInfo(name, 0, "number")
    return FileInfo(name, 0, "csv", "", (str(group), str(filled.args.get("column", "count"))))


def _projected(source: FileInfo | None, columns: list[str]) -> str:
    """The head of a table with only `columns`, cells in small letters."""
    if source is None or not set(columns) <= set(source.columns):
        return ""
    rows = zip(*(cells_under(source, column) for column in columns), strict=False)
    return "\n".join([",".join(columns), *map(",".join, rows)])
