"""How an output stands to its input: laws that hold whatever the data, checked without the tool.

Each says when it held only vacuously, because there was nothing that could have differed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from openry.orchestrator import rules as R  # noqa: N812 - the shapes, by one letter
from openry.orchestrator.rules_scene import CannotEvaluate, Finding, Scene, shown, split_lines
from openry.orchestrator.rules_tables import Table, format_of, read_data, read_table

_NUMBER = re.compile(r"[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_COUNT_FIRST = re.compile(r"\s*(\d+)[ \t]+(.*)", re.DOTALL)
_COUNT_LAST = re.compile(r"(.*?)(?:\s*[:,=\t]\s*|\s+)(\d+)\s*", re.DOTALL)


def relation(rule: R.Relation, scene: Scene) -> Finding:
    return _KINDS[rule.kind](rule, scene)


def _inputs(rule: R.Relation, scene: Scene) -> list[str]:
    """The input files, globs spread out in order."""
    names: list[str] = []
    for name in rule.input:
        is_glob = any(mark in name for mark in "*?[") and not scene.path(name).exists()
        found = scene.glob(name) if is_glob else [name]
        if not found:
            raise CannotEvaluate(f"no file matches `{name}`")
        names += found
    return names


def _input_lines(rule: R.Relation, scene: Scene) -> list[str]:
    return [line for name in _inputs(rule, scene) for line in scene.lines(name)]


def _finding(rule: R.Relation, trouble: str, held: str, vacuous: bool) -> Finding:
    source = ", ".join(rule.input)
    expected = f"`{rule.output}` is {_WORDS[rule.kind]} `{source}`"
    if trouble:
        return Finding(False, expected, shown(trouble), f"`{rule.output}` breaks {rule.kind}")
    return Finding(True, expected, held, vacuous=vacuous)


def _subset_lines(rule: R.Relation, scene: Scene) -> Finding:
    source, output = _input_lines(rule, scene), scene.lines(rule.output)
    extra = Counter(output) - Counter(source)
    trouble = ""
    if extra:
        line = next(iter(extra))
        trouble = f"a line the input does not have{' so often' * (line in source)}: {line}"
    elif rule.ordered and not _is_subsequence(output, source):
        trouble = "the lines are in another order"
    return _finding(rule, trouble, f"{len(output)} of {len(source)} lines", not output)


def _is_subsequence(some: Sequence[str], all_lines: Sequence[str]) -> bool:
    rest = iter(all_lines)
    return all(line in rest for line in some)


def _permutation(rule: R.Relation, scene: Scene) -> Finding:
    source, output = _input_lines(rule, scene), scene.lines(rule.output)
    trouble = _multiset_trouble(source, output)
    return _finding(rule, trouble, f"the same {len(output)} lines", len(set(source)) < 2)


def _multiset_trouble(source: Sequence[str], output: Sequence[str]) -> str:
    missing, extra = Counter(source) - Counter(output), Counter(output) - Counter(source)
    if missing:
        return f"{missing.total()} lines are missing, first: {next(iter(missing))}"
    return f"{extra.total()} lines too many, first: {next(iter(extra))}" if extra else ""


def _line_count(rule: R.Relation, scene: Scene) -> Finding:
    source, output = _input_lines(rule, scene), scene.lines(rule.output)
    differs = len(source) != len(output)
    trouble = f"{len(output)} lines where {len(source)} are due" if differs else ""
    return _finding(rule, trouble, f"{len(output)} lines", not source)


def _set_equal(rule: R.Relation, scene: Scene) -> Finding:
    source, output = set(_input_lines(rule, scene)), set(scene.lines(rule.output))
    trouble = ""
    if source - output:
        trouble = f"missing: {min(source - output)}"
    elif output - source:
        trouble = f"not in the input: {min(output - source)}"
    return _finding(rule, trouble, f"{len(output)} different lines", not source)


def _prefix(rule: R.Relation, scene: Scene) -> Finding:
    source, output = _input_lines(rule, scene), scene.lines(rule.output)
    trouble = _place_of_difference(output, source[: len(output)])
    return _finding(rule, trouble, f"the first {len(output)} of {len(source)} lines", not output)


def _suffix(rule: R.Relation, scene: Scene) -> Finding:
    source, output = _input_lines(rule, scene), scene.lines(rule.output)
    trouble = _place_of_difference(output, source[max(0, len(source) - len(output)) :])
    return _finding(rule, trouble, f"the last {len(output)} of {len(source)} lines", not output)


def _place_of_difference(output: Sequence[str], wanted: Sequence[str]) -> str:
    for place, line in enumerate(output):
        if place >= len(wanted):
            return f"line {place + 1} is one more than the input has"
        if line != wanted[place]:
            return f"line {place + 1}: {line}"
    return ""


def _tally_of(rule: R.Relation, scene: Scene) -> Finding:
    """Every different value of the input with how often it is there; nothing else."""
    found = _tally(rule, scene)
    rivals = _columns_of(rule, scene) if rule.columns else [_input_lines(rule, scene)]
    wanted = [Counter(values) for values in rivals]
    trouble = ""
    if all(found != tally for tally in wanted):
        best = wanted[0]
        wrong = next((v for v in [*best, *found] if best.get(v) != found.get(v)), "")
        trouble = f"`{wrong}`: {found.get(wrong, 0)} instead of {best.get(wrong, 0)}"
    return _finding(rule, trouble, f"{len(found)} values", not found)


def _tally(rule: R.Relation, scene: Scene) -> Counter[str]:
    text = scene.read(rule.output)
    if rule.output.endswith(".json"):
        data = read_data(text, rule.output, "json")
        if isinstance(data, dict) and all(isinstance(n, int) for n in data.values()):
            return Counter(data)
        raise CannotEvaluate(f"`{rule.output}` is not an object of counts")
    found: Counter[str] = Counter()
    for number, line in enumerate(split_lines(text), 1):
        match = _COUNT_FIRST.fullmatch(line)
        count, value = match.groups() if match else ("", "")
        if not match:
            match = _COUNT_LAST.fullmatch(line)
            if not match:
                raise CannotEvaluate(f"line {number} of `{rule.output}` is not a count and a value")
            value, count = match.groups()
        found[value] += int(count)
    return found


def _table(rule: R.Relation, scene: Scene, name: str) -> Table:
    return read_table(scene.read(name), name, rule.delimiter)


def _columns_of(rule: R.Relation, scene: Scene) -> list[list[str]]:
    """Values of the named columns, joined by the delimiter: without the head, and with it."""
    tables = [_table(rule, scene, name) for name in _inputs(rule, scene)]
    variants = (True, False) if rule.header is None else (rule.header,)
    rivals = []
    for head in variants:
        picked = [_project(table, rule, head) for table in tables]
        rivals.append([",".join(row) for rows in picked for row in rows])
    return rivals


def _project(table: Table, rule: R.Relation, skip_head: bool) -> list[list[str]]:
    places = [table.column(name) for name in rule.columns]
    rows = table.rows[1:] if skip_head else table.rows
    try:
        return [[row[place] for place in places] for row in rows]
    except IndexError:
        raise CannotEvaluate("the input has rows without that column") from None


def _projection(rule: R.Relation, scene: Scene) -> Finding:
    """The output's rows are the named columns of the input's rows, with or without the head."""
    output = _table(rule, scene, rule.output).rows
    rivals = []
    for name in _inputs(rule, scene):
        table = _table(rule, scene, name)
        variants = (True, False) if rule.header is None else (rule.header,)
        rivals += [_project(table, _with_columns(rule, table, output), head) for head in variants]
    trouble = ""
    if not any(_same_rows(output, rows, rule.ordered) for rows in rivals):
        wanted = rivals[0]
        places = range(max(len(output), len(wanted)))
        place = next((p for p in places if output[p : p + 1] != wanted[p : p + 1]), 0)
        got = ",".join(output[place]) if place < len(output) else "nothing"
        trouble = f"row {place + 1}: {got}"
    return _finding(rule, trouble, f"{len(output)} rows", not output)


def _with_columns(rule: R.Relation, table: Table, output: list[list[str]]) -> R.Relation:
    """The rule with its columns; unnamed ones are those in the output's first row."""
    if rule.columns:
        return rule
    head = output[0] if output else []
    if not head or not table.rows or not set(head) <= set(table.rows[0]):
        raise CannotEvaluate("set `columns`: the output's first row does not name any of the input")
    return rule.model_copy(update={"columns": tuple(head)})


def _same_rows(a: list[list[str]], b: list[list[str]], ordered: bool) -> bool:
    return a == b if ordered else Counter(map(tuple, a)) == Counter(map(tuple, b))


def _number_in(rule: R.Relation, scene: Scene) -> Finding:
    """The output is one bare number, and the input has that number."""
    text = scene.read(rule.output).strip()
    number = _decimal(text)
    if number is None:
        return _finding(rule, f"not one number: {text}", "", False)
    if rule.columns:
        values = [value for column in _columns_of(rule, scene) for value in column]
    else:
        values = [m.group() for line in _input_lines(rule, scene) for m in _NUMBER.finditer(line)]
    numbers = {found for value in values if (found := _decimal(value)) is not None}
    trouble = "" if number in numbers else f"{text} is not in the input"
    return _finding(rule, trouble, text, len(numbers) < 2)


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip().replace("_", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _round_trip(rule: R.Relation, scene: Scene) -> Finding:
    """What the output holds, turned back, is what the input holds."""
    name, *others = _inputs(rule, scene)
    if others:
        raise CannotEvaluate("`round_trip` takes one input")
    if rule.via == "reverse":
        source, output = scene.lines(name), scene.lines(rule.output)
        trouble = _place_of_difference(output, source[::-1])
        if not trouble and len(output) != len(source):
            trouble = f"{len(output)} lines where {len(source)} are due"
        return _finding(rule, trouble, f"{len(output)} lines", len(set(source)) < 2)
    before, after = _content(rule, scene, name), _content(rule, scene, rule.output)
    trouble = "" if before == after else _first_difference(before, after)
    return _finding(rule, trouble, "the same content", not before)


def _content(rule: R.Relation, scene: Scene, name: str) -> Any:
    """What a file holds, whatever its format: rows of text by name, or plain data."""
    kind, text = format_of(name, None), scene.read(name)
    if kind == "csv":
        rows = read_table(text, name, rule.delimiter).rows
        return [dict(zip(rows[0], row, strict=False)) for row in rows[1:]]
    return _as_text(read_data(text, name, kind))


def _as_text(value: Any) -> Any:
    """Every scalar as the text a CSV would hold."""
    if isinstance(value, dict):
        return {key: _as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_text(inner) for inner in value]
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _first_difference(before: Any, after: Any) -> str:
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return f"{len(after)} entries where {len(before)} are due"
        place = next(
            p for p, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]
        )
        return f"entry {place + 1}: {json.dumps(after[place], ensure_ascii=False)}"
    return json.dumps(after, ensure_ascii=False)


_KINDS: dict[str, Callable[[R.Relation, Scene], Finding]] = {
    "subset_lines": _subset_lines, "permutation": _permutation, "same_line_count": _line_count,
    "sum_of_line_counts": _line_count, "set_equal": _set_equal, "prefix": _prefix,
    "suffix": _suffix, "tally_of": _tally_of, "projection": _projection,
    "number_in": _number_in, "round_trip": _round_trip,
}  # fmt: skip
_WORDS = {
    "subset_lines": "some lines of", "permutation": "the lines, in any order, of",
    "same_line_count": "as many lines as", "sum_of_line_counts": "as many lines as all of",
    "set_equal": "the different lines of", "prefix": "the first lines of",
    "suffix": "the last lines of", "tally_of": "a tally of", "projection": "columns of",
    "number_in": "a number in", "round_trip": "the same content as",
}  # fmt: skip
