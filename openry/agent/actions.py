"""What a model may say in one turn, as JSON Schema for its grammar, and how it is read back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from openry.agent.evidence import Evidence, unique

Schema = dict[str, Any]
_NOTHING: Mapping[str, Any] = MappingProxyType({})

#: The names that are no capability: run a command, report a status.
RUN = "run"
REPORT = "report"
#: Where several actions stand in one reply.
ACTIONS = "actions"
STATUSES = ("completed", "failed", "cancelled", "overflow", "in_progress")
DELIMITERS = (",", ";", "\t", "|", ":", " ")
_MAX_TEXT_CHARS = 400


@dataclass(frozen=True, slots=True)
class Run:
    """Run a command line."""

    command: str


@dataclass(frozen=True, slots=True)
class Call:
    """Call a capability by name."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Look:
    """Look into an output that was too large: `openry output WORDS`."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the orchestrator how it went."""

    status: str
    payload: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Nonsense:
    """A reply that holds no action; `why` says what is wrong with it."""

    why: str


Action = Run | Call | Look | Report | Nonsense


# --- schemas ------------------------------------------------------------------------------


def turn_schema(
    tools: Sequence[tuple[str, Schema]] | None,
    payload_keys: Sequence[str] = (),
    expect_payload: bool = False,
    *,
    may_report: bool = True,
    may_overflow: bool = False,
    at_once: int = 1,
) -> Schema:
    """One JSON object a turn: a call of one of `tools` (name, parameters), or a report.

    Without `tools` the model is free: a command line, or a report. While it has done nothing
    `may_report` can be False: small models like to say at once that they are done. `overflow` may
    be reported once an answer was too large. Up to `at_once` calls may stand in one object.
    """
    if tools is None:
        line = {"type": "string", "minLength": 1}
        acts = [_object({"action": {"const": RUN}, "command": line})]
    else:
        acts = [_call_schema(name, parameters) for name, parameters in tools]
    if at_once > 1 and acts:
        some: Schema = {"anyOf": list(acts)}
        some = {"type": "array", "items": some, "minItems": 2, "maxItems": at_once}
        acts.append(_object({ACTIONS: some}))
    if may_report or not acts:
        acts.append(_report_schema(payload_keys, expect_payload))
    if may_overflow:
        acts.append(_object({"action": {"const": REPORT}, "status": {"const": "overflow"}}))
    return {"anyOf": acts}


def _report_schema(payload_keys: Sequence[str], expect_payload: bool) -> Schema:
    """A report; it has a payload only where the step expects one."""
    fields: Schema = {"action": {"const": REPORT}, "status": {"enum": ["completed", "failed"]}}
    if expect_payload or payload_keys:
        fields["payload"] = payload_schema(payload_keys)
    return _object(fields)


def payload_schema(payload_keys: Sequence[str]) -> Schema:
    """The payload a step must report: its keys with a plain value, or any plain object."""
    value = {"type": ["string", "number", "boolean"]}
    if payload_keys:
        return _object(dict.fromkeys(payload_keys, value))
    return {"type": "object", "additionalProperties": value}


def _call_schema(name: str, parameters: Schema) -> Schema:
    return _object({"action": {"const": name}, "arguments": parameters})


def _object(fields: Schema) -> Schema:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def constrain(parameters: Schema, roles: Mapping[str, str], evidence: Evidence) -> Schema:
    """`parameters` with every argument that has evidence narrowed to an enumeration of it.

    `roles` says for each parameter what fills it: `input`, `output`, `needle`, `count`, ….
    What has no evidence keeps its own schema, so a call is never made impossible.
    """
    properties = {
        name: _narrow(schema, roles.get(name, ""), evidence)
        for name, schema in parameters.get("properties", {}).items()
    }
    return {**parameters, "properties": properties, "additionalProperties": False}


def _narrow(schema: Schema, role: str, evidence: Evidence) -> Schema:
    if "enum" in schema or "const" in schema:
        return schema
    kinds = schema.get("type", "string")
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if "array" in kinds:
        items = schema.get("items", {"type": "string"})
        return {**schema, "items": _narrow(items, role, evidence)}
    options: list[Any] = []
    if "string" in kinds:
        options += _texts(role or schema.get("format", ""), evidence)
    if "integer" in kinds or "number" in kinds:
        options += _numbers(schema, kinds, evidence)
    if options:
        return {"description": schema.get("description", ""), "enum": options}
    return {"maxLength": _MAX_TEXT_CHARS, **schema} if kinds == ("string",) else schema


def _numbers(schema: Schema, kinds: tuple[str, ...], evidence: Evidence) -> list[int | float]:
    return [
        value
        for value in evidence.numbers
        if ("number" in kinds or isinstance(value, int))
        and schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ]


def _texts(role: str, evidence: Evidence) -> tuple[str, ...]:
    """The candidates for a text argument, by what fills it."""
    match role:
        case "input" | "path":
            return evidence.files
        case "output":
            return unique((*evidence.new_files, *evidence.files)) if evidence.new_files else ()
        case "pattern" | "glob":
            return unique((*evidence.globs, *evidence.files))
        case "needle" | "replacement" | "text":
            return evidence.literals
        case "value":
            return unique((*evidence.literals, *map(str, evidence.numbers)))
        case "column" | "columns":
            return evidence.columns
        case "delimiter":
            return DELIMITERS
        case "query":
            return unique((*evidence.keys, *evidence.literals)) if evidence.keys else ()
        case "field":  # of each element, whatever its place
            return unique(key.rpartition("*.")[2] for key in evidence.keys)
    return evidence.typed.get(role, ())


# --- reading a reply ----------------------------------------------------------------------


def all_of(data: Any) -> list[Any]:
    """The JSON objects of all actions that a turn's JSON object asks for.

    >>> all_of({"actions": [{"action": "run"}, {"action": "report"}]})
    [{'action': 'run'}, {'action': 'report'}]
    """
    some = data.get(ACTIONS) if isinstance(data, Mapping) else None
    return some if isinstance(some, list) and some else [data]


def from_json(data: Any) -> Action:
    """The action that a turn's JSON object says.

    >>> from_json({"action": "run", "command": "ls"})
    Run(command='ls')
    >>> from_json({"action": "report"}).why
    'a report needs `status`: completed, failed, cancelled, overflow or in_progress'
    """
    if not isinstance(data, Mapping):
        return Nonsense("the reply is not a JSON object")
    name = data.get("action")
    if not isinstance(name, str) or not name:
        return Nonsense("the JSON object has no `action`")
    if name == RUN:
        return _line(data.get("command"))
    if name == REPORT:
        return _report(data.get("status"), data.get("payload"))
    return _call(name, data.get("arguments"))


def from_tool_call(name: str, arguments: Any) -> Action:
    """The action of a tool call: `openry` {command}, `report`, or a capability."""
    if not isinstance(arguments, Mapping):
        return Nonsense(f"the arguments of `{name}` are not a JSON object")
    if name == "openry":
        return _line(arguments.get("command"))
    if name == REPORT:
        return _report(arguments.get("status"), arguments.get("payload"))
    return _call(name, arguments)


def from_command(command: str) -> Action:
    """What a command line asks of the hand: `openry --status …` reports, the rest runs.

    >>> from_command("openry --status completed --payload '{\\"n\\": 2}'")
    Report(status='completed', payload={'n': 2})
    >>> from_command("openry -c 'wc -l a.txt'")
    Run(command='wc -l a.txt')
    >>> from_command("grep -c x a.txt")
    Run(command='grep -c x a.txt')
    >>> from_command("openry output grep out-17 'ERROR|FATAL'")
    Look(words=('grep', 'out-17', 'ERROR|FATAL'))
    """
    if command.split(maxsplit=1)[:1] != ["openry"]:
        return Run(command)
    try:
        words = shlex.split(command)[1:]
    except ValueError:
        return Run(command)
    match words:
        case ["-c", text]:
            return Run(text)
        case ["output", *rest]:
            return Look(tuple(rest))
        case ["--status", status]:
            return _report(status, None)
        case ["--status", status, "--payload", payload]:
            return _report(status, payload)
        case ["--call", name]:
            return Call(name)
        case ["--call", name, "--args", arguments]:
            return _call(name, arguments)
    return Run(command)


def _line(command: Any) -> Action:
    if isinstance(command, str) and command.strip():
        return from_command(command)
    return Nonsense("`command` must be a command line")


def _call(name: str, arguments: Any) -> Action:
    parsed = _object_of(arguments)
    if parsed is None:
        return Nonsense(f"the arguments of `{name}` are not a JSON object")
    return Call(name, parsed)


def _report(status: Any, payload: Any) -> Action:
    if status not in STATUSES:
        known = f"{', '.join(STATUSES[:-1])} or {STATUSES[-1]}"
        return Nonsense(f"a report needs `status`: {known}")
    parsed = _object_of(payload)
    if parsed is None:
        return Nonsense("`payload` must be a JSON object")
    try:
        json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):  # UnicodeEncodeError as well
        return Nonsense(
            "`payload` holds what JSON cannot: NaN, Infinity, half a character, too many levels"
        )
    return Report(status, parsed)


def _object_of(value: Any) -> dict[str, Any] | None:
    """A JSON object, also one that stands in a string; nothing counts as an empty one."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return dict(value) if isinstance(value, Mapping) else None
