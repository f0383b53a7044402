"""The CSV tools of the `data` pack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from openry.capability.builtin.conditions import condition
from openry.capability.builtin.csvfile import Record, Table
from openry.capability.builtin.failure import ToolFailure, nearest, note
from openry.capability.builtin.lines import number_line
from openry.capability.builtin.numbers import exact_sum, mean_text, parse_number, written_number

# --- columns ------------------------------------------------------------------------------


def csv_column(
    path: str, column: str | int, keep_header: bool, unique: bool, header: str, delimiter: str
) -> Iterator[bytes]:
    table = Table(path, header=header, delimiter=delimiter, column=column)
    place = table.place(column)
    if keep_header and table.header:
        yield _one_line(table.header.cell(place))
    seen: set[str] = set()
    for record in table:
        cell = record.cell(place)
        if not (unique and cell in seen):
            seen.add(cell)
            yield _one_line(cell)


def _one_line(cell: str) -> bytes:
    return (" ".join(cell.splitlines()) + "\n").encode("utf-8", "surrogateescape")


def csv_columns(
    path: str, columns: list[str | int], header: str, delimiter: str
) -> Iterator[bytes]:
    table = Table(path, header=header, delimiter=delimiter, column=columns[0])
    return _projected(table, [table.place(column) for column in columns])


def csv_drop_columns(
    path: str, columns: list[str | int], header: str, delimiter: str
) -> Iterator[bytes]:
    table = Table(path, header=header, delimiter=delimiter, column=columns[0])
    dropped = {table.place(column) for column in columns}
    return _projected(table, [n for n in range(len(table.names)) if n not in dropped])


def _projected(table: Table, places: list[int]) -> Iterator[bytes]:
    for record in _with_header(table):
        yield table.line(record.cell(place) for place in places)


def _with_header(table: Table) -> Iterator[Record]:
    if table.header:
        yield table.header
    yield from table


def csv_headers(path: str, delimiter: str) -> Iterator[bytes]:
    table = Table(path, header="present", delimiter=delimiter)
    return (_one_line(name) for name in table.names)


# --- rows ---------------------------------------------------------------------------------


def csv_filter(
    path: str,
    column: str | int,
    op: str,
    value: str | float | bool,
    ignore_case: bool,
    header: str,
    delimiter: str,
) -> Iterator[bytes]:
    table = Table(path, header=header, delimiter=delimiter, column=column)
    place, test = table.place(column), condition(op, _as_text(value), ignore_case=ignore_case)
    yield from table.head()
    for record in table:
        if test(record.cell(place)):
            yield table.same(record)


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def csv_sort(
    path: str,
    column: str | int,
    numeric: str,
    reverse: bool,
    header: str,
    delimiter: str,
    count: int | None = None,
) -> Iterator[bytes]:
    table = Table(path, header=header, delimiter=delimiter, column=column)
    place = table.place(column)
    rows = [(record.cell(place).strip(), record) for record in table]
    empty = [record for cell, record in rows if not cell]
    full = [(cell, record) for cell, record in rows if cell]
    key = _sort_key([cell for cell, _ in full], numeric)
    full.sort(key=lambda row: key(row[0]), reverse=reverse)
    yield from table.head()
    for record in [*(record for _, record in full), *empty][:count]:
        yield table.same(record)


def _sort_key(cells: list[str], numeric: str) -> Callable[[str], tuple[Decimal, str]]:
    """Numbers where every cell is one, or where asked for (others then count as 0); else text."""
    if numeric == "numbers" or (
        numeric == "auto" and all(parse_number(cell) is not None for cell in cells)
    ):
        return lambda cell: (parse_number(cell) or Decimal(0), "")
    return lambda cell: (Decimal(0), cell)


def csv_count_rows(path: str, header: str, delimiter: str) -> bytes:
    return number_line(sum(1 for _ in Table(path, header=header, delimiter=delimiter)))


# --- figures ------------------------------------------------------------------------------


def csv_aggregate(
    path: str,
    function: str,
    order: str,
    keep_header: bool,
    header: str,
    delimiter: str,
    column: str | int | None = None,
    group_by: str | int | None = None,
    decimals: int | None = None,
) -> Iterator[bytes]:
    if column is None and function != "count":
        raise ToolFailure("bad_arguments", f"`{function}` needs `column`")
    wanted = group_by if column is None else column
    table = Table(path, header=header, delimiter=delimiter, column=wanted)
    place = None if column is None else table.place(column)
    group = None if group_by is None else table.place(group_by)
    groups = _grouped(table, place, group, numbers=function != "count")
    results = {
        name: _worked_out(function, values, decimals, path) for name, values in groups.items()
    }
    if group is None:
        yield f"{results.get('', '0')}\n".encode()
        return
    if keep_header and table.header:
        label = "count" if place is None or function == "count" else table.names[place]
        yield table.line([table.names[group], label])
    for name, text in _ordered(results, order):
        yield table.line([name, text])


def _grouped(
    table: Table, place: int | None, group: int | None, *, numbers: bool
) -> dict[str, list[Decimal]]:
    groups: dict[str, list[Decimal]] = {} if group is not None else {"": []}
    skipped = 0
    for record in table:
        values = groups.setdefault("" if group is None else record.cell(group).strip(), [])
        if place is None:
            values.append(Decimal(1))
            continue
        cell = record.cell(place).strip()
        value = parse_number(cell) if numbers else Decimal(1)
        if cell and value is not None:
            values.append(value)
        skipped += bool(cell) and value is None
    if skipped:
        note(f"{skipped} values that are no numbers were left out")
    return groups


def _worked_out(function: str, values: list[Decimal], decimals: int | None, path: str) -> str:
    if function == "count":
        return str(len(values))
    if not values and function != "sum":
        raise ToolFailure(
            "bad_arguments", f"`{path}`: the column holds no number to take the {function} of"
        )
    if function == "mean":
        return mean_text(exact_sum(values), len(values), decimals)
    if function == "sum":
        return written_number(exact_sum(values), decimals)
    return written_number(min(values) if function == "min" else max(values), decimals)


def _ordered(results: dict[str, str], order: str) -> Iterable[tuple[str, str]]:
    if order == "appearance":
        return results.items()
    if order == "value":
        return sorted(results.items(), key=lambda each: (-Decimal(each[1]), each[0]))
    return sorted(results.items())


# --- other forms --------------------------------------------------------------------------


def csv_to_json(path: str, typed: bool, header: str, delimiter: str) -> Iterator[bytes]:
    import json

    table = Table(path, header=header, delimiter=delimiter)
    names = _distinct(table.names)
    before = "[\n"
    for record in table:
        cells = [record.cell(place) for place in range(max(len(names), len(record.cells)))]
        keys = [*names, *(f"column_{n}" for n in range(len(names) + 1, len(cells) + 1))]
        one = {
            key: _typed(cell) if typed else _clean(cell)
            for key, cell in zip(keys, cells, strict=True)
        }
        text = json.dumps(one, ensure_ascii=False, indent=2).replace("\n", "\n  ")
        yield f"{before}  {text}".encode()
        before = ",\n"
    yield b"[]\n" if before == "[\n" else b"\n]\n"


def _clean(cell: str) -> str:
    """A cell as proper text: bytes that are no UTF-8 are read as Latin-1."""
    return "".join(chr(ord(c) - 0xDC00) if 0xDC80 <= ord(c) <= 0xDCFF else c for c in cell)


def _distinct(names: list[str]) -> list[str]:
    """Names that can be keys of one object: a second `x` is `x_2`, an empty one `column_N`."""
    used: dict[str, int] = {}
    distinct = []
    for place, name in enumerate(map(_clean, names), 1):
        base = name or f"column_{place}"
        used[base] = used.get(base, 0) + 1
        distinct.append(base if used[base] == 1 else f"{base}_{used[base]}")
    return distinct


def _typed(cell: str) -> str | int | float | bool | None:
    text = cell.strip()
    if text in ("true", "false"):
        return text == "true"
    number = text.lstrip("-")
    if number.isascii() and number.isdigit() and (number == "0" or not number.startswith("0")):
        return int(text)
    whole, _, rest = number.partition(".")
    if whole.isascii() and whole.isdigit() and rest.isascii() and rest.isdigit():
        return float(text)
    return _clean(cell) if text else None


def table_join(
    path: str, other: str, how: str, delimiter: str, column: str | None = None
) -> Iterator[bytes]:
    left = Table(path, header="present", delimiter=delimiter)
    right = Table(other, header="present", delimiter=delimiter)
    name = column or next((n for n in left.names if n in right.names), "")
    if not name:
        raise ToolFailure(
            "bad_arguments",
            f"`{path}` and `{other}` share no column name{nearest('', left.names)}; give `column`",
        )
    key, other_key = left.place(name), right.place(name)
    others = [place for place in range(len(right.names)) if place != other_key]
    partners: dict[str, list[Record]] = {}
    for record in right:
        partners.setdefault(record.cell(other_key).strip(), []).append(record)
    yield left.line(_distinct([*left.names, *(right.names[place] for place in others)]))
    met: set[str] = set()
    width = range(len(left.names))
    for record in left:
        value = record.cell(key).strip()
        found = partners.get(value, [])
        met.add(value)
        for partner in found or ([Record([], "")] if how != "inner" else []):
            yield left.line([*(record.cell(p) for p in width), *(partner.cell(p) for p in others)])
    if how == "outer":
        for value, records in partners.items():
            for record in records if value not in met else ():
                cells = [value if place == key else "" for place in width]
                yield left.line([*cells, *(record.cell(place) for place in others)])


def csv_concat(paths: list[str], delimiter: str) -> Iterator[bytes]:
    def tables() -> Iterator[Table]:
        """Those that are not empty, one open at a time."""
        every = (Table(path, header="present", delimiter=delimiter) for path in paths)
        return (table for table in every if table.header)

    first = next(tables(), None)
    if first is None:
        return
    problems = [problem for table in tables() for problem in _differences(first, table)]
    if problems:
        said = "; ".join(problems)
        raise ToolFailure("bad_arguments", f"the columns are not those of `{first.path}`: {said}")
    yield from first.head()
    for table in tables():
        yield from _rows_like(first, table)


def _differences(first: Table, table: Table) -> Iterator[str]:
    here, there = Counter(table.names), Counter(first.names)
    for how, names in (("has no", there - here), ("alone has", here - there)):
        if names:
            yield f"`{table.path}` {how} {', '.join(f'`{name}`' for name in names)}"
    if here == there and table.names != first.names and len(here) < len(table.names):
        yield f"`{table.path}` has another order, and one name twice"


def _rows_like(first: Table, table: Table) -> Iterator[bytes]:
    """The rows of a table with the columns and the delimiter of the first one."""
    same_order = table.names == first.names
    if same_order and table.delimiter == first.delimiter:
        yield from map(first.same, table)
        return
    width = len(first.names)
    places = range(width) if same_order else [table.names.index(name) for name in first.names]
    for record in table:
        yield first.line([*(record.cell(place) for place in places), *record.cells[width:]])
