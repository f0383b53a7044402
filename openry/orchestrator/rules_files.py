"""Rules about files of the workspace."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from openry.orchestrator import rules as R  # noqa: N812 - the shapes, by one letter
from openry.orchestrator.rules_scene import CannotEvaluate, Finding, Scene, line_test, search, shown
from openry.orchestrator.rules_tables import Table, format_of, read_data, read_table, schema_error


def exists(rule: R.FileExists, scene: Scene) -> Finding:
    found = scene.path(rule.path).exists()
    actual = "it is there" if found else "it is not there"
    return Finding(found, f"`{rule.path}`", actual, f"`{rule.path}` does not exist")


def contains(rule: R.FileContains, scene: Scene) -> Finding:
    text = scene.read(rule.path)
    if rule.regex is not None:
        passed, wanted = search(rule.regex, text), f"/{rule.regex}/"
        message = f"`{rule.path}` does not match the pattern"
    else:
        wanted = rule.contains or ""
        passed, message = wanted in text, f"`{rule.path}` does not contain the text"
    return Finding(passed, shown(wanted), shown(text) or "an empty file", message)


def size_greater_than(rule: R.FileSizeGreaterThan, scene: Scene) -> Finding:
    path = rule.path
    if path is None:
        value = scene.value(rule.path_key or "")
        if not isinstance(value, str):
            raise CannotEvaluate(f"`{rule.path_key}` does not hold a path")
        path = value
    try:
        size = scene.path(path).stat().st_size
    except OSError as error:
        raise CannotEvaluate(f"`{path}`: {(error.strerror or str(error)).lower()}") from None
    message = f"`{path}` is too small"
    return Finding(size > rule.min_bytes, f"> {rule.min_bytes} bytes", f"{size} bytes", message)


def count(rule: R.FilesCount, scene: Scene) -> Finding:
    found = scene.glob(rule.glob)
    low = rule.min is None or len(found) >= rule.min
    high = rule.max is None or len(found) <= rule.max
    bounds = [f"at least {rule.min}"] if rule.min is not None else []
    bounds += [f"at most {rule.max}"] if rule.max is not None else []
    actual = f"{len(found)}: {', '.join(found)}" if found else "none"
    message = f"`{rule.glob}` matches {len(found)} files"
    return Finding(low and high, " and ".join(bounds), shown(actual), message)


def no_line_matches(rule: R.NoLineMatches, scene: Scene) -> Finding:
    lines = scene.lines(rule.path)
    test = line_test(rule.regex, rule.contains)
    bad = next(((n, line) for n, line in enumerate(lines, 1) if test(line)), None)
    actual = f"line {bad[0]}: {bad[1]}" if bad else f"{len(lines)} lines, none of them"
    message = f"`{rule.path}` has a line it must not have"
    return Finding(bad is None, f"no line with {_wanted(rule)}", shown(actual), message, not lines)


def all_lines_match(rule: R.AllLinesMatch, scene: Scene) -> Finding:
    lines = scene.lines(rule.path)
    expected = f"every line with {_wanted(rule)}"
    if not lines:
        return Finding(rule.allow_empty, expected, "no lines", f"`{rule.path}` is empty", True)
    test = line_test(rule.regex, rule.contains)
    bad = next(((n, line) for n, line in enumerate(lines, 1) if not test(line)), None)
    actual = f"line {bad[0]}: {bad[1]}" if bad else f"{len(lines)} lines, all of them"
    return Finding(bad is None, expected, shown(actual), f"`{rule.path}` has a line that differs")


def _wanted(rule: R.NoLineMatches | R.AllLinesMatch) -> str:
    return f"/{shown(rule.regex)}/" if rule.regex is not None else f"`{shown(rule.contains or '')}`"


def in_order(rule: R.Sorted, scene: Scene) -> Finding:
    """Neighbours may not descend; with `numeric` every line must be a number."""
    values = _sortable(rule, scene)
    keys = [_key(rule, value) for value in values]
    direction = "descending" if rule.reverse else "ascending"
    expected = f"{direction}{' by number' if rule.numeric else ''}{', no repeats' * rule.unique}"
    for place in range(1, len(keys)):
        before, after = keys[place - 1], keys[place]
        descends = before < after if rule.reverse else before > after
        if descends or (rule.unique and before == after):
            actual = f"{values[place - 1]} before {values[place]} (line {place + 1})"
            return Finding(False, expected, shown(actual), f"`{rule.path}` is not in order")
    return Finding(True, expected, f"{len(values)} lines in order", vacuous=len(values) < 2)


def _sortable(rule: R.Sorted, scene: Scene) -> list[str]:
    if not rule.column:
        return scene.lines(rule.path)
    table = read_table(scene.read(rule.path), rule.path, rule.delimiter)
    place = table.column(rule.column)
    named = rule.header if rule.header is not None else rule.column in (table.rows or [[]])[0]
    try:
        return [row[place] for row in table.rows[1 if named else 0 :]]
    except IndexError:
        raise CannotEvaluate(f"`{rule.path}` has rows without column `{rule.column}`") from None


def _key(rule: R.Sorted, value: str) -> Any:
    if not rule.numeric:
        return value.casefold() if rule.ignore_case else value
    try:
        number = Decimal(value.strip())
        if number.is_nan():
            raise InvalidOperation
    except InvalidOperation:
        raise CannotEvaluate(f"`{shown(value)}` in `{rule.path}` is not a number") from None
    return number


def matches_schema(rule: R.FileMatchesSchema, scene: Scene) -> Finding:
    kind = format_of(rule.path, rule.format)
    text = scene.read(rule.path)
    if kind == "csv":
        return _csv_matches(rule, read_table(text, rule.path, rule.delimiter))
    data = read_data(text, rule.path, kind)
    trouble = _columns_trouble(rule, data) or _rows_trouble(rule, data)
    if not trouble and rule.schema_ is not None:
        trouble = schema_error(rule.schema_, data)
    message = f"`{rule.path}` does not have the expected form"
    return Finding(not trouble, _form(rule, kind), trouble or f"valid {kind}", message)


def _csv_matches(rule: R.FileMatchesSchema, table: Table) -> Finding:
    head, body = (table.rows[0], table.rows[1:]) if table.rows else ([], [])
    ragged = next((n for n, row in enumerate(body, 2) if len(row) != len(head)), None)
    trouble = ""
    if rule.columns is not None and head != list(rule.columns):
        trouble = f"columns {','.join(head) or 'none'}"
    elif ragged is not None:
        trouble = f"row {ragged} has {len(body[ragged - 2])} fields, the first row {len(head)}"
    elif len(body) < rule.min_rows:
        trouble = f"{len(body)} rows"
    elif rule.schema_ is not None:
        rows = [dict(zip(head, row, strict=True)) for row in body]
        trouble = schema_error(rule.schema_, rows)
    message = f"`{rule.path}` does not have the expected form"
    actual = shown(trouble) or f"{len(body)} rows of {','.join(head)}"
    return Finding(not trouble, _form(rule, "csv"), actual, message, not trouble and not body)


def _columns_trouble(rule: R.FileMatchesSchema, data: Any) -> str:
    if rule.columns is None:
        return ""
    if not isinstance(data, list):
        return "not a list of objects"
    for place, row in enumerate(data):
        if not isinstance(row, dict) or sorted(row) != sorted(rule.columns):
            names = ",".join(row) if isinstance(row, dict) else "no object"
            return f"item {place} has {names}"
    return ""


def _rows_trouble(rule: R.FileMatchesSchema, data: Any) -> str:
    if not rule.min_rows:
        return ""
    found = len(data) if isinstance(data, list) else 0
    return f"{found} items" if found < rule.min_rows else ""


def _form(rule: R.FileMatchesSchema, kind: str) -> str:
    words = [kind]
    words += [f"columns {','.join(rule.columns)}"] if rule.columns is not None else []
    words += [f"at least {rule.min_rows} rows"] if rule.min_rows else []
    words += ["the schema"] if rule.schema_ is not None else []
    return ", ".join(words)


def json_schema(rule: R.JsonSchemaRule, scene: Scene) -> Finding:
    if rule.path is not None:
        data = read_data(scene.read(rule.path), rule.path, "json")
    else:
        data = scene.value(rule.key or "")
    trouble = schema_error(rule.schema_, data)
    message = f"`{rule.path or rule.key}` does not fit the schema"
    return Finding(not trouble, "the schema", trouble or "fits", message)
