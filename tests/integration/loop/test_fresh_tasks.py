"""Everyday tasks in other people's words, with the right results hidden from the loop.

`fresh_readme_*`: by writers who saw only the README, each set kept before it was run; `fresh_*`:
by those who extended the reading. What was right once stays right, and nothing wrong is ever
called strong. Tasks that were never right are no part of the counts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from loop import start
from loop.bench import Case, Score, read_suite, score

pytestmark = pytest.mark.sandbox

DATA = Path(__file__).parents[2] / "data"
SAMPLED = 17  # of all tasks each 17th is in the quick run
#: How many of each set were right when the reading was last extended.
RIGHT = {
    "fresh_first": 55,
    "fresh_second": 26,
    "fresh_third": 17,
    "fresh_readme_first": 50,
    "fresh_readme_second": 53,
    "fresh_readme_third": 50,
    "fresh_readme_fourth": 56,
    "fresh_readme_fifth": 56,
    "fresh_readme_sixth": 56,
    "fresh_readme_seventh": 56,
    "fresh_readme_eighth": 53,
}


@pytest.fixture(scope="module")
def scored():
    """Runs tasks, all with one set of tools and models."""
    with start.kit(scratch=True) as kit:
        yield lambda cases: [score(kit, case, "full") for case in cases]


def called_strong_and_wrong(scores: list[Score]) -> list[str]:
    """The tasks that were said to be done strongly though they were not."""
    return [
        f"{one.id}: {one.wrong}" for one in scores if one.silent_wrong and one.strength == "strong"
    ]


def test_nothing_wrong_is_called_strong(scored) -> None:
    """A sample of all sets."""
    cases: list[Case] = [case for name in RIGHT for case in read_suite(DATA / f"{name}.jsonl")]

    assert called_strong_and_wrong(scored(cases[::SAMPLED])) == []


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
def test_what_was_right_stays_right(scored, name: str) -> None:
    scores = scored(read_suite(DATA / f"{name}.jsonl"))

    assert called_strong_and_wrong(scores) == []
    assert sum(one.right for one in scores) >= RIGHT[name], [s.wrong for s in scores if s.wrong]
