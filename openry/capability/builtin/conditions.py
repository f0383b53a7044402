"""`column op value`, the same for CSV cells and JSON fields."""

from __future__ import annotations

import operator
from collections.abc import Callable

from openry.capability.builtin.matching import compiled
from openry.capability.builtin.numbers import parse_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def condition(op: str, value: str, *, ignore_case: bool = False) -> Callable[[str], bool]:
    """A test for a cell's text.

    `==`, `!=` and the orders compare numbers when both sides are numbers; else `==` compares text
    and the orders compare by character code, which puts ISO dates right. A cell that is empty
    or no number does not meet an order against a number.
    """
    wanted = _folded(value, ignore_case)
    number = parse_number(value)
    if op in ("==", "!="):
        return lambda cell: _is_equal(_folded(cell, ignore_case), wanted) is (op == "==")
    if op in _ORDERS:
        order = _ORDERS[op]
        if number is not None:
            return lambda cell: (there := parse_number(cell)) is not None and order(there, number)
        return lambda cell: bool(cell) and order(_folded(cell, ignore_case), wanted)
    if op == "matches":
        search = compiled(value, ignore_case=ignore_case).search
        return lambda cell: search(cell) is not None
    return _text_condition(op, wanted, ignore_case)


def _text_condition(op: str, wanted: str, ignore_case: bool) -> Callable[[str], bool]:
    tests: dict[str, Callable[[str], bool]] = {
        "contains": lambda cell: wanted in cell,
        "not_contains": lambda cell: wanted not in cell,
        "starts": lambda cell: cell.startswith(wanted),
        "ends": lambda cell: cell.endswith(wanted),
        "empty": lambda cell: not cell,
        "not_empty": bool,
    }
    test = tests[op]
    return lambda cell: test(_folded(cell, ignore_case))


def _folded(text: str, ignore_case: bool) -> str:
    return text.strip().casefold() if ignore_case else text.strip()


def _is_equal(cell: str, wanted: str) -> bool:
    if cell == wanted:
        return True
    there, number = parse_number(cell), parse_number(wanted)
    return there is not None and there == number and _plain(cell) and _plain(wanted)


def _plain(text: str) -> bool:
    """Whether a number carries no unit or sign that may mean something: `5 kg` is not `5`."""
    return not any(sign.isalpha() or sign in "$€£¥%" for sign in text)
