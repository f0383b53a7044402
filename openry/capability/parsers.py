"""From a tool's output to data. What cannot be parsed is said; the output itself is never lost."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from openry.capability.aligned import sure_table, table
from openry.output.fold import fold

_MAX_BANNER_LINES = 200
#: More than this from a YAML text is a trick with aliases.
_MOST_VALUES = 200_000


class ParseError(ValueError):
    """The output is not what the parser reads."""


def parse(text: str, how: str) -> Any:
    """`text` by the parser `how`: auto, json, jsonl, csv, table, lines, text or yaml.

    Raises:
        ParseError: It is not of that form; `auto` and `text` take everything.
    """
    return parse_noting(text, how)[0]


def parse_noting(text: str, how: str) -> tuple[Any, tuple[str, ...]]:
    """As `parse`, and a sentence for each part of the output that is not in the data.

    Raises:
        ParseError: It is not of that form; `auto` and `text` take everything.
    """
    if how == "text":
        return text, ()
    clean = cleaned(text)
    if how in ("jsonl", "auto"):
        data, notes = _jsonl(clean, sure=how == "jsonl")
        if data is not None:
            return data, notes
    return _PARSERS[how](clean), ()


def cleaned(text: str) -> str:
    """Without terminal codes, redrawn progress lines and a byte order mark."""
    folded = fold(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    return folded.removeprefix("\ufeff")


# --- json ---------------------------------------------------------------------------------


def _json(text: str) -> Any:
    """The JSON value; banners before, notices after, and log prefixes on its lines are skipped."""
    try:
        return _loads(text)
    except ValueError as error:
        for candidate in (text, _without_prefixes(text)):
            found = max(_embedded(candidate), key=lambda each: each[0], default=None)
            if found is not None:
                return found[1]
        raise ParseError(str(error)) from None


def _loads(text: str) -> Any:
    """JSON as the standard has it: `NaN` is a text, nesting without end no JSON.

    Raises:
        ValueError: It is none.
    """
    try:
        return json.loads(text, parse_constant=str)
    except RecursionError:
        raise ParseError("it is nested too deeply") from None


def _embedded(text: str) -> Iterator[tuple[int, Any]]:
    """(length, value) of objects and lists to whose end nothing but a line end follows.

    They begin a line, or stand behind a blank on one line.
    """
    decoder = json.JSONDecoder(parse_constant=str)
    reached = 0
    for match in re.finditer(r"(?:^|(?<=[ \t]))[\[{]", text, re.MULTILINE):
        start = match.start()
        if start < reached:
            continue
        begins = not text[text.rfind("\n", 0, start) + 1 : start].strip()
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if not text[end:].split("\n", 1)[0].strip() and (begins or "\n" not in text[start:end]):
            reached = end
            yield end - start, value


def _without_prefixes(text: str) -> str:
    """From the first line that ends by opening an object or list: lines without what stands before.

    The prefix of a log differs from line to line only in its digits.
    """
    lines = text.splitlines()
    for place, line in enumerate(lines[:_MAX_BANNER_LINES]):
        match = re.fullmatch(r"(.*\S\s+)[\[{]\s*", line)
        if match:
            shape = re.compile(re.sub(r"\d+", r"\\d+", re.escape(match[1])))
            return "\n".join(shape.sub("", each, count=1) for each in lines[place:])
    return text


def _jsonl(text: str, *, sure: bool) -> tuple[list[Any] | None, tuple[str, ...]]:
    """One value a line, and which lines are none.

    Unless it is `sure` to be JSONL, two lines and most of them must be objects or lists; else None.

    Raises:
        ParseError: No line is JSON.
    """
    rows = [(number, row) for number, row in enumerate(text.split("\n"), 1) if row.strip()]
    if not sure and (len(rows) < 2 or sum(_looks_whole(row) for _, row in rows) * 2 <= len(rows)):
        return None, ()
    values, broken, why = [], [], "it is empty"
    for number, row in rows:
        try:
            values.append(_loads(row))
        except ValueError as error:
            broken.append(number)
            why = str(error)
    if sure and rows and not values:
        raise ParseError(why)
    if not sure and len(broken) * 2 >= len(rows):
        return None, ()
    shown = ", ".join(map(str, broken[:10])) + (" …" if len(broken) > 10 else "")
    lines = "line" if len(broken) == 1 else "lines"
    is_are = "is" if len(broken) == 1 else "are"
    note = f"{lines} {shown} {is_are} no JSON and left out; see raw_output"
    return values, (note,) if broken else ()


def _looks_whole(row: str) -> bool:
    bare = row.strip()
    return bare[:1] + bare[-1:] in ("{}", "[]")


# --- tables and lines ---------------------------------------------------------------------


def _csv(text: str) -> list[list[str]]:
    """Rows of cells; the delimiter is comma, semicolon, tab or bar, whichever parts them evenly."""
    head = text.split("\n")[:50]
    widths = {each: _widths(head, each) for each in ",;\t|"}
    even = {d: w for d, w in widths.items() if w and len(set(w)) == 1 and w[0] > 1}
    delimiter = max(even, key=lambda each: even[each][0]) if even else ","
    try:
        return [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    except csv.Error as error:
        raise ParseError(str(error)) from None


def _widths(head: list[str], delimiter: str) -> list[int]:
    try:
        return [len(row) for row in csv.reader(head, delimiter=delimiter) if row]
    except csv.Error:
        return []


def _table(text: str) -> Any:
    """Rows under headings as objects; rows without headings as lists of cells."""
    try:
        return table(text)
    except ValueError as error:
        raise ParseError(str(error)) from None


def _sure_table(text: str) -> Any:
    try:
        return sure_table(text)
    except ValueError as error:
        raise ParseError(str(error)) from None


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _pairs(text: str) -> dict[str, str]:
    """`key: value` or `key=value` on every line, each key once; quotes round a value are taken off.

    Raises:
        ParseError: Not so.
    """
    pairs: dict[str, str] = {}
    for line in filter(str.strip, _lines(text)):
        match = re.fullmatch(r"\s*([A-Za-z][\w ./()-]{0,40}?)\s*(?::\s|=)\s*(.*)", line + " ")
        if match is None:
            raise ParseError("not every line is `key: value`")
        if match[1] in pairs:
            raise ParseError(f"`{match[1]}` stands twice")
        value = match[2].strip()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        pairs[match[1]] = value[1:-1] if quoted and value[0] not in value[1:-1] else value
    if len(pairs) < 2:
        raise ParseError("no pairs")
    return pairs


def _yaml(text: str) -> Any:
    """One document, or a list of several, as plain JSON values: dates and times are texts."""
    import yaml

    try:
        found = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ParseError(str(error).split("\n", 1)[0]) from None
    left = iter(range(_MOST_VALUES))
    try:
        made = [_plain(each, left) for each in found]
    except RecursionError:
        raise ParseError("it is nested too deeply") from None
    return made[0] if len(made) == 1 else made or None


def _plain(value: Any, left: Iterator[int]) -> Any:
    """`value` in JSON's terms. An alias counts as often as it is used, so that a small text does
    not become a huge value."""
    if next(left, None) is None:
        raise ParseError(f"it holds more than {_MOST_VALUES} values")
    if isinstance(value, dict):
        return {str(key): _plain(inner, left) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(inner, left) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


# --- auto ---------------------------------------------------------------------------------


def _auto(text: str) -> Any:
    """JSON, CSV, a table, `key: value`; one line is text, more are lines."""
    stripped = text.strip()
    if not stripped:
        return ""
    if re.fullmatch(r"-?\d{1,15}(\.\d+)?|true|false|null", stripped):
        return json.loads(stripped) if not re.match(r"-?0\d", stripped) else stripped
    if re.search(r"^[ \t]*[\[{]|[\[{][ \t]*$", text, re.MULTILINE):
        try:
            return _json(text)
        except ParseError:
            pass
    body = text.strip("\n")
    if "\n" not in body:
        return body.rstrip()
    for how in (_sure_csv, _pairs, _sure_table):
        try:
            return how(body)
        except ParseError:
            continue
    return _lines(text)


def _sure_csv(text: str) -> list[list[str]]:
    rows = _csv(text)
    if len(rows) < 2 or len(rows[0]) < 2 or len({len(row) for row in rows}) != 1:
        raise ParseError("rows differ in width")
    if any(cell.startswith(" ") for row in rows for cell in row[1:]):
        raise ParseError("this is prose with commas")
    return rows


_PARSERS: dict[str, Callable[[str], Any]] = {
    "auto": _auto,
    "json": _json,
    "csv": _csv,
    "table": _table,
    "lines": _lines,
    "yaml": _yaml,
}
