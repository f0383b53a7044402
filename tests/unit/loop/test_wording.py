"""The second reader: its own examples are understood, its counter-examples never."""

from __future__ import annotations

import pytest

from loop.lexicon import Lexicon, Rule, all_patterns, lexicons
from loop.mentions import find_mentions
from loop.reference import OpenQuestionError, expected
from loop.values import FileInfo, Survey
from loop.wording import Op, readings, understand

NAMES = ("shop.txt", "sums.txt", "guests.csv", "goods.json", "app.json", "rooms.csv")
SURVEY = Survey(".", tuple(FileInfo(name, 9, "text") for name in NAMES))
RULES = [(lexicon, rule) for lexicon in lexicons() for rule in lexicon.rules]
EXAMPLES = [(lx, rule, text) for lx, rule in RULES for text in rule.examples]
NEVER = [(rule, text) for _, rule in RULES for text in rule.never]
#: Kinds that are told apart only when input and output are known, or that stand for another.
BECOMES = {"convert": {"json_to_csv", "csv_to_json"}, "unique_sorted": {"sort"}}
BECOMES["join"] = {"join", "stack"}  # tables may well have one heading


def said(text: str) -> tuple[tuple[Op, ...], ...]:
    return readings(text, find_mentions(text, SURVEY))


@pytest.mark.parametrize("lexicon", lexicons(), ids=lambda lexicon: lexicon.name)
def test_every_pattern_can_be_read(lexicon: Lexicon) -> None:
    """Brackets close, word groups exist, and each rule shows two sentences of its own."""
    for pattern in all_patterns(lexicon):
        lexicon.grammar.node(pattern)
    assert [rule.kind for rule in lexicon.rules if len(rule.examples) < 2] == []


@pytest.mark.parametrize(
    ("lexicon", "rule", "text"), EXAMPLES, ids=lambda x: x if isinstance(x, str) else ""
)
def test_examples_are_understood(lexicon: Lexicon, rule: Rule, text: str) -> None:
    """One of the readings ends in the rule's kind with the rule's settings."""
    wanted = BECOMES.get(rule.kind, {rule.kind})

    found = [ops[-1] for ops in said(text)]

    args = {key: value for key, value in rule.args.items() if key != "turned"}  # a note, no setting
    assert any(op.kind in wanted and args.items() <= op.args.items() for op in found), found


@pytest.mark.parametrize(("rule", "text"), NEVER, ids=lambda x: x if isinstance(x, str) else "")
def test_counter_examples_are_never_taken_for_the_rule(rule: Rule, text: str) -> None:
    """What only resembles a rule is not understood as it; silence is always right."""
    found = [op for ops in said(text) for op in ops if op.kind == rule.kind]

    assert not [op for op in found if rule.args.items() <= op.args.items()]


@pytest.mark.parametrize(
    "text",
    [
        "Keep every second line of shop.txt in b.txt",
        "Keep the lines of shop.txt with at most 3 words in b.txt",
        "Copy shop.txt except the first line and the last into b.txt",
        "Keep lines with 'a' from shop.txt unless they are long, in b.txt",
        "Sort shop.txt by the last letter into b.txt",
        "Sort shop.txt alphabetically ignoring the first word into b.txt",
        "Count the lines of shop.txt that contain more than 5 letters into b.txt",
        "Remove all but the first 3 lines of shop.txt, into b.txt",
        "Do not remove the empty lines of shop.txt, b.txt",
        "Remove the lines with 'a' from shop.txt into b.txt but keep the first",
        "The sum of the positive numbers of sums.txt to b.txt",
        "The largest number of sums.txt below 100 to b.txt",
        "Replace 'a' with 'b' in shop.txt only once, into b.txt",
        "Save the first 3 lines of shop.txt to b.txt twice",
        "Keep lines containing numbers from shop.txt in b.txt",
        "Keep lines containing 'a' and 'b' from shop.txt in b.txt",
        "Find the lines with 'a' in shop.txt and write the number to b.txt",
        "Sort each line of shop.txt alphabetically into b.txt",
        "Swap 'a' with 'b' in shop.txt into c.txt",
        "Take out the lines with 'a' from shop.txt into b.txt",
        "Move the lines with 'a' from shop.txt to b.txt",
        "Filter the lines with 'a' from shop.txt into b.txt",
        "Keep the lines with 'a' from shop.txt and save the sorted list in b.txt",
        "Reverse the letters of each line of shop.txt into b.txt",
        "The first 3 words of each line of shop.txt to b.txt",
        "Lines of shop.txt with only tea to b.txt",
        "Remove the lines with 'a' from shop.txt, save them to b.txt",
        "Remove the first line of shop.txt and save it to b.txt",
        "Drop the blank lines of shop.txt and count them in n.txt",
        "Sort sums.txt numerically and keep the top 3 in b.txt",
        "Sort guests.csv by age and name into b.csv",
        "Keep the rows of guests.csv where age is over 30 or nearly 30 in b.csv",
        "The average of the age column of guests.csv per city to b.txt",
        "把 shop.txt 中差不多以“茶”开头的行存到 b.txt",
        "把 shop.txt 里每隔一行的内容存到 b.txt",
        "除了第一行，把 shop.txt 的行存到 b.txt",
    ],
)
def test_what_says_more_is_not_understood(text: str) -> None:
    """A word without a place means silence."""
    assert said(text) == ()


def test_the_header_is_open_until_the_sentence_settles_it() -> None:
    """`column` leaves the heading open; a remark at any place settles it."""
    (plain,) = understand_("The city column of guests.csv to c.txt")
    (dropped,) = understand_("The city column of guests.csv, without the heading, to c.txt")

    assert {way["heading"] for way in plain.open} == {"kept", "dropped"}
    assert [way["heading"] for way in dropped.open] == ["dropped"]


def test_a_table_made_of_a_table_keeps_its_header_and_a_text_leaves_it_open() -> None:
    """A table made of a table keeps its heading; of rows in a text nobody said whether it comes."""
    (rows,) = understand_("Rows of guests.csv with age over 30 to old.csv")
    (listed,) = understand_("Rows of guests.csv with age over 30 to old.txt")
    (kept,) = understand_("Rows of guests.csv with age over 30, header kept, to old.csv")
    (ordered,) = understand_("Sort guests.csv by age into s.csv")

    assert {way["heading"] for way in rows.open} == {"kept"}
    assert {way["heading"] for way in listed.open} == {"kept", "dropped"}
    assert {way["heading"] for way in kept.open} == {"kept"}
    assert {way["heading"] for way in ordered.open} == {"kept"}


@pytest.mark.parametrize(
    ("task", "headings"),
    [
        ("Join guests.csv and rooms.csv into all.csv", ["once", "each"]),
        ("Join guests.csv and rooms.csv into all.csv, the header only once", ["once"]),
        ("Join guests.csv and rooms.csv into all.csv with a single header row", ["once"]),
        ("Join guests.csv and rooms.csv into all.csv without repeating the header", ["once"]),
        ("Join guests.csv and rooms.csv, which have the same header, in all.csv", ["once", "each"]),
        ("Join guests.csv and rooms.csv into all.csv, each with its header", ["each"]),
        ("Join guests.csv and rooms.csv into all.txt with one header", ["once"]),
        (
            "Put the rows of rooms.csv below those of guests.csv in all.csv. The header, which "
            "both share, must appear only once, at the top.",
            ["once"],
        ),
        (
            "all.csv: the header once at the top, then the rows of guests.csv, then those of "
            "rooms.csv",
            ["once"],
        ),
        (
            "guests.csv and rooms.csv have the same header. Join them into all.csv, the header "
            "line, which both have, must not be repeated.",
            ["once"],
        ),
        ("把 guests.csv 和 rooms.csv 合并成 all.csv，表头只保留一次", ["once"]),
        ("把 guests.csv 和 rooms.csv 合并成 all.csv", ["once", "each"]),
    ],
)
def test_tables_one_below_the_other_leave_their_heading_open(task, headings) -> None:
    """Until it is said whether it stands once or in each."""
    (op,) = understand_(task)

    assert (op.kind, op.inputs) == ("stack", ("guests.csv", "rooms.csv"))
    assert [way["heading"] for way in op.open] == headings


def test_all_files_of_a_list_are_joined() -> None:
    """None of them is taken for something else that is read."""
    (op,) = understand_("将 shop.txt、sums.txt、guests.csv 合并到 b.txt")

    assert op.inputs == ("shop.txt", "sums.txt", "guests.csv")


@pytest.mark.parametrize(
    "task",
    [
        "Join shop.txt and sums.txt into b.txt, the header only once",
        "Join guests.csv and rooms.csv into b.csv without the header of the first file",
        "Join guests.csv and rooms.csv into b.csv, the header twice",
        "Join guests.csv and rooms.csv into b.csv with the header not only once",
        "Join guests.csv and rooms.csv into b.csv; they do not have the same columns",
        "Keep the rows of guests.csv with age over 30 in b.csv, the header only once",
        "把 guests.csv 和 rooms.csv 合并成 b.csv，表头保留两次",
        "把 guests.csv 和 rooms.csv 合并成 b.csv，不要表头",
    ],
)
def test_a_heading_that_cannot_be_meant_so_is_not_understood(task) -> None:
    """Text has none, `without` is not `once`, and one table has it once anyway."""
    assert said(task) == ()


def test_a_bare_word_is_open_in_case_and_extent_and_a_quoted_one_is_not() -> None:
    (bare,) = understand_("Keep the lines with tea from shop.txt in t.txt")
    (quoted,) = understand_("Keep the lines with 'tea' from shop.txt in t.txt")

    assert len(bare.open) == 4
    assert quoted.open == ({},)


def test_after_a_number_it_means_the_file_that_was_counted() -> None:
    ops = understand_("Count the words of shop.txt into n.txt and put its last two lines in l.txt")

    assert [op.inputs for op in ops] == [("shop.txt",), ("shop.txt",)]


def test_after_lines_it_means_the_lines() -> None:
    ops = understand_("Keep the lines with 'tea' of shop.txt in t.txt, then count them in n.txt")

    assert [op.inputs for op in ops] == [("shop.txt",), ("t.txt",)]


def test_a_target_only_said_at_the_end_is_the_last_step_s() -> None:
    ops = understand_("Make shop.txt all lower case, sort the lines alphabetically, save as s.txt")

    assert [op.kind for op in ops] == ["lower", "sort"]
    assert ops[0].output == ops[1].inputs[0]


def test_the_rest_is_only_what_remains_after_taking_away() -> None:
    """`save the rest` after keeping lines would mean the others: not understood."""
    assert said("Keep the lines with 'tea' of shop.txt and save the rest to r.txt") == ()


def understand_(text: str) -> tuple[Op, ...]:
    return understand(text, find_mentions(text, SURVEY))


@pytest.mark.parametrize(
    "task",
    [
        "Count the lines of shop.txt that contain the word TEA into n.txt",
        "Count the lines of shop.txt with the word 'tea' and save the number to n.txt",
        "Remove the lines of shop.txt with the word 'tea' and save the rest to n.txt",
        "Replace the word 'tea' with 'rye' in shop.txt and save to n.txt",
        "Save the first line of shop.txt with the word 'tea' to n.txt",
        "Save the last 2 lines of shop.txt with the word 'tea' to n.txt",
    ],
)
def test_a_word_that_may_be_part_of_another_is_an_open_question(task: str) -> None:
    """Where no longer word has it inside, both ways give the same; where one has, nobody knows."""
    needle = b"TEA" if "TEA" in task else b"tea"
    apart = b"a %b\nrye\nb %b\n" % (needle, needle)
    inside = b"s%bk\nrye\na %b\nb %b\n%bs\n" % (needle, needle, needle, needle)

    (ops,) = said(task)

    assert expected(ops, {"shop.txt": apart})["n.txt"]
    with pytest.raises(OpenQuestionError, match="whole_word"):
        expected(ops, {"shop.txt": inside})
