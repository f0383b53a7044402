"""What a sentence names: files, quoted texts, numbers, kinds of files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from loop.mentions import Kind, Mention, find_mentions
from loop.survey import survey
from loop.values import Survey


@pytest.fixture
def folder(tmp_path: Path) -> Survey:
    for name in ("pears.txt", "my list.txt", "账单.txt", "data/deep.csv", "Makefile"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a,b\n1,2\n")
    return survey(tmp_path)


def named(text: str, folder: Survey, *kinds: Kind) -> list[object]:
    return [m.value for m in find_mentions(text, folder) if m.kind in kinds]


def target(text: str, folder: Survey) -> list[str]:
    return [m.text for m in find_mentions(text, folder) if m.is_target]


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("lines with 'red wine' in pears.txt", ["red wine"]),
        ('lines with "it\'s" in pears.txt', ["it's"]),
        ("don't keep Ann's lines of pears.txt", []),
        ("the word “plum” of pears.txt", ["plum"]),
        ("把 pears.txt 里的「梨」找出来", ["梨"]),
        ("lines with `x = 1`", ["x = 1"]),
        ("put '' before each line", []),
    ],
)
def test_quotes_hold_texts_and_apostrophes_do_not(text, literals, folder):
    """Every kind of quotation mark opens a text; an apostrophe in a word opens none."""
    assert named(text, folder, Kind.LITERAL) == literals


def test_a_quoted_file_name_with_spaces_is_a_file(folder):
    """Existing or to be written."""
    text = "sort 'my list.txt' into 'my new list.txt'"

    assert named(text, folder, Kind.FILE) == ["my list.txt"]
    assert named(text, folder, Kind.NEW_FILE) == ["my new list.txt"]
    assert target(text, folder) == ["my new list.txt"]


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("把 账单.txt 排序，存到 新账单.txt", "新账单.txt"),
        ("统计 账单.txt 的行数写入 count.txt", "count.txt"),
        ("将账单.txt排序后保存为结果.txt", "结果.txt"),
    ],
)
def test_chinese_names_are_whole(text, new, folder):
    """A new name that ends like an existing one is not taken for it, spaces or none."""
    assert named(text, folder, Kind.FILE) == ["账单.txt"]
    assert named(text, folder, Kind.NEW_FILE) == [new]


@pytest.mark.parametrize(
    "address",
    ["https://example.org/list.txt", "www.example.org/a.csv", "ann@example.com", "a.b@x.co.uk"],
)
def test_addresses_are_no_files(address, folder):
    """Pages and mail addresses are texts, whole, whatever their ends look like."""
    text = f"lines of pears.txt with {address} into out.txt"

    assert named(text, folder, Kind.LITERAL) == [address]
    assert named(text, folder, Kind.FILE, Kind.NEW_FILE) == ["pears.txt", "out.txt"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("the first three lines", [3]),
        ("lines 4 to 10", [4, 10]),
        ("above 3.5", [3.5]),
        ("at least -2", [-2]),
        ("twenty lines", [20]),
        ("取前三行", [3]),
        ("最后二十五行", [25]),
        ("version v2 of part3", []),
        ("put them in one file", []),
    ],
)
def test_numbers_are_digits_or_words(text, numbers, folder):
    """Digits inside of words and `one file` are none."""
    assert named(text, folder, Kind.NUMBER) == numbers


def test_ordinals_count_from_either_end(folder):
    """`last` is -1."""
    text = "the first, the 3rd, the second and the last line"

    assert named(text, folder, Kind.ORDINAL) == [1, 3, 2, -1]


@pytest.mark.parametrize(
    ("text", "glob"),
    [
        ("all *.log here", "*.log"),
        ("every .md file", "*.md"),
        ("the csv files", "*.csv"),
        ("text files", "*.txt"),
        ("所有 csv 文件", "*.csv"),
    ],
)
def test_a_kind_of_file_is_a_pattern(text, glob, folder):
    """However it is said."""
    assert named(text, folder, Kind.EXTENSION) == [glob]


@pytest.mark.parametrize(
    "text",
    [
        "sort pears.txt into x.txt",
        "save the lines of pears.txt to x.txt",
        "sort pears.txt -> x.txt",
        "pears.txt sorted, in a file called x.txt",
        "put the number in x.txt, from pears.txt",
        "pears.txt 排序后存为 x.txt",
    ],
)
def test_what_is_written_is_a_target(text, folder):
    """The new file, not the one that is read."""
    assert target(text, folder) == ["x.txt"]


def test_a_file_without_an_ending_needs_its_exact_name(folder):
    """`Makefile` in quotes is one; in a sentence it may be a word."""
    assert named("count the lines of 'Makefile'", folder, Kind.FILE) == ["Makefile"]
    assert named("makefile lines", folder, Kind.FILE) == []


def test_mentions_do_not_overlap(folder):
    """Each place of a sentence is named once, in order."""
    text = "take 'pears.txt' and data/deep.csv, the 2nd column, *.txt, 3 lines, ann@example.com"
    found = find_mentions(text, folder)

    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(isinstance(m, Mention) and m.start < m.end <= len(text) for m in found)
