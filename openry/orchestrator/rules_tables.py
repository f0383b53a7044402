"""Reading CSV, JSON and YAML files for rules: rows with names, and JSON Schema with bounds."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from openry.forwarder.forms import without_duplicates
from openry.orchestrator.rules_scene import CannotEvaluate, search, shown

_DELIMITERS = ",\t;|"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a CSV file, the first of which may be names."""

    rows: list[list[str]]
    delimiter: str

    def column(self, name: str) -> int:
        """0-based place of a column given by name or 1-based number."""
        head = self.rows[0] if self.rows else []
        if name in head:
            return head.index(name)
        if name.isascii() and name.isdigit() and 1 <= int(name) <= len(head):
            return int(name) - 1
        raise CannotEvaluate(f"there is no column `{name}` (there are {shown(', '.join(head))})")


def read_table(text: str, path: str, delimiter: str = "") -> Table:
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    delimiter = delimiter or ("\t" if path.endswith(".tsv") else _guess(text))
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = [row for row in reader if row]
    except (csv.Error, TypeError) as error:
        raise CannotEvaluate(f"`{path}` is not readable as CSV: {error}") from None
    return Table(rows, delimiter)


def _guess(text: str) -> str:
    """The delimiter that the first lines have most often and equally often; else a comma."""
    lines = [line for line in text.split("\n", 6)[:6] if line.strip()][:5]
    if not lines:
        return ","
    first = max(
        _DELIMITERS, key=lambda mark: (min(line.count(mark) for line in lines), mark == ",")
    )
    return first if lines[0].count(first) else ","


def read_data(text: str, path: str, kind: str) -> Any:
    """Parsed JSON, JSON lines or YAML."""
    if kind == "yaml":
        from openry.orchestrator import yaml12

        document = yaml12.compose(text, path)
        if document.problems:
            raise CannotEvaluate(str(document.problems[0]))
        return yaml12.plain(document.data)
    try:
        if kind == "jsonl":
            return [_json(line) for line in text.split("\n") if line.strip()]
        return _json(text)
    except (ValueError, RecursionError) as error:
        raise CannotEvaluate(f"`{path}` is not valid JSON: {error}") from None


def _json(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=without_duplicates)


def _no_constant(word: str) -> Any:
    raise ValueError(f"`{word}` is not JSON")


def format_of(path: str, given: str | None) -> str:
    if given:
        return given
    ending = path.rsplit(".", 1)[-1].lower() if "." in path else ""
    known = {"json": "json", "jsonl": "jsonl", "ndjson": "jsonl", "csv": "csv", "tsv": "csv"}
    known |= {"yaml": "yaml", "yml": "yaml"}
    if ending not in known:
        raise CannotEvaluate(f"the format of `{path}` is not clear from its name: set `format`")
    return known[ending]


def schema_error(schema: Any, data: Any) -> str:
    """What in `data` breaks `schema`, or nothing. No reference leaves this process."""
    from jsonschema import ValidationError  # type: ignore[import-untyped]
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
    from jsonschema.validators import extend, validator_for  # type: ignore[import-untyped]
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    def pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[Any]:
        if isinstance(value, str) and not search(wanted, value):
            yield ValidationError(f"{value!r} does not match {wanted!r}")

    def pattern_properties(validator: Any, wanted: Any, value: Any, __: Any) -> Iterator[Any]:
        for expression, inner in wanted.items() if isinstance(value, dict) else ():
            for key, item in value.items():
                if search(expression, key):
                    yield from validator.descend(item, inner, path=key, schema_path=expression)

    bounded = {"pattern": pattern, "patternProperties": pattern_properties}
    validator = extend(validator_for(schema), bounded)(schema, registry=REGISTRY)
    try:
        error = best_match(validator.iter_errors(data))
    except CannotEvaluate:
        raise
    except Exception as trouble:  # references to nowhere, endless recursion: the schema's fault
        raise CannotEvaluate(f"the schema cannot be applied: {shown(str(trouble))}") from None
    if error is None:
        return ""
    where = "/".join(map(str, error.absolute_path))
    said = shown(error.message)
    return f"{where}: {said}" if where else said
