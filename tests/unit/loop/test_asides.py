"""What a sentence says besides its chore: reasons go, what narrows the chore stays."""

from __future__ import annotations

import pytest

from loop.mentions import find_mentions
from loop.values import FileInfo, Survey
from loop.wording import readings

SURVEY = Survey(".", (FileInfo("shop.txt", 9, "text"), FileInfo("guests.csv", 9, "text")))


def kinds(text: str) -> list[list[str]]:
    return [[op.kind for op in ops] for ops in readings(text, find_mentions(text, SURVEY))]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "So that I can find people faster, please sort shop.txt alphabetically into a.txt",
            "sort",
        ),
        ("Our slogan needs to shout. Take shop.txt and convert it to capitals, b.txt", "upper"),
        (
            "Would you mind extracting the 'tea' lines from shop.txt? Put them in t.txt",
            "keep_lines",
        ),
        ("Make a.txt from shop.txt by putting its lines in alphabetical order", "sort"),
        ("Using shop.txt as the source, make a.txt with the last 3 lines of it", "last"),
        ("The first 4 lines of shop.txt go to a.txt; leave shop.txt itself alone", "first"),
    ],
)
def test_reasons_and_what_goes_without_saying_are_left_out(text: str, kind: str) -> None:
    """The chore alone is understood, and only one chore."""
    found = kinds(text)

    assert found
    assert {ops[-1] for ops in found} == {kind}


@pytest.mark.parametrize(
    "text",
    [
        "Because the first line is a title, sort shop.txt into b.txt",
        "Sort shop.txt into b.txt because I need the longest first",
        "I need only the german ones. Write the city column of guests.csv to c.txt",
        "Keep the first lines of shop.txt with 'tea' in t.txt",
        "The first 3 lines of shop.txt and the last one to b.txt",
        "Count the lines of shop.txt with TEA in lower case into n.txt",
        "In shop.txt replace tea with chai and coffee with mocha, into b.txt",
        "Capitalise every word of shop.txt in b.txt",
    ],
)
def test_what_narrows_the_chore_is_never_left_out(text: str) -> None:
    """A reason with a word of the chore in it may be part of it: then nothing is understood."""
    assert kinds(text) == []
