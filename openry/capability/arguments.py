"""Arguments against a tool's parameters: every problem at once, and what was left out filled in."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from openry.capability.definition import Parameter, ToolDefinition
from openry.errors import BadArgumentsError
from openry.texts import did_you_mean, shortened

_WHOLE = re.compile(r"[-+]?\d{1,18}")
#: What JSON numbers hold exactly; nobody counts further.
_LARGEST = 2**53
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")


def complete(tool: ToolDefinition, args: Mapping[str, Any]) -> dict[str, Any]:
    """`args` with defaults, each value in its parameter's type.

    A number or a flag in a string is taken as such, for templates and small models write them so;
    a null means the argument is not there.

    Raises:
        BadArgumentsError: Every problem at once.
    """
    given = {name: value for name, value in args.items() if value is not None}
    values = {name: _converted(tool.parameters[name], value) for name, value in given.items()
              if name in tool.parameters}  # fmt: skip
    problems = tuple(_problems(tool, given, values))
    if problems:
        raise BadArgumentsError(problems)
    return tool.defaults() | values


def _problems(
    tool: ToolDefinition, given: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[str]:
    for name in given:
        if name not in tool.parameters:
            hint = did_you_mean(name, tool.parameters) or f"it has {_named(tool.parameters)}"
            yield f"`{tool.name}` has no parameter `{name}` ({hint})"
    for name in tool.required:
        if name not in given:
            yield f"missing `{name}`: {_first_sentence(tool.parameters[name].description)}"
    for name, value in values.items():
        yield from _unfit(f"`{name}`", tool.parameters[name], value)


def _named(names: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _first_sentence(text: str) -> str:
    return text.split(". ")[0].strip().rstrip(".")


# --- types --------------------------------------------------------------------------------


def _converted(parameter: Parameter, value: Any) -> Any:
    if isinstance(value, tuple):
        value = list(value)
    if _type_of(value) in _accepted(parameter):
        return value
    if isinstance(value, float) and value.is_integer() and "integer" in parameter.types:
        return int(value)
    if isinstance(value, str):
        return _from_text(parameter, value)
    if "string" in parameter.types and isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if "array" in parameter.types and not isinstance(value, dict):
        return [value]
    return value


def _from_text(parameter: Parameter, text: str) -> Any:
    bare = text.strip()
    for kind in parameter.types:
        if kind == "integer" and _WHOLE.fullmatch(bare):
            return int(bare)
        if kind == "number" and _DECIMAL.fullmatch(bare):
            return float(bare)
        if kind == "boolean" and bare.lower() in ("true", "false"):
            return bare.lower() == "true"
        if kind in ("array", "object") and bare[:1] in ("[", "{"):
            try:
                return json.loads(bare)
            except ValueError:
                continue
        if kind == "array":
            return [text]
    return text


def _accepted(parameter: Parameter) -> set[str]:
    """`number` takes whole numbers as well."""
    return {*parameter.types, *(("integer",) if "number" in parameter.types else ())}


def _type_of(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"),
                       (list, "array"), (dict, "object")):  # fmt: skip
        if isinstance(value, kind):
            return name
    return type(value).__name__


# --- limits -------------------------------------------------------------------------------


def _unfit(place: str, parameter: Parameter, value: Any) -> Iterator[str]:
    kind = _type_of(value)
    if kind not in _accepted(parameter):
        yield f"{place} must be {' or '.join(parameter.types)}, got {kind} {_shown(value)}"
        return
    if parameter.enum is not None and value not in parameter.enum:
        known = ", ".join(f"`{each}`" for each in parameter.enum)
        yield f"{place} must be one of {known}, got {_shown(value)}"
    if isinstance(value, str):
        yield from _unfit_text(place, parameter, value)
    elif isinstance(value, list):
        yield from _unfit_items(place, parameter, value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = parameter.minimum, parameter.maximum
        if isinstance(value, float) and not math.isfinite(value):
            yield f"{place} must be a number that can be written, got {_shown(value)}"
            return
        if abs(value) > _LARGEST and high is None:
            yield f"{place} must be at most {_LARGEST}, got {_shown(value)}"
        if low is not None and value < low:
            yield f"{place} must be at least {low:g}, got {value}"
        if high is not None and value > high:
            yield f"{place} must be at most {high:g}, got {value}"


def _unfit_text(place: str, parameter: Parameter, text: str) -> Iterator[str]:
    if "\0" in text:
        yield f"{place} may not hold a NUL character"
    if not _is_whole(text, "surrogateescape" if parameter.format == "path" else "strict"):
        yield f"{place} holds half a character (a lone surrogate)"
    if parameter.min_length is not None and len(text) < parameter.min_length:
        yield f"{place} may not be empty" if not text else f"{place} is too short"
    if parameter.max_length is not None and len(text) > parameter.max_length:
        yield f"{place} is longer than {parameter.max_length} characters"
    if parameter.pattern and not re.search(parameter.pattern, text):
        yield f"{place} must match `{parameter.pattern}`, got {_shown(text)}"
    if parameter.format == "path":
        yield from _unfit_path(place, text)


def _unfit_path(place: str, path: str) -> Iterator[str]:
    """No file system takes a longer name than these."""
    if not path:
        yield f"{place} may not be empty: name a file"
    sizes = [len(part.encode("utf-8", "surrogatepass")) for part in path.split("/")]
    if max(sizes) > 255 or sum(sizes) + len(sizes) > 4096:
        yield f"{place} is too long for the name of a file: {_shown(path)}"


def _is_whole(text: str, errors: str) -> bool:
    """Whether `text` can be written; names of files may hold bytes that are no UTF-8."""
    try:
        text.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True


def _unfit_items(place: str, parameter: Parameter, items: list[Any]) -> Iterator[str]:
    if parameter.min_items is not None and len(items) < parameter.min_items:
        yield f"{place} needs at least {parameter.min_items}"
    about = parameter.items
    if about:
        each = Parameter.model_validate({"type": "string", **about})
        for number, item in enumerate(items):
            yield from _unfit(f"{place[:-1]}[{number}]`", each, item)


def _shown(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=str), 60)


# --- paths --------------------------------------------------------------------------------


def paths_in(tool: ToolDefinition, args: Mapping[str, Any], *roles: str) -> tuple[str, ...]:
    """The paths among `args`, of parameters with one of `roles` (all when none is named)."""
    found: list[str] = []
    for name, parameter in tool.parameters.items():
        value = args.get(name)
        if parameter.is_path and value is not None and (not roles or parameter.role in roles):
            found += value if isinstance(value, list) else [value]
    return tuple(found)


def written(tool: ToolDefinition, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths among the arguments that the call writes or removes."""
    outputs = paths_in(tool, values, "output")
    lost = tool.side_effects == "irreversible" and not tool.network  # what is sent stays here
    changes = tool.side_effects == "writes" or lost
    return outputs or (paths_in(tool, values, "input") if changes else ())


def urls_in(tool: ToolDefinition, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The addresses among the arguments."""
    named = [name for name, each in tool.parameters.items() if each.format in ("url", "uri")]
    return tuple(str(values[name]) for name in named if values.get(name) is not None)


def outside(paths: tuple[str, ...], workspace: Path) -> tuple[str, ...]:
    """A sentence for every path that leads out of the workspace, by `..`, `/` or a link."""
    root = Path(os.path.realpath(workspace))
    return tuple(
        f"`{path}` lies outside the workspace; name a file in it"
        for path in paths
        if not _inside(root, path)
    )


def _inside(root: Path, path: str) -> bool:
    there = Path(os.path.realpath(root / path))
    return there == root or root in there.parents
