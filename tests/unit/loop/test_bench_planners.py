"""What planners reach in the simulator, beside the formula."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise, product

import pytest

from loop import bench_planners as study
from loop.bench_planners import GATES, PLANNERS, STEPS, admitted, protected, theory


@pytest.mark.parametrize(
    ("sessions", "far"), [(6, 0.25), pytest.param(200, 0.05, marks=pytest.mark.long)]
)
def test_dice_and_formula_agree(sessions, far):
    """The gates do with planners of four strengths what gambler's ruin says they must."""
    curves = study.study(sessions, rounds=4)

    assert [(c.gates, c.planner) for c in curves] == list(product(GATES, PLANNERS))
    assert all(curve.apart < far for curve in curves)
    assert all(len(curve.measured) == len(curve.theory) == 5 for curve in curves)


def test_a_stronger_planner_reaches_more_and_a_hostile_one_breaks_little():
    """Success grows with the planner's strength; what an adversary brings through is small."""
    oracle, better, chance, hostile = (theory(planner, 12) for planner in PLANNERS)

    assert oracle[-1] > better[-1] > chance[-1] > hostile[-1]
    assert all(after >= before for before, after in pairwise(oracle))
    assert hostile[0] - hostile[-1] < 0.01


def test_the_walk_admits_what_is_better():
    """Certainly better is admitted, certainly worse never, and more is more likely."""
    assert admitted(0.0, 1.0) == pytest.approx(1.0)
    assert admitted(1.0, 0.0) == 0.0
    shares = [admitted(0.5, child) for child in (0.1, 0.3, 0.5, 0.7, 0.9)]
    assert shares == sorted(shares)


def test_steps_that_hold_protect_nothing_from_a_change():
    """A step before the changed one that always passes never refuses it; a poor one mostly does."""
    assert protected([1.0, 1.0]) == pytest.approx(1.0)
    assert protected([0.1]) < 0.05


def test_all_that_may_become_of_a_workflow_is_counted():
    """The chances of one round's moves add up to one, in every state."""
    words = [(), ("harmful",), ("helpful",), ("harmful", "helpful")]
    for first, gates in product(words, GATES):
        state = (first, *[()] * (len(STEPS) - 1))
        moves = study._moves(state, study.chances("70 % right"), gates)
        assert sum(chance for _, chance in moves) == pytest.approx(1.0)


def test_the_gates_are_what_keeps_a_hostile_planner_out():
    """Whoever takes everything is broken by an adversary; one whole run lets some of it in."""
    all_, one_run, everything = (theory("adversarial", 12, gates) for gates in GATES)

    assert all_[-1] > one_run[-1] > everything[-1]
    assert everything[-1] < 0.04 < 0.12 < all_[-1]


def test_the_page_holds_the_curves_and_their_formula():
    """The picture is well-formed; each planner has a line and a broken one."""
    curve = study.Curve("oracle", 2, (0.1, 0.4), (0.0, 0.2), (0.2, 0.6), (0.1, 0.5), {})

    page = study.to_html([curve])
    picture = ET.fromstring(study.picture([curve]))  # made here

    lines = [each.get("stroke-dasharray") for each in picture.iter("polyline")]
    assert lines == ["", "5 4"]
    assert "<script" not in page and "40.0% (50.0%)" in page
