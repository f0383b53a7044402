"""Columns of a table and the values that they are compared with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loop.binding.scene import (
    Choice,
    Slot,
    cells_under,
    from_mention,
    is_number,
    rows_of,
    stands_in,
)
from loop.binding.words import EMPTY
from loop.mentions import Kind
from loop.values import FileInfo

_COLUMN = r"(?:column|field|col)"
_AFTER_NUMBER = re.compile(rf"(?i)\s*{_COLUMN}\b|\s*[列栏]")
_BEFORE_NUMBER = re.compile(rf"(?i)\b{_COLUMN}\s+(?:number\s+|no\.?\s+)?$|第$")
#: In plain text the words of a line are counted.
_AFTER_WORD_NUMBER = re.compile(
    rf"(?i)\s*(?:{_COLUMN}|word|part|piece|token|item|value|entry|number)\b"
    r"|\s*个?(?:单词|词|字段|部分|列)"
)
_BEFORE_WORD_NUMBER = re.compile(
    rf"(?i)\b(?:{_COLUMN}|word|part|piece|token)\s+(?:number\s+|no\.?\s+)?$|第$"
)
_ZH_ORDINAL = re.compile(r"第([一二三四五六七八九十])[列栏]")
_WORKED_OUT = r"(?:sum|total|average|mean|highest|lowest|largest|smallest|biggest|cheapest|by)"
#: `column is value`, the value a word.
_IS = re.compile(
    r"(?i)(?P<column>\w+)(?: column)? (?:is|are|was|=|==|equals|equal to|set to|of|says)"
    r"(?: set to| marked)? ['\"]?(?P<value>[\w-]+)"
)
_ZH_IS = re.compile(r"(?P<column>[^\s，。]+?)\s*(?:是|为|等于)\s*(?P<value>[^\s，。的]+)")
_COMPARING = re.compile(
    r"""(?ix)\b(?:over|above|more\ than|greater\ than|at\ least|under|below|less\ than|at\ most
    |exceed\w*|\w+er\ than)\s*[$€£]?$|(?:>|<|>=|<=|大于|小于|超过|低于|高于|至少)\s*$"""
)
#: A comparison with a number.
_COMPARED = re.compile(
    r"(?i)(?:over|above|more than|greater than|at least|under|below|less than|at most|exceed\w*"
    r"|\w+er than|>|<|大于|超过|小于|低于|高于|至少)\s*[$€£]?\s*\d"
)
_NO_VALUE = re.compile(r"(?i)\s*(?:rows|lines|columns?|records)")
_OWNER = re.compile(r"(?i)\b(?:in|from|of|at|for)\s+(?P<word>[A-Z][\w-]+)")


def spoken(name: str) -> str:
    """A regex for a header or key as it is spoken: `_` may be a space, and it may be plural."""
    return re.escape(name).replace("_", r"[_ ]")


def several(name: str) -> str:
    """A regex for a header as it is spoken, of one or of several."""
    if re.search(r"[^aeiou]y$", name):
        return rf"{spoken(name[:-1])}(?:y|ies)"
    return rf"{spoken(name)}s?"


def named_columns(slot: Slot) -> list[tuple[int, str]]:
    """(place in the text, column) for each header name that stands in the text as a word."""
    found = []
    for column in slot.columns:
        pattern = rf"(?<![A-Za-z0-9_]){several(column)}(?![A-Za-z0-9_])"
        matches = re.finditer(pattern, slot.scene.text, re.IGNORECASE)
        found += [(match.start(), column) for match in matches]
    return sorted((at, column) for at, column in found if not slot.scene.names_file(at))


def column_numbers(slot: Slot) -> Iterator[tuple[int, frozenset[int]]]:
    """(number, mention starts) of columns that the text counts, such as `second column`."""
    text, parameter = slot.scene.text, slot.tool.parameters.get(slot.name)
    words = parameter is not None and parameter.types == ("integer",)
    after = _AFTER_WORD_NUMBER if words else _AFTER_NUMBER
    for m in slot.scene.of(Kind.ORDINAL, Kind.NUMBER):
        before = _BEFORE_WORD_NUMBER if words else _BEFORE_NUMBER
        counted = after.match(text[m.end :]) or before.search(text[: m.start])
        if counted and isinstance(m.value, int):
            yield m.value, frozenset({m.start})
    match = _ZH_ORDINAL.search(text)
    if match:
        yield "零一二三四五六七八九十".index(match[1]), frozenset()


def column(slot: Slot) -> Iterator[Choice]:
    """One column: called a column, else named, counted, or known by a cell that is named."""
    named = named_columns(slot)
    groups = {c.value for c in group(slot)} if slot.tool.with_role("group") else set()
    if len({name for _, name in named}) > 1:
        marked = [c for _, c in named if _is_marked(slot.scene.text, c) and c not in groups]
        yield from (Choice(c) for c in marked)
    for rank, (at, name) in enumerate(named):
        if name not in groups:
            starts = frozenset(m.start for m in slot.scene.mentions if m.start <= at < m.end)
            yield Choice(name, starts, 0.02 * rank)
    for value, used in column_numbers(slot):
        yield Choice(value if "integer" in slot.parameter.types else str(value), used)
    if not named or slot.tool.with_role("value"):
        yield from (Choice(c, cost=0.05) for c in _columns_by_cell(slot))
    if slot.tool.with_role("value") and _COMPARED.search(slot.scene.text):
        numeric = list(_numeric_columns(slot))
        yield from (Choice(c, cost=0.1) for c in numeric if len(numeric) == 1)
    last = slot.scene.last
    if (
        not named
        and last
        and last.inputs == slot.inputs
        and last.args.get("column") in slot.columns
    ):
        yield Choice(last.args["column"], cost=0.08)
    if groups:
        yield from (Choice(c, cost=0.1) for c in _numeric_columns(slot) if c not in groups)


def _is_marked(text: str, name: str) -> bool:
    said = spoken(name)
    return bool(
        re.search(
            rf"(?i)\b{said} {_COLUMN}|\b{said} values?\b|\bcolumn (?:called |named )?['\"]?{said}"
            rf"|\b{_WORKED_OUT} (?:of |the )*{said}\b|{said}\s*(?:这一|一|这)?列",
            text,
        )
    )


def _columns_by_cell(slot: Slot) -> Iterator[str]:
    """Columns that hold a cell which the text names."""
    for info in slot.infos:
        if info.kind != "csv":
            continue
        for name in info.columns:
            if any(stands_in(c, slot.scene.text) for c in cells_under(info, name) if tells(c)):
                yield name


def _numeric_columns(slot: Slot) -> Iterator[str]:
    for info in slot.infos:
        for name in info.columns:
            cells = cells_under(info, name)
            if cells and all(map(is_number, cells)):
                yield name


def tells(cell: str) -> bool:
    """Whether a cell is a word that says which cell it is."""
    return len(cell) > 1 and not is_number(cell) and cell not in EMPTY


def columns(slot: Slot) -> Iterator[Choice]:
    """Several columns, in the order in which they are said."""
    named = list(dict.fromkeys(name for _, name in named_columns(slot)))
    if named:
        yield Choice(named)
    numbers = list(column_numbers(slot))
    if numbers:
        yield Choice([n for n, _ in numbers], frozenset().union(*(used for _, used in numbers)))


def group(slot: Slot) -> Iterator[Choice]:
    """The column after `per`, `by` or `for each`."""
    for name in dict.fromkeys(c for _, c in named_columns(slot)):
        said = spoken(name)
        if re.search(
            rf"(?i)\b(?:per|by|each|every) (?:single |different )?{said}\b"
            rf"|每[个种位]?{said}|各个?{said}|按\s*{said}",
            slot.scene.text,
        ):
            yield Choice(name)


def values(slot: Slot) -> Iterator[Choice]:
    """What a column is compared with: quoted, a compared number, or a cell that the text names."""
    text, scene = slot.scene.text, slot.scene
    yield from map(from_mention, scene.of(Kind.LITERAL))
    for m in scene.of(Kind.NUMBER):
        if not _NO_VALUE.match(text[m.end :]):
            yield from_mention(m, 0.0 if _COMPARING.search(text[: m.start]) else 0.1)
    headers = {c.casefold(): c for c in slot.columns}
    for pattern in (_IS, _ZH_IS):
        for match in pattern.finditer(text):
            header, value = headers.get(match["column"].casefold()), match["value"]
            if header and (value.casefold() not in EMPTY or _holds(slot, header, value)):
                yield Choice(value)
    for info in slot.infos:
        for cell in _cells(info):
            match_ = re.search(rf"(?<!\w){re.escape(cell)}(?!\w)", text, re.IGNORECASE)
            if match_ and tells(cell.casefold()) and not scene.names_file(match_.start()):
                yield Choice(cell, cost=0.02)
    for match in _OWNER.finditer(text):
        word, at = match["word"], match.start("word")
        if word.casefold() not in EMPTY | headers.keys() and not scene.names_file(at):
            yield Choice(word, cost=0.3)


def _holds(slot: Slot, header: str, value: str) -> bool:
    """Whether a cell under `header` says just `value`."""
    tables = (info for info in slot.infos if header in info.columns)
    return any(value.casefold() in cells_under(info, header) for info in tables)


def _cells(info: FileInfo) -> list[str]:
    """Distinct non-numeric cells of a table's head, or values of JSON objects, longest first."""
    if info.kind == "json":
        found = set(re.findall(r':\s*"([^"\\]{2,})"', info.head))
    else:
        found = {cell.strip() for row in rows_of(info)[1:] for cell in row}
    return sorted((c for c in found if len(c) > 1 and not is_number(c)), key=len, reverse=True)
