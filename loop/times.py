"""Clock times and days in lines of text: which come later, and the pattern that finds them.

A bound is written `H:MM`, `H:MM:SS`, or as an ISO day, perhaps with a time behind it. Moments of
one form have the same width, so that they compare as texts, digit by digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_CLOCK = re.compile(r"(?<!\d)(\d\d):(\d\d)(?::(\d\d))?(?!\d)")
_DAY = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?))?(?!\d)")

#: Whether a moment lies (after, before, …) a bound: (moment, bound, whether the bound counts).
TESTS: dict[str, Callable[[str, str, bool], bool]] = {
    "after": lambda moment, bound, also: moment > bound or (also and moment == bound),
    "before": lambda moment, bound, also: moment < bound or (also and moment == bound),
    "since": lambda moment, bound, also: moment >= bound,
    "until": lambda moment, bound, also: moment <= bound,
}


def padded(bound: str) -> str:
    """A bound with all its digits: `9:30` is `09:30:00`; a day stays a day."""
    if "-" in bound:
        day, _, clock = bound.replace("T", " ").partition(" ")
        return f"{day} {padded(clock)}" if clock else day
    parts = [*bound.split(":"), "00"][:3]
    return ":".join(part.zfill(2) for part in parts)


def moment_of(line: str, *, like: str) -> str | None:
    """The first moment in a line, in the form of the bound `like`; None when it has none."""
    if "-" in like:
        match = _DAY.search(line)
        if match is None or ((" " in like or "T" in like) and not match[2]):
            return None
        return f"{match[1]} {padded(match[2])}" if match[2] and len(like) > 10 else match[1]
    clock = _CLOCK.search(line)
    return padded(clock.group()) if clock else None


def pattern(test: str, bound: str, *, inclusive: bool) -> str:
    """A regular expression that matches lines whose first moment passes `test` on `bound`."""
    full = padded(bound)
    also = inclusive or test in ("since", "until")
    up = test in ("after", "since")
    ways = [_beyond(full, at, up=up) for at, char in enumerate(full) if char.isdigit()]
    ways = [way for way in ways if way]
    if "-" not in full:  # seconds may be missing, and then stand for none
        hours_minutes = [_beyond(full[:5], at, up=up) for at in (0, 1, 3, 4)]
        same = [full] if also else []
        short = rf"{full[:5]}(?!:?\d)" if full.endswith(":00") and also else ""
        ways = [*filter(None, hours_minutes), *_seconds(full, up=up), *same, *filter(None, [short])]
        any_moment = r"\d\d:\d\d"
    else:
        ways += [full] if also else []
        any_moment = r"\d{4}-\d\d-\d\d"
    return rf"^(?:(?!(?<!\d){any_moment}).)*?(?<!\d)(?:{'|'.join(ways) or '(?!)'})"


def _beyond(full: str, at: int, *, up: bool) -> str:
    """Texts that agree with `full` before place `at` and lie beyond it there; "" for none."""
    digit = int(full[at])
    allowed = range(digit + 1, 10) if up else range(digit)
    if not allowed:
        return ""
    rest = "".join(r"\d" if char.isdigit() else re.escape(char) for char in full[at + 1 :])
    return f"{full[:at]}[{allowed[0]}-{allowed[-1]}]{rest}"


def _seconds(full: str, *, up: bool) -> list[str]:
    """Moments of the same minute that lie beyond the bound by their seconds."""
    found = [_beyond(full, at, up=up) for at in (6, 7)]
    short = [] if up or full.endswith(":00") else [rf"{full[:5]}(?!:?\d)"]
    return [*filter(None, found), *short]
