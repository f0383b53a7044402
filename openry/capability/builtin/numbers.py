"""Numbers in plain text: which ones count, and what is made of them, exactly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation, localcontext

from openry.capability.builtin.failure import ToolFailure, note
from openry.capability.builtin.lines import bodies, text_of

_SHAPE = re.compile(
    r"[$€£¥]?(?P<sign>[-+]?)[$€£¥]?(?P<digits>\d{1,3}(?:,\d{3})+|\d+)?(?P<rest>\.\d+|\.(?=\D|$))?"
    r"(?P<power>[eE][-+]?\d+)?\s?(?:%|°?[A-Za-zµ€$£¥]{1,3})?"
)
_POWER_LIMIT = 400
_BREAKS = re.compile(r"[\s;|=()\[\]{}\"']+|,(?!\d)|(?<!\d),|,(?!\d{3}(?:\D|$))")


def parse_number(text: str) -> Decimal | None:
    """`text` as a number: thousands may have commas, a currency sign or short unit may stand by.

    >>> parse_number("1,234.50"), parse_number("$7"), parse_number("35ms"), parse_number("10.0.0.1")
    (Decimal('1234.50'), Decimal('7'), Decimal('35'), None)
    """
    match = _SHAPE.fullmatch(text.strip())
    if match is None or not (match["digits"] or (match["rest"] and len(match["rest"]) > 1)):
        return None
    if match["power"] and abs(int(match["power"][1:])) > _POWER_LIMIT:
        return None
    digits = (match["digits"] or "0").replace(",", "")
    try:
        return Decimal(f"{match['sign']}{digits}{match['rest'] or ''}{match['power'] or ''}")
    except InvalidOperation:
        return None


def written_number(value: Decimal, decimals: int | None = None) -> str:
    """A number without exponent or trailing zeros, or with exactly `decimals` decimals.

    >>> written_number(Decimal("30.500")), written_number(Decimal("2"), 2)
    ('30.5', '2.00')
    """
    with localcontext() as context:
        context.prec = 1000
        if decimals is not None:
            return f"{value.quantize(Decimal(1).scaleb(-decimals), 'ROUND_HALF_UP'):f}"
        text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def exact_sum(values: Iterable[Decimal]) -> Decimal:
    with localcontext() as context:
        context.prec = 1000
        return sum(values, Decimal(0))


def mean_text(total: Decimal, count: int, decimals: int | None) -> str:
    """The mean: with `decimals` decimals, else with up to six and no trailing zeros."""
    with localcontext() as context:
        context.prec = 1000
        mean = total / count
        if decimals is None:
            mean = mean.quantize(Decimal("0.000001"), "ROUND_HALF_UP")
    return written_number(mean, decimals)


def numbers_of(path: str) -> list[Decimal]:
    """The numbers of a file: one per line where lines are numbers, else all that stand in it.

    A first line that is none, above lines that all are, is a heading.
    """
    alone: list[Decimal] = []
    inside: list[Decimal] = []
    others = 0
    heading = False
    for place, body in enumerate(bodies(path)):
        text = text_of(body).strip()
        if not text:
            continue
        number = parse_number(text)
        if number is None:
            found = list(_found_in(text))
            inside += found
            others += 1
            heading = heading or (place == 0 and not found)
        else:
            alone.append(number)
            inside.append(number)
    if not inside:
        raise ToolFailure("bad_arguments", f"`{path}` holds no number")
    if not others:
        return alone
    if others == 1 and heading:
        note("the first line is taken as a heading")
        return alone
    note("not every line is a number; the numbers inside the lines were taken")
    return inside


def _found_in(text: str) -> Iterator[Decimal]:
    for token in _BREAKS.split(text):
        number = parse_number(token.rstrip(".,:!?"))
        if number is not None:
            yield number


def _line(value: Decimal, decimals: int | None = None) -> bytes:
    return f"{written_number(value, decimals)}\n".encode()


def max_number(path: str) -> bytes:
    return _line(max(numbers_of(path)))


def min_number(path: str) -> bytes:
    return _line(min(numbers_of(path)))


def sum_numbers(path: str) -> bytes:
    return _line(exact_sum(numbers_of(path)))


def average_numbers(path: str, decimals: int | None = None) -> bytes:
    numbers = numbers_of(path)
    return f"{mean_text(exact_sum(numbers), len(numbers), decimals)}\n".encode()
