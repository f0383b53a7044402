"""What operations on tables and JSON must give, in plain Python; part of `loop.reference`."""

from __future__ import annotations

import csv
import io
import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

Args = Mapping[str, Any]


#: Words that compare by a column that they need not name: its usual names, and whether more of
#: it is meant (`older`) or less (`younger`).
DEGREES: dict[str, tuple[tuple[str, ...], bool]] = {
    word: (tuple(names.split()), more)
    for words, names, more in (
        ("older|oldest|elder|eldest", "age years", True),
        ("younger|youngest", "age years", False),
        ("cheaper|cheapest|less expensive|least expensive", "price cost amount", False),
        (
            "dearer|dearest|more expensive|most expensive|costlier|priciest|pricier",
            "price cost amount",
            True,
        ),
        ("taller|tallest|higher|highest", "height size elevation", True),
        ("smaller|smallest|lower|lowest", "height size elevation", False),
        ("heavier|heaviest", "weight mass", True),
        ("lighter|lightest", "weight mass", False),
        ("longer|longest", "length duration distance pages minutes", True),
        ("shorter|shortest", "length duration distance height pages minutes", False),
        ("newer|newest|latest|later", "year date", True),
        ("earlier|earliest", "year date", False),
        ("most recent", "year date", True),
        ("best paid|highest paid", "salary pay wage rate income", True),
        ("worst paid|lowest paid", "salary pay wage rate income", False),
        ("faster|fastest", "speed", True),
        ("slower|slowest", "speed", False),
        ("最贵", "价格 单价 售价 金额", True),
        ("最便宜", "价格 单价 售价 金额", False),
        ("最年长", "年龄 岁数", True),
        ("最年轻", "年龄 岁数", False),
        ("after|since", "year", True),
        ("before", "year", False),
    )
    for word in words.split("|")
}


#: Verbs that say which column is compared: `who earn at least 3000`.
VERBS: dict[str, tuple[str, ...]] = {
    verb: tuple(names.split())
    for verbs, names in (
        ("earn earns earning make makes making", "salary wage pay income earnings"),
        ("cost costs costing", "price cost amount"),
        ("weigh weighs weighing", "weight mass"),
        ("last lasts lasting", "duration length minutes hours"),
    )
    for verb in verbs.split()
}
#: Degrees that speak of age, and so of the earlier of two days.
_OF_AGE = frozenset("older oldest elder eldest younger youngest".split())
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class OpenQuestionError(Exception):
    """The wording leaves the result open for this input, or the input does not fit it."""


class UnfitError(OpenQuestionError):
    """What the wording speaks of is not there: it cannot have been meant so."""


def lines_of(text: str) -> list[str]:
    return text.split("\n")[:-1] if text.endswith("\n") else text.split("\n") if text else []


def text_of(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def number_of(value: Decimal | int) -> bytes:
    """A number as people write it: no exponent, no zeros behind the point."""
    if isinstance(value, Decimal):
        text = f"{value:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return f"{'0' if text in ('-0', '') else text}\n".encode()
    return f"{value}\n".encode()


def is_number(cell: str) -> bool:
    try:
        return bool(cell.strip()) and Decimal(cell.strip()).is_finite()
    except InvalidOperation:
        return False


def rows_of(text: str) -> list[list[str]]:
    """The rows of a table in which every row is as long as the first."""
    first = text.split("\n", 1)[0]
    sign = max(",;\t", key=first.count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=sign) if row]
    if not rows:
        raise OpenQuestionError("the table is empty")
    if any(len(row) != len(rows[0]) for row in rows):
        raise OpenQuestionError("the rows differ in length")
    return rows


def has_heading(rows: Sequence[Sequence[str]], *, named: bool) -> bool:
    """Whether the first row holds names: surely when a column is called by its name."""
    if named:
        return True
    if any(is_number(cell) or not cell.strip() for cell in rows[0]):
        return False
    if not any(is_number(cell) for row in rows[1:] for cell in row):
        raise OpenQuestionError("the first row may be a header or not")
    return True


def index_of(rows: Sequence[Sequence[str]], wanted: Any) -> int:
    if isinstance(wanted, int):
        index = wanted - 1 if wanted > 0 else len(rows[0]) - 1
        if index >= len(rows[0]):
            raise UnfitError("there are fewer columns")
        return index
    name = name_among(rows[0], str(wanted))
    if name is None:
        raise UnfitError(f"no column is called `{wanted}`")
    return list(rows[0]).index(name)


def name_among(names: Sequence[str], wanted: str) -> str | None:
    """The one of `names` that `wanted` is, in any case, or its plural; None without just one."""
    wanted = wanted.strip().casefold().replace("_", " ")
    forms = [wanted]
    if wanted.endswith("ies"):
        forms.append(f"{wanted[:-3]}y")
    if wanted.endswith("es"):
        forms.append(wanted[:-2])
    if wanted.endswith("s"):
        forms.append(wanted[:-1])
    if wanted.endswith("ed"):  # `started before`, of a column `start`
        forms += [wanted[:-1], wanted[:-2]]
    for form in forms:
        found = [n for n in names if n.strip().casefold().replace("_", " ") == form]
        if found:
            return found[0] if len(found) == 1 else None
    bare = [_undated(form) for form in forms]
    found = [n for n in names if _undated(n.strip().casefold().replace("_", " ")) in bare]
    return found[0] if len(found) == 1 else None


def _undated(name: str) -> str:
    """`start date` without its second word: a column may or may not be called so."""
    return re.sub(r"(?<=\w) (?:date|day|time|on|at)$", "", name)


def column_at(rows: Sequence[Sequence[str]], args: Args) -> int:
    """Which column a condition tests: the named one, that of a degree such as `older`, or the
    only one in which a cell is just the value."""
    if not rows:
        raise UnfitError("there are no rows")
    if "column" in args:
        return index_of(rows, args["column"])
    for key in ("degree", "verb"):
        if key in args:
            usual = DEGREES[args[key]][0] if key == "degree" else VERBS[args[key]]
            found = [i for i, name in enumerate(rows[0]) if name.strip().casefold() in usual]
            if len(found) != 1:
                raise UnfitError(f"no column tells what `{args[key]}` means")
            return found[0]
    if args.get("op") in ("<", "<=", ">", ">="):  # `under 60`, of the only numbers there are
        days = _DAY.fullmatch(str(args["value"]).strip())
        fits = _DAY.fullmatch if days else is_number
        numeric = [i for i in range(len(rows[0])) if all(fits(r[i].strip()) for r in rows[1:])]
        if len(numeric) != 1:
            raise UnfitError("no one column holds numbers")
        return numeric[0]
    wanted = str(args.get("value", "")).strip().casefold()
    found = [
        i
        for i in range(len(rows[0]))
        if any(row[i].strip().casefold() == wanted for row in rows[1:])
    ]
    if len(found) != 1:
        raise UnfitError(f"no one column holds `{args['value']}`")
    return found[0]


def values(text: str, args: Args) -> list[str]:
    """One column's values without its header, or a field's of every object."""
    if text.lstrip()[:1] == "[":
        return lines_of(json_list(text, {"pick": args["column"]}).decode())
    rows = rows_of(text)
    index = index_of(rows, args["column"])
    heading = has_heading(rows, named=isinstance(args["column"], str))
    return [row[index] for row in rows[heading:]]


def _records(text: str) -> tuple[list[str], list[list[str]]]:
    """The lines of a table and their rows, where each row is one line."""
    lines = [line for line in lines_of(text) if line.strip()]
    rows = rows_of(text)
    if len(lines) != len(rows):
        raise OpenQuestionError("a row goes over several lines")
    return lines, rows


def column(text: str, args: Args) -> bytes:
    rows = rows_of(text)
    index = index_of(rows, args["column"])
    if isinstance(args["column"], int) and any(is_number(cell) for cell in rows[0]):
        return text_of([row[index] for row in rows])
    kept = args.get("heading") == "kept"
    if isinstance(args["column"], int) and not kept and args.get("heading") is None:
        raise OpenQuestionError("the first row may be a header, to be kept or not")
    return text_of([row[index] for row in rows[0 if kept else 1 :]])


def columns(text: str, args: Args) -> bytes:
    rows = rows_of(text)
    places = [index_of(rows, name) for name in args["columns"]]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([row[i] for i in places] for row in rows[args.get("heading") == "dropped" :])
    return out.getvalue().encode()


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


#: Comparisons of a cell's text.
TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda cell, wanted: wanted in cell,
    "not_contains": lambda cell, wanted: wanted not in cell,
    "starts": str.startswith,
    "ends": str.endswith,
    "not_starts": lambda cell, wanted: not cell.startswith(wanted),
    "not_ends": lambda cell, wanted: not cell.endswith(wanted),
    "empty": lambda cell, wanted: not cell,
    "not_empty": lambda cell, wanted: bool(cell),
}


def _meets(cells: Sequence[str], args: Args) -> list[bool]:
    wanted = str(args.get("value", "")).strip()
    if args["op"] in TEXT_TESTS:
        folded = [cell.strip().casefold() if args.get("ignore_case") else cell for cell in cells]
        meant = wanted.casefold() if args.get("ignore_case") else wanted
        return [TEXT_TESTS[args["op"]](cell.strip(), meant) for cell in folded]
    test = _TESTS[args["op"]]
    if args["op"] in ("==", "!="):
        return [test(_key(cell, wanted, args), _key(wanted, wanted, args)) for cell in cells]
    if _DAY.fullmatch(wanted) and all(_DAY.fullmatch(cell.strip()) for cell in cells):
        return [test(cell.strip(), wanted) for cell in cells]
    if not is_number(wanted) or not all(map(is_number, cells)):
        raise OpenQuestionError("not everything that is compared is a number")
    return [test(Decimal(cell.strip()), Decimal(wanted)) for cell in cells]


def _key(cell: str, wanted: str, args: Args) -> str | Decimal:
    cell = cell.strip()
    if is_number(wanted) and is_number(cell):
        return Decimal(cell)
    return cell.casefold() if args.get("ignore_case") else cell


#: What makes up one condition.
CONDITION = ("column", "degree", "verb", "op", "value", "upto")


def _chosen(table: Sequence[Sequence[str]], args: Args) -> list[bool]:
    """Whether each row below the heading meets the conditions."""
    further = args.get("more", ())
    shared = {key: value for key, value in args.items() if key not in CONDITION}
    found = [_met(table, args), *(_met(table, {**shared, **each}) for each in further)]
    meets = any if args.get("joined") == "or" else all
    chosen = [meets(each) for each in zip(*found, strict=True)]
    if not any(chosen):
        raise OpenQuestionError("no row meets the condition")
    return chosen


def _met(table: Sequence[Sequence[str]], args: Args) -> list[bool]:
    """Whether each row below the heading meets one condition."""
    index = column_at(table, args)
    cells = [row[index] for row in table[1:]]
    wanted = str(args.get("value", "")).strip().casefold()
    there = wanted in {cell.strip().casefold() for cell in cells}
    if args["op"] in ("==", "!=") and not there and not any(map(is_number, cells)):
        raise UnfitError(f"no cell says `{args['value']}`")
    if "upto" in args:
        low = _meets(cells, {**args, "op": ">="})
        high = _meets(cells, {**args, "op": "<=", "value": args["upto"]})
        bounds = {str(args["value"]), str(args["upto"])}
        if any(cell.strip() in bounds for cell in cells):
            raise OpenQuestionError("whether the bounds themselves are meant")
        return [one and other for one, other in zip(low, high, strict=True)]
    return _meets(cells, args)


def is_down(rows: Sequence[Sequence[str]], index: int, args: Args) -> bool:
    """Whether the highest comes first: of days, the oldest is the earliest."""
    down = bool(args.get("reverse"))
    if args.get("degree") in _OF_AGE and "column" in args:
        return down ^ all(_DAY.match(row[index].strip()) for row in rows)
    return down


def rows(text: str, args: Args) -> bytes:
    lines, table = _records(text)
    meets = _chosen(table, args)
    chosen = [line for line, there in zip(lines[1:], meets, strict=True) if there]
    return text_of([*lines[: args.get("heading") != "dropped"], *chosen])


def count_where(text: str, args: Args) -> bytes:
    return number_of(sum(_chosen(rows_of(text), args)))


def picked(text: str, args: Args) -> bytes:
    """One column of the rows that meet a condition."""
    table = rows_of(text)
    index = index_of(table, args["pick"])
    there = zip(table[1:], _chosen(table, args), strict=True)
    return text_of([row[index] for row, meets in there if meets])


def figure_where(text: str, args: Args) -> bytes:
    """A figure of one column of the rows that meet a condition."""
    cells = lines_of(picked(text, args).decode())
    if not all(map(is_number, cells)):
        raise OpenQuestionError("not every value is a number")
    return _figure(args["function"], [Decimal(cell) for cell in cells])


def best(text: str, args: Args) -> bytes:
    """One column of the row with the highest or lowest value."""
    table = rows_of(text)
    index, pick = column_at(table, args), index_of(table, args["pick"])
    cells = [row[index].strip() for row in table[1:]]
    if not cells or not all(map(is_number, cells)):
        raise OpenQuestionError("not every value is a number")
    keys = [Decimal(cell) for cell in cells]
    top = max(keys) if args.get("reverse") else min(keys)
    if keys.count(top) != 1:
        raise OpenQuestionError("several rows share the best value")
    return text_of([table[1:][keys.index(top)][pick]])


def distinct(text: str, args: Args) -> bytes:
    cells = list(dict.fromkeys(values(text, args)))
    if len({cell.strip().casefold() for cell in cells}) != len(cells) or "" in cells:
        raise OpenQuestionError("values differ only in capitals or spaces, or are empty")
    return text_of(sorted(cells) if args.get("order") == "sorted" else cells)


def count_distinct(text: str, args: Args) -> bytes:
    return number_of(len(lines_of(distinct(text, args).decode())))


def top_group(text: str, args: Args) -> bytes:
    """The group whose figure is the largest or smallest."""
    _, figures = _by_group(text, args)
    amounts = {name: Decimal(figure) for name, figure in figures.items()}
    if not amounts:
        raise OpenQuestionError("there is no group")
    best = max(amounts.values()) if args.get("reverse") else min(amounts.values())
    found = [name for name, amount in amounts.items() if amount == best]
    if len(found) != 1:
        raise OpenQuestionError("several groups share the best figure")
    return text_of(found)


def drop_columns(text: str, args: Args) -> bytes:
    table = rows_of(text)
    names = args.get("columns") or (args["column"],)
    gone = {index_of(table, name) for name in names}
    if len(gone) == len(table[0]):
        raise OpenQuestionError("no column would be left")
    out = io.StringIO()
    kept = [i for i in range(len(table[0])) if i not in gone]
    csv.writer(out, lineterminator="\n").writerows([row[i] for i in kept] for row in table)
    return out.getvalue().encode()


def headers(text: str, args: Args) -> bytes:
    table = rows_of(text)
    if not has_heading(table, named=False):
        raise OpenQuestionError("the table has no header")
    return text_of(table[0])


def grouped(text: str, args: Args) -> bytes:
    """A figure for each value of a column, headed by the names, groups in their order."""
    head, figures = _by_group(text, args)
    order = sorted(figures)
    if args.get("order") == "count":
        amounts = {name: Decimal(figure) for name, figure in figures.items()}
        if len(set(amounts.values())) != len(amounts):
            raise OpenQuestionError("groups with equal figures have no order")
        order = sorted(figures, key=lambda name: -amounts[name])
    out = io.StringIO()
    rows = [head, *((name, figures[name]) for name in order)]
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def _by_group(text: str, args: Args) -> tuple[tuple[str, str], dict[str, str]]:
    """The names over a figure for each value of a column, and the figures."""
    table = rows_of(text)
    by = index_of(table, args["by"])
    groups: dict[str, list[str]] = {}
    index = index_of(table, args["column"]) if args["function"] != "count" else by
    for row in table[1:]:
        groups.setdefault(row[by], []).append(row[index])
    if args["function"] == "count":
        head = "count"
        figures = {name: number_of(len(cells)) for name, cells in groups.items()}
    else:
        if not all(is_number(cell) for cells in groups.values() for cell in cells):
            raise OpenQuestionError("not every value is a number")
        numbers = {name: list(map(Decimal, cells)) for name, cells in groups.items()}
        figures = {name: _figure(args["function"], each) for name, each in numbers.items()}
        head = table[0][index]
    told = {name: figure.decode().strip() for name, figure in figures.items()}
    return (table[0][by], head), told


def _figure(function: str, numbers: Sequence[Decimal]) -> bytes:
    if function == "mean":
        mean = sum(numbers, Decimal()) / len(numbers)
        if mean * len(numbers) != sum(numbers, Decimal()) or -int(mean.as_tuple().exponent) > 3:
            raise OpenQuestionError("the mean has no short exact form")
        return number_of(mean)
    if function == "sum":
        return number_of(sum(numbers, Decimal()))
    return number_of(max(numbers) if function == "max" else min(numbers))


def table_join(text: str, args: Args) -> bytes:
    """Rows of two tables that share a value; each value stands once in the second."""
    left, right = rows_of(text), rows_of(args["other"])
    mine, theirs = index_of(left, args["column"]), index_of(right, args["column"])
    keys = [row[theirs] for row in right[1:]]
    if len(set(keys)) != len(keys) or set(keys) != {row[mine] for row in left[1:]}:
        raise OpenQuestionError("not every row has exactly one partner")
    rest = {row[theirs]: [c for i, c in enumerate(row) if i != theirs] for row in right}
    if set(rest[right[0][theirs]]) & set(left[0]):
        raise OpenQuestionError("both tables have a column of one name besides")
    rest[left[0][mine]] = rest[right[0][theirs]]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([*row, *rest[row[mine]]] for row in left)
    return out.getvalue().encode()


def stack(texts: Sequence[str], args: Args) -> bytes:
    """Tables one below the other: under one heading, or each with its own as it stood."""
    if args["heading"] == "each":
        return text_of([line for text in texts for line in lines_of(text)])
    if not may_stack(texts, surely=not args.get("unsaid")):
        unfit = UnfitError if args.get("unsaid") else OpenQuestionError
        raise unfit("the tables do not have the same columns")
    if any(text.split("\n", 1)[0].count('"') % 2 for text in texts):
        raise OpenQuestionError("a name goes over several lines")
    first, *others = [text for text in texts if text.strip()] or [""]
    lines = lines_of(first) + [line for text in others for line in _rows_like(first, text)]
    if not all(line.strip() for line in lines):
        raise OpenQuestionError("blank lines may be rows or not")
    return text_of(lines)


def may_stack(texts: Sequence[str], *, surely: bool) -> bool:
    """Whether tables have the same columns, in any order.

    Args:
        surely: It is said that they have a heading; else their first rows must look like one.
    """
    heads = [sorted(_heading(text)[1]) for text in texts if text.strip()]
    alike = all(head == heads[0] for head in heads)
    return alike and (surely or not any(is_number(cell) for head in heads for cell in head))


def _heading(text: str) -> tuple[str, list[str]]:
    """What parts a table's cells, and its first row."""
    first = text.split("\n", 1)[0].lstrip("\ufeff").replace("\r", " ")
    sign = max(",;\t", key=first.count)
    return sign, [cell.strip() for cell in next(csv.reader([first], delimiter=sign), [])]


def _rows_like(first: str, text: str) -> list[str]:
    """The rows of a table, written as those of the first are; as they stand where that is so."""
    if _heading(text) == _heading(first):
        return lines_of(text)[1:]
    sign, names = _heading(first)
    own = _heading(text)[1]
    if len(set(own)) != len(own):
        raise OpenQuestionError("two columns have one name")
    out = io.StringIO()
    writer = csv.writer(out, delimiter=sign, lineterminator="\n")
    writer.writerows([row[own.index(name)] for name in names] for row in rows_of(text)[1:])
    return lines_of(out.getvalue())


def count_rows(text: str, args: Args) -> bytes:
    table = rows_of(text)
    return number_of(len(table) - has_heading(table, named=args.get("heading") == "dropped"))


def csv_sort(text: str, args: Args) -> bytes:
    lines, table = _records(text)
    index = column_at(table, args)
    heading = has_heading(table, named=isinstance(args.get("column", ""), str))
    top, pairs = (
        lines[:heading],
        [(row[index], line) for row, line in zip(table, lines, strict=True)][heading:],
    )
    cells = [cell for cell, _ in pairs]
    numbers = [is_number(cell) for cell in cells]
    if any(numbers) and not all(numbers):
        raise OpenQuestionError("some values are numbers and some are not")
    key: Callable[[str], Any] = Decimal if all(numbers) else str
    keys = [key(cell.strip()) for cell in cells]
    if len(set(keys)) != len({line for _, line in pairs}):
        raise OpenQuestionError("rows with equal values may stand in another order")
    down = is_down(table[heading:], index, args)
    ordered = sorted(pairs, key=lambda pair: key(pair[0].strip()), reverse=down)
    if not all(numbers) and ordered != sorted(
        pairs, key=lambda pair: pair[0].strip().casefold(), reverse=down
    ):
        raise OpenQuestionError("capital and small letters would sort differently")
    kept = ordered[: args["limit"]] if "limit" in args else ordered
    return text_of([*(top if args.get("heading") != "dropped" else ()), *(x for _, x in kept)])


def csv_sort2(text: str, args: Args) -> bytes:
    """Sorted by one column, rows that are equal there by another."""
    lines, table = _records(text)
    places = [index_of(table, args["column"]), index_of(table, args["key2"])]
    kinds: list[Callable[[str], Any]] = []
    for place in places:
        cells = [row[place].strip() for row in table[1:]]
        kinds.append(Decimal if all(map(is_number, cells)) else str)
        if kinds[-1] is str and sorted(cells) != sorted(cells, key=str.casefold):
            raise OpenQuestionError("capital and small letters would sort differently")
    keyed = [
        (tuple(kind(row[at].strip()) for kind, at in zip(kinds, places, strict=True)), line)
        for row, line in zip(table[1:], lines[1:], strict=True)
    ]
    if len({key for key, _ in keyed}) != len({line for _, line in keyed}):
        raise OpenQuestionError("rows with equal values may stand in another order")
    ordered = [line for _, line in sorted(keyed, key=lambda pair: pair[0])]
    return text_of([*lines[: args.get("heading") != "dropped"], *ordered])


def json_to_csv(text: str, args: Args) -> bytes:
    found = _objects(text)
    keys = list(args.get("columns", ())) or list(found[0])
    if not all(any(key in row for row in found) for key in keys):
        raise UnfitError("no object has such a key")
    if "gaps" not in args and any(key not in row for row in found for key in keys):
        raise OpenQuestionError("a named column is missing in an object")
    if any(list(row) != list(found[0]) for row in found) and "columns" not in args:
        raise OpenQuestionError("the objects differ in their keys")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(keys)
    writer.writerows([[_cell(row.get(key, "")) for key in keys] for row in found])
    return out.getvalue().encode()


def _loaded(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError:
        raise UnfitError("the input is not JSON") from None


def _objects(text: str) -> list[dict[str, Any]]:
    found = _loaded(text)
    if not isinstance(found, list):
        raise UnfitError("the input is no list")
    if not found or not all(isinstance(r, dict) for r in found):
        raise OpenQuestionError("the input is not a list of objects")
    return found


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        raise OpenQuestionError("a value has no one way to be written")
    return str(value)


def json_get(text: str, args: Args) -> bytes:
    value = _loaded(text)
    for key in str(args["column"]).split("."):
        if not isinstance(value, dict):
            raise UnfitError(f"there is no `{key}`")
        names = [name for name in value if name.casefold() == key.casefold()]
        if len(names) != 1:
            raise UnfitError(f"there is no `{key}`")
        value = value[names[0]]
    return f"{_cell(value)}\n".encode()


def _json_chosen(text: str, args: Args) -> tuple[list[dict[str, Any]], list[bool]]:
    """The objects of a list, and whether each meets the condition."""
    found = _objects(text)
    keys = list(found[0])
    table = [keys, *([_plain(row.get(key)) for key in keys] for row in found)]
    if any(set(row) != set(keys) for row in found):
        raise OpenQuestionError("the objects differ in their keys")
    return found, _chosen(table, args)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, list | dict):
        return f"\0{value!r}"
    return str(value)


def json_rows(text: str, args: Args) -> bytes:
    found, meets = _json_chosen(text, args)
    kept = [row for row, there in zip(found, meets, strict=True) if there]
    return json.dumps(kept, default=_number).encode()


def _number(value: Any) -> Any:
    return int(value) if value == value.to_integral_value() else float(value)


def json_count_where(text: str, args: Args) -> bytes:
    return number_of(sum(_json_chosen(text, args)[1]))


def json_picked(text: str, args: Args) -> bytes:
    found, meets = _json_chosen(text, args)
    name = name_among(list(found[0]), args["pick"])
    if name is None:
        raise UnfitError(f"there is no `{args['pick']}`")
    return text_of([_cell(r[name]) for r, there in zip(found, meets, strict=True) if there])


def json_list(text: str, args: Args) -> bytes:
    found = _objects(text)
    name = name_among(list(found[0]), args["pick"])
    if name is None or any(name not in row for row in found):
        raise UnfitError(f"there is no `{args['pick']}`")
    return text_of([_cell(row[name]) for row in found])


def json_count(text: str, args: Args) -> bytes:
    return number_of(len(_objects(text)))


def json_keys(text: str, args: Args) -> bytes:
    value = _loaded(text)
    rows = value if isinstance(value, list) else [value]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise OpenQuestionError("the input is no object")
    return text_of(list(dict.fromkeys(key for row in rows for key in row)))


def json_pretty(text: str, args: Args) -> bytes:
    _loaded(text)
    return text.encode()


def csv_to_json(text: str, args: Args) -> bytes:
    table = rows_of(text)
    if len(table) < 2 or len(set(table[0])) != len(table[0]) or any(map(is_number, table[0])):
        raise OpenQuestionError("the table has no clear header")
    return json.dumps([dict(zip(table[0], row, strict=True)) for row in table[1:]]).encode()
