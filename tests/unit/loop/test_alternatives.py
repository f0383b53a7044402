"""Other readings of a task as the smallest edits that lead to them."""

from __future__ import annotations

from functools import partial

from loop.alternatives import Current, alternatives, same_results, writes
from loop.apply import apply, data_of, dump
from loop.edits import ToCapability
from loop.grounded import workflow_data
from loop.values import Candidate, Goal
from openry.capability.registry import load_registry

REGISTRY = load_registry()
make = partial(workflow_data, registry=REGISTRY, name="w", task="t")


def goal(tool: str, source: str = "a.txt", output: str = "b.txt", **args) -> Goal:
    return Goal("words", tool, {"path": source, "output": output, **args}, (source,), (output,))


def reading(*goals: Goal) -> Candidate:
    return Candidate(goals, 1.0)


SORT = reading(goal("sort_lines"))
REVERSE = reading(goal("reverse_lines"))
BOTH = reading(goal("sort_lines", output=".work/1.txt"), goal("unique_lines", ".work/1.txt"))


def propose(first: Candidate, *others: Candidate):
    current = Current(data_of(dump(make(first))), drafted=True)
    return list(alternatives(current, others, make, dump))


def test_the_same_reading_proposes_nothing():
    """Only what differs is a proposal."""
    assert propose(SORT, SORT) == []


def test_another_step_list_is_a_redraft_and_says_so():
    """Two steps where there was one cannot be said by correcting calls."""
    (proposal,) = propose(SORT, BOTH)

    assert proposal.edits == ()
    assert proposal.redraft == dump(make(BOTH))
    assert proposal.summary == "redraft"


def test_an_edit_leads_where_the_other_reading_is():
    """A reading that differs in one argument is one edit, and applying it gives that reading."""
    current = dump(make(reading(goal("first_lines", count=2))))
    other = reading(goal("first_lines", count=3))

    (proposal,) = alternatives(Current(data_of(current), drafted=True), [other], make, dump)

    assert len(proposal.edits) == 1
    assert data_of(apply(current, proposal.edits)) == data_of(dump(make(other)))


def test_another_tool_is_one_edit_of_one_step():
    """The step keeps its id and gets the other call with that call's own checks."""
    (proposal,) = propose(SORT, REVERSE)

    (edit,) = proposal.edits
    assert isinstance(edit, ToCapability)
    assert (edit.step, edit.name) == ("s1", "reverse_lines")
    assert data_of(apply(dump(make(SORT)), proposal.edits)) == data_of(dump(make(REVERSE)))


def test_what_a_person_wrote_is_only_offered_other_calls():
    """Beside a given workflow no redraft: just the step to blame, and only the same files."""
    step = {"id": "mine", "kind": "shell", "command": "sort a.txt > b.txt"}
    current = Current({"name": "p", "sub_steps": [step]}, drafted=False)

    found = list(same_results(current, ["mine"], [REVERSE, BOTH, REVERSE], make, REGISTRY))

    assert [proposal.edits[0].name for proposal in found] == ["reverse_lines", "unique_lines"]
    assert all(isinstance(p.edits[0], ToCapability) and p.edits[0].step == "mine" for p in found)
    assert list(alternatives(current, [BOTH], make, dump)) == []


def test_a_step_that_writes_something_else_is_not_touched():
    """A call for another file is no answer to this step's failure."""
    step = {"id": "mine", "kind": "shell", "command": "sort a.txt > c.txt"}
    current = Current({"name": "p", "sub_steps": [step]}, drafted=False)

    assert list(same_results(current, ["mine"], [REVERSE], make, REGISTRY)) == []


def test_a_call_says_what_it_writes():
    """Outputs are read from the arguments by their role."""
    (step,) = make(SORT)["sub_steps"]

    assert writes(step, REGISTRY) == ("b.txt",)
    assert writes({"id": "x", "kind": "shell", "command": "true"}, REGISTRY) == ()
