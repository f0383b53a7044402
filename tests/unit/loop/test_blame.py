"""The step that spoiled a run is found by drawing the rest anew."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop import selftest
from loop.blame import first_bad, located
from loop.diagnose import FailureClass, diagnose
from loop.evidence import StepRun, Trial
from openry.models import RuleResult

RULES = ({"type": "file_contains", "path": "out.txt", "regex": "x"},)


def agent(name: str) -> StepRun:
    return StepRun(name, "agent", "done", attempts=1, snapshot=f"before-{name}")


def trial(*steps: StepRun, right: bool = False) -> Trial:
    return Trial("", "completed", steps, hard=(RuleResult("file_contains", right),))


class Draws:
    """Says how a draw from before a step ends, and counts how often it was asked."""

    def __init__(self, **ends: list[bool]) -> None:
        self.ends, self.asked = ends, []

    def __call__(self, run: Trial, step: str, draw: int) -> Trial:
        self.asked.append((step, draw))
        return trial(right=self.ends[step][draw - 1])


@given(st.integers(0, 40), st.integers(0, 40))
def test_halving_finds_the_place_with_few_questions(size, spoiled):
    """For every place that may be the first bad one, with about log2(n) questions."""
    places = [str(n) for n in range(size)]
    asked = []

    found = first_bad(places, lambda place: asked.append(place) or int(place) < spoiled)

    assert found == ("" if not spoiled or not size else str(min(spoiled, size) - 1))
    assert len(asked) <= 1 + ceil(log2(max(size, 1) + 1))


def test_the_step_that_spoiled_the_run_is_blamed():
    """From before `b` a draw ends well, from before `c` none does: `b` passed and was wrong."""
    run = trial(*map(agent, "abcd"))
    draws = Draws(a=[True], b=[False, True], c=[False, False], d=[False, False])
    before = diagnose(run, RULES)

    found = located(before, run, draws, 2)

    assert before.step == "d" and before.failure_class is FailureClass.SILENT_WRONG
    assert (found.step, found.failure_class) == ("b", FailureClass.UPSTREAM_DAMAGE)
    assert found.signature == before.signature, "it is the same symptom as before"
    assert found.suspects[0] == "d"
    assert "in draw 2, from before `c` in none of 2" in found.cause
    assert len(draws.asked) == 1 + 2 + 2


def test_the_blamed_step_stays_where_it_is_the_last_that_can_still_mend_all():
    """From before the step that shows it a draw ends well: nothing was spoiled before."""
    run = trial(*map(agent, "abcd"))
    draws = Draws(a=[True], b=[True], c=[True], d=[True])
    before = diagnose(run, RULES)

    assert located(before, run, draws, 3) == before


def test_what_never_ends_well_tells_nothing():
    """Where not even a whole run drawn anew is right, no step is named for it."""
    run = trial(*map(agent, "abcd"))
    draws = Draws(a=[False] * 3)
    before = diagnose(run, RULES)

    assert located(before, run, draws, 3) == before
    assert draws.asked == [("a", 1), ("a", 2), ("a", 3)]


@pytest.mark.parametrize(
    "steps",
    [
        (agent("a"),),
        (replace(agent("a"), kind="shell"), agent("b")),
        (replace(agent("a"), snapshot=""), agent("b")),
    ],
)
def test_nothing_is_drawn_where_only_one_step_could_be_to_blame(steps):
    """Steps without a model give the same again; without their files none can be tried."""
    run = trial(*steps)
    draws = Draws()
    before = diagnose(run, RULES)

    assert located(before, run, draws, 5) == before
    assert not draws.asked


def test_an_order_without_draws_draws_nothing():
    """The order says how often dice may be thrown."""
    run = trial(*map(agent, "ab"))
    draws = Draws()

    assert located(diagnose(run, RULES), run, draws, 0).step == "b"
    assert not draws.asked


@pytest.mark.parametrize("cases", [20, pytest.param(200, marks=pytest.mark.long)])
def test_in_the_simulator_the_first_bad_step_is_mostly_named(cases):
    """Of runs of six steps that go wrong in silence, four of five at least; alone hardly any."""
    alone, drawn = selftest.blamed(cases)

    assert drawn.right and drawn.accepted > 2 * alone.accepted
