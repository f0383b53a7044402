"""Gates that count pairs, and the figures behind them."""

from __future__ import annotations

from itertools import count, repeat

import pytest

from loop import pairs
from loop.evidence import StepRun, Trial
from loop.figures import at_least, level, sign_test
from openry.models import RuleResult


def test_the_bound_is_exact():
    """For n of n the exact bound is 0.05 ** (1 / n), and with the bound the tail is 5 %."""
    for runs in (1, 3, 20, 100):
        assert at_least(runs, runs) == pytest.approx(0.05 ** (1 / runs))
    assert at_least(18, 20) == pytest.approx(0.717, abs=5e-4)


def test_a_session_cannot_spend_its_level_twice():
    """However often it certifies, all levels together stay below 2.5 %."""
    assert sum(level(n) for n in range(1, 1000)) <= 0.025


@pytest.mark.parametrize(
    ("outcomes", "admitted", "taken"),
    [
        (repeat((False, True)), True, 4),
        (repeat((True, False)), False, 3),
        (repeat((True, True)), False, 40),
    ],
)
def test_the_walk_ends_as_soon_as_it_can(outcomes, admitted, taken):
    """Four up admits, three down refuses, forty pairs without either refuse."""
    used = count()
    gate = pairs.walk(pair for pair in outcomes if next(used) is not None)

    assert gate.passed is admitted
    assert str(taken) in gate.note
    assert next(used) == taken


def step(state: str, **more) -> StepRun:
    return StepRun("a", "agent", state, attempts=1, **more)


def test_the_edited_steps_own_check_is_not_enough():
    """A replay that only passes its own rules, and fails the referee's, is no good one."""
    assert pairs.rewarded(step("done", referee=(RuleResult("r", True),)))
    assert not pairs.rewarded(step("done", referee=(RuleResult("r", False),)))
    assert not pairs.rewarded(step("failed"))


def test_a_model_that_answers_the_same_is_not_asked_forty_times():
    """So many equal pairs stand for the rest."""
    asked = count()
    replays = ((step("done"), step("done")) for _ in iter(lambda: next(asked), None))

    assert not pairs.walk(pairs.until_settled(replays)).passed
    assert next(asked) == pairs.SAME


def trial(*held: bool, steps: str = "done") -> Trial:
    rules = tuple(RuleResult(f"r{n}", each) for n, each in enumerate(held))
    return Trial("", "completed", (step(steps),), hard=rules)


def test_what_held_must_hold_in_two_of_three_runs():
    """One unlucky run is forgiven, two are not; with a single run none is."""
    parent = trial(True, False)
    good, bad = trial(True, True), trial(False, True)

    assert pairs.protect(parent, [good, bad, good]).passed
    assert not pairs.protect(parent, [good, bad, bad]).passed
    assert not pairs.protect(parent, [bad]).passed
    assert not pairs.protect(trial(), [trial(steps="failed")]).passed


def test_a_gain_elsewhere_does_not_pay_for_a_loss():
    """More rules hold than before, but one that held is broken: refused by name."""
    parent, child = trial(True, False, False), trial(False, True, True)

    gate = pairs.protect(parent, [child])

    assert not gate.passed
    assert "r0" in gate.note


def certify(outcomes, number=1, looks=(20,)):
    return pairs.certify(lambda: iter(outcomes), number, looks)


def test_certification_tells_better_worse_and_nothing_shown():
    """Only a difference that chance hardly makes is called one."""
    assert certify([(False, True)] * 20).better
    assert certify([(True, False)] * 20).worse
    same = certify([(True, True)] * 20)
    assert not same.better
    assert not same.worse
    assert same.gate.indecisive
    assert (same.passed, same.runs) == (20, 20)


def test_a_later_certification_has_less_to_spend():
    """What convinces the first certification does not convince the fifth."""
    outcomes = [(False, True)] * 7 + [(True, True)] * 13
    assert sign_test(7, 0) < level(1)

    assert certify(outcomes, 1).better
    assert not certify(outcomes, 5).better
