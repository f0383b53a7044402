"""Waiting: as long as asked, growing otherwise, never beyond the time there is."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openry.errors import BudgetError, ModelError
from openry.llm import ChatRequest, ScriptedModel, user
from openry.llm.retry import TRIES, Retrying, retry_after_s, wait_s

ASK = ChatRequest((user("x"),))
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def retrying(script, **settings):
    model = ScriptedModel(script)
    slept = []
    return Retrying(model, sleep=slept.append, **settings), model, slept


def busy(code="rate_limited", after=None):
    return ModelError(code, "busy", retry_after_s=after)


def test_the_third_call_succeeds_after_waiting_as_told():
    """Two refusals with `Retry-After: 4` mean two gaps of at least four seconds."""
    model, _, slept = retrying([busy(after=4.0), busy(after=4.0), "done"])

    assert model.complete(ASK).text == "done"
    assert len(slept) == 2
    assert all(4.0 <= gap <= 4.5 for gap in slept)


@pytest.mark.parametrize("code", sorted(TRIES))
def test_tries_are_bounded(code):
    """What passes is tried again so often and no more; the last error is the answer."""
    model, asked, slept = retrying([busy(code)] * TRIES[code])

    with pytest.raises(ModelError, match="busy"):
        model.complete(ASK)

    assert asked.left == 0
    assert len(slept) == TRIES[code] - 1


@pytest.mark.parametrize("code", ["no_key", "unknown_model", "context_length", "bad_answer"])
def test_what_does_not_pass_is_not_tried_again(code):
    """A wrong key stays wrong."""
    model, asked, slept = retrying([busy(code), "never"])

    with pytest.raises(ModelError):
        model.complete(ASK)

    assert (asked.left, slept) == (1, [])


def test_a_wait_of_minutes_is_not_slept_through():
    """The person is told at once instead."""
    model, _, slept = retrying([busy(after=600.0), "never"])

    with pytest.raises(ModelError):
        model.complete(ASK)

    assert slept == []


def test_a_wait_that_the_budget_does_not_hold_is_not_begun():
    """Sleeping into the limit would only end there."""
    model, _, slept = retrying([busy(after=4.0), "never"], seconds_left=lambda: 3.0)

    with pytest.raises(BudgetError, match="does not fit into the 3 s left") as caught:
        model.complete(ASK)

    assert (caught.value.limit, slept) == ("seconds", [])


@given(st.integers(min_value=1, max_value=50), st.none() | st.floats(0, 1e6))
def test_no_wait_is_shorter_than_asked(failures, asked):
    """Jitter only adds; without a wish, waits lie between half a second and thirty."""
    waited = wait_s(failures, asked)

    assert waited >= asked if asked is not None else 0.5 <= waited <= 30.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "4"}, 4.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=7), usegmt=True)}, 7.0),
        ({"Retry-After": format_datetime(NOW - timedelta(seconds=7), usegmt=True)}, 0.0),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_both_forms_of_retry_after_are_read(headers, seconds):
    """Seconds and an HTTP date mean the same; nonsense means nothing was asked."""
    assert retry_after_s(headers, NOW) == seconds
