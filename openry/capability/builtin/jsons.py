"""The JSON tools of the `data` pack."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from openry.capability.builtin.conditions import condition
from openry.capability.builtin.failure import ToolFailure, nearest, note
from openry.capability.builtin.lines import number_line, raw_lines, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STEP = re.compile(
    r"""\[\s*"((?:[^"\\]|\\.)*)"\s*\]|\[\s*'([^']*)'\s*\]|\[\s*(-?\d+|\*)?\s*\]|([^.\[\]]+)"""
)
_MISSING = object()


class _Number(float):
    """A decimal number that is written as it was read: 1.10 stays 1.10."""

    text: str

    def __new__(cls, text: str) -> _Number:
        made = super().__new__(cls, text)
        made.text = text
        return made


def read(path: str) -> Any:
    """The file's value; a file of one value per line (JSONL) is a list."""
    text = text_of(b"".join(raw_lines(path)))
    try:
        return _parsed(text)
    except ValueError as error:
        whole = error
    rows = [line for line in text.splitlines() if line.strip()]
    if len(rows) > 1 and isinstance(whole, json.JSONDecodeError) and whole.msg == "Extra data":
        try:
            values = [_parsed(row) for row in rows]
        except ValueError:
            values = []
        if values:
            note("every line is a JSON value of its own; they are taken as one list")
            return values
    raise ToolFailure("bad_arguments", f"`{path}` is no JSON: {_where(whole)}")


def _parsed(text: str) -> Any:
    return json.loads(text, parse_float=_Number, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _where(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.lower()} at line {error.lineno}, column {error.colno}"
    return str(error)


def dumped(value: Any, indent: int | None = 2, *, sort_keys: bool = False) -> str:
    """JSON text: decimal numbers as they were read; in one line without spaces for indent None."""
    return "".join(_pieces(value, "\n", indent, sort_keys))


def _pieces(value: Any, start: str, indent: int | None, sort_keys: bool) -> Iterator[str]:
    """`start` is a line feed and the spaces before this value's closing bracket."""
    if not isinstance(value, dict | list) or not value:
        yield value.text if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)
        return
    named = isinstance(value, dict)
    inner = start + " " * (indent or 0)
    between, colon = (",", ":") if indent is None else (f",{inner}", ": ")
    keys = sorted(value) if named and sort_keys else value
    yield ("{" if named else "[") + ("" if indent is None else inner)
    for place, each in enumerate(keys):
        yield between if place else ""
        if named:
            yield json.dumps(each, ensure_ascii=False) + colon
        yield from _pieces(value[each] if named else each, inner, indent, sort_keys)
    yield ("" if indent is None else start) + ("}" if named else "]")


# --- paths --------------------------------------------------------------------------------


def steps(query: str) -> list[str]:
    """`a.b.0`, `a[0].b`, `a.*.b`, `["odd.key"].b`; a leading `$` or `.` is allowed."""
    text = query.strip()
    text = text[1:] if text.startswith("$") and text[1:2] in ("", ".", "[") else text
    found = []
    for match in _STEP.finditer(text.strip(".")):
        double, single, index, plain = match.groups()
        if plain is not None:
            found.append(plain.strip())
        elif double is not None:
            found.append(double.replace('\\"', '"'))
        else:
            found.append(single if single is not None else (index or "*"))
    return found


def look_up(value: Any, query: str) -> Any:
    """The value at `query`; a list of values where it passes every element of a list."""
    if isinstance(value, dict) and query in value:
        return value[query]
    return _walk(value, steps(query), "")


def _walk(value: Any, rest: list[str], seen: str) -> Any:
    if not rest:
        return value
    step, *rest = rest
    here = f"{seen}.{step}" if seen else step
    if step == "*" and isinstance(value, list | dict):
        return _each(list(value.values()) if isinstance(value, dict) else value, rest, here)
    if isinstance(value, dict):
        if step not in value:
            raise ToolFailure("not_found", f"no key `{here}`{nearest(step, list(value))}")
        return _walk(value[step], rest, here)
    if isinstance(value, list):
        if step.lstrip("-").isdigit():
            return _walk(_element(value, int(step), here), rest, here)
        return _each(value, [step, *rest], seen or "the list")
    raise ToolFailure(
        "not_found", f"nothing lies below `{seen or 'the top'}`, so there is no `{here}`"
    )


def _element(value: list[Any], place: int, here: str) -> Any:
    if -len(value) <= place < len(value):
        return value[place]
    raise ToolFailure(
        "not_found", f"no element `{here}`: the list has {len(value)}, counted from 0"
    )


def _each(values: list[Any], rest: list[str], here: str) -> list[Any]:
    """The rest of the path in every element; elements that lack it are left out."""
    found, lacking = [], None
    for value in values:
        try:
            one = _walk(value, rest, here)
        except ToolFailure as failure:
            lacking = failure
        else:
            found += one if isinstance(one, list) and "*" in rest else [one]
    if values and not found and lacking:
        raise lacking
    if lacking:
        note(f"{len(values) - len(found)} elements without the key were left out")
    return found


def _at(value: Any, query: str) -> Any:
    return look_up(value, query) if query else value


# --- tools --------------------------------------------------------------------------------


def json_query(path: str, query: str, as_json: bool) -> bytes:
    value = look_up(read(path), query)
    if as_json:
        return f"{dumped(value)}\n".encode("utf-8", "surrogatepass")
    if isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
        return "".join(f"{_bare(each)}\n" for each in value).encode("utf-8", "surrogatepass")
    return f"{_bare(value)}\n".encode("utf-8", "surrogatepass")


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else dumped(value)


def json_keys(path: str, query: str) -> Iterator[bytes]:
    value = _at(read(path), query)
    objects = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in objects):
        raise ToolFailure("bad_arguments", f"`{query or path}` is no object, so it has no keys")
    for key in dict.fromkeys(key for each in objects for key in each):
        yield f"{key}\n".encode("utf-8", "surrogatepass")


def json_count(path: str, query: str) -> bytes:
    value = _at(read(path), query)
    if not isinstance(value, list | dict):
        raise ToolFailure("bad_arguments", f"`{query or path}` is neither a list nor an object")
    return number_line(len(value))


def json_filter(path: str, field: str, op: str, value: str | float | bool, query: str) -> bytes:
    objects = _objects(_at(read(path), query), query or path)
    test = condition(op, str(value).lower() if isinstance(value, bool) else str(value))
    known = dict.fromkeys(key for each in objects for key in each)
    if objects and all(_field(each, field) is _MISSING for each in objects):
        raise ToolFailure(
            "bad_arguments", f"no object has a field `{field}`{nearest(field, list(known))}"
        )
    kept = [each for each in objects if test(_cell(_field(each, field)))]
    return f"{dumped(kept)}\n".encode("utf-8", "surrogatepass")


def json_pretty(path: str, indent: int, sort_keys: bool, compact: bool) -> bytes:
    text = dumped(read(path), None if compact else indent, sort_keys=sort_keys)
    return f"{text}\n".encode("utf-8", "surrogatepass")


def json_to_csv(path: str, query: str, columns: list[str] | None = None) -> Iterator[bytes]:
    import csv
    import io

    objects = _objects(_at(read(path), query), query or path)
    names = columns or list(dict.fromkeys(key for each in objects for key in each))
    for name in columns or ():
        if objects and all(_field(each, name) is _MISSING for each in objects):
            known = list(dict.fromkeys(key for each in objects for key in each))
            raise ToolFailure(
                "bad_arguments", f"no object has a field `{name}`{nearest(name, known)}"
            )
    for row in [names, *([_cell(_field(each, name)) for name in names] for each in objects)]:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerow(row)
        yield out.getvalue().encode("utf-8", "surrogatepass")


def _objects(value: Any, what: str) -> list[dict[str, Any]]:
    """A list of objects; an object that holds one such list stands for it, any other for itself."""
    if isinstance(value, dict):
        inner = [(key, each) for key, each in value.items() if _is_objects(each)]
        if len(inner) == 1:
            note(f"the list at `{inner[0][0]}` was taken")
            return list(inner[0][1])
        return [value]
    if isinstance(value, list) and (_is_objects(value) or not value):
        return value
    raise ToolFailure("bad_arguments", f"`{what}` is no list of objects")


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _field(each: dict[str, Any], field: str) -> Any:
    if field in each:
        return each[field]
    try:
        return look_up(each, field)
    except ToolFailure:
        return _MISSING


def _cell(value: Any) -> str:
    """A value as one cell: texts bare, nothing for null, lists and objects as JSON in one line."""
    if value is _MISSING or value is None:
        return ""
    return value if isinstance(value, str) else dumped(value, None)
