"""Typed edits: values that compile to changes of one step."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from loop.edits import (
    EDIT_CLASSES,
    AddCheck,
    DropKey,
    Proposal,
    PutItem,
    PutSteps,
    RelaxCheck,
    SetKey,
    SetOutput,
    SplitStep,
    ToCapability,
    ToShell,
    edit_data,
    parse_edit,
    summary,
)

CHECK = {"type": "file_exists", "path": "a.txt"}


def test_an_edit_survives_the_journal():
    """What `edit_data` writes, `parse_edit` reads back as the same edit."""
    edit = ToCapability(step="a", name="sort_lines", args={"path": "x"}, why="it sorts")

    assert parse_edit(edit_data(edit)) == edit


def test_every_operation_has_its_own_name():
    """No two kinds of edit share an `op`, and each can be told from its data alone."""
    names = [kind.operation() for kind in EDIT_CLASSES]

    assert len(set(names)) == len(names)


def test_an_unknown_key_is_refused():
    """A model that invents a key hears of it instead of being half understood."""
    with pytest.raises(ValidationError):
        parse_edit({"op": "to_shell", "step": "a", "command": "ls", "force": True})


def test_correcting_a_call_touches_only_what_differs():
    """A capability step that keeps its tool gets new `args` and nothing else."""
    step = {"id": "a", "kind": "capability", "capability": "head", "args": {"n": 1}}

    changes = ToCapability(step="a", name="head", args={"n": 2}).changes(step)

    assert changes == (SetKey("a", "args", {"n": 2}),)


def test_another_kind_leaves_no_key_of_the_old_one():
    """An agent step that becomes a shell step loses its prompt and its model."""
    step = {"id": "a", "description": "do it", "agent": "m", "timeout_seconds": 5}

    changes = ToShell(step="a", command="ls").changes(step)

    assert changes == (
        DropKey("a", "description"),
        DropKey("a", "agent"),
        SetKey("a", "kind", "shell"),
        SetKey("a", "command", "ls"),
    )


def test_a_split_step_keeps_the_id_and_the_ways_out():
    """The first part answers to the old id, the last part leads where the old step led."""
    step = {"id": "a", "kind": "shell", "command": "x", "on_success": "z"}
    parts = ({"id": "p", "kind": "shell", "command": "1"}, {"id": "q", "command": "2"})

    (change,) = SplitStep(step="a", steps=parts).changes(step)

    assert isinstance(change, PutSteps)
    assert [s["id"] for s in change.steps] == ["a", "q"]
    assert change.steps[-1]["on_success"] == "z"
    assert "on_success" not in change.steps[0]


def test_a_narrowed_answer_is_expected_and_checked():
    """`set_output` makes the payload expected, its key required and its value judged."""
    changes = SetOutput(step="a", key="n", regex=r"^\d+$").changes({"id": "a"})

    assert SetKey("a", "expect_payload", True) in changes
    assert SetKey("a", "payload_keys", ["n"]) in changes
    rule = {"type": "payload_value_matches", "key": "n", "regex": r"^\d+$"}
    assert PutItem("a", "validation", rule) in changes


def test_what_loosens_needs_a_person():
    """A proposal with one starred edit in it waits for a person, whatever the others are."""
    mixed = Proposal((AddCheck(step="a", rule=CHECK), RelaxCheck(step="a", index=0)), "planner", "")

    assert mixed.needs_person
    assert not Proposal((AddCheck(step="a", rule=CHECK),), "planner", "").needs_person


def test_a_summary_is_one_line():
    """A person reads what an edit does in one line, however long its value."""
    line = summary(ToShell(step="a", command="echo 1\n" * 100))

    assert line.startswith("to_shell(a, command=echo 1 echo 1")
    assert "\n" not in line
    assert len(line) < 100
