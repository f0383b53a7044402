"""The tools that carry out what the second reader understood, as a candidate of its own.

A sentence of which every word has a place is not guessed at: its operations are turned into calls
directly. What they must give is computed apart from them (`loop.reference`), on the real files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loop import tables, times
from loop.binding import WORK
from loop.reference import expected
from loop.values import Candidate, FileInfo, Goal, Survey
from loop.wording import Op
from openry.capability.definition import ToolDefinition

#: Said of a candidate that is no guess.
UNDERSTOOD = "every word understood"
#: Set where a call reads what the operation reads and the result of the call before.
BOTH = "both"
#: So many ways to take what a wording leaves open are made.
_MOST_WAYS = 9
Args = dict[str, Any]
#: Calls in order: a tool and its settings, without the files that it reads and writes.
Calls = list[tuple[str, Args]]
Make = Callable[[Op, Survey], Calls]


def candidates_of(
    ops: Sequence[Op], text: str, survey: Survey, tools: Mapping[str, ToolDefinition]
) -> list[Candidate]:
    """The calls that do what `ops` say, then with each convention that they leave open the other
    way; nothing where no tool does one of them."""
    meant = [_meant(op, survey) for op in ops]
    ways = [meant]
    for place, op in enumerate(ops):
        for way in op.open:
            inputs = way.get("inputs", op.inputs)
            args = {**op.args, **{key: each for key, each in way.items() if key != "inputs"}}
            other = Op(op.kind, args, inputs, op.output)
            ways.append([*meant[:place], other, *meant[place + 1 :]])
    made = (_candidate(way, text, survey, tools) for way in ways[:_MOST_WAYS])
    return list({each.key: each for each in made if each is not None}.values())


def _candidate(
    ops: Sequence[Op], text: str, survey: Survey, tools: Mapping[str, ToolDefinition]
) -> Candidate | None:
    goals: list[Goal] = []
    for number, op in enumerate(ops, start=1):
        make = _MEANS.get(op.kind)
        calls = make(op, survey) if make else []
        if not calls or any(name not in tools for name, _ in calls):
            return None
        goals += _goals(op, calls, number, text, tools)
    return Candidate(tuple(goals), score=0.0, why=(UNDERSTOOD,)) if goals else None


def fits_heads(ops: Sequence[Op], survey: Survey) -> bool:
    """Whether what a reading speaks of is there, by the beginnings of the files."""
    if any(info.bytes > len(info.head.encode()) for info in survey.files):
        return True  # judged on the whole files, after the run
    try:
        expected(ops, {info.name: info.head.encode() for info in survey.files})
    except tables.UnfitError:
        return False
    except tables.OpenQuestionError:
        pass
    return True


def _goals(
    op: Op, calls: Calls, number: int, text: str, tools: Mapping[str, ToolDefinition]
) -> list[Goal]:
    """One goal a call; what passes between them lies in the folder of work."""
    goals, inputs = [], op.inputs
    for index, (name, settings) in enumerate(calls, start=1):
        last = index == len(calls)
        output = op.output if last else f"{WORK}{number}-{index}.txt"
        tool = tools[name]
        args: Args = dict(settings)
        inputs = (*op.inputs[:1], *inputs) if args.pop(BOTH, False) else inputs
        reads = tool.with_role("input")
        if len(reads) == 1 and inputs and "array" in tool.parameters[reads[0]].types:
            args[reads[0]] = list(inputs)
        else:
            args |= dict(zip(reads, inputs, strict=False))
        args[tool.with_role("output")[0]] = output
        goals.append(Goal(text, name, args, inputs, (output,), 1.0, 1.0, (UNDERSTOOD,)))
        inputs = (output,)
    return goals


def _meant(op: Op, survey: Survey) -> Op:
    """`op` with the first of its open conventions that its input bears out."""
    first = dict(op.open[0])
    inputs = first.pop("inputs", op.inputs)
    args = {**op.args, **first}
    needle = str(args.get("needle", args.get("value", "")))
    info = survey.get(inputs[0]) if inputs else None
    ways = {way.get("ignore_case") for way in op.open}
    if needle and info and needle not in info.head and True in ways:
        args["ignore_case"] = True
    return Op(op.kind, args, inputs, op.output)


# --- lines ------------------------------------------------------------------------------------


def _needle(args: Args, needle: str) -> Args:
    where = args.get("where", "word" if args.get("whole_word") else "anywhere")
    found: Args = {"needle": needle}
    if where != "anywhere":
        found["where"] = where
    if args.get("ignore_case"):
        found["ignore_case"] = True
    return found


def _pattern(regex: str) -> Args:
    return {"needle": regex, "regex": True}


def tests(args: Args) -> list[tuple[bool, Args]]:
    """(whether a line that matches stays, settings) of each condition on a line."""
    found: list[tuple[bool, Args]] = []
    needles = [str(args[key]) for key in ("needle", "needle2") if key in args]
    if args.get("join") == "or":
        either = "|".join(map(re.escape, needles))
        either = rf"(?<![^\W_])(?:{either})(?![^\W_])" if args.get("whole_word") else either
        either = {"start": f"^(?:{either})", "end": f"(?:{either})$"}.get(
            args.get("where", ""), either
        )
        found.append((True, {**_needle(args, ""), **_pattern(either)}))
    else:
        for index, needle in enumerate(needles):
            found.append((not (index and args.get("join") == "but"), _needle(args, needle)))
    if "empty" in args:
        found.append((True, _pattern(r"^\s*$" if args["empty"] else r"\S")))
    sizes = {"longer": "{},", "longest_min": "{},", "shorter": "0,{}", "longest_max": "0,{}"}
    for key, form in sizes.items():
        if key in args:
            size = int(args[key]) + {"longer": 1, "shorter": -1}.get(key, 0)
            found.append((True, _pattern(rf"^.{{{form.format(size)}}}$")))
    for key in times.TESTS:
        if key in args:
            regex = times.pattern(key, str(args[key]), inclusive=bool(args.get("inclusive")))
            found.append((True, _pattern(regex)))
    return found


def _keep(op: Op, survey: Survey) -> Calls:
    calls: Calls = [
        ("filter_lines" if stays else "remove_lines", settings)
        for stays, settings in tests(op.args)
    ]
    if "limit" in op.args:
        calls.append((f"{op.args['end']}_lines", {"count": op.args["limit"]}))
    return _unless_headed(op, calls)


def _drop(op: Op, survey: Survey) -> Calls:
    found = tests(op.args)
    calls: Calls = [("remove_lines", settings) for stays, settings in found if stays]
    return _unless_headed(op, calls) if len(found) == len(calls) == 1 else []


def _count_kept(op: Op, survey: Survey) -> Calls:
    found = tests(op.args)
    if len(found) == 1 and found[0][0]:
        return _unless_headed(op, [("count_matching_lines", found[0][1])])
    return [*_keep(op, survey), ("count_lines", {})]


def _unless_headed(op: Op, calls: Calls) -> Calls:
    """Nothing where a table's heading is to be treated apart: tools for lines do not know it."""
    return [] if op.args.get("heading") else calls


def _keep_numbers(op: Op, survey: Survey) -> Calls:
    """Numbers, one a line, that lie where they are asked for: a table of one column."""
    signs = {"gt_n": ">", "ge_n": ">=", "lt_n": "<", "le_n": "<="}
    strict = op.args.get("inclusive") is False
    table = {"column": 1, "header": "absent", "delimiter": ","}
    return [
        ("csv_filter", {**table, "op": sign[:1] if strict else sign, "value": str(op.args[key])})
        for key, sign in signs.items()
        if key in op.args
    ]


def _count_numbers(op: Op, survey: Survey) -> Calls:
    return [*_keep_numbers(op, survey), ("count_lines", {})]


def _sort_by_word(op: Op, survey: Survey) -> Calls:
    """Lines of the same number of words are a table whose columns spaces part."""
    info = survey.get(op.inputs[0])
    widths = {len(line.split(" ")) for line in info.head.splitlines()} if info else set()
    if len(widths) != 1:
        return []
    width, place = widths.pop(), int(op.args["place"])
    column = place if place > 0 else width + 1 + place
    return [
        ("csv_sort", {"column": column, "delimiter": " ", "header": "absent", "numeric": "text"})
    ]


def _plain(name: str, *keys: str, **fixed: Any) -> Make:
    """A tool whose settings are called as the operation's are."""

    def make(op: Op, survey: Survey) -> Calls:
        settings = {key: op.args[key] for key in keys if op.args.get(key)}
        return _unless_headed(op, [(name, {**fixed, **settings})])

    return make


def _unique(op: Op, survey: Survey) -> Calls:
    settings = {"sorted": True} if op.args.get("order") == "sorted" else {}
    return _unless_headed(op, [("unique_lines", settings)])


def _tally(op: Op, survey: Survey) -> Calls:
    settings = {"descending": True} if op.args.get("order") == "count" else {}
    return [("count_each_line", settings)]


def _most_common(op: Op, survey: Survey) -> Calls:
    """The first of a tally without its number, where each line is one word."""
    info = survey.get(op.inputs[0])
    if info is None or any(len(line.split()) != 1 for line in info.head.splitlines()):
        return []
    return [("count_each_line", {"descending": True, "count": 1}), ("text_column", {"column": 2})]


def _replace(op: Op, survey: Survey) -> Calls:
    settings = {"needle": op.args["needle"], "replacement": op.args["replacement"]}
    flags = {key: True for key in ("ignore_case", "whole_word") if op.args.get(key)}
    return [("replace_text", {**settings, **flags})]


def _set_value(op: Op, survey: Survey) -> Calls:
    """The line that sets a key, where it is found just once, replaced by one that sets it anew."""
    info = survey.get(op.inputs[0])
    key = re.escape(str(op.args["key"]))
    pattern = rf"(?im)^(\s*{key}\s*[=:][ \t]*)(\S.*)$"
    found = list(re.finditer(pattern, info.head)) if info else []
    if len(found) != 1 or info is None or info.head.count(found[0].group()) != 1:
        return []
    line = f"{found[0][1]}{op.args['replacement']}"
    return [("replace_text", {"needle": found[0].group(), "replacement": line})]


def _extract(op: Op, survey: Survey) -> Calls:
    once = op.args.get("unique") or op.args.get("once")
    calls: Calls = [
        ("extract_matches", {"kind": op.args["what"], **({"unique": True} if once else {})})
    ]
    return [*calls, ("sort_lines", {})] if op.args.get("order") == "sorted" else calls


def _first(name: str) -> Make:
    return lambda op, survey: _unless_headed(op, [(name, {"count": op.args["count"]})])


def _skip_last(op: Op, survey: Survey) -> Calls:
    return [("skip_lines", {"count": op.args["count"], "where": "end"})]


def _list_files(op: Op, survey: Survey) -> Calls:
    settings: Args = {"pattern": op.args["ext"]}
    return [("find_files", settings if op.args.get("below") else {**settings, "recursive": False})]


# --- tables and JSON --------------------------------------------------------------------------


def _columns_of(op: Op, survey: Survey) -> tuple[str, ...]:
    info = survey.get(op.inputs[0])
    return info.columns if info else ()


def _named(op: Op, survey: Survey, wanted: Any) -> Any:
    """A column as the table writes it: `names` may be said of `name`."""
    if isinstance(wanted, int):
        return wanted
    return tables.name_among(_columns_of(op, survey), str(wanted)) or wanted


def _tested(op: Op, survey: Survey) -> str:
    """The column that a condition tests; "" where it cannot be told."""
    info = survey.get(op.inputs[0])
    if "column" in op.args:
        return str(_named(op, survey, op.args["column"]))
    try:
        rows = _rows_of(info) if info else []
        return rows[0][tables.column_at(rows, op.args)] if rows else ""
    except tables.OpenQuestionError:
        return ""


def _rows_of(info: FileInfo) -> list[list[str]]:
    """The rows in a file's head, also of JSON objects."""
    if info.kind != "json":
        whole = (
            info.head if info.bytes <= len(info.head.encode()) else info.head.rpartition("\n")[0]
        )
        return tables.rows_of(whole)
    if info.bytes <= len(info.head.encode()):
        try:
            found = json.loads(info.head)
        except ValueError:
            found = None
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            keys = info.columns
            return [list(keys), *([_written(each.get(key)) for key in keys] for each in found)]
    values = re.findall(
        r'"((?:[^"\\]|\\.)*)"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,}\]]+))', info.head
    )
    rows = [list(info.columns)]
    for key, text, other in values:
        if key in info.columns:
            row = [""] * len(info.columns)
            row[info.columns.index(key)] = text or other
            rows.append(row)
    return rows


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _conditions(op: Op, survey: Survey, tool: str) -> Calls:
    parts = [op.args, *op.args.get("more", ())]
    found = [_condition(replace(op, args=part), survey, tool, op.args) for part in parts]
    if not all(found):
        return []
    if op.args.get("joined") != "or":
        return [call for calls in found for call in calls]
    first = found[0][0][1]
    key = "field" if tool == "json_filter" else "column"
    one = all(len(calls) == 1 and calls[0][1][key] == first[key] for calls in found)
    if not one or {calls[0][1]["op"] for calls in found} != {"=="}:
        return []  # no tool takes the rows of one filter or another
    either = "|".join(re.escape(calls[0][1]["value"]) for calls in found)
    return [(tool, {**first, "op": "matches", "value": rf"^\s*(?:{either})\s*$"})]


def _condition(op: Op, survey: Survey, tool: str, whole: Args) -> Calls:
    """One condition on a column; between two bounds it is two."""
    column = _tested(op, survey)
    if not column:
        return []
    key = "field" if tool == "json_filter" else "column"
    args = op.args
    flags = {"ignore_case": True} if whole.get("ignore_case") and tool == "csv_filter" else {}
    if args["op"] in _UNSAID:
        value = _UNSAID[args["op"]].format(re.escape(str(args["value"])))
        return [(tool, {key: column, "op": "matches", "value": value, **flags})]
    if args["op"] in ("empty", "not_empty"):
        return [(tool, {key: column, "op": args["op"]})]
    if "upto" not in args:
        return [(tool, {key: column, "op": args["op"], "value": str(args["value"]), **flags})]
    low = (tool, {key: column, "op": ">=", "value": str(args["value"])})
    return [low, (tool, {key: column, "op": "<=", "value": str(args["upto"])})]


#: Comparisons that only an expression says.
_UNSAID = {"not_starts": r"^(?!\s*{})", "not_ends": r"(?<!{})(?<!\s)\s*$"}


def _rows(op: Op, survey: Survey) -> Calls:
    return _headless(op, _conditions(op, survey, "csv_filter"))


def _headless(op: Op, calls: Calls) -> Calls:
    if calls and op.args.get("heading") == "dropped":
        return [*calls, ("skip_lines", {"count": 1})]
    return calls


def _picked(op: Op, survey: Survey) -> Calls:
    calls = _conditions(op, survey, "csv_filter")
    return (
        [*calls, ("csv_column", {"column": _named(op, survey, op.args["pick"])})] if calls else []
    )


def _figure_where(op: Op, survey: Survey) -> Calls:
    calls, column = _conditions(op, survey, "csv_filter"), _named(op, survey, op.args["pick"])
    last = ("csv_aggregate", {"function": op.args["function"], "column": column})
    return [*calls, last] if calls else []


def _count_rows_where(op: Op, survey: Survey) -> Calls:
    calls = _conditions(op, survey, "csv_filter")
    return [*calls, ("csv_count_rows", {"header": "present"})] if calls else []


def _json_picked(op: Op, survey: Survey) -> Calls:
    calls = _conditions(op, survey, "json_filter")
    query = f"*.{_named(op, survey, op.args['pick'])}"
    return [*calls, ("json_query", {"query": query})] if calls else []


def _json_count_where(op: Op, survey: Survey) -> Calls:
    calls = _conditions(op, survey, "json_filter")
    return [*calls, ("json_count", {})] if calls else []


def _json_get(op: Op, survey: Survey) -> Calls:
    return [("json_query", {"query": op.args["column"]})]


def _json_to_csv(op: Op, survey: Survey) -> Calls:
    names = [_named(op, survey, name) for name in op.args.get("columns", ())]
    return [("json_to_csv", {"columns": names} if names else {})]


def _column(op: Op, survey: Survey) -> Calls:
    settings = {"column": _named(op, survey, op.args["column"])}
    return [
        (
            "csv_column",
            {**settings, **({"keep_header": True} if op.args.get("heading") == "kept" else {})},
        )
    ]


def _columns(op: Op, survey: Survey) -> Calls:
    names = [_named(op, survey, name) for name in op.args["columns"]]
    return _headless(op, [("csv_columns", {"columns": names})])


def _drop_columns(op: Op, survey: Survey) -> Calls:
    names = op.args.get("columns") or (op.args["column"],)
    return [("csv_drop_columns", {"columns": [_named(op, survey, name) for name in names]})]


def _csv_sort(op: Op, survey: Survey) -> Calls:
    column = _tested(op, survey)
    if not column:
        return []
    named: Any = int(column) if column.isdigit() and "column" in op.args else column
    settings: Args = {"column": named}
    settings |= {"reverse": True} if _is_down(op, survey) else {}
    settings |= {"count": op.args["limit"]} if "limit" in op.args else {}
    return _headless(op, [("csv_sort", settings)])


def _csv_sort2(op: Op, survey: Survey) -> Calls:
    """By the second column first: rows that are equal then keep their order."""
    names = [_named(op, survey, op.args[key]) for key in ("key2", "column")]
    return _headless(op, [("csv_sort", {"column": name}) for name in names])


def _is_down(op: Op, survey: Survey) -> bool:
    info = survey.get(op.inputs[0])
    try:
        rows = _rows_of(info) if info else []
        return tables.is_down(rows[1:], tables.column_at(rows, op.args), op.args)
    except tables.OpenQuestionError:
        return bool(op.args.get("reverse"))


def _best(op: Op, survey: Survey) -> Calls:
    calls = _csv_sort(Op(op.kind, {**op.args, "limit": 1}, op.inputs, op.output), survey)
    return (
        [*calls, ("csv_column", {"column": _named(op, survey, op.args["pick"])})] if calls else []
    )


def _distinct(op: Op, survey: Survey) -> Calls:
    column, info = _named(op, survey, op.args["column"]), survey.get(op.inputs[0])
    calls: Calls = [("csv_column", {"column": column, "unique": True})]
    if info and info.kind == "json":
        calls = [("json_query", {"query": f"*.{column}"}), ("unique_lines", {})]
    return [*calls, ("sort_lines", {})] if op.args.get("order") == "sorted" else calls


def _grouped(op: Op, survey: Survey) -> Calls:
    settings = {"function": op.args["function"], "group_by": _named(op, survey, op.args["by"])}
    if op.args["function"] != "count":
        settings["column"] = _named(op, survey, op.args["column"])
    if op.args.get("order") == "count":
        settings["order"] = "value"
    return [("csv_aggregate", settings)]


def _top_group(op: Op, survey: Survey) -> Calls:
    by, column = _named(op, survey, op.args["by"]), op.args.get("column", "count")
    down = {"reverse": True} if op.args.get("reverse") else {}
    last = ("csv_sort", {"column": 2, "count": 1, "header": "present", **down})
    if not by or not column:
        return []
    return [*_grouped(op, survey), last, ("csv_column", {"column": 1, "header": "present"})]


def _once_only(op: Op, survey: Survey) -> Calls:
    """What is left when the lines that occur more than once are taken away."""
    return [("repeated_lines", {}), ("lines_only_in_first", {BOTH: True})]


def _figure(function: str, plain: str) -> Make:
    def make(op: Op, survey: Survey) -> Calls:
        if "column" not in op.args:
            return [(plain, {})]
        info = survey.get(op.inputs[0])
        if info and info.kind == "json":
            query = f"*.{_named(op, survey, op.args['column'])}"
            return [("json_query", {"query": query}), (plain, {})]
        column = _named(op, survey, op.args["column"])
        return [("csv_aggregate", {"function": function, "column": column})]

    return make


def _table_join(op: Op, survey: Survey) -> Calls:
    return [("table_join", {"column": _named(op, survey, op.args["column"])})]


def _stack(op: Op, survey: Survey) -> Calls:
    """Under one heading where that is said, or may be meant of tables that begin alike."""
    heads = [info.head for name in op.inputs if (info := survey.get(name))]
    if op.args["heading"] == "each":
        return [("join_files", {})]
    if op.args.get("unsaid") and not tables.may_stack(heads, surely=False):
        return []
    return [("csv_concat", {})]


_MEANS: dict[str, Make] = {
    "keep_lines": _keep,
    "drop_lines": _drop,
    "count_kept": _count_kept,
    "keep_numbers": _keep_numbers,
    "count_numbers": _count_numbers,
    "drop_empty": _plain("remove_empty_lines"),
    "count_lines": _plain("count_lines"),
    "count_words": _plain("count_words"),
    "count_chars": lambda op, survey: [
        ("count_characters", {} if op.args.get("line_ends", True) else {"line_ends": False})
    ],
    "count_unique": _plain("count_unique_lines", "ignore_case"),
    "count_files": lambda op, survey: [("count_files", {"pattern": op.args["ext"]})],
    "list_files": _list_files,
    "sort": _plain("sort_lines", "numeric", "reverse", "unique", "ignore_case"),
    "sort_by_word": _sort_by_word,
    "first": _first("first_lines"),
    "last": _first("last_lines"),
    "skip": _first("skip_lines"),
    "skip_last": _skip_last,
    "line_range": lambda op, survey: [
        ("line_range", {"start": op.args["start"], "end": op.args.get("stop", op.args["start"])})
    ],
    "from_line": lambda op, survey: [("skip_lines", {"count": op.args["start"] - 1})],
    "unique": _unique,
    "every": lambda op, survey: [
        ("line_range", {"start": op.args["start"], "step": op.args["step"]})
    ],
    "once_only": _once_only,
    "count_dropped": lambda op, survey: [*_drop(op, survey), ("count_lines", {})],
    "top_numbers": lambda op, survey: [
        ("sort_lines", {"numeric": True, **({"reverse": True} if op.args.get("reverse") else {})}),
        ("first_lines", {"count": op.args["limit"]}),
    ],
    "csv_sort2": _csv_sort2,
    "count_unique_words": lambda op, survey: [
        ("split_lines", {"delimiter": " "}),
        ("count_unique_lines", {"ignore_case": True} if op.args.get("ignore_case") else {}),
    ],
    "count_hits": _plain("count_occurrences", "needle", "ignore_case", "whole_word"),
    "count_repeated": lambda op, survey: [("repeated_lines", {}), ("count_lines", {})],
    "repeated": _plain("repeated_lines"),
    "tally": _tally,
    "most_common": _most_common,
    "upper": _plain("upper_case"),
    "lower": _plain("lower_case"),
    "reverse": _plain("reverse_lines"),
    "trim": _plain("trim_lines"),
    "longest": _plain("longest_line"),
    "shortest": _plain("shortest_line"),
    "replace": _replace,
    "set_value": _set_value,
    "get_value": lambda op, survey: [
        (
            "extract_matches",
            {
                "kind": "regex",
                "needle": rf"(?im)^\s*{re.escape(op.args['key'])}\s*[=:]\s*(\S.*?)\s*$",
            },
        )
    ],
    "number_lines": lambda op, survey: [
        ("number_lines", {"separator": op.args.get("separator", " ")})
    ],
    "affix": _plain("add_to_lines", "text", "where"),
    "join_lines": lambda op, survey: [("join_lines", {"delimiter": op.args["sep"]})],
    "split_lines": lambda op, survey: [("split_lines", {"delimiter": op.args["sep"]})],
    "word_column": lambda op, survey: [("text_column", {"column": op.args["place"]})],
    "extract": _extract,
    "join": _plain("join_files"),
    "only_in_first": _plain("lines_only_in_first"),
    "common": _plain("common_lines"),
    "copy": _plain("copy"),
    "max": _figure("max", "max_number"),
    "min": _figure("min", "min_number"),
    "sum": _figure("sum", "sum_numbers"),
    "mean": _figure("mean", "average_numbers"),
    "column": _column,
    "columns": _columns,
    "drop_columns": _drop_columns,
    "headers": _plain("csv_headers"),
    "rows": _rows,
    "picked": _picked,
    "figure_where": _figure_where,
    "best": _best,
    "count_rows_where": _count_rows_where,
    "count_rows": lambda op, survey: [("csv_count_rows", {})],
    "csv_sort": _csv_sort,
    "distinct": _distinct,
    "count_distinct": lambda op, survey: [*_distinct(op, survey), ("count_lines", {})],
    "grouped": _grouped,
    "top_group": _top_group,
    "table_join": _table_join,
    "stack": _stack,
    "csv_to_json": _plain("csv_to_json"),
    "json_to_csv": _json_to_csv,
    "json_get": _json_get,
    "json_rows": lambda op, survey: _conditions(op, survey, "json_filter"),
    "json_picked": _json_picked,
    "json_count_where": _json_count_where,
    "json_list": lambda op, survey: [
        ("json_query", {"query": f"*.{_named(op, survey, op.args['pick'])}"})
    ],
    "json_count": _plain("json_count"),
    "json_keys": _plain("json_keys"),
    "json_pretty": _plain("json_pretty"),
}
