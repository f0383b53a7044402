"""The text tools against independent computations, on lines of every kind of end and encoding."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.numbers import parse_number, written_number

SOME = settings(max_examples=25, deadline=None)
#: Lines that repeat, differ in case, are blank, hold what programs take for syntax.
WORDS = st.sampled_from(
    ["", " ", "a", "A", "b", "ab", "Ab", "a b", "-n", "*", ".", "ä", "Ä", "大", "1", "10", "#x"]
)
LINES = st.lists(st.one_of(WORDS, st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))))
NEEDLES = st.sampled_from(["a", "A", "b", ".", "*", "-n", " ", "ä", "大", "x|y", "[", "\\", "1"])


def text(lines: list[str], end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


# --- choosing and dropping ----------------------------------------------------------------


@SOME
@given(LINES, NEEDLES)
def test_filtering_and_removing_part_the_lines(call, lines, needle):
    """Every line is in exactly one of the two results, in its order, and in the right one."""
    kept = call("filter_lines", text(lines), needle=needle)
    rest = call("remove_lines", text(lines), needle=needle)

    assert kept == text([line for line in lines if needle in line])
    assert rest == text([line for line in lines if needle not in line])
    assert int(call("count_matching_lines", text(lines), needle=needle)) == kept.count(b"\n")


@SOME
@given(LINES, NEEDLES)
def test_where_and_case_mean_what_they_say(call, lines, needle):
    """Start, end, whole line and letters of any case, as Python's own methods see them."""

    def kept(**flags):
        return call("filter_lines", text(lines), needle=needle, **flags)

    assert kept(where="start") == text([x for x in lines if x.startswith(needle)])
    assert kept(where="end") == text([x for x in lines if x.endswith(needle)])
    assert kept(where="whole") == text([x for x in lines if x == needle])
    ignoring = kept(ignore_case=True)
    assert set(kept().splitlines()) <= set(ignoring.splitlines())
    if needle.isascii():
        lowered = text([x for x in lines if needle.lower() in x.lower() and x.isascii()])
        ascii_only = b"".join(x + b"\n" for x in ignoring.split(b"\n") if x.isascii() and x)
        assert ascii_only == b"".join(x + b"\n" for x in lowered.split(b"\n") if x)


def test_a_word_is_not_a_part_of_a_word(call):
    """`port` is in `port 80`, not in `report`."""
    assert call("filter_lines", b"report\nport 80\n", needle="port", where="word") == b"port 80\n"


@SOME
@given(LINES)
def test_a_regex_means_what_re_means(call, lines):
    """`regex` searches in the line without its end."""
    kept = call("filter_lines", text(lines, "\r\n"), needle="^a?b?$", regex=True)

    assert kept == text([x for x in lines if re.search("^a?b?$", x)], "\r\n")


def test_a_bad_regex_is_told_as_such(call):
    """No traceback, a class that sends it back to the model."""
    with pytest.raises(ToolFailure, match="bad regular expression") as failure:
        call("filter_lines", b"a\n", needle="(", regex=True)
    assert failure.value.error_class == "bad_arguments"


@SOME
@given(LINES, st.integers(1, 6), st.integers(0, 6))
def test_ranges_and_rests_are_slices(call, lines, start, more):
    """Counted from 1, both ends included."""
    whole = text(lines)

    assert call("line_range", whole, start=start, end=start + more) == text(
        lines[start - 1 : start + more]
    )
    assert call("skip_lines", whole, count=more) == text(lines[more:])
    assert call("skip_lines", whole, count=more, where="end") == text(
        lines[: max(0, len(lines) - more)]
    )


@SOME
@given(LINES, st.integers(1, 6), st.integers(1, 4))
def test_a_range_with_a_step_takes_every_so_many_lines(call, lines, start, step):
    """From `start` to the end, one of `step` lines."""
    found = call("line_range", text(lines), start=start, step=step)

    assert found == text(lines[start - 1 :: step])


@pytest.mark.parametrize("step", [{}, {"step": 2}])
def test_a_range_that_ends_before_it_starts_is_a_mistake(call, step):
    """With a step or without: an empty answer would hide it."""
    with pytest.raises(ToolFailure, match=r"`end` \(2\) lies before `start` \(5\)"):
        call("line_range", text(["a"]), start=5, end=2, **step)


@SOME
@given(LINES)
def test_blank_lines_go_and_all_others_stay(call, lines):
    """A line of spaces is blank unless it is asked not to be."""
    spaces = [x for x in lines if x.encode().strip()]

    assert call("remove_empty_lines", text(lines)) == text(spaces)
    assert call("remove_empty_lines", text(lines), spaces_count_as_empty=False) == text(
        [x for x in lines if x]
    )
    assert int(call("count_lines", text(lines), skip_empty=True)) == len(spaces)


@SOME
@given(LINES)
def test_once_repeated_and_tally_agree(call, lines):
    """Distinct lines in first order, their counts, those above one; all from one Counter."""
    counts = Counter(lines)
    tally = call("count_each_line", text(lines)).decode().split("\n")[:-1]

    assert call("unique_lines", text(lines)) == text(list(counts))
    assert call("unique_lines", text(lines), sorted=True) == text(sorted(counts))
    assert call("repeated_lines", text(lines)) == text([x for x in counts if counts[x] > 1])
    assert tally == [f"{counts[x]} {x}" for x in sorted(counts)]
    assert int(call("count_unique_lines", text(lines), skip_empty=False)) == len(counts)


@SOME
@given(LINES, st.integers(1, 4))
def test_the_most_common_come_first(call, lines, count):
    """`descending` sorts by count, then by the line; `count` cuts."""
    counts = Counter(lines)
    wanted = sorted(counts, key=lambda x: (-counts[x], x))[:count]

    got = call("count_each_line", text(lines), descending=True, count=count)

    assert got == text([f"{counts[x]} {x}" for x in wanted])


@SOME
@given(LINES, LINES)
def test_two_lists_are_compared_as_sets(call, lines, others):
    """What only one has, and what both have, whatever the place."""
    first = {"other": text(others)}

    assert call("lines_only_in_first", text(lines), **first) == text(
        [x for x in lines if x not in others]
    )
    assert call("common_lines", text(lines), **first) == text(
        [x for x in dict.fromkeys(lines) if x in others]
    )


@SOME
@given(LINES.filter(bool))
def test_the_longest_and_the_shortest_are_lines_of_that_length(call, lines):
    """Counted in characters, the first of equals, blank ones left out of the shortest."""
    assert call("longest_line", text(lines)) == text([max(lines, key=len)])
    full = [x for x in lines if x.encode().strip()]
    assert call("shortest_line", text(lines)) == (text([min(full, key=len)]) if full else b"")


# --- counting -----------------------------------------------------------------------------


@SOME
@given(LINES)
def test_counts_are_those_of_the_text(call, lines):
    """Lines, words, characters and occurrences, as str sees them."""
    whole = text(lines)

    assert int(call("count_lines", whole)) == len(lines)
    assert int(call("count_words", whole)) == sum(len(line.split()) for line in lines)
    assert int(call("count_characters", whole)) == sum(len(line) + 1 for line in lines)
    assert int(call("count_occurrences", whole, needle="a")) == sum(x.count("a") for x in lines)


# --- rewriting ----------------------------------------------------------------------------


@SOME
@given(LINES, NEEDLES, st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3))
def test_replacing_is_literal(call, lines, needle, replacement):
    """Neither side is read as a pattern."""
    got = call("replace_text", text(lines), needle=needle, replacement=replacement)

    assert got == text([x.replace(needle, replacement) for x in lines])


def test_a_regex_replacement_knows_its_groups(call):
    r"""`\1` and `$1` are the first group; a group that is not there is an error."""
    for template in (r"\2=\1", "$2=$1"):
        assert (
            call("replace_text", b"a-b\n", needle=r"(\w)-(\w)", replacement=template, regex=True)
            == b"b=a\n"
        )
    with pytest.raises(ToolFailure, match="bad replacement"):
        call("replace_text", b"x\n", needle="a", replacement=r"\3", regex=True)


def test_a_needle_over_two_lines_is_found(call):
    """A text with a line break in it is looked for in the whole file."""
    assert call("replace_text", b"a\nb\nc\n", needle="a\nb", replacement="x") == b"x\nc\n"


@SOME
@given(LINES)
def test_case_order_numbers_and_spaces(call, lines):
    """Upper and lower case, reversed order, numbers before lines, trimmed lines."""
    whole = text(lines)

    assert call("upper_case", whole) == text([x.upper() for x in lines])
    assert call("lower_case", whole) == text([x.lower() for x in lines])
    assert call("reverse_lines", whole) == text(lines[::-1])
    assert call("number_lines", whole, start=3) == text(
        [f"{n}\t{x}" for n, x in enumerate(lines, 3)]
    )
    assert call("trim_lines", whole) == text([x.encode().strip().decode() for x in lines])


@SOME
@given(LINES, st.sampled_from([", ", ";", " ", "、", "+"]))
def test_joining_and_splitting(call, lines, delimiter):
    """One line of all, blank ones left out; each piece a line of its own."""
    full = [x for x in lines if x.encode().strip()]
    joined = call("join_lines", text(lines), delimiter=delimiter)
    pieces = [p for x in lines for p in x.split(delimiter) if p.encode().strip()]

    assert joined == (text([delimiter.join(full)]) if full else b"")
    assert call("split_lines", text(lines), delimiter=delimiter) == b"".join(
        p.encode().strip() + b"\n" for p in pieces
    )


def test_files_follow_each_other_and_no_line_melts_into_the_next(call, write):
    """A file without a final line end does not swallow the first line of the next."""
    paths = [write("1", b"a\nb"), write("2", b""), write("3", b"c\r\n"), write("4", b"d")]

    assert call("join_files", paths=paths) == b"a\nb\nc\r\nd\n"


@pytest.mark.parametrize(
    ("kind", "line", "found"),
    [
        ("email", "mail <ann.b+c@mail.example.org>, or x@y", ["ann.b+c@mail.example.org"]),
        ("url", "see (https://example.org/a?b=c#d). Bye", ["https://example.org/a?b=c#d"]),
        ("ip", "10.0.0.1 1.2.3.4.5 256.1.1.1 192.168.001.9", ["10.0.0.1", "192.168.001.9"]),
        ("number", "a1 12 -3.5 2026-01-02 1,000 10:30", ["12", "-3.5", "1,000"]),
        (
            "date",
            "on 2026-01-02, 3.4.2025 or May 5, 2024",
            ["2026-01-02", "3.4.2025", "May 5, 2024"],
        ),
        ("hashtag", "#one c#two #三", ["#one", "#三"]),
    ],
)
def test_pieces_of_a_kind_are_found(call, kind, line, found):
    """What stands for each kind in running text, and what only looks like it."""
    assert call("extract_matches", line.encode(), kind=kind).decode().splitlines() == found


def test_fields_are_counted_from_one_and_from_the_end(call):
    """A line with too few fields gives an empty line, so that lines stay beside each other."""
    assert call("text_column", b"a b  c\nd\n", column=3) == b"c\n\n"
    assert call("text_column", b"a b  c\nd\n", column=-1) == b"c\nd\n"
    assert call("text_column", b"a:b\n", column=2, delimiter=":") == b"b\n"


# --- numbers ------------------------------------------------------------------------------

AMOUNTS = st.lists(
    st.decimals(-10_000, 10_000, places=2, allow_nan=False, allow_infinity=False), min_size=1
)


@SOME
@given(AMOUNTS)
def test_figures_are_exact(call, amounts):
    """Sum, extremes and mean as fractions say, without the errors of binary floats."""
    whole = text([str(amount) for amount in amounts])
    exact = [Fraction(amount) for amount in amounts]

    assert Fraction(call("sum_numbers", whole).decode()) == sum(exact)
    assert Fraction(call("max_number", whole).decode()) == max(exact)
    assert Fraction(call("min_number", whole).decode()) == min(exact)
    mean = Fraction(call("average_numbers", whole).decode())
    assert abs(mean - statistics.mean(exact)) <= Fraction(1, 2_000_000)


@pytest.mark.parametrize(
    ("content", "total"),
    [
        (b"amount\n10\n2.5\n", "12.5"),
        (b"3 apples\n4 pears\n", "7"),
        (b"$1,200.50\n99.50\n", "1300"),
        (b"1,2,3\n4\n", "10"),
        (b"\n 7 \r\n\r\n-2\r\n", "5"),
        (b"took 35ms on 2026-01-30 at 10:30 from 10.0.0.1\n", "35"),
        (b"0.1\n0.2\n", "0.3"),
    ],
)
def test_what_counts_as_a_number(call, content, total):
    """A heading, units, currencies and thousands do not hide one; dates and addresses are none."""
    assert call("sum_numbers", content).decode() == f"{total}\n"


def test_a_file_without_numbers_is_an_error_not_zero(call):
    """A sum of nothing would be a silent wrong answer."""
    with pytest.raises(ToolFailure, match="holds no number"):
        call("sum_numbers", b"none here\n")


@given(st.decimals(-(10**9), 10**9, places=4))
def test_a_number_is_written_as_it_is_read(number):
    """Without exponent or trailing zeros, and back again."""
    written = written_number(number)

    assert parse_number(written) == number
    assert "E" not in written
    assert not (("." in written) and written.endswith(("0", ".")))


def test_decimals_are_rounded_half_up():
    """As people round, not to even."""
    assert [written_number(Decimal(x), 1) for x in ("0.25", "0.35", "-0.25")] == [
        "0.3",
        "0.4",
        "-0.3",
    ]


# --- lines of every kind ------------------------------------------------------------------

KINDS = {
    "no final line end": b"b\na\nb",
    "carriage returns": b"b\r\na\r\nb\r\n",
    "both, none at the end": b"b\r\na\r\nb",
    "byte order mark": b"\xef\xbb\xbfb\na\nb\n",
    "utf-16": "b\na\nb\n".encode("utf-16"),
}


@pytest.mark.parametrize("content", KINDS.values(), ids=KINDS)
def test_line_ends_and_marks_take_no_part_in_comparing(call, content):
    """The same three lines, however they are stored."""

    def plain(result: bytes) -> list[bytes]:
        return result.split()

    assert plain(call("unique_lines", content)) == [b"b", b"a"]
    assert plain(call("count_each_line", content)) == [b"1", b"a", b"2", b"b"]
    assert plain(call("filter_lines", content, needle="b", where="whole")) == [b"b", b"b"]
    assert plain(call("filter_lines", content, needle="b$", regex=True)) == [b"b", b"b"]
    assert plain(call("reverse_lines", content)) == [b"b", b"a", b"b"]
    assert int(call("count_lines", content)) == 3


def test_a_line_end_is_kept_as_it_was_and_a_missing_one_is_added(call):
    """Windows files stay Windows files."""
    assert call("reverse_lines", b"a\r\nb\r\nc") == b"c\r\nb\r\na\r\n"
    assert call("filter_lines", b"a\nb", needle="b") == b"b\n"


def test_bytes_that_are_no_utf8_stay_as_they_are(call):
    """Latin-1 is matched as text and written back unchanged."""
    content = "Müller\nMeier\nMÜLLER\n".encode("latin-1")

    assert call("filter_lines", content, needle="Müller") == "Müller\n".encode("latin-1")
    assert call("filter_lines", content, needle="müller", ignore_case=True).count(b"\n") == 2
    assert call("upper_case", content) == "MÜLLER\nMEIER\nMÜLLER\n".encode("latin-1")
    assert call("replace_text", content, needle="ü", replacement="ö").startswith(
        "Möller".encode("latin-1")
    )
    assert call("filter_lines", b"\xff\xfe\x00a\nb\n"[3:], needle="b") == b"b\n"


def test_an_empty_file_is_no_error(call):
    """It has no lines, no words, and nothing to choose."""
    for name, arguments in {
        "filter_lines": {"needle": "x"}, "remove_lines": {"needle": "x"}, "unique_lines": {},
        "reverse_lines": {}, "upper_case": {}, "join_lines": {}, "longest_line": {},
        "number_lines": {}, "count_each_line": {}, "trim_lines": {}, "line_range": {"start": 2},
    }.items():  # fmt: skip
        assert call(name, b"", **arguments) == b""
    for name in ("count_lines", "count_words", "count_characters"):
        assert call(name, b"") == b"0\n"
