"""Budgets: nothing is called that might not be paid for, and nothing is counted twice."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from openry.errors import BudgetError, ModelError
from openry.llm import Budget, ChatReply, ChatRequest, ScriptedModel, Spent, user
from openry.llm.budget import Budgeted

ASK = ChatRequest((user("x" * 30),), max_tokens=89)  # 11 estimated + 89 = 100 tokens at worst


class PricedModel(ScriptedModel):
    """A tenth of a cent a token, or a price nobody knows."""

    def __init__(self, replies, usd_per_token):
        super().__init__(replies)
        self.usd_per_token = usd_per_token

    def price_usd(self, prompt_tokens, completion_tokens):
        known = self.usd_per_token is not None
        return (prompt_tokens + completion_tokens) * self.usd_per_token if known else None


def test_a_call_is_settled_at_what_it_used():
    """The worst case is set aside before, and replaced by the real use after."""
    budget = Budget(tokens=150)
    reply = ChatReply("hi", prompt_tokens=10, completion_tokens=2, cost_usd=0.25)

    Budgeted(ScriptedModel([reply]), budget).complete(ASK)

    assert budget.spent == Spent(calls=1, tokens=12, usd=0.25)


@pytest.mark.parametrize(
    ("limits", "limit"),
    [({"tokens": 99}, "tokens"), ({"usd": 0.0999}, "usd"), ({"calls": 0}, "calls")],
)
def test_a_call_that_might_not_fit_is_not_made(limits, limit):
    """The error names the limit, and the model was never asked."""
    model = PricedModel(["hi"], 0.001)
    budget = Budget(**limits)

    with pytest.raises(BudgetError, match="budget: ") as caught:
        Budgeted(model, budget).complete(ASK)

    assert caught.value.limit == limit
    assert model.left == 1
    assert budget.spent == Spent()


def test_what_just_fits_is_made():
    """Limits are reached, not only approached."""
    model = PricedModel(["hi"], 0.001)

    assert Budgeted(model, Budget(tokens=100, usd=0.1, calls=1)).complete(ASK).text == "hi"


def test_time_that_is_over_stops_calls():
    """Seconds count from the making of the budget, on a clock that is an argument."""
    clock = iter([0.0, 4.0, 5.0]).__next__
    budget = Budget(seconds=5, now=clock)
    model = Budgeted(ScriptedModel(["hi", "never"]), budget)
    model.complete(ASK)

    with pytest.raises(BudgetError, match="the 5 seconds are over") as caught:
        model.complete(ASK)

    assert caught.value.limit == "seconds"


def test_a_resumed_session_begins_with_what_it_had_spent():
    """`spent` of before counts against the same limits."""
    budget = Budget(tokens=150, spent=Spent(calls=3, tokens=60))

    with pytest.raises(BudgetError, match="60 of 150 tokens are used"):
        Budgeted(ScriptedModel(["hi"]), budget).complete(ASK)


@pytest.mark.parametrize(
    ("error", "tokens"),
    [
        (ModelError("rate_limited", "later"), 0),
        (ModelError("no_network", "nowhere"), 0),
        (ModelError("cut", "half"), 100),
        (ModelError("overloaded", "silence"), 100),
        (KeyboardInterrupt(), 100),
    ],
)
def test_a_failed_call_counts_if_it_may_have_been_paid(error, tokens):
    """Turned away is free; broken off or silent is counted at its worst."""
    budget = Budget()

    with pytest.raises(type(error)):
        Budgeted(ScriptedModel([error]), budget).complete(ASK)

    assert budget.spent.tokens == tokens
    budget.reserve(10**9, 0.0)  # and nothing stays set aside: no limit, no complaint


def test_threads_cannot_overspend_together():
    """Twenty callers, room for five: five calls, whoever is first."""
    reply = ChatReply("hi", prompt_tokens=50, completion_tokens=50)
    model = ScriptedModel([reply] * 20)
    budget = Budget(tokens=500)
    budgeted = Budgeted(model, budget)

    def ask(_):
        try:
            return budgeted.complete(ASK).text
        except BudgetError:
            return ""

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(20)))

    assert answers.count("hi") == 5
    assert budget.spent == Spent(calls=5, tokens=500)


def test_an_unknown_price_is_refused_unless_allowed():
    """Without a price no money limit can hold; the sentence says how to allow it."""
    model = PricedModel(["hi"], None)

    with pytest.raises(ModelError, match="OPENRY_ALLOW_UNPRICED=1") as caught:
        Budgeted(model, Budget()).complete(ASK)
    assert caught.value.code == "unpriced"

    assert Budgeted(model, Budget(), allow_unpriced=True).complete(ASK).text == "hi"
