"""Which planner is asked, and what a budget buys."""

from __future__ import annotations

import pytest

from loop.diagnose import Diagnosis, FailureClass
from loop.evidence import Trial
from loop.journal import Round
from loop.ladder import rung
from loop.order import Order
from loop.preflight import estimate
from openry.capability.registry import Registry
from openry.llm import ScriptedModel


def rounds(*marks: str) -> list[Round]:
    """`A1` is an accepted edit for failure 1, `N1` a round in which nothing was."""
    found = [Round(0, "", Trial("", "failed", ()), "failed")]
    for number, mark in enumerate(marks, start=1):
        verdict = "accepted" if mark[0] == "A" else "nothing accepted"
        diagnosis = Diagnosis("a", FailureClass.WRONG_COMMAND, "", mark[1])
        found.append(Round(number, "", Trial("", "failed", ()), verdict, diagnosis))
    return found


@pytest.mark.parametrize(
    ("marks", "now", "expected"),
    [
        ((), "1", 0),
        (("N1",), "1", 1),
        (("N1", "N1", "N1"), "1", 2),
        (("A1",), "1", 0),
        (("A1", "A1"), "1", 1),
        (("A1", "A1"), "2", 0),
        (("N1", "A1"), "2", 0),
        (("N1", "A1", "A2", "N3"), "3", 1),
    ],
)
def test_the_ladder_is_climbed_only_where_the_lower_rung_did_not_help(marks, now, expected):
    """Up after a round without an edit or two that changed nothing, down after one that did."""
    assert rung(rounds(*marks), now, rungs=3) == expected


def order(**more) -> Order:
    return Order("t", ".", planner="openai/x", model="local/x", **more)


class Priced(ScriptedModel):
    def price_usd(self, prompt: int, answer: int) -> float:
        return (prompt + answer) / 1e6


def test_a_budget_is_told_in_rounds_before_anything_is_paid():
    """Each call at its longest; fewer than three rounds are not begun, and the need is named."""
    model, registry = Priced(name="openai/x"), Registry()

    few = estimate(order(budget_tokens=9000), model, registry)
    many = estimate(order(budget_tokens=40_000), model, registry)
    money = estimate(order(budget_usd=0.01), model, registry)

    assert not few.enough
    assert "fewer than 3 are not begun" in few.sentence
    assert many.enough
    assert f"about {many.rounds} rounds" in many.sentence
    assert (money.enough, money.limit) == (False, "usd")
    assert estimate(order(), model, registry).enough


def test_what_is_named_as_needed_is_enough():
    """The tokens that a refusal names buy three rounds."""
    import re

    model, registry = Priced(name="openai/x"), Registry()
    said = estimate(order(budget_tokens=100), model, registry).sentence
    need = int(re.search(r"give ([\d,]+) tokens", said)[1].replace(",", ""))

    assert estimate(order(budget_tokens=need), model, registry).rounds == 3
    assert not estimate(order(budget_tokens=need - 1), model, registry).enough
