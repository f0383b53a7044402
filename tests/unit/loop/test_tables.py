"""Figures by group, and comparisons, as plain Python computes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loop import tables
from loop.means import _UNSAID

COUNT = {"by": "town", "function": "count", "reverse": True}


def test_a_table_without_rows_has_no_best_group():
    """That is a question to a person, no mistake of ours."""
    with pytest.raises(tables.OpenQuestionError, match="there is no group"):
        tables.top_group("town,km\n", COUNT)


@pytest.mark.parametrize("town", ["Bad\nAibling", 'the "old", one', "a,b"])
def test_the_best_group_may_be_called_anything(town):
    """Line ends, commas and quotes are its name, not our form."""
    cell = '"' + town.replace('"', '""') + '"'
    text = f"town,km\n{cell},1\n{cell},2\nRome,3\n"

    assert tables.top_group(text, COUNT).decode() == f"{town}\n"
    args = {"by": "town", "function": "sum", "column": "km", "order": "count"}
    with pytest.raises(tables.OpenQuestionError, match="equal figures"):
        tables.grouped(text, args)
    assert f"{cell},2\n" in tables.grouped(text, COUNT).decode()


@given(st.text("ab .\t", max_size=6), st.text("ab.", min_size=1, max_size=3))
@example("abc ", "abc")
def test_an_expression_for_what_only_one_can_say_means_the_same(cell, wanted):
    """White space round a cell is nobody's."""
    for op, expression in _UNSAID.items():
        found = re.search(expression.format(re.escape(wanted)), cell) is not None
        assert found is tables.TEXT_TESTS[op](cell.strip(), wanted), op
