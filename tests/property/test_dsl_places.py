"""Placing values in shell lines that nobody would write."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.orchestrator.shell_places import marker, place

BITS = st.sampled_from(
    [
        "'", '"', "`", "$(", ")", "${", "}", "$((", "))", "((", "(", "<<E\n", "\nE\n", "<<'E'\n",
        "<(", "$'", '$"', "\\", "\n", " ", ";", "|", "&", "#", "case x in ", "esac", "a)", ";;",
        "[[",
        "]]", "-eq", "x", "=", "[", "]", "$", "eval ", "sh -c ", "awk ", "{", "for ", "do ", "done",
        ">", "<<<", "1",
    ]
)  # fmt: skip
LINES = st.lists(st.one_of(BITS, st.just("@"), st.text(max_size=3)), max_size=30)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(LINES)
def test_only_the_markers_change(parts):
    """Every other character stays; a marker becomes a reference, or is complained of."""
    numbered = [marker(n) if part == "@" else part for n, part in enumerate(parts)]
    text = "".join(numbered)
    placed = place(text, "V")
    refused = {trouble.number for trouble in placed.troubles}
    wanted = {n for n, part in enumerate(parts) if part == "@"}
    referred = {int(n) for n in re.findall(r"\$\{V(\d+)\}", placed.text)}

    assert wanted <= refused | referred
    if not refused:
        back = re.sub(
            r"(?:'\"|\")?\$\{V(\d+)\}(?:\"'|\"\$'|\")?", lambda m: marker(int(m[1])), placed.text
        )
        plain = re.sub("[\"'$]", "", text)
        assert re.sub("[\"'$]", "", back) == plain


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(BITS, max_size=40))
def test_a_line_without_values_is_returned_as_it_is(parts):
    """Whatever the brackets, nothing is added, lost or complained of."""
    text = "".join(parts)
    placed = place(text)

    assert (placed.text, placed.troubles) == (text, [])


@pytest.mark.parametrize(
    "unit", ["$(", '"$(', "`", "${", "$((", "'", '"', "<<E\n", "a|", "((", "x=", "case x in a) "]
)
def test_scanning_is_linear(unit):
    """A hundred thousand brackets that never close cost no more than their length."""
    text = unit * (100_000 // len(unit)) + marker(1)
    started = time.process_time()
    place(text)

    assert time.process_time() - started < 3
