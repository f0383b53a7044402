"""What a benchmark's counts say, with the doubt that a sample leaves."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from math import comb, sqrt

#: How often a bootstrap draws tasks anew.
DRAWS = 2000


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the mean of so many independent values lies with 95 % confidence, near enough.

    >>> mean_interval([0.5, 0.5]), tuple(round(x, 2) for x in mean_interval([0, 1, 0, 1]))
    ((0.5, 0.5), (-0.07, 1.07))
    """
    n = len(values)
    mean = sum(values) / n
    spread = sqrt(sum((value - mean) ** 2 for value in values) / max(n - 1, 1) / n)
    return mean - 1.96 * spread, mean + 1.96 * spread


def pass_hat(passed: int, runs: int, k: int) -> float:
    """How likely k runs in a row all pass, from `passed` of `runs`; unbiased.

    Source: S. Yao and others, tau-bench, 2024: C(passed, k) / C(runs, k).

    >>> pass_hat(5, 5, 5), pass_hat(4, 5, 5), round(pass_hat(4, 5, 2), 2)
    (1.0, 0.0, 0.6)
    """
    return comb(passed, k) / comb(runs, k)


def bootstrap(
    clusters: Mapping[str, Sequence[float]],
    figure: Callable[[Sequence[Sequence[float]]], float],
    seed: int = 0,
) -> tuple[float, float]:
    """The 95 % interval of a figure when tasks, each with all its runs, are drawn anew.

    Args:
        clusters: The values of each task; they stay together, as they are not independent.
        figure: Computed from the clusters of a draw.

    >>> bootstrap({"a": [1.0, 1.0], "b": [1.0]}, share)
    (1.0, 1.0)
    """
    dice = random.Random(seed)  # noqa: S311  # dice of a sample
    tasks = list(clusters.values())
    if not tasks:
        return 0.0, 0.0
    found = sorted(figure(dice.choices(tasks, k=len(tasks))) for _ in range(DRAWS))
    return found[int(DRAWS * 0.025)], found[int(DRAWS * 0.975) - 1]


def share(clusters: Sequence[Sequence[float]]) -> float:
    """The mean over all values of all clusters."""
    values = [value for cluster in clusters for value in cluster]
    return sum(values) / len(values) if values else 0.0


def all_of(k: int) -> Callable[[Sequence[Sequence[float]]], float]:
    """pass^k over clusters of marks, each 0 or 1, of `k` runs or more."""

    def figure(clusters: Sequence[Sequence[float]]) -> float:
        found = [pass_hat(round(sum(marks)), len(marks), k) for marks in clusters]
        return sum(found) / len(found) if found else 0.0

    return figure
