"""What an understood operation must give, computed in plain Python.

This is a second implementation on purpose: it shares no code with the capabilities, so that a
mistake in one of the two shows as a difference. It covers what `loop.wording` can understand.
"""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Any

from loop import tables, times
from loop.tables import OpenQuestionError, UnfitError, is_number
from loop.tables import lines_of as _lines
from loop.tables import number_of as _number
from loop.tables import text_of as _text
from loop.wording import Op

__all__ = ["COMPUTE", "OpenQuestionError", "UnfitError", "expected", "same"]

#: Files by relative name.
Files = Mapping[str, bytes]
_MOST_BRANCHES = 24
#: Kinds that see to a table's heading themselves.
TABLE_KINDS = frozenset(
    "column columns rows csv_sort csv_sort2 count_rows count_rows_where json_to_csv csv_to_json "
    "picked figure_where best distinct count_distinct top_group drop_columns headers grouped "
    "table_join".split()
)


def expected(ops: Sequence[Op], files: Files) -> dict[str, bytes]:
    """The result files that `ops` must give on `files`.

    Raises:
        OpenQuestionError: Variants of an operation disagree, or its input is not of its kind.
    """
    branches: dict[tuple[bytes, ...], dict[str, bytes]] = {(): {}}
    for op in ops:
        grown: dict[tuple[bytes, ...], dict[str, bytes]] = {}
        for key, made in branches.items():
            for result in _variants(op, {**files, **made}):
                grown[(*key, result)] = {**made, op.output: result}
        if len(grown) > _MOST_BRANCHES:
            raise OpenQuestionError(_asked(op))
        branches = grown
    wanted = [
        {name: data for name, data in made.items() if not name.startswith(".work/")}
        for made in branches.values()
    ]
    if any(each != wanted[0] for each in wanted):
        raise OpenQuestionError(_asked(*ops))
    return wanted[0]


def _variants(op: Op, files: Files) -> set[bytes]:
    """The results of all ways to mean it that fit the files."""
    found: set[bytes] = set()
    unfit: UnfitError | None = None
    for variant in op.open:
        try:
            found.add(_compute(op, {**op.args, **variant}, files))
        except UnfitError as error:
            unfit = error
    if unfit and not found:
        raise unfit
    return found


def _asked(*ops: Op) -> str:
    """The conventions that operations leave open, in words."""
    left = [
        f"`{op.kind}` ({', '.join(keys)})"
        for op in ops
        if (keys := [key for key in sorted(set().union(*op.open)) if _differs(op, key)])
    ]
    return f"{' and '.join(left)} can be meant in several ways"


def _differs(op: Op, key: str) -> bool:
    return len({repr(way.get(key)) for way in op.open}) > 1


def same(one: bytes, other: bytes) -> bool:
    """Equal but for a final newline, carriage returns, and the layout of JSON."""
    if _folded(one) == _folded(other):
        return True
    try:
        return bool(json.loads(one) == json.loads(other)) and one.strip()[:1] in b"[{"
    except ValueError:
        return False


def _folded(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").rstrip(b"\n")


def _compute(op: Op, args: Mapping[str, Any], files: Files) -> bytes:
    if op.kind in ("list_files", "count_files"):
        return _listed(op, args, files)
    inputs = args.get("inputs", op.inputs)
    missing = [name for name in inputs if name not in files]
    if missing:
        raise UnfitError(f"{missing[0]} is not there")
    texts = [_decode(files[name]) for name in inputs]
    if op.kind == "stack":
        return tables.stack(texts, args)
    if op.kind == "join":
        return _text([line for text in texts for line in _lines(text)])
    text = texts[0]
    if op.kind in ("only_in_first", "common", "table_join"):
        args = {**args, "other": texts[1]}
    if args.get("things") and any(not c.strip() or set(c) & set(",;|\t") for c in _lines(text)):
        raise UnfitError("a line holds no single thing")
    if args.get("heading") and op.kind not in TABLE_KINDS:
        return _below_heading(op.kind, text, args)
    return COMPUTE[op.kind](text, args)


def _listed(op: Op, args: Mapping[str, Any], files: Files) -> bytes:
    if args.get("below"):
        found = sorted(name for name in files if fnmatchcase(name.rpartition("/")[2], args["ext"]))
        return _text(found)
    below = not args.get("flat")
    if below and any(
        "/" in name and fnmatchcase(name.rpartition("/")[2], args["ext"]) for name in files
    ):
        raise OpenQuestionError("folders below may count or not")
    names = sorted(name for name in files if fnmatchcase(name, args["ext"]) and "/" not in name)
    if names != sorted(names, key=str.casefold):
        raise OpenQuestionError("capital and small letters would sort differently")
    return _number(len(names)) if op.kind == "count_files" else _text(names)


def _below_heading(kind: str, text: str, args: Mapping[str, Any]) -> bytes:
    """An operation on lines, the first of which is a heading that is kept on top or left out."""
    lines = _lines(text)
    if not lines:
        return COMPUTE[kind](text, args)
    done = COMPUTE[kind](_text(lines[1:]).decode(), args)
    number = kind.startswith("count")
    return done if number or args["heading"] == "dropped" else _text(lines[:1]) + done


def _decode(data: bytes) -> str:
    try:
        return data.decode().lstrip("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise OpenQuestionError("the input is not UTF-8 text") from error


def _meets(line: str, args: Mapping[str, Any]) -> bool:
    """Whether a line meets every condition on lines that is stated."""
    found = [_has(line, {**args, "needle": args[key]}) for key in _NEEDLES if key in args]
    if found:
        join = args.get("join", "and")
        holds = any(found) if join == "or" else all(found)
        if join == "but":
            holds = found[0] and not any(found[1:])
        if not holds:
            return False
    if "empty" in args and _is_empty(line) is not args["empty"]:
        return False
    if not all(test(len(line), args[key]) for key, test in _SIZES.items() if key in args):
        return False
    return all(_in_time(line, key, args) for key in times.TESTS if key in args)


def _is_empty(line: str) -> bool:
    if line and not line.strip():
        raise OpenQuestionError("a line of blanks only may count as empty or not")
    return not line


_NEEDLES = ("needle", "needle2")
#: Tests of a line's length.
_SIZES: dict[str, Callable[[Any, Any], bool]] = {
    "longer": operator.gt,
    "longest_min": operator.ge,
    "shorter": operator.lt,
    "longest_max": operator.le,
}


def _in_time(line: str, key: str, args: Mapping[str, Any]) -> bool:
    """Whether the moment at which a line was written lies where it is asked for."""
    bound = str(args[key])
    moment = times.moment_of(line, like=bound)
    if moment is None:
        raise UnfitError("a line says no time")
    return times.TESTS[key](moment, times.padded(bound), bool(args.get("inclusive")))


def _has(line: str, args: Mapping[str, Any]) -> bool:
    needle = str(args["needle"])
    if args.get("ignore_case"):
        needle, line = needle.casefold(), line.casefold()
    if args.get("where") == "start":
        return line.startswith(needle) and _is_word(line, 0, needle, args)
    if args.get("where") == "end":
        return line.endswith(needle) and _is_word(line, len(line) - len(needle), needle, args)
    at = line.find(needle)
    while at >= 0:
        if _is_word(line, at, needle, args):
            return True
        at = line.find(needle, at + 1)
    return False


def _is_word(line: str, at: int, needle: str, args: Mapping[str, Any]) -> bool:
    """Whether what stands there is no part of a longer word, where that is asked for."""
    if not args.get("whole_word"):
        return True
    before, after = line[:at][-1:], line[at + len(needle) :][:1]
    inside = needle[:1].isalnum() and before.isalnum(), needle[-1:].isalnum() and after.isalnum()
    return not any(inside)


def _numbers(text: str, args: Mapping[str, Any]) -> list[Decimal]:
    cells = tables.values(text, args) if "column" in args else _lines(text)
    try:
        numbers = [Decimal(cell.strip()) for cell in cells if cell.strip()]
    except InvalidOperation:
        raise UnfitError("not every line is a number") from None
    if not numbers or not all(number.is_finite() for number in numbers):
        raise OpenQuestionError("there are no numbers")
    return numbers


def _keep(text: str, args: Mapping[str, Any]) -> bytes:
    found = [line for line in _lines(text) if _meets(line, args)]
    if not found and _lines(text):
        raise OpenQuestionError("no line meets the condition")
    if "limit" in args:
        if len(found) < args["limit"]:
            raise OpenQuestionError("there are fewer such lines")
        found = found[: args["limit"]] if args["end"] == "first" else found[-args["limit"] :]
    return _text(found)


def _drop(text: str, args: Mapping[str, Any]) -> bytes:
    return _text([line for line in _lines(text) if not _meets(line, args)])


def _drop_empty(text: str, args: Mapping[str, Any]) -> bytes:
    return _text([line for line in _lines(text) if not _is_empty(line)])


def _keep_numbers(text: str, args: Mapping[str, Any]) -> list[str]:
    lines = _lines(text)
    values = _numbers(text, {})
    if len(values) != len(lines):
        raise OpenQuestionError("some lines are blank")
    strict = args.get("inclusive") is False
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "gt_n": operator.gt,
        "ge_n": operator.gt if strict else operator.ge,
        "lt_n": operator.lt,
        "le_n": operator.lt if strict else operator.le,
    }
    keys = [key for key in tests if key in args]
    return [
        line
        for line, value in zip(lines, values, strict=True)
        if all(tests[key](value, Decimal(str(args[key]))) for key in keys)
    ]


def _line_range(text: str, args: Mapping[str, Any]) -> bytes:
    lines, start = _lines(text), int(args["start"])
    stop = start if args.get("one") else int(args["stop"])
    if not 1 <= start <= stop <= len(lines):
        raise OpenQuestionError("there are fewer lines, or none between these")
    return _text(lines[start - 1 : stop])


def _repeated(text: str, args: Mapping[str, Any]) -> bytes:
    counts = Counter(_lines(text))
    if any(not line.strip() for line in counts):
        raise OpenQuestionError("blank lines may count or not")
    return _text([line for line, count in counts.items() if count > 1])


def _every(text: str, args: Mapping[str, Any]) -> bytes:
    return _text(_lines(text)[int(args["start"]) - 1 :: int(args["step"])])


def _top_numbers(text: str, args: Mapping[str, Any]) -> bytes:
    if len(_lines(text)) < args["limit"]:
        raise OpenQuestionError("there are fewer numbers")
    ordered = _sort(text, {**args, "numeric": True}).decode()
    return _text(_lines(ordered)[: int(args["limit"])])


def _once_only(text: str, args: Mapping[str, Any]) -> bytes:
    counts = Counter(_lines(text))
    if any(not line.strip() for line in counts):
        raise OpenQuestionError("blank lines may count or not")
    return _text([line for line, count in counts.items() if count == 1])


def _unique_words(text: str, args: Mapping[str, Any]) -> int:
    words = text.split()
    if not all(word.isalnum() for word in words):
        raise OpenQuestionError("signs may belong to words or not")
    return len({word.casefold() for word in words} if args.get("ignore_case") else set(words))


def _hits(text: str, args: Mapping[str, Any]) -> int:
    needle = str(args["needle"])
    ends = (r"(?<![^\W_])", r"(?![^\W_])") if args.get("whole_word") else ("", "")
    pattern = f"{ends[0]}{re.escape(needle)}{ends[1]}"
    return len(re.findall(pattern, text, re.IGNORECASE if args.get("ignore_case") else 0))


def _most_common(text: str, args: Mapping[str, Any]) -> bytes:
    ranked = Counter(_lines(text)).most_common(2)
    if not ranked or not ranked[0][0].strip() or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        raise OpenQuestionError("no one line is the most frequent")
    return _text([ranked[0][0]])


def _word(line: str, place: int) -> str:
    words = line.split()
    if len(words) < abs(place):
        raise OpenQuestionError("a line has fewer words")
    return words[place - 1 if place > 0 else place]


def _word_column(text: str, args: Mapping[str, Any]) -> bytes:
    return _text([_word(line, args["place"]) for line in _lines(text)])


def _sort_by_word(text: str, args: Mapping[str, Any]) -> bytes:
    lines = _lines(text)
    keys = [_word(line, args["place"]) for line in lines]
    if len(set(keys)) != len(set(lines)):
        raise OpenQuestionError("lines that share the word have no order")
    by_code = sorted(lines, key=lambda line: _word(line, args["place"]))
    if by_code != sorted(lines, key=lambda line: _word(line, args["place"]).casefold()):
        raise OpenQuestionError("capital and small letters would sort differently")
    return _text(by_code)


def _affix(text: str, args: Mapping[str, Any]) -> bytes:
    lines, more = _lines(text), str(args["text"])
    if any(not line.strip() for line in lines):
        raise OpenQuestionError("blank lines may count or not")
    return _text([more + line if args["where"] == "start" else line + more for line in lines])


def _join_lines(text: str, args: Mapping[str, Any]) -> bytes:
    lines = _lines(text)
    if any(not line.strip() for line in lines):
        raise OpenQuestionError("blank lines may count or not")
    return _text([str(args["sep"]).join(lines)])


def _split_lines(text: str, args: Mapping[str, Any]) -> bytes:
    return _text([p.strip() for line in _lines(text) for p in line.split(args["sep"]) if p.strip()])


def _only_in_first(text: str, args: Mapping[str, Any]) -> bytes:
    there = set(_lines(args["other"]))
    found = [line for line in _lines(text) if line not in there]
    if len(set(found)) != len(found):
        raise OpenQuestionError("repeated lines may be meant once or not")
    return _text(found)


def _common(text: str, args: Mapping[str, Any]) -> bytes:
    there = set(_lines(args["other"]))
    found = [line for line in _lines(text) if line in there]
    if len(set(found)) != len(found) or any(not line.strip() for line in found):
        raise OpenQuestionError("repeated lines may be meant once or not")
    return _text(found)


_PIECES = {
    "email": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "url": re.compile(r"https?://[^\s<>\"')\]]+"),
    "ip": re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"),
}


def _extract(text: str, args: Mapping[str, Any]) -> bytes:
    found = _PIECES[args["what"]].findall(text)
    if any(not piece[-1].isalnum() and piece[-1] != "/" for piece in found):
        raise OpenQuestionError("a sign at the end may belong to an address or not")
    once = list(dict.fromkeys(found))
    if not args.get("unique") and not args.get("once") and len(once) != len(found):
        return _text(sorted(found) if args.get("order") == "sorted" else found)
    return _text(sorted(once) if args.get("order") == "sorted" else once)


def _get_value(text: str, args: Mapping[str, Any]) -> bytes:
    """The value of one key of a file of settings."""
    pattern = re.compile(rf"\s*{re.escape(str(args['key']))}\s*[=:]\s*(\S.*?)\s*", re.IGNORECASE)
    found = [m[1] for line in _lines(text) if (m := pattern.fullmatch(line))]
    if len(found) != 1:
        raise UnfitError(f"`{args['key']}` is not set in just one place")
    if set(found[0]) & set("\"'#;[{"):
        raise OpenQuestionError("the value has a form of its own")
    return _text(found)


def _set_value(text: str, args: Mapping[str, Any]) -> bytes:
    """The value of one key changed, the rest as it was."""
    pattern = re.compile(rf"(\s*{re.escape(str(args['key']))}\s*[=:]\s*)(\S.*)?", re.IGNORECASE)
    lines = _lines(text)
    found = [(i, m) for i, line in enumerate(lines) if (m := pattern.fullmatch(line))]
    if len(found) != 1:
        raise UnfitError(f"`{args['key']}` is not set in just one place")
    index, match = found[0]
    if (
        set((match[2] or "")[:1]) & set("\"'[{")
        or "#" in (match[2] or "")
        or ";" in (match[2] or "")
    ):
        raise OpenQuestionError("the value has a form of its own")
    return _text([*lines[:index], f"{match[1]}{args['replacement']}", *lines[index + 1 :]])


def _sort(text: str, args: Mapping[str, Any]) -> bytes:
    lines = _lines(text)
    if args.get("unique"):
        lines = list(dict.fromkeys(lines))
    if args.get("numeric"):
        values = _numbers(text, {})
        if len(values) != len(_lines(text)):
            raise OpenQuestionError("some lines are blank")
        ordered = sorted(lines, key=Decimal, reverse=bool(args.get("reverse")))
        if len(set(map(Decimal, lines))) != len(set(lines)):
            raise OpenQuestionError("equal numbers are written differently")
        return _text(ordered)
    if args.get("ignore_case"):
        if len({line.casefold() for line in lines}) != len(set(lines)):
            raise OpenQuestionError("lines that differ only in case have no order")
        return _text(sorted(lines, key=str.casefold, reverse=bool(args.get("reverse"))))
    by_code = sorted(lines, reverse=bool(args.get("reverse")))
    by_word = sorted(lines, key=str.casefold, reverse=bool(args.get("reverse")))
    if by_code != by_word:
        raise OpenQuestionError("capital and small letters would sort differently")
    if all(is_number(line) for line in lines) and by_code != sorted(
        by_code, key=Decimal, reverse=bool(args.get("reverse"))
    ):
        raise OpenQuestionError("the lines are numbers and would sort differently as such")
    return _text(by_code)


def _unique(text: str, args: Mapping[str, Any]) -> bytes:
    lines = list(dict.fromkeys(_lines(text)))
    blank = sum(not line.strip() for line in _lines(text))
    if blank > 1:
        raise OpenQuestionError("blank lines may count as repeated or not")
    return _text(sorted(lines) if args.get("order") == "sorted" else lines)


def _tally(text: str, args: Mapping[str, Any]) -> bytes:
    counts = Counter(_lines(text))
    if any(not line.strip() for line in counts):
        raise OpenQuestionError("blank lines may count or not")
    order = list(counts)
    if args.get("order") == "sorted":
        order = sorted(counts)
    if args.get("order") == "count":
        if len(set(counts.values())) != len(counts):
            raise OpenQuestionError("lines that are equally frequent have no order")
        order = [line for line, _ in counts.most_common()]
    return _text([f"{counts[line]} {line}" for line in order])


def _count_unique(text: str, args: Mapping[str, Any]) -> bytes:
    lines = set(_lines(text))
    if any(not line.strip() for line in lines):
        raise OpenQuestionError("blank lines may count or not")
    if len({line.strip().casefold() for line in lines}) != len(lines):
        raise OpenQuestionError("lines differ only in capitals or spaces")
    return _number(len(lines))


def _by_length(text: str, sign: int) -> bytes:
    lines = _lines(text)
    if not lines or (sign > 0 and any(not line.strip() for line in lines)):
        raise OpenQuestionError("a blank line is the shortest, or none")
    best = min(sign * len(line) for line in lines)
    found = {line for line in lines if sign * len(line) == best}
    wide = min(sign * len(line.encode()) for line in lines)
    if len(found) != 1 or len([line for line in lines if line in found]) != 1:
        raise OpenQuestionError("several lines are equally long")
    if all(sign * len(line.encode()) != wide for line in found):
        raise OpenQuestionError("lengths in letters and in bytes differ")
    return _text(list(found))


def _number_lines(text: str, args: Mapping[str, Any]) -> bytes:
    lines = _lines(text)
    if any(not line.strip() for line in lines):
        raise OpenQuestionError("blank lines may have a number or not")
    return _text([f"{n}{args['separator']}{line}" for n, line in enumerate(lines, start=1)])


def _replace(text: str, args: Mapping[str, Any]) -> bytes:
    """All occurrences; where small or partial ones exist as well, that is an open question."""
    needle, new = str(args["needle"]), str(args["replacement"])
    if args.get("loose") and re.search(rf"(?m)^\s*{re.escape(needle)}\s*[=:]", text):
        raise UnfitError(f"`{needle}` is a setting that is to change")
    done, at = [], 0
    look = text.casefold() if args.get("ignore_case") else text
    find = needle.casefold() if args.get("ignore_case") else needle
    if re.search("[\u4e00-\u9fff]", find) and find not in look:
        raise UnfitError(f"`{needle}` is not there")  # its ends were guessed
    if len(look) != len(text):
        raise OpenQuestionError("letters change their length with their case")
    while (hit := look.find(find, at)) >= 0:
        whole = _is_word(text, hit, needle, args)
        done += [text[at:hit], new if whole else text[hit : hit + len(needle)]]
        at = hit + len(needle)
    return "".join([*done, text[at:]]).encode()


def _mean(text: str, args: Mapping[str, Any]) -> bytes:
    numbers = _numbers(text, args)
    total = sum(numbers, Decimal())
    mean = total / len(numbers)
    if mean * len(numbers) != total or -int(mean.as_tuple().exponent) > 3:
        raise OpenQuestionError("the mean has no short exact form")
    return _number(mean)


def _words(text: str, args: Mapping[str, Any]) -> bytes:
    """Words between spaces; a lone sign is a word or none."""
    words = text.split()
    if any(not any(map(str.isalnum, word)) for word in words):
        raise OpenQuestionError("signs alone may count as words or not")
    return _number(len(words))


def _characters(text: str, args: Mapping[str, Any]) -> bytes:
    return _number(len(text) if args.get("line_ends", True) else len(text.replace("\n", "")))


def _count(of: Callable[[str, Mapping[str, Any]], int]) -> Callable[..., bytes]:
    return lambda text, args: _number(of(text, args))


#: From an operation's kind to its result on (text, arguments).
COMPUTE: dict[str, Callable[[str, Mapping[str, Any]], bytes]] = {
    "keep_lines": _keep,
    "drop_lines": _drop,
    "drop_empty": _drop_empty,
    "count_lines": _count(lambda text, args: len(_lines(text))),
    "count_kept": _count(lambda text, args: sum(_meets(line, args) for line in _lines(text))),
    "keep_numbers": lambda text, args: _text(_keep_numbers(text, args)),
    "count_numbers": _count(lambda text, args: len(_keep_numbers(text, args))),
    "line_range": _line_range,
    "from_line": lambda text, args: _text(_lines(text)[int(args["start"]) - 1 :]),
    "repeated": _repeated,
    "count_repeated": _count(lambda text, args: len(_lines(_repeated(text, args).decode()))),
    "every": _every,
    "once_only": _once_only,
    "count_dropped": _count(lambda text, args: sum(not _meets(x, args) for x in _lines(text))),
    "top_numbers": _top_numbers,
    "csv_sort2": tables.csv_sort2,
    "count_unique_words": _count(_unique_words),
    "count_hits": _count(_hits),
    "most_common": _most_common,
    "word_column": _word_column,
    "sort_by_word": _sort_by_word,
    "affix": _affix,
    "join_lines": _join_lines,
    "split_lines": _split_lines,
    "only_in_first": _only_in_first,
    "common": _common,
    "extract": _extract,
    "set_value": _set_value,
    "get_value": _get_value,
    "copy": lambda text, args: text.encode(),
    "count_words": _words,
    "count_chars": _characters,
    "count_unique": _count_unique,
    "sort": _sort,
    "first": lambda text, args: _text(_lines(text)[: int(args["count"])]),
    "last": lambda text, args: _text(_lines(text)[-int(args["count"]) :]),
    "skip": lambda text, args: _text(_lines(text)[int(args["count"]) :]),
    "skip_last": lambda text, args: _text(_lines(text)[: -int(args["count"])]),
    "unique": _unique,
    "tally": _tally,
    "upper": lambda text, args: text.upper().encode(),
    "lower": lambda text, args: text.lower().encode(),
    "replace": _replace,
    "reverse": lambda text, args: _text(_lines(text)[::-1]),
    "longest": lambda text, args: _by_length(text, -1),
    "shortest": lambda text, args: _by_length(text, 1),
    "number_lines": _number_lines,
    "trim": lambda text, args: _text([line.strip(" \t") for line in _lines(text)]),
    "max": lambda text, args: _number(max(_numbers(text, args))),
    "min": lambda text, args: _number(min(_numbers(text, args))),
    "sum": lambda text, args: _number(sum(_numbers(text, args), Decimal())),
    "mean": _mean,
    "column": tables.column,
    "columns": tables.columns,
    "rows": tables.rows,
    "count_rows": tables.count_rows,
    "count_rows_where": tables.count_where,
    "csv_sort": tables.csv_sort,
    "json_to_csv": tables.json_to_csv,
    "csv_to_json": tables.csv_to_json,
    "json_get": tables.json_get,
    "picked": tables.picked,
    "figure_where": tables.figure_where,
    "best": tables.best,
    "distinct": tables.distinct,
    "count_distinct": tables.count_distinct,
    "top_group": tables.top_group,
    "drop_columns": tables.drop_columns,
    "headers": tables.headers,
    "grouped": tables.grouped,
    "table_join": tables.table_join,
    "json_rows": tables.json_rows,
    "json_picked": tables.json_picked,
    "json_count_where": tables.json_count_where,
    "json_list": tables.json_list,
    "json_count": tables.json_count,
    "json_keys": tables.json_keys,
    "json_pretty": tables.json_pretty,
}
