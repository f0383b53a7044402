"""Times in lines: the computed comparison and the pattern for a tool say the same."""

from __future__ import annotations

import random
import re

import pytest

from loop import times

CLOCKS = [f"{h:02}:{m:02}" for h in (0, 8, 9, 10, 19, 23) for m in (0, 9, 10, 30, 59)]
MOMENTS = [*CLOCKS, *(f"{clock}:{s:02}" for clock in CLOCKS for s in (0, 1, 30, 59))]
DAYS = [f"{y}-{m:02}-{d:02}" for y in (1999, 2026) for m in (1, 9, 12) for d in (1, 10, 29)]


@pytest.mark.parametrize("test", times.TESTS)
@pytest.mark.parametrize("inclusive", [False, True])
def test_the_pattern_finds_what_the_comparison_finds(test: str, inclusive: bool) -> None:
    """Over clock times with and without seconds, and days; only a line's first moment counts."""
    pick = random.Random(7)
    cases = [(pick.choice(MOMENTS), pick.choice(MOMENTS)) for _ in range(600)]
    cases += [(pick.choice(DAYS), pick.choice(DAYS)) for _ in range(300)]
    wrong = []
    for bound, moment in cases:
        line = f"2 x {moment} took 12:34 until {pick.choice(DAYS)} 04:05"
        line = line if ":" in moment else f"on {moment} at 07:00, not 2001-01-01"
        found = re.search(times.pattern(test, bound, inclusive=inclusive), line) is not None
        wanted = times.TESTS[test](times.padded(moment), times.padded(bound), inclusive)
        if found != wanted or times.moment_of(line, like=bound) != times.padded(moment):
            wrong.append((bound, moment, found))
    assert not wrong


def test_a_line_without_a_time_has_no_moment() -> None:
    assert times.moment_of("no time at 7 or 12.30", like="9:00") is None
    assert times.moment_of("at 09:30", like="2026-01-01") is None
