"""Where an instance goes next: every route, retry and end."""

from __future__ import annotations

from typing import Any

import pytest

from openry.orchestrator.routing import (
    Action,
    BigOutcome,
    Ended,
    Outcome,
    backoff_s,
    decide,
    decide_big,
    match_routes,
)
from openry.orchestrator.spec import Backoff, Composition, WorkflowSpec

RULE = {"type": "payload_has_key", "key": "k"}


def workflow(*steps: dict[str, Any], **top: Any) -> WorkflowSpec:
    made = [{"description": "x", **step} for step in steps]
    return WorkflowSpec.model_validate({"sub_steps": made, **top})


def done(step_id: str, **more: Any) -> Outcome:
    return Outcome(step_id, Ended.VALIDATED, **more)


def failed(step_id: str, ended: Ended = Ended.FAILED, **more: Any) -> Outcome:
    return Outcome(step_id, ended, "broken", **more)


def test_steps_run_in_order_and_then_it_is_done():
    """A missing `on_success` means the next step, and `done` after the last."""
    plan = workflow({"id": "a"}, {"id": "b"})
    walk = [decide(plan, outcomes) for outcomes in ([], [done("a")], [done("a"), done("b")])]

    assert [(n.action, n.step_id) for n in walk] == [
        (Action.RUN, "a"), (Action.RUN, "b"), (Action.DONE, "")
    ]  # fmt: skip


def test_on_success_leads_where_it_says():
    """A route may skip steps, go back, or end early."""
    plan = workflow({"id": "a", "on_success": "c"}, {"id": "b"}, {"id": "c", "on_success": "done"})

    assert decide(plan, [done("a")]).step_id == "c"
    assert decide(plan, [done("a"), done("c")]).action is Action.DONE


def test_a_skipped_step_goes_on_like_a_done_one():
    """`when` was false: the next step follows."""
    plan = workflow({"id": "a"}, {"id": "b"})

    assert decide(plan, [Outcome("a", Ended.SKIPPED)]).step_id == "b"


def test_failure_aborts_unless_told_otherwise():
    """`on_failure` is `abort` by default, or another step."""
    plan = workflow({"id": "a"}, {"id": "b"})
    other = workflow({"id": "a", "on_failure": "b"}, {"id": "b"})

    assert (decide(plan, [failed("a")]).action, decide(plan, [failed("a")]).reason) == (
        Action.ABORT, "broken"
    )  # fmt: skip
    assert decide(other, [failed("a")]).step_id == "b"


def test_retries_count_after_the_first_attempt():
    """`max_sub_step_retries: 2` gives three attempts; the last one is dropped."""
    plan = workflow({"id": "a", "on_failure": "retry", "max_sub_step_retries": 2})
    first, second, third = (decide(plan, [failed("a")] * n) for n in (1, 2, 3))

    assert (first.action, first.attempt) == (Action.RETRY, 2)
    assert (second.action, second.attempt) == (Action.RETRY, 3)
    assert (third.action, third.dropped) == (Action.ABORT, True)


def test_an_invalid_result_is_retried_by_default():
    """`on_validation_fail` is `retry_current` by default, three times."""
    plan = workflow({"id": "a"})
    walk = [decide(plan, [failed("a", Ended.INVALID)] * n).action for n in range(1, 5)]

    assert walk == [Action.RETRY] * 3 + [Action.ABORT]


def test_a_missing_payload_has_a_route_of_its_own():
    """`on_payload_missing` goes before `on_validation_fail`, which stands in for it."""
    own = workflow({"id": "a", "on_payload_missing": "b"}, {"id": "b"})
    none = workflow({"id": "a", "on_validation_fail": "abort"}, {"id": "b"})

    assert decide(own, [failed("a", Ended.PAYLOAD_MISSING)]).step_id == "b"
    assert decide(none, [failed("a", Ended.PAYLOAD_MISSING)]).action is Action.ABORT


def test_a_dropped_step_has_a_way_out():
    """`on_dropped` is taken when retries are spent, and when a step is lost for good."""
    plan = workflow({"id": "a", "on_dropped": "b", "max_sub_step_retries": 0}, {"id": "b"})
    spent = decide(plan, [failed("a", Ended.INVALID)])

    assert (spent.step_id, spent.dropped) == ("b", True)
    assert decide(plan, [failed("a", Ended.LOST)]).step_id == "b"
    assert decide(workflow({"id": "a"}), [failed("a", Ended.LOST)]).action is Action.ABORT


def test_the_whole_workflow_runs_again_while_it_may():
    """`max_retries` starts over at the first step, with fresh attempts; then it is over."""
    plan = workflow({"id": "a"}, {"id": "b", "max_sub_step_retries": 0}, max_retries=1)
    once = [done("a"), failed("b", Ended.INVALID)]
    again = decide(plan, once)

    assert (again.action, again.step_id, again.attempt, again.big_attempt) == (
        Action.RESTART, "a", 1, 2
    )  # fmt: skip
    assert decide(plan, [*once, done("a")]).big_attempt == 2
    assert decide(plan, [*once, *once]).action is Action.ABORT


@pytest.mark.parametrize("end", [Ended.CANCELLED, Ended.FAILED])
def test_what_is_final_is_not_retried(end):
    """A cancel, a big step's clock or a spent budget ends it at once."""
    plan = workflow({"id": "a", "on_failure": "retry"}, max_retries=3)

    assert decide(plan, [failed("a", end, final=True)]).action is Action.ABORT
    assert decide(plan, [failed("a", Ended.CANCELLED)]).action is Action.ABORT


def test_the_first_route_that_decides_wins():
    """`continue` passes to the next condition; all `continue` means `on_success`."""
    routes = [
        {"when": RULE, "on_match": "continue", "on_mismatch": "b"},
        {"when": RULE, "on_match": "done", "on_mismatch": "continue"},
    ]
    plan = workflow({"id": "a", "on_success": "c", "validation_routing": routes}, {"id": "b"},
                    {"id": "c"})  # fmt: skip

    assert decide(plan, [done("a", matches=(False,))]).step_id == "b"
    assert decide(plan, [done("a", matches=(True, True))]).action is Action.DONE
    assert decide(plan, [done("a", matches=(True, False))]).step_id == "c"


def test_a_route_can_retry_with_a_message_and_abort():
    """`retry_current` counts like any retry; the mismatch message is its reason."""
    route = {"when": RULE, "on_mismatch": "retry_current", "on_mismatch_message": "no k"}
    plan = workflow({"id": "a", "validation_routing": [route], "max_sub_step_retries": 1})
    again = decide(plan, [done("a", matches=(False,))])

    assert (again.action, again.attempt, again.reason) == (Action.RETRY, 2, "no k")
    assert decide(plan, [done("a", matches=(False,))] * 2).action is Action.ABORT
    gate = workflow({"id": "a", "validation_routing": [{"when": RULE, "on_mismatch": "abort"}]})
    assert decide(gate, [done("a", matches=(False,))]).action is Action.ABORT


def test_a_target_that_is_no_step_leaves_for_another_workflow():
    """A loader let it pass because a workflow of that name exists."""
    plan = workflow({"id": "a", "on_success": "other"})

    assert (decide(plan, [done("a")]).action, decide(plan, [done("a")]).step_id) == (
        Action.JUMP, "other"
    )  # fmt: skip


def test_routes_in_a_circle_end():
    """A workflow that never ends is stopped after 10,000 runs."""
    plan = workflow({"id": "a", "on_success": "b"}, {"id": "b", "on_success": "a"})
    circle = [done("a"), done("b")] * 5000

    assert decide(plan, circle[:-1]).action is Action.RUN
    assert "go in circles" in decide(plan, circle).reason


def test_history_must_be_what_was_decided():
    """A run that was not due, or came after the end, is an error of ours."""
    plan = workflow({"id": "a"}, {"id": "b"})

    with pytest.raises(ValueError, match="where `a` was due"):
        decide(plan, [done("b")])
    with pytest.raises(ValueError, match="after the workflow ended"):
        decide(plan, [done("a"), done("b"), done("a")])


def test_conditions_are_asked_no_further_than_needed():
    """Rules may start commands: those after the deciding one are not evaluated."""
    routes = WorkflowSpec.model_validate(
        {"sub_steps": [{"id": "a", "validation_routing": [
            {"when_any": [{**RULE, "key": "1"}, {**RULE, "key": "2"}], "on_match": "continue"},
            {"when_all": [{**RULE, "key": "3"}, {**RULE, "key": "4"}], "on_mismatch": "abort"},
            {"when": {**RULE, "key": "5"}},
        ]}]}
    ).sub_steps[0].validation_routing  # fmt: skip
    asked: list[str] = []

    def holds(rule: Any) -> bool:
        asked.append(rule.key)
        return rule.key != "3"

    assert match_routes(routes, holds) == (True, False)
    assert asked == ["1", "3"]


def test_backoff_doubles_up_to_its_cap():
    """`base` seconds, doubled each time; jitter draws from nothing to that."""
    assert [backoff_s(Backoff(base=1, cap=5), n) for n in (1, 2, 3, 4, 1000)] == [1, 2, 4, 5, 5]
    assert backoff_s(Backoff(base=8, jitter=True), 1, pick=lambda low, high: high / 2) == 4
    assert backoff_s(Backoff(base=8, jitter=0.25), 1, pick=lambda low, high: low) == 6
    assert backoff_s(Backoff.model_validate(Backoff.flat(3)), 4) == 3
    plan = workflow({"id": "a", "on_failure": "retry", "retry_backoff_seconds": 3})
    assert decide(plan, [failed("a")]).delay_s == 3


def test_a_composition_follows_its_routes():
    """Next by default, `done` and `abort` end it, a failure may lead elsewhere."""
    plan = Composition.model_validate(
        {"big_steps": [{"ref": "a", "on_failure": "c"}, {"ref": "b", "on_success": "done"},
                       {"ref": "c"}, {"ref": "a"}]}
    )  # fmt: skip
    good, bad = BigOutcome(0, True), BigOutcome(0, False, reason="broken")

    assert (decide_big(plan, []).action, decide_big(plan, []).place) == (Action.RUN, 0)
    assert decide_big(plan, [good]).place == 1
    assert decide_big(plan, [bad]).place == 2
    assert decide_big(plan, [good, BigOutcome(1, True)]).action is Action.DONE
    failing = decide_big(plan, [good, BigOutcome(1, False, reason="broken")])
    assert (failing.action, failing.reason) == (Action.ABORT, "broken")
    assert decide_big(plan, [bad, BigOutcome(2, True, skipped=True)]).place == 3
    assert decide_big(plan, [bad, BigOutcome(2, True), BigOutcome(3, True)]).action is Action.DONE


def test_a_ref_given_twice_means_the_nearest_further_down():
    """From the first step `a` leads to the later one, from the end back to the first."""
    plan = Composition.model_validate(
        {"big_steps": [{"ref": "a"}, {"ref": "b", "on_success": "a"}, {"ref": "a"}]}
    )

    assert decide_big(plan, [BigOutcome(0, True), BigOutcome(1, True)]).place == 2
    jump = BigOutcome(2, True, jump="b")
    assert decide_big(plan, [BigOutcome(0, True), BigOutcome(1, True), jump]).place == 1
