"""`the other lines` after a filter are those that it left out: the same text, the opposite tool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from loop.binding.scene import Filled, Scene
from loop.binding.settings import OPPOSITE
from openry.capability.definition import ToolDefinition

_OTHERS = re.compile(
    r"""(?ix)\b(?:the|all(?:\ the)?|every(?:thing)?|any)?\s*
    (?:other|others|rest|remaining|remainder|else|left\ over|leftovers?)\b
    |其余|其他|其它|剩下|剩余"""
)
_COUNTING = re.compile(r"(?i)\b(?:how many|count|number of)\b|多少|几|数量|行数")
#: What it gains that the other part is asked for in so many words.
_ASKED = -0.5
_ENDS = ("first_lines", "last_lines")
_TURNED = {"filter_lines": "remove_lines", "remove_lines": "filter_lines"}


def asks_for_rest(scene: Scene) -> bool:
    """Whether what the goal before left out is asked for."""
    last = scene.last
    asked = last is not None and last.inputs and _OTHERS.search(scene.asked)
    return bool(asked) and not _COUNTING.search(scene.asked)


def other_part(tool: ToolDefinition, scene: Scene, output: str) -> Iterator[Filled]:
    """`tool` filled so that it gives what the goal before left out, where that is asked."""
    last = scene.last
    if last is None or not output or not asks_for_rest(scene):
        return
    args: dict[str, Any] = {**last.args, "output": output}
    used = frozenset(m.start for m in scene.mentions)
    if _TURNED.get(last.tool) == tool.name:
        yield Filled(args, last.inputs, (output,), used, _ASKED)
    elif last.tool in _ENDS and tool.name == "skip_lines" and args.get("count"):
        skipped = {key: args[key] for key in ("path", "count", "output")}
        settings = {**skipped, **({"where": "end"} if last.tool == "last_lines" else {})}
        yield Filled(settings, last.inputs, (output,), used, _ASKED)
    elif last.tool == tool.name and "op" in tool.parameters:
        op = str(args.get("op", "=="))
        if op in OPPOSITE:
            yield Filled({**args, "op": OPPOSITE[op]}, last.inputs, (output,), used, _ASKED)
