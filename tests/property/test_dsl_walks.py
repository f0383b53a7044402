"""Routing over workflows and histories that nobody thought of."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from openry.orchestrator.routing import Action, Ended, Outcome, decide
from openry.orchestrator.spec import WorkflowSpec

RULE = {"type": "payload_has_key", "key": "k"}
NAMES = ("a", "b", "c", "d")


@st.composite
def workflows(draw):
    names = NAMES[: draw(st.integers(1, 4))]
    ids, tries = st.sampled_from(names), st.integers(0, 2)

    def to(*words):
        return st.one_of(st.sampled_from(words), ids)

    match = to("done", "abort", "retry_current", "continue")
    steps = []
    for name in names:
        route = {"when": RULE, "on_match": draw(match), "on_mismatch": draw(match)}
        steps.append(
            {
                "id": name,
                "description": "x",
                "on_success": draw(st.one_of(st.none(), to("done"))),
                "on_failure": draw(to("abort", "retry")),
                "on_validation_fail": draw(to("abort", "retry_current")),
                "on_payload_missing": draw(st.one_of(st.none(), to("abort", "retry_current"))),
                "on_dropped": draw(st.one_of(st.none(), to("abort"))),
                "max_sub_step_retries": draw(tries),
                "validation_routing": [route] * draw(st.integers(0, 2)),
            }
        )
    return WorkflowSpec.model_validate({"sub_steps": steps, "max_retries": draw(tries)})


ENDINGS = st.tuples(st.sampled_from(Ended), st.lists(st.booleans(), max_size=2).map(tuple))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(workflows(), st.lists(ENDINGS, max_size=40))
def test_every_walk_stays_on_the_map(plan, endings):
    """Each step decided on is one of the workflow's; attempts never pass their limits."""
    steps = {step.id: step for step in plan.sub_steps}
    history: list[Outcome] = []
    before = decide(plan, history)
    for ended, matches in endings:
        assert before == decide(plan, list(history))
        assert before.step_id in steps
        history.append(Outcome(before.step_id, ended, matches=matches))
        now = decide(plan, history)
        assert now.big_attempt in (before.big_attempt, before.big_attempt + 1)
        assert now.big_attempt <= plan.max_retries + 1
        if now.action is Action.RETRY:
            assert (now.step_id, now.attempt) == (before.step_id, before.attempt + 1)
            assert now.attempt <= steps[now.step_id].max_sub_step_retries + 1
        if now.action in (Action.DONE, Action.ABORT):
            break
        assert now.action in (Action.RUN, Action.RETRY, Action.RESTART)
        assert (now.action is Action.RETRY) == (now.attempt > 1)
        before = now


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 3), st.data())
def test_a_straight_workflow_always_ends(count, retries, big_retries, data):
    """Without routes back, whatever happens, it ends within the runs its retries allow."""
    steps = [
        {"id": f"s{n}", "description": "x", "on_failure": "retry", "max_sub_step_retries": retries}
        for n in range(count)
    ]
    plan = WorkflowSpec.model_validate({"sub_steps": steps, "max_retries": big_retries})
    history: list[Outcome] = []
    limit = count * (retries + 1) * (big_retries + 1)
    while (now := decide(plan, history)).action not in (Action.DONE, Action.ABORT):
        assert len(history) < limit
        ended = data.draw(st.sampled_from((Ended.VALIDATED, Ended.FAILED, Ended.INVALID)))
        history.append(Outcome(now.step_id, ended))
    last_pass = [o.step_id for o in history if o.ended is Ended.VALIDATED][-count:]
    assert now.action is Action.ABORT or last_pass == [s.id for s in plan.sub_steps]
