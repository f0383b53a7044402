"""Fill a capability's arguments from what the fragment and the workspace give evidence for.

Feasibility first: a tool whose required arguments have no evidence drops out, and so does one
whose input is of the wrong kind. What the fragment names and the tool does not use costs points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from loop.binding.columns import column, columns, group, values
from loop.binding.costs import misfit, said_of, strange_values, unused
from loop.binding.files import inputs_of, output_of
from loop.binding.needles import needles, replacements, texts
from loop.binding.others import other_part
from loop.binding.queries import patterns, queries
from loop.binding.said import (
    addresses,
    amounts,
    bodies,
    dates,
    files_named,
    led_to,
    numbered,
    ports,
    quoted_texts,
    shaped,
    zones,
)
from loop.binding.scene import Choice, Filled, Scene, Slot
from loop.binding.settings import choice, counts, delimiter, flag
from openry.capability.definition import ToolDefinition


def _numbers(slot: Slot) -> Iterator[Choice]:
    if slot.name == "port":
        return ports(slot)
    below_zero = slot.parameter.minimum is not None and slot.parameter.minimum < 0
    return (amounts if below_zero else counts)(slot)


def _needles(slot: Slot) -> Iterator[Choice]:
    """Where several texts are looked for, each needs the word that leads to it."""
    return (led_to if len(slot.tool.with_role("needle")) > 1 else needles)(slot)


def _texts(slot: Slot) -> Iterator[Choice]:
    """Where several texts are wanted, each by the word that leads to it, else in their order."""
    names = slot.tool.with_role("text")
    if slot.tool.with_role("url"):
        yield from bodies(slot)
        yield from quoted_texts(slot)
        return
    if len(names) == 1:
        yield from texts(slot)
        return
    yield from led_to(slot)
    if slot.parameter.required:
        quoted = [replace(each, cost=0.1) for each in quoted_texts(slot)]
        yield from reversed(quoted) if slot.name == names[-1] else quoted


#: Which evidence fills a parameter, by its role.
_EVIDENCE: dict[str, Callable[[Slot], Iterator[Choice]]] = {
    "needle": _needles,
    "replacement": replacements,
    "text": _texts,
    "count": _numbers,
    "start": counts,
    "end": counts,
    "column": column,
    "columns": columns,
    "group": group,
    "value": values,
    "pattern": patterns,
    "query": queries,
    "field": queries,
    "flag": flag,
    "choice": choice,
    "delimiter": delimiter,
    "date": dates,
    "zone": zones,
    "url": shaped,
    "host": shaped,
    "revision": shaped,
    "address": addresses,
    "id": numbered,
    "file": files_named,
}
#: How many values of one parameter are tried.
_VALUES = 4


def fill(tool: ToolDefinition, scene: Scene, *, most: int = 6) -> tuple[Filled, ...]:
    """Feasible ways to fill `tool`, cheapest first; () when something required has no evidence."""
    found: list[Filled] = []
    for inputs in inputs_of(tool, scene):
        output = output_of(tool, scene, inputs.value)
        if output is not None:
            found += _filled(tool, scene, inputs, output)
    target = output_of(tool, scene, ())
    found += other_part(tool, scene, target.value if target else "")
    found.sort(key=lambda filled: filled.penalty)
    return tuple(found[:most])


def _filled(tool: ToolDefinition, scene: Scene, inputs: Choice, output: Choice) -> Iterator[Filled]:
    names = [n for n, p in tool.parameters.items() if p.role not in ("input", "output")]
    options = [_options(Slot(tool, name, scene, inputs.value)) for name in names]
    if not all(options):
        return
    fixed = _path_args(tool, inputs.value, output.value)
    said = said_of(tool, scene, inputs.value)
    base = inputs.cost + output.cost + misfit(tool, scene, inputs.value, output.value)
    for chosen in product(*(choices[:_VALUES] for choices in options)):
        args = {n: c.value for n, c in zip(names, chosen, strict=True) if c.value is not None}
        if _contradicts(args):
            continue
        used = frozenset().union(inputs.used, output.used, *(c.used for c in chosen))
        penalty = base + sum(c.cost for c in chosen) + unused(scene, used)
        penalty += strange_values(tool, scene, args, inputs.value)
        penalty += said.unused(args)
        outputs = (output.value,) if output.value else ()
        yield Filled({**args, **fixed}, inputs.value, outputs, used, penalty)


def _contradicts(args: dict[str, Any]) -> bool:
    """A text replaced by itself, or lines from a later to an earlier one."""
    if "needle" in args and args["needle"] == args.get("replacement"):
        return True
    start, end = args.get("start"), args.get("end")
    return isinstance(start, int) and isinstance(end, int) and end <= start


def _path_args(tool: ToolDefinition, paths: tuple[str, ...], output: str) -> dict[str, Any]:
    names = tool.with_role("input")
    args: dict[str, Any] = dict(zip(names, paths, strict=False))
    if len(names) == 1 and paths and "array" in tool.parameters[names[0]].types:
        args = {names[0]: list(paths)}
    return args | {name: output for name in tool.with_role("output")[:1] if output}


def _options(slot: Slot) -> list[Choice]:
    """Values for one parameter, likeliest first; None leaves it to its default."""
    parameter, role = slot.parameter, slot.parameter.role
    found = _distinct(_EVIDENCE[role](slot)) if role in _EVIDENCE else []
    if parameter.required:
        return found
    if role in ("flag", "choice"):
        return found or [Choice(None)]
    return [*found[:2], Choice(None, cost=0.15 if found else 0.0)]


def _distinct(choices: Iterator[Choice]) -> list[Choice]:
    best: dict[str, Choice] = {}
    for each in choices:
        best.setdefault(repr(each.value), each)
    return list(best.values())
