"""What counts of passed and failed runs say, by exact formulas; no more than they do."""

from __future__ import annotations

from math import comb

#: The one-sided level of a whole session: all its certifications together.
SESSION_LEVEL = 0.025


def at_least(passed: int, runs: int, confidence: float = 0.95) -> float:
    """The share of runs that pass at the least, with that confidence.

    The exact one-sided lower bound of C. Clopper and E. Pearson, Biometrika 26, 1934.

    >>> round(at_least(20, 20), 3), round(at_least(1, 1), 3), at_least(0, 5)
    (0.861, 0.05, 0.0)
    >>> round(at_least(18, 20), 3)
    0.717
    """
    if not passed:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _tail(passed, runs, middle) < 1 - confidence:
            low = middle
        else:
            high = middle
    return low


def sign_test(wins: int, losses: int) -> float:
    """How likely so many wins, or more, are where neither side is better; ties say nothing.

    >>> sign_test(5, 0), sign_test(0, 0)
    (0.03125, 1.0)
    """
    return _tail(wins, wins + losses, 0.5)


def level(certification: int) -> float:
    """The level of a session's n-th certification, counted from 1: each has half of what is left.

    >>> level(1), level(2), sum(map(level, range(1, 50))) < SESSION_LEVEL
    (0.0125, 0.00625, True)
    """
    return SESSION_LEVEL * 0.5**certification


def sentence(passed: int, runs: int) -> str:
    """What that many passed runs show, in words.

    >>> sentence(20, 20)
    '20 of 20 runs passed: at least 86% with 95 % confidence'
    """
    share = f"{at_least(passed, runs):.0%}"
    return f"{passed} of {runs} runs passed: at least {share} with 95 % confidence"


def _tail(successes: int, trials: int, chance: float) -> float:
    """Probability of `successes` or more in so many independent trials."""
    return sum(
        comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(successes, trials + 1)
    )
