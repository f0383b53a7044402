"""Edits applied to texts: what is meant changes, every other line stays byte for byte."""

from __future__ import annotations

import difflib

import pytest

from loop.apply import agent_step_data, apply, check_draft, check_text, data_of, dump
from loop.edits import (
    AddCheck,
    AddContext,
    AddExample,
    AddFallback,
    DropContext,
    InsertStep,
    MergeSteps,
    RelaxCheck,
    RemoveExample,
    RemoveStep,
    SetRoute,
    SetTimeout,
    SplitStep,
    StrengthenCheck,
    ToCapability,
    ToShell,
)
from loop.order import Order
from loop.values import Acceptance
from openry.capability.registry import load_registry
from openry.errors import BadFileError

REGISTRY = load_registry()
TEXT = """\
# how a person writes it
name: w
sub_steps:
  - id: a   # first
    kind: shell
    command: "grep -c ERROR ap.log > count.txt"
    timeout_seconds: 30
    validation:
      - {type: file_exists, path: count.txt}

  # then
  - id: b
    kind: capability
    capability: sort_lines
    args:
      path: names.txt
      output: sorted.txt  # new
    on_failure: a
"""


def changed_lines(old: str, new: str) -> list[str]:
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return [line for line in lines if line[:1] in "+-"]


def test_one_edit_changes_one_line():
    """A corrected command is one line out, one line in."""
    new = apply(TEXT, [ToShell(step="a", command="grep -c ERROR app.log > count.txt")])

    assert len(changed_lines(TEXT, new)) == 2
    assert "# how a person writes it" in new
    assert "- id: a   # first" in new
    assert data_of(new)["sub_steps"][0]["command"] == "grep -c ERROR app.log > count.txt"


def test_a_corrected_argument_leaves_the_others():
    """Of a call only the argument that is wrong is written anew."""
    args = {"path": "people.txt", "output": "sorted.txt"}

    new = apply(TEXT, [ToCapability(step="b", name="sort_lines", args=args)])

    assert data_of(new)["sub_steps"][1]["args"] == args
    assert len(changed_lines(TEXT, new)) == 2


@pytest.mark.parametrize(
    "edit",
    [
        SetTimeout(step="a", seconds=60),
        AddCheck(step="a", rule={"type": "file_contains", "path": "count.txt", "contains": "1"}),
        StrengthenCheck(
            step="a", index=0, rule={"type": "file_contains", "path": "count.txt", "regex": "^1$"}
        ),
        SetRoute(step="a", on="on_success", target="done"),
        RelaxCheck(step="a", index=0),
        ToCapability(
            step="a",
            name="count_matching_lines",
            args={"path": "app.log", "needle": "ERROR", "output": "count.txt"},
        ),
    ],
)
def test_an_edit_touches_only_its_step(edit):
    """Whatever is done to step `a`, the lines from `# then` on are the same."""
    new = apply(TEXT, [edit])

    assert new != TEXT
    assert new.partition("  # then\n")[2] == TEXT.partition("  # then\n")[2]
    assert new.startswith("# how a person writes it\nname: w\nsub_steps:\n")


def test_a_split_step_stands_where_it_stood():
    """Two steps in the place of one, the first under the old id."""
    parts = (
        {"id": "x", "kind": "shell", "command": "grep ERROR app.log > .work/e"},
        {"id": "count", "kind": "shell", "command": "wc -l < .work/e > count.txt"},
    )

    new = apply(TEXT, [SplitStep(step="a", steps=parts)])

    assert [step["id"] for step in data_of(new)["sub_steps"]] == ["a", "count", "b"]
    assert check_text(new, REGISTRY) == ()


def test_a_step_put_before_catches_the_routes():
    """Who led to the old step leads to the new one; the old one follows it."""
    new_step = {"id": "first", "kind": "shell", "command": "true"}

    new = apply(TEXT, [InsertStep(step="a", place="before", data=new_step)])

    steps = data_of(new)["sub_steps"]
    assert [step["id"] for step in steps] == ["first", "a", "b"]
    assert steps[2]["on_failure"] == "first"


def test_a_removed_step_leaves_no_route_to_nowhere():
    """Routes that led to it lead on."""
    new = apply(TEXT, [RemoveStep(step="a")])

    assert data_of(new)["sub_steps"][0]["on_failure"] == "b"


def test_an_edit_of_a_step_that_is_not_there_is_refused():
    """The message names the steps there are."""
    with pytest.raises(BadFileError, match="`a`, `b`"):
        apply(TEXT, [SetTimeout(step="z", seconds=1)])


def test_a_call_that_cannot_be_made_is_no_workflow():
    """Unknown capabilities and wrong arguments are found before anything runs."""
    step = {"id": "a", "kind": "capability", "capability": "sort_line", "args": {"path": "x"}}

    assert "sort_lines" in check_text(dump({"name": "w", "sub_steps": [step]}), REGISTRY)[0]
    step = {**step, "capability": "sort_lines", "args": {"file": "x"}}
    assert check_text(dump({"name": "w", "sub_steps": [step]}), REGISTRY)


@pytest.mark.parametrize(
    "step",
    [
        {"id": "a", "kind": "shell", "command": "grep x y > z || true"},
        {"id": "a", "kind": "shell", "command": "echo 42 > z"},
        {"id": "a", "kind": "shell", "command": "cat a > z", "sandbox": "none"},
        {"id": "a", "kind": "agent", "description": "x", "agent": "big/model"},
        {"id": "a", "kind": "shell", "command": "cat a > z", "on_success": "nowhere"},
        {"id": "a", "kind": "shell", "command": "cat a > z", "on_success": "a"},
    ],
)
def test_a_draft_that_cheats_or_does_not_load_is_refused(step):
    """Nobody drafts a hidden failure, a constant, a power or a route to nowhere."""
    assert check_draft({"name": "w", "sub_steps": [step]}, "count x in y into z", REGISTRY)


def test_what_lint_said_before_is_no_objection():
    """A person's workflow with a warning can still be mended; a new warning cannot come in."""
    loops = {"id": "a", "kind": "shell", "command": "cat a > z", "on_success": "a"}
    before = dump({"name": "w", "sub_steps": [loops]})
    after = apply(before, [SetTimeout(step="a", seconds=5)])

    assert check_text(after, REGISTRY)
    assert check_text(after, REGISTRY, before) == ()


def test_an_agent_step_is_a_valid_draft(tmp_path):
    """The last resort loads like every other draft, with the acceptance as its own checks."""
    order = Order("do something odd", str(tmp_path), planner="local/x", model="local/x")
    acceptance = Acceptance(({"type": "file_exists", "path": "out.txt"},))

    data = agent_step_data("w", order, acceptance)

    assert check_draft(data, order.task, REGISTRY) == ()
    assert data["sub_steps"][0]["validation"] == list(acceptance.hard)


def test_merged_steps_fail_when_either_fails():
    """Two shell steps become one command; all rules of both are its own."""
    text = dump(
        {
            "name": "w",
            "sub_steps": [
                {"id": "a", "kind": "shell", "command": "sort x > y", "timeout_seconds": 3},
                {
                    "id": "b",
                    "kind": "shell",
                    "command": "uniq y > z",
                    "timeout_seconds": 4,
                    "validation": [{"type": "file_exists", "path": "z"}],
                },
            ],
        }
    )

    (step,) = data_of(apply(text, [MergeSteps(step="a", other="b")]))["sub_steps"]

    assert step["command"] == "( sort x > y ) && ( uniq y > z )"
    assert step["timeout_seconds"] == 7
    assert step["validation"] == [{"type": "file_exists", "path": "z"}]


def test_steps_that_are_not_alike_stay_two():
    """A call and a command, or a step that another leads to, cannot be merged."""
    with pytest.raises(BadFileError, match="`kind`"):
        apply(TEXT, [MergeSteps(step="a", other="b")])


def test_a_fallback_stands_aside_until_the_step_fails():
    """Success passes it by, failure leads to it, and it holds the step's rules."""
    data = {"id": "again", "kind": "shell", "command": "grep -c ERR app.log > count.txt"}

    steps = data_of(apply(TEXT, [AddFallback(step="a", data=data)]))["sub_steps"]

    assert [step["id"] for step in steps] == ["a", "again", "b"]
    assert (steps[0]["on_success"], steps[0]["on_failure"]) == ("b", "again")
    assert (steps[1]["on_success"], steps[1]["validation"]) == ("b", steps[0]["validation"])


def test_examples_and_context_are_counted_apart():
    """Taking an example away leaves the context, and the last block takes its key with it."""
    text = dump({"name": "w", "sub_steps": [{"id": "a", "description": "do it"}]})
    both = apply(
        text,
        [AddContext(step="a", text="why"), AddExample(step="a", given="1", answer="one")],
    )

    one = apply(both, [RemoveExample(step="a", index=0)])
    none = apply(one, [DropContext(step="a", index=0)])

    assert [block["content"] for block in data_of(one)["sub_steps"][0]["prompt_blocks"]] == ["why"]
    assert none == text
    with pytest.raises(BadFileError, match="no example 0"):
        apply(one, [RemoveExample(step="a", index=0)])
