"""Where a task may be cut, and which fragments are no operation of their own."""

from __future__ import annotations

import pytest

from loop.mentions import find_mentions
from loop.segments import belongs_to_last, boundaries, segmentations
from loop.values import Survey

NOTHING = Survey("", ())


def ways(text: str) -> list[list[str]]:
    cuts = boundaries(text, find_mentions(text, NOTHING))
    return [
        [text[f.start : f.end] for f in fragments] for fragments, _ in segmentations(text, cuts)
    ]


def test_every_way_to_cut_is_offered():
    """Two places to cut make four ways, the whole sentence among them."""
    text = "sort a.txt into b.txt; count b.txt, then show it"

    assert len(ways(text)) == 4
    assert [text] in ways(text)
    assert ["sort a.txt into b.txt", "count b.txt", "show it"] in ways(text)


@pytest.mark.parametrize(
    "text",
    ["keep 'one; two, three and four' of a.txt", 'lines with "a. Then b" in a.txt'],
)
def test_quoted_text_is_never_cut(text):
    """Signs and words inside of quotation marks part nothing."""
    assert ways(text) == [[text]]


@pytest.mark.parametrize(
    "text",
    [
        "先排序 a.txt 存为 b.txt，然后统计行数",
        "sort a.txt, and then count it",
        "sort a.txt. Count it",
    ],
)
def test_a_sequence_is_marked(text):
    """A fragment after `then`, a full stop or 然后 goes on with what was made."""
    cuts = boundaries(text, find_mentions(text, NOTHING))
    fragments = max((f for f, _ in segmentations(text, cuts)), key=len)

    assert fragments[-1].sequel


def test_at_most_seven_places_are_tried():
    """A long list does not explode."""
    text = ", ".join(f"word{n} more" for n in range(30))

    assert len(ways(text)) == 2**7


@pytest.mark.parametrize(
    "words",
    [
        "save it as",
        "and put the result in",
        "write them to",
        "结果保存到",
        "highest first",
        "the largest at the top",
        "in alphabetical order",
        "most frequent first",
        "from a to z",
    ],
)
def test_saving_and_describing_belong_to_what_was_before(words):
    """They say where a result goes or how it looks, not what is done."""
    assert belongs_to_last(words)


@pytest.mark.parametrize(
    "words",
    [
        "sort it",
        "count them",
        "the largest to",
        "the average in",
        "the last line",
        "统计行数",
        "put the number of lines in",
        "upper case",
    ],
)
def test_an_operation_stands_for_itself(words):
    """However short."""
    assert not belongs_to_last(words)
