"""Gates, on real folders and real rules."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest

from loop import gates
from loop.evidence import StepRun, Trial
from openry.models import RuleResult
from openry.orchestrator.validation import check_rules, parse_rules
from openry.session.snapshot import SnapshotStore


@pytest.fixture
def store(tmp_path):
    return SnapshotStore(tmp_path / "store")


@pytest.fixture
def open_copy(store, tmp_path):
    @contextmanager
    def opened(snapshot):
        store.restore(snapshot, tmp_path / "copy")
        yield tmp_path / "copy"

    return opened


@pytest.fixture
def logged(store, tmp_path):
    """A trial whose output is what is given, accepted or not."""

    def make(output: str, *, good: bool) -> Trial:
        folder = tmp_path / "ran"
        folder.mkdir(exist_ok=True)
        (folder / "in.txt").write_text("b\na\nb\n")
        (folder / "out.txt").write_text(output)
        step = StepRun("a", "shell", "done", attempts=1, changed=("out.txt",))
        verdict = RuleResult("sorted", good)
        after = store.create(folder).id
        return Trial("", "completed", (step,), hard=(verdict,), after=after, changed=("out.txt",))

    return make


def judge(rules, folder, payload):
    parsed, problems = parse_rules(list(rules))
    assert not problems
    return check_rules(parsed, workspace=folder, payload=payload)


def added(rule):
    return (gates.Changed("a", (rule,), acts=False),)


SORTED = {"type": "sorted", "path": "out.txt"}
HAS_A = {"type": "file_contains", "path": "out.txt", "contains": "a"}


def test_a_new_check_must_reject_what_was_wrong(logged, open_copy):
    """A check that a logged wrong output passes adds nothing."""
    bad = logged("b\na\n", good=False)

    refused = gates.offline(added(HAS_A), [bad], judge, open_copy)
    passed = gates.offline(
        added({"type": "all_of", "rules": [HAS_A, SORTED]}), [bad], judge, open_copy
    )

    assert not refused.passed
    assert "adds nothing" in refused.note
    assert passed.passed


def test_a_new_check_may_not_reject_what_was_right(logged, open_copy):
    """One good output that it rejects is enough to refuse it."""
    good, bad = logged("a\nb\n", good=True), logged("b\na\n", good=False)
    rule = {"type": "file_contains", "path": "out.txt", "contains": "z"}

    gate = gates.offline(added(rule), [good, bad], judge, open_copy)

    assert not gate.passed
    assert "good" in gate.note


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "not", "rule": {"type": "file_contains", "path": "out.txt", "contains": "zzz"}},
        {"type": "file_exists", "path": "out.txt"},
    ],
)
def test_a_check_sees_through_nothing_done(rule, logged, open_copy):
    """A missing or empty output that passes refuses the check."""
    bad = logged("", good=False)

    assert not gates.offline(added(rule), [bad], judge, open_copy).passed


def test_without_a_wrong_output_the_gate_is_indecisive(logged, open_copy):
    """It does not claim to have shown what it could not."""
    gate = gates.offline(added(HAS_A), [logged("a\n", good=True)], judge, open_copy)

    assert gate.passed
    assert gate.indecisive


def test_only_checks_are_tried_offline(logged, open_copy):
    """A step that acts otherwise is judged by running it."""
    changed = (gates.Changed("a", (HAS_A,), acts=True),)

    assert gates.offline(changed, [logged("a\n", good=True)], judge, open_copy) is None


def test_changes_tell_checks_from_acts():
    """What differs only in `validation` does not act otherwise."""
    parent = {"sub_steps": [{"id": "a", "command": "x"}, {"id": "b", "command": "y"}]}
    child = {
        "sub_steps": [
            {"id": "a", "command": "x", "validation": [HAS_A]},
            {"id": "b", "command": "z"},
            {"id": "c", "command": "new"},
        ]
    }

    assert gates.changes(parent, child) == (
        gates.Changed("a", (HAS_A,), acts=False),
        gates.Changed("b", (), acts=True),
    )


def test_the_whole_run_must_be_better(logged):
    """Equal is not better."""
    good, bad = logged("a\n", good=True), logged("b\na\n", good=False)

    assert gates.whole(bad, good).passed
    assert not gates.whole(bad, bad).passed
    assert not gates.whole(good, bad).passed


def test_a_step_that_still_fails_is_refused():
    """The replay says whether it fails in the same way."""
    old = StepRun("a", "shell", "failed", reason="no", attempts=1)

    def signature(step):
        return step.reason

    assert "same way" in gates.replay(old, old, signature).note
    assert "alone" in gates.replay(old, replace(old, reason="other"), signature).note
    assert gates.replay(old, replace(old, state="done"), signature).passed


def test_one_draw_of_a_model_decides_nothing():
    """A step with a model that passes once may fail the next time, and the gate says so."""
    new = StepRun("a", "agent", "done", attempts=1)

    assert gates.replay(None, new, lambda step: "").indecisive
