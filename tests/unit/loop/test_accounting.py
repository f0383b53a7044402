"""What a plan makes nothing of is named."""

from __future__ import annotations

import pytest

from loop.accounting import unaccounted
from loop.mentions import find_mentions
from loop.values import FileInfo, Survey
from openry.capability.registry import load_registry

SURVEY = Survey(".", (FileInfo("a.log", 9, "text"), FileInfo("t.csv", 9, "csv")))


def left(task: str, *calls: tuple[str, dict[str, object]]) -> tuple[str, ...]:
    return unaccounted(task, find_mentions(task, SURVEY), calls)


KEEP = ("filter_lines", {"needle": "x"})


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("lines of a.log with 'x' after 10:00 to o.txt", "after 10:00"),
        ("lines of a.log with 'x' before 2026-03-01 to o.txt", "before 2026-03-01"),
        ("the first 3 lines of a.log that have 'x' to o.txt", "first 3"),
        ("lines of a.log that say 'x' exactly twice to o.txt", "exactly twice"),
        ("lines with 'x' at least 2 times in a.log to o.txt", "at least"),
        ("lines of a.log with 'x', ignoring case, to o.txt", "ignoring case"),
        ("lines of a.log with the exact word 'x' to o.txt", "exact word"),
        ("every second line with 'x' of a.log to o.txt", "every second line"),
        ("lines of a.log starting with 'x' to o.txt", "starting with"),
        ("lines of a.log with 'x' or 'y' to o.txt", "or 'y'"),
        ("lines of a.log with 'x' written on weekdays to o.txt", "on weekdays"),
        ("lines of a.log with 'x', sorted by last name, to o.txt", "by last name"),
        ("lines with 'x' of a.log except the empty ones to o.txt", "except"),
        ("lines of a.log with 'x' between 5 and 9 to o.txt", "between 5 and 9"),
        ("delete the lines of a.log with 'x', rest to o.txt", "delete the lines"),
        ("remove the last word of each line of a.log", "remove the last word"),
        ("the lines of a.log after the first two to o.txt", "after the first"),
        ("the first two and the last two lines of a.log to o.txt", "first two and the last"),
        ("the second and third column of t.csv to o.csv", "second and third column"),
        ("the sum and the average of age in t.csv to o.txt", "sum and the average"),
        ("the number of lines and words of a.log to o.txt", "lines and words"),
        ("lines of a.log without x and without y to o.txt", "without x and without"),
    ],
)
def test_a_condition_that_no_call_minds_is_named(task, named):
    assert named in left(task, KEEP)


@pytest.mark.parametrize(
    ("task", "call"),
    [
        ("the lines of a.log with 'x' to o.txt", KEEP),
        ("lines of a.log, ignoring case", ("filter_lines", {"ignore_case": True})),
        ("the first 3 lines of a.log to o.txt", ("first_lines", {"count": 3})),
        ("rows of t.csv with age over 30 to o.csv", ("csv_filter", {"value": "30", "op": ">"})),
        ("each line of a.log once, to o.txt", ("unique_lines", {})),
        ("drop the empty lines of a.log, one file o.txt", ("remove_empty_lines", {})),
        ("lines 2 to 5 of a.log", ("line_range", {"start": 2, "end": 5})),
        ("sort a.log in descending order", ("sort_lines", {"reverse": True})),
        ("the second column of t.csv to o.txt", ("csv_column", {"column": 2})),
        ("delete the lines of a.log with 'x'", ("remove_lines", {"needle": "x"})),
        ("drop the first two lines of a.log", ("skip_lines", {"count": 2})),
        ("remove the duplicate lines of a.log", ("unique_lines", {})),
        ("remove the rows of t.csv under 30", ("csv_filter", {"value": "30", "op": ">="})),
        ("first name and last name of t.csv", ("csv_columns", {"columns": ["a", "b"]})),
        ("the sum of age to s.txt and the average to m.txt", ("csv_aggregate", {})),
    ],
)  # fmt: skip
def test_what_left_a_trace_in_a_call_is_not_named(task, call):
    assert left(task, call) == ()


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("Translate a.log into Spanish, o.txt", {"Translate", "Spanish"}),
        ("Keep the polite lines of a.log with 'x' in o.txt", {"polite"}),
        ("Please put all those lines of a.log that contain 'x' into a new file o.txt", set()),
        ("Extract every line mentioning 'x' from a.log and store it as o.txt", set()),
    ],
)
def test_a_word_that_no_tool_of_the_plan_is_asked_with_is_named(task, named):
    """Words that say nothing, and the tool's own, are no condition."""
    tools = {tool.name: tool for tool in load_registry().everyday()}

    assert set(unaccounted(task, find_mentions(task, SURVEY), [KEEP], tools)) == named


def test_two_calls_share_the_conditions():
    calls = (KEEP, ("first_lines", {"count": 3}))

    assert left("the first 3 lines of a.log that have 'x' to o.txt", *calls) == ()
