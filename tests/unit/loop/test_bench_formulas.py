"""The examples beside the benchmark's formulas hold."""

from __future__ import annotations

import doctest

import pytest

from loop import bench_figures, bench_planners, bench_plot, bench_tables, blame, figures, freehand
from loop.suites import faults


@pytest.mark.parametrize(
    "module",
    [bench_figures, bench_planners, bench_plot, bench_tables, blame, figures, freehand, faults],
    ids=lambda module: module.__name__,
)
def test_examples_hold(module):
    """What a docstring shows is what comes out."""
    failed, tried = doctest.testmod(module)

    assert tried and not failed
