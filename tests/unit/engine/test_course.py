"""Where an instance stands: the same whether remembered step by step or rebuilt from the ledger."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openry.ledger.instances import Instance
from openry.ledger.runs import _BLANK as BLANK
from openry.ledger.runs import Run
from openry.models import InstanceState
from openry.orchestrator.course import chart, chart_again, chart_start, standing_of
from openry.orchestrator.loader import load
from openry.orchestrator.plan import Plan, read_plan, sha256_of
from openry.orchestrator.routing import Ended, Outcome

STEPS = (
    "  - {id: a, kind: shell, command: x, on_failure: retry, max_sub_step_retries: 2}\n"
    "  - {id: b, kind: shell, command: x, on_failure: c}\n"
    "  - {id: c, kind: shell, command: x, on_validation_fail: retry_current}\n"
)


def workflow(name, **more):
    extra = "".join(f"{key}: {value}\n" for key, value in more.items())
    return load(f"name: {name}\n{extra}sub_steps:\n{STEPS}").required().workflow


def composition():
    loaded = load(
        "name: all\nbig_steps:\n"
        "  - {ref: one, on_failure: two}\n"
        "  - {ref: one}\n"
        "  - {ref: two, on_failure: one}\n"
    )
    return Plan(
        loaded.required().composition,
        {"one": workflow("one", max_retries=1), "two": workflow("two")},
    )


def instance(standing=None, payload=None):
    return Instance(
        instance_id="i",
        workflow="all",
        kind="composition",
        state="running",
        reason="",
        plan="",
        plan_hash="",
        source_file="",
        inputs={},
        payload=payload or {},
        data=standing.data() if standing else {},
        workspace="/w",
        drafted=False,
        parent_instance_id=None,
        current_step="",
        big_step_retry_count=0,
        cancel_requested=False,
        deadline_at=None,
        created_at="",
        started_at=None,
        ended_at=None,
    )


def ended_run(course, outcome, number):
    """The row that `write_course` leaves of a run that ended like that."""
    data = {
        "seq": number,
        "visit": course.standing.visit,
        "folded": course.standing.folded,
        "ended": outcome.ended.value,
        "matches": list(outcome.matches),
        "final": outcome.final,
    }
    names = {name: BLANK[name] for name in Run.__slots__}
    about = {"run_id": str(number), "step_id": outcome.step_id, "reason": outcome.reason}
    return Run(**{**names, **about, "data": data})


@given(st.lists(st.sampled_from(list(Ended)), max_size=40))
def test_a_restarted_engine_stands_where_the_dead_one_stood(endings):
    """After any history, the standing rebuilt from rows equals the one remembered."""
    plan = composition()
    course = chart_start(standing_of(instance(), (), plan), lambda big, payload: True)
    runs = []
    for number, ending in enumerate(endings, 1):
        if not course.queue:
            break
        outcome = Outcome(course.next.step_id, ending, f"because {number}")
        runs.append(ended_run(course, outcome, number))
        course = chart(course.standing, outcome, {"n": number}, lambda big, payload: True)
    remembered = course.standing
    if not course.queue:
        assert course.ends is not None
        return
    rebuilt = standing_of(instance(remembered, remembered.payload), runs, plan)
    assert rebuilt == remembered
    assert rebuilt.cursor.next == course.next


def test_a_skipped_big_step_is_passed_over():
    """`when` that does not hold leads to the next big step; all skipped is a success."""
    plan = composition()
    standing = standing_of(instance(), (), plan)
    loaded = load(
        "name: all\nbig_steps: [{ref: one, when: {type: file_exists, path: x}}, {ref: two}]"
    )
    plan = Plan(loaded.required().composition, plan.workflows)
    standing = standing_of(instance(), (), plan)
    assert chart_start(standing, lambda big, payload: False).standing.big_step.ref == "two"
    only = load("name: o\nbig_steps: [{ref: one, when: {type: file_exists, path: x}}]")
    standing = standing_of(instance(), (), Plan(only.required().composition, plan.workflows))
    assert chart_start(standing, lambda big, payload: False).ends is InstanceState.COMPLETED


def test_a_cancelled_run_ends_everything():
    """No retry, no failure route, no big step after it."""
    course = chart_start(standing_of(instance(), (), composition()), lambda big, payload: True)
    outcome = Outcome("a", Ended.CANCELLED, "cancelled")
    ended = chart(course.standing, outcome, {}, lambda big, payload: True)
    assert (ended.queue, ended.ends) == (False, InstanceState.CANCELLED)


def test_a_persons_retry_begins_a_new_visit():
    """Outcomes from before do not count for what is taken up again."""
    plan = composition()
    course = chart_start(standing_of(instance(), (), plan), lambda big, payload: True)
    again = chart_again(course.standing, "b", instance(course.standing))
    assert (again.next.step_id, again.standing.visit, again.standing.folded) == ("b", 2, 0)
    assert standing_of(instance(again.standing), (), plan).cursor.next.step_id == "b"


def test_a_plan_survives_being_written_down():
    """What is read back is equal, and equal plans have equal hashes."""
    plan = composition()
    text = plan.to_text()
    assert read_plan(text) == plan
    assert sha256_of(text) == sha256_of(read_plan(text).to_text())
