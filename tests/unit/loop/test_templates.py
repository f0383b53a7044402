"""Solved tasks as templates, and what is remembered of failures."""

from __future__ import annotations

import pytest

from loop.apply import data_of, dump
from loop.templates import Template, add, filled, find, load_all, remove, skeleton
from openry.errors import NotFoundError, UsageError

TASK = "Count the lines with 'ERROR' in app.log and write the number into count.txt"
FLOW = dump(
    {
        "name": "w",
        "description": TASK,
        "sub_steps": [
            {
                "id": "count",
                "kind": "capability",
                "capability": "count_matching_lines",
                "args": {"path": "app.log", "needle": "ERROR", "output": "count.txt"},
                "validation": [{"type": "file_exists", "path": "count.txt"}],
            }
        ],
    }
)
TEMPLATE = Template("count", TASK, FLOW)


def test_literals_are_what_may_differ():
    """Files, quoted texts and numbers are slots; every other word is the task itself."""
    assert skeleton("Take the first 3 lines of a/b.csv, save 'x' to c.txt.").words == (
        "take the first {number} lines of {file}, save {text} to {file}"
    )


def test_the_same_task_with_other_literals_is_filled_in():
    """Each literal goes where its old one stood, all at once: swapped names do not collide."""
    other = "Count the lines with 'app.log' in count.txt and write the number into ERROR.txt"

    step = data_of(filled(TEMPLATE, other))["sub_steps"][0]

    assert step["args"] == {"path": "count.txt", "needle": "app.log", "output": "ERROR.txt"}
    assert step["validation"][0]["path"] == "ERROR.txt"


@pytest.mark.parametrize(
    "task",
    [
        "Count the words with 'ERROR' in app.log and write the number into count.txt",
        "Count the lines with 'ERROR' in app.log",
        "Count the lines with ERROR in app.log and write the number into count.txt",
    ],
)
def test_another_task_is_not_answered_from_a_template(task):
    """One other word, and it is another task."""
    assert filled(TEMPLATE, task) is None


def test_a_literal_that_meant_two_things_is_left_open():
    """Where one old literal stands for two new ones, nothing is guessed."""
    template = Template("t", "Sort a.txt and save it to a.txt", FLOW)

    assert filled(template, "Sort b.txt and save it to c.txt") is None


def test_templates_come_and_go(tmp_path):
    """Kept, found, listed, forgotten; a taken name and an unknown one are said."""
    add(tmp_path, TEMPLATE)

    assert load_all(tmp_path) == (TEMPLATE,)
    found = find(tmp_path, TASK.replace("app.log", "web.log"))
    assert found is not None
    assert "web.log" in found[1]
    with pytest.raises(UsageError, match="--name"):
        add(tmp_path, TEMPLATE)
    remove(tmp_path, "count")
    with pytest.raises(NotFoundError, match="there are none"):
        remove(tmp_path, "count")


def test_a_template_without_slots_is_refused(tmp_path):
    """It would do the same whatever it is asked."""
    with pytest.raises(UsageError, match="nothing of the task"):
        add(tmp_path, Template("t", "Do it", FLOW))


def test_a_file_that_is_no_template_is_passed_over(tmp_path):
    """Somebody's notes in the folder stop nobody."""
    (tmp_path / "notes.yaml").write_text("- a\n")
    (tmp_path / "half.yaml").write_text("task: x\nworkflow: '['\n")

    assert load_all(tmp_path) == ()
