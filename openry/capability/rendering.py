"""From a definition and arguments to what is run and what must hold, without running anything."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from openry.capability.arguments import complete, outside, paths_in, urls_in, written
from openry.capability.definition import PLACEHOLDER, ToolDefinition, When, Word, placeholders
from openry.errors import BadArgumentsError
from openry.models import Command

_CHILD = Path(__file__).with_name("child.py")
_OWN_MODULES = "openry.capability.builtin."
#: A path that no program takes for an option, an assignment, standard input or a host.
_PLAIN_PATH = re.compile(r"[\w./][\w./ +,@-]*", re.ASCII)
_FILTERS: dict[str, Callable[[str], str]] = {"escape": re.escape, "quote": shlex.quote}


def prepare(tool: ToolDefinition, args: Mapping[str, Any], workspace: Path) -> Command:
    """The command that a call runs.

    Raises:
        BadArgumentsError: Every problem of the arguments at once.
    """
    values = complete(tool, args)
    problems = outside(paths_in(tool, values), workspace)
    if problems:
        raise BadArgumentsError(problems)
    label = label_of(tool, values, args)
    env = {name: _text(value, values) for name, value in tool.env.items()}
    names: dict[str, Any] = {
        "capability": tool.name,
        "reads": paths_in(tool, values),
        "writes": written(tool, values),
        "urls": urls_in(tool, values),
    }
    if tool.python is not None:
        return Command(
            stages=(_child(tool.python),),
            cwd=str(workspace),
            timeout_s=tool.timeout_s,
            env=env,
            stdin=_request(tool, values),
            label=label,
            **names,
        )
    stages = tuple(tuple(_words(stage, tool, values)) for stage in tool.stages)
    return Command(
        stages=tuple(stage for stage in stages if stage),
        cwd=str(workspace),
        timeout_s=tool.timeout_s,
        env=env,
        stdin=None if tool.stdin is None else _text(tool.stdin, values).encode(),
        output_file=output_of(tool, values),
        label=label,
        **names,
    )


def output_of(tool: ToolDefinition, values: Mapping[str, Any]) -> str:
    """The file the result goes to; empty when it is the answer."""
    wanted = tuple(placeholders(tool.output_file))
    if all(values.get(name) is not None for name in wanted) and (wanted or tool.output_file):
        return _text(tool.output_file, values)
    return ""


def secret_names(tool: ToolDefinition, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables with secrets that a call reads."""
    return tuple(filter(None, (_text(name, values) for name in tool.secret_env)))


def label_of(tool: ToolDefinition, values: Mapping[str, Any], given: Iterable[str]) -> str:
    """The call as the log shows it: the arguments that were given, secrets hidden."""
    shown = {
        name: f"***{name}***" if name in tool.secrets else values[name]
        for name in given
        if name in values
    }
    return f"{tool.name} {json.dumps(shown, ensure_ascii=False)}"


def _child(python: str) -> tuple[str, ...]:
    """Our own tools and a pack's files start without the site packages, which is faster."""
    place = python.rpartition(":")[0]
    lean = ("-S",) if place.startswith(_OWN_MODULES) or place.endswith(".py") else ()
    return (sys.executable, "-I", *lean, "-X", "utf8", str(_CHILD), python)


def _request(tool: ToolDefinition, values: Mapping[str, Any]) -> bytes:
    output = output_of(tool, values)
    args = {k: v for k, v in values.items() if not (output and tool.output_file == f"{{{k}}}")}
    return json.dumps({"args": args, "output": output}).encode()


# --- words --------------------------------------------------------------------------------


def _words(words: Iterable[Word], tool: ToolDefinition, values: Mapping[str, Any]) -> Iterator[str]:
    for word in words:
        if isinstance(word, When):
            yield from _words(word.then if _holds(word, values) else word.otherwise, tool, values)
            continue
        whole = PLACEHOLDER.fullmatch(word)
        if whole and whole[2] == "...":
            items = values.get(whole[1]) or []
            yield from (_argument(tool, whole[1], each) for each in items)
        elif not whole or values.get(whole[1]) is not None:
            yield PLACEHOLDER.sub(lambda m: _argument(tool, m[1], values.get(m[1])), word)


def _holds(word: When, values: Mapping[str, Any]) -> bool:
    value = values.get(word.condition)
    return bool(value) if word.equals is None else bool(value == word.equals)


def _argument(tool: ToolDefinition, name: str, value: Any) -> str:
    text = _as_text(value)
    return safe_path(text) if tool.parameters[name].is_path else text


def safe_path(path: str) -> str:
    """`path` so that no program reads it as anything else.

    >>> safe_path("a b.txt"), safe_path("-rf"), safe_path("x=y.txt")
    ('a b.txt', './-rf', './x=y.txt')
    """
    return path if _PLAIN_PATH.fullmatch(path) or path.startswith("/") else f"./{path}"


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(template: str, values: Mapping[str, Any]) -> str:
    def filled(match: re.Match[str]) -> str:
        text = _as_text(values.get(match[1]))
        return _FILTERS.get((match[2] or "").lstrip("|"), str)(text)

    return PLACEHOLDER.sub(filled, template)


# --- post-conditions ----------------------------------------------------------------------


def ensures_for(tool: ToolDefinition, args: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool's post-conditions for one call, as validation rules.

    Left out are rules whose `when` does not hold, that mention an argument the call does not have
    (no `output`, for one), or that compare an input with itself because the call overwrites it.

    Raises:
        BadArgumentsError: Every problem of the arguments at once.
    """
    values = complete(tool, args)
    overwritten = set(paths_in(tool, values, "input")) & set(paths_in(tool, values, "output"))
    return [
        _filled(rule, values)
        for condition, rule in map(_split, tool.ensures)
        if all(_is_so(values.get(name), wanted) for name, wanted in condition.items())
        and all(values.get(name) is not None for name in placeholders(rule))
        and not (overwritten and _compares(tool, rule))
    ]


def _is_so(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return value is not None and re.search(wanted["matches"], _as_text(value)) is not None
    return bool(value == wanted)


def _split(entry: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return entry.get("when", {}), {key: value for key, value in entry.items() if key != "when"}


def _compares(tool: ToolDefinition, rule: Mapping[str, Any]) -> bool:
    roles = {tool.parameters[name].role for name in placeholders(rule)}
    return {"input", "output"} <= roles


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """`value` with its placeholders filled; one that is a placeholder alone keeps its type."""
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        return values[whole[1]] if whole and not whole[2] else _text(value, values)
    if isinstance(value, Mapping):
        return {key: _filled(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    return value
