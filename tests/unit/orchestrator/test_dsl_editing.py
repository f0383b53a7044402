"""Edits of a workflow's text: the value changes, every other line stays byte for byte."""

from __future__ import annotations

import difflib

import pytest

from openry.errors import BadFileError, NotFoundError
from openry.orchestrator.canonical import dump
from openry.orchestrator.editing import (
    insert_step,
    load_document,
    remove_step,
    remove_value,
    replace_step,
    set_value,
)
from openry.orchestrator.loader import load

TEXT = """\
# a head
name: demo   # keep this

sub_steps:
  # what one does
  - id: one
    kind: shell     # why
    command: |
      echo 1

      echo 2   # no comment

    timeout_seconds: 5 # seconds
    args: {x: 1, y: [1,2]}
    validation:
      - type: file_exists   # must be
        path: out.txt
      - {type: file_exists, path: b}

  # what two does
  - id: two
    kind:   agent
    description: "hi  there"
    payload_keys:
    - a
    - b
    agent:
      model: m
# a tail
x-foo: 1
"""


def changes(new: str, old: str = TEXT) -> list[str]:
    lines = difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


@pytest.mark.parametrize(
    ("step", "path", "value", "diff"),
    [
        ("one", "timeout_seconds", 9, ["-    timeout_seconds: 5 # seconds",
                                       "+    timeout_seconds: 9 # seconds"]),
        ("one", "command", "echo hi", ["-    command: |", "-      echo 1", "-",
                                       "-      echo 2   # no comment", "+    command: echo hi"]),
        ("two", "description", "a\nb\n", ['-    description: "hi  there"', "+    description: |",
                                          "+      a", "+      b"]),
        ("one", "on_failure", "retry", ["+    on_failure: retry"]),
        ("one", ("validation", 1, "path"), "c", ["-      - {type: file_exists, path: b}",
                                                 "+      - type: file_exists", "+        path: c"]),
        ("one", ("validation", 0, "path"), "c.txt", ["-        path: out.txt",
                                                     "+        path: c.txt"]),
        ("one", ("validation", 2), {"type": "sorted", "path": "x"},
         ["+      - type: sorted", "+        path: x"]),
        ("two", ("agent", "temperature"), 0.5, ["+      temperature: 0.5"]),
        ("two", ("payload_keys", 2), "yes", ['+    - "yes"']),
        ("two", ("payload_keys", 0), "z", ["-    - a", "+    - z"]),
        ("two", ("env", "A"), "1", ["+    env:", '+      A: "1"']),
        ("two", "id", "deux", ["-  - id: two", "+  - id: deux"]),
        ("two", "kind", "shell", ["-    kind:   agent", "+    kind: shell"]),
        ("two", "inherit_payload", True, ["+    inherit_payload: true"]),
        ("two", "payload_keys", [], ["-    payload_keys:", "-    - a", "-    - b",
                                     "+    payload_keys: []"]),
    ],
)  # fmt: skip
def test_a_value_is_set_and_nothing_else(step, path, value, diff):
    """The diff is the value's own lines; comments behind a value stay."""
    assert changes(set_value(TEXT, step, path, value)) == diff


@pytest.mark.parametrize(
    ("step", "path", "diff"),
    [
        ("one", "args", ["-    args: {x: 1, y: [1,2]}"]),
        ("one", ("validation", 1), ["-      - {type: file_exists, path: b}"]),
        ("one", ("validation", 0), ["-      - type: file_exists   # must be",
                                    "-        path: out.txt"]),
        ("two", ("payload_keys", 0), ["-    - a"]),
        ("two", "agent", ["-    agent:", "-      model: m"]),
        ("one", "nothing", []),
        ("one", ("validation", 7), []),
    ],
)  # fmt: skip
def test_a_value_is_removed_and_nothing_else(step, path, diff):
    """Only the value's lines go; what is not there is left alone."""
    assert changes(remove_value(TEXT, step, path)) == diff


def test_a_step_is_put_between_others():
    """New steps are written in canonical form, parted as the others are."""
    step = {"command": "date", "kind": "shell", "id": "new"}
    lines = ["+  - id: new", "+    kind: shell", "+    command: date"]

    assert changes(insert_step(TEXT, "one", step)) == [*lines, "+"]
    assert changes(insert_step(TEXT, None, step)) == [*lines, "+"]
    assert changes(insert_step(TEXT, "two", step)) == ["+", *lines]


def test_a_step_is_replaced_under_its_comments():
    """The comment above a step and everything behind it stay."""
    new = replace_step(TEXT, "two", {"id": "two", "kind": "shell", "command": "x"})

    assert changes(new)[-2:] == ["+    kind: shell", "+    command: x"]
    assert "  # what two does\n  - id: two\n    kind: shell\n    command: x\n# a tail\n" in new


def test_a_step_is_removed_with_the_comment_above_it():
    """What parted it from the next goes too."""
    first, second = remove_step(TEXT, "one"), remove_step(TEXT, "two")

    assert "sub_steps:\n  # what two does\n  - id: two\n" in first
    assert "      - {type: file_exists, path: b}\n# a tail\n" in second
    with pytest.raises(BadFileError, match="`two` is the only step"):
        remove_step(first, "two")


def test_a_text_that_keeps_its_line_ends_is_not_grown():
    """Behind a `|+` block a blank line would be content; none is put there."""
    text = "sub_steps:\n  - id: a\n    command: |+\n      x\n\n  - id: b\n    command: y\n"
    new = insert_step(text, "a", {"id": "c", "command": "z"})

    steps = load_document(new).data["sub_steps"]
    assert [step["command"] for step in steps] == ["x\n\n", "z", "y"]


def test_line_ends_and_a_byte_order_mark_stay():
    """A file from another system is edited in its own line ends."""
    text = "\ufeff" + TEXT.replace("\n", "\r\n")
    new = set_value(text, "one", "command", "a\nb\n")

    assert new.startswith("\ufeff# a head\r\n")
    assert new.count("\n") == new.count("\r\n")
    mine = new.removeprefix("\ufeff").replace("\r\n", "\n")
    assert mine == set_value(TEXT, "one", "command", "a\nb\n")


def test_a_file_without_a_last_newline_can_grow():
    """Nothing is glued to the last line."""
    text = "sub_steps:\n  - id: a\n    description: x"

    assert insert_step(text, "a", {"id": "b", "description": "z"}) == (
        "sub_steps:\n  - id: a\n    description: x\n  - id: b\n    description: z"
    )
    assert set_value(text, "a", "on_failure", "retry") == f"{text}\n    on_failure: retry"


@pytest.mark.parametrize(
    "text",
    [
        "sub_steps: [{id: a, description: x}, {id: b, description: y}]\n",
        "sub_steps:\n- {id: a, description: x}\n- {id: b, description: y}\n",
        "sub_steps:\n-\n  id: a\n  description: x\n-   id: b\n    description: y\n",
        '{"sub_steps": [{"id": "a", "description": "x"}, {"id": "b", "description": "y"}]}\n',
    ],
)
def test_other_ways_of_writing_are_edited_too(text):
    """Flow style, JSON and odd dashes: the result says what it must."""
    if text.startswith("{"):
        with pytest.raises(BadFileError):
            set_value(text, "a", "description", "new")
        return
    edited = [
        set_value(text, "a", "description", "new"),
        set_value(text, "b", ("env", "K"), "v"),
        insert_step(text, "a", {"id": "c", "description": "z"}),
        remove_step(text, "a"),
        replace_step(text, "b", {"id": "b", "description": "w"}),
        remove_value(set_value(text, "a", "note", "n"), "a", "note"),
    ]

    assert [load(new).errors for new in edited] == [()] * len(edited)


def test_anchors_are_not_cut_through():
    """An alias is replaced where it stands; what would break another step is refused."""
    text = (
        "x-base: &b {kind: shell}\nsub_steps:\n  - <<: *b\n    id: a\n    command: &c ls\n"
        "  - <<: *b\n    id: b\n    command: *c\n"
    )

    new = set_value(text, "b", "command", "pwd")
    assert changes(new, text) == ["-    command: *c", "+    command: pwd"]
    own = set_value(text, "b", "kind", "agent")
    assert load_document(own).data["sub_steps"][0]["kind"] == "shell"
    with pytest.raises(BadFileError, match="the edit cannot be made here"):
        set_value(text, "a", "command", "pwd")


def test_what_is_not_there_is_named():
    """An unknown step, an unreadable text, a place past the end."""
    with pytest.raises(NotFoundError, match="no step is called `three`"):
        set_value(TEXT, "three", "x", 1)
    with pytest.raises(BadFileError, match="not valid YAML"):
        set_value("a: b: c", "x", "y", 1)
    with pytest.raises(BadFileError, match="no list of `sub_steps`"):
        load_document("name: x\n")
    with pytest.raises(BadFileError, match="no place `9`"):
        set_value(TEXT, "one", ("validation", 9), {})


def test_a_canonical_file_is_stable_and_plain_to_read():
    """Keys in their order, quotes only where they must be, long texts as blocks."""
    data = {
        "sub_steps": [
            {"command": "echo 1\necho 2\n", "id": "a", "kind": "shell", "payload_keys": ["x", "on"],
             "validation": [{"path": "out: 1.txt", "type": "file_exists"}], "zz": {}, "env": {}},
            {"id": "b", "description": "say: {{ payload.x }}", "retry_backoff_seconds": 1.5},
        ],
        "version": "1.10",
        "name": "demo",
    }  # fmt: skip

    assert (
        dump(data)
        == """\
name: demo
version: "1.10"
sub_steps:
  - id: a
    kind: shell
    command: |
      echo 1
      echo 2
    payload_keys: [x, "on"]
    validation:
      - type: file_exists
        path: "out: 1.txt"
    env: {}
    zz: {}

  - id: b
    description: "say: {{ payload.x }}"
    retry_backoff_seconds: 1.5
"""
    )
