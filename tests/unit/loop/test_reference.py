"""The independent results: where a capability and the reference both answer, they agree."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.reference import COMPUTE, OpenQuestionError, UnfitError, expected, same
from loop.wording import Op
from openry.capability import complete, load_registry
from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.runner import load

REGISTRY = load_registry()
MANY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
words = st.sampled_from("tea Tea milk egg 7 12 -3 2.5 steak".split())
lines = st.lists(st.lists(words, min_size=0, max_size=3).map(" ".join), max_size=7)
figures = st.lists(st.sampled_from("3 12 -4 2.5 700 0.25".split()), min_size=1, max_size=6)
#: (kind of operation, its arguments, its open conventions settled, tool, the tool's arguments)
SAME: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("keep_lines", {"needle": "tea"}, "filter_lines", {"needle": "tea"}),
    (
        "keep_lines",
        {"needle": "tea", "ignore_case": True},
        "filter_lines",
        {"needle": "tea", "ignore_case": True},
    ),
    (
        "keep_lines",
        {"needle": "tea", "where": "start"},
        "filter_lines",
        {"needle": "tea", "where": "start"},
    ),
    (
        "keep_lines",
        {"needle": "tea", "where": "end"},
        "filter_lines",
        {"needle": "tea", "where": "end"},
    ),
    ("drop_lines", {"needle": "tea"}, "remove_lines", {"needle": "tea"}),
    ("drop_empty", {}, "remove_empty_lines", {}),
    ("count_lines", {}, "count_lines", {}),
    ("count_kept", {"needle": "egg"}, "count_matching_lines", {"needle": "egg"}),
    ("count_words", {}, "count_words", {}),
    ("count_chars", {"line_ends": True}, "count_characters", {"line_ends": True}),
    ("count_chars", {"line_ends": False}, "count_characters", {"line_ends": False}),
    ("count_unique", {}, "count_unique_lines", {}),
    ("sort", {}, "sort_lines", {}),
    ("sort", {"reverse": True}, "sort_lines", {"reverse": True}),
    ("sort", {"numeric": True}, "sort_lines", {"numeric": True}),
    ("sort", {"unique": True}, "sort_lines", {"unique": True}),
    ("skip", {"count": 2}, "skip_lines", {"count": 2}),
    ("skip_last", {"count": 2}, "skip_lines", {"count": 2, "where": "end"}),
    ("unique", {"order": "first"}, "unique_lines", {}),
    ("tally", {"order": "sorted"}, "count_each_line", {}),
    ("tally", {"order": "count"}, "count_each_line", {"descending": True}),
    ("upper", {}, "upper_case", {}),
    ("lower", {}, "lower_case", {}),
    (
        "replace",
        {"needle": "tea", "replacement": "x"},
        "replace_text",
        {"needle": "tea", "replacement": "x"},
    ),
    (
        "replace",
        {"needle": "tea", "replacement": "x", "whole_word": True},
        "replace_text",
        {"needle": "tea", "replacement": "x", "whole_word": True},
    ),
    ("reverse", {}, "reverse_lines", {}),
    ("longest", {}, "longest_line", {}),
    ("shortest", {}, "shortest_line", {}),
    ("number_lines", {"separator": ". "}, "number_lines", {"separator": ". "}),
    ("trim", {}, "trim_lines", {}),
]
FIGURES = [
    ("sum", "sum_numbers"),
    ("mean", "average_numbers"),
    ("max", "max_number"),
    ("min", "min_number"),
]
TABLE: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("column", {"column": "name", "heading": "dropped"}, "csv_column", {"column": "name"}),
    ("column", {"column": 2, "heading": "dropped"}, "csv_column", {"column": 2}),
    (
        "columns",
        {"columns": ("age", "name"), "heading": "kept"},
        "csv_columns",
        {"columns": ["age", "name"]},
    ),
    *(
        (
            "rows",
            {"column": "age", "op": op, "value": "12", "heading": "kept"},
            "csv_filter",
            {"column": "age", "op": op, "value": "12"},
        )
        for op in ("==", "!=", ">", ">=", "<", "<=")
    ),
    (
        "rows",
        {"column": "name", "op": "==", "value": "tea", "heading": "kept"},
        "csv_filter",
        {"column": "name", "value": "tea"},
    ),
    ("csv_sort", {"column": "age", "heading": "kept"}, "csv_sort", {"column": "age"}),
    (
        "csv_sort",
        {"column": "age", "reverse": True, "heading": "kept"},
        "csv_sort",
        {"column": "age", "reverse": True},
    ),
    ("csv_sort", {"column": "name", "heading": "kept"}, "csv_sort", {"column": "name"}),
    ("count_rows", {"heading": "dropped"}, "csv_count_rows", {}),
    *(
        (function, {"column": "age"}, "csv_aggregate", {"column": "age", "function": function})
        for function in ("sum", "mean", "min", "max")
    ),
    ("csv_to_json", {}, "csv_to_json", {}),
]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bytes | None]:
    """The tool's own result on `in.*` holding `text`; None when it refuses."""
    monkeypatch.chdir(tmp_path)

    def call(name: str, text: str, source: str, arguments: dict[str, Any]) -> bytes | None:
        Path(source).write_text(text)
        tool = REGISTRY.get(name)
        try:
            done = load(tool.python or "")(**complete(tool, {"path": source, **arguments}))
            return done if isinstance(done, bytes) else b"".join(done or ())
        except ToolFailure:
            return None

    return call


def computed(kind: str, args: dict[str, Any], text: str, source: str) -> bytes | None:
    """The reference's result; None where it calls it an open question."""
    try:
        return expected([Op(kind, args, (source,), "out")], {source: text.encode()})["out"]
    except OpenQuestionError:
        return None


def agree(one: bytes | None, other: bytes | None) -> bool:
    return one is None or other is None or same(one, other)


@pytest.mark.parametrize(("kind", "args", "tool", "arguments"), SAME)
@given(found=lines)
@MANY
def test_lines_agree(call, kind, args, tool, arguments, found) -> None:  # type: ignore[no-untyped-def]
    """On any lines, a tool and the reference give the same or one of them does not answer."""
    text = "".join(f"{line}\n" for line in found)

    assert agree(computed(kind, args, text, "in.txt"), call(tool, text, "in.txt", arguments))


@pytest.mark.parametrize(("kind", "tool"), FIGURES)
@given(found=figures)
@MANY
def test_figures_agree(call, kind, tool, found) -> None:  # type: ignore[no-untyped-def]
    """Sums, means and extremes are exact and written alike."""
    text = "".join(f"{figure}\n" for figure in found)

    assert agree(computed(kind, {}, text, "in.txt"), call(tool, text, "in.txt", {}))


@pytest.mark.parametrize(("kind", "args", "tool", "arguments"), TABLE)
@given(
    names=st.lists(st.sampled_from("tea Milk egg".split()), min_size=1, max_size=5), data=st.data()
)
@MANY
def test_tables_agree(call, kind, args, tool, arguments, names, data) -> None:  # type: ignore[no-untyped-def]
    """On any small table with a header, both give the same or one does not answer."""
    ages = data.draw(
        st.lists(
            st.sampled_from("3 12 -4 2.5 700".split()), min_size=len(names), max_size=len(names)
        )
    )
    text = "name,age\n" + "".join(f"{n},{a}\n" for n, a in zip(names, ages, strict=True))

    assert agree(computed(kind, args, text, "in.csv"), call(tool, text, "in.csv", arguments))


COLUMNS = ("name", "age", "note")
PIECES = st.tuples(
    st.lists(st.tuples(*[st.sampled_from(["Ann", "7", "a, b", 'say "x"', "x;y", "é"])] * 3)),
    st.permutations(COLUMNS),
    st.sampled_from([",", ";"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)


@given(pieces=st.lists(PIECES, min_size=2, max_size=3))
@MANY
def test_stacked_tables_agree(tmp_path, pieces) -> None:  # type: ignore[no-untyped-def]
    """Whatever the order of the columns, the delimiter, the line ends and the last of them."""
    files = {}
    for number, (rows, order, delimiter, end, closed) in enumerate(pieces):
        out = io.StringIO()
        writer = csv.DictWriter(out, order, delimiter=delimiter, lineterminator=end)
        writer.writeheader()
        writer.writerows(dict(zip(COLUMNS, row, strict=True)) for row in rows)
        text = out.getvalue()
        files[f"{number}.csv"] = (text if closed else text.removesuffix(end)).encode()
        (tmp_path / f"{number}.csv").write_bytes(files[f"{number}.csv"])
    arguments = {"paths": [str(tmp_path / name) for name in files]}
    tool = REGISTRY.get("csv_concat")

    done = b"".join(load(tool.python or "")(**complete(tool, arguments)))

    op = Op("stack", {"heading": "once"}, tuple(files), "out")
    assert same(expected([op], files)["out"], done)


EITHER = ({"heading": "once", "unsaid": True}, {"heading": "each"})


def test_tables_that_begin_alike_leave_open_how_often_their_heading_is_meant() -> None:
    """Unless it is said, or the first rows are no heading, or differ."""

    def stacked(one: bytes, other: bytes, *ways: dict[str, Any]) -> bytes:
        op = Op("stack", {}, ("a", "b"), "c", ways)
        return expected([op], {"a": one, "b": other})["c"]

    headed = b"n,m\n1,2\n", b"n,m\n3,4"
    once, each = b"n,m\n1,2\n3,4\n", b"n,m\n1,2\nn,m\n3,4\n"
    assert stacked(*headed, {"heading": "once"}) == once
    assert stacked(*headed, {"heading": "each"}) == each
    with pytest.raises(OpenQuestionError, match="heading"):
        stacked(*headed, *EITHER)
    assert stacked(b"n,1\n", b"n,1\n", *EITHER) == b"n,1\nn,1\n"
    assert stacked(b"n,m\n", b"n,x\n", *EITHER) == b"n,m\nn,x\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"n,m\n1,2\n", b"n,x\n3,4\n"),
        (b"n,m\n\n1,2\n", b"n,m\n"),
        (b'n,"a\nb"\n1,2\n', b'n,"a\nb"\n3,4\n'),
        (b"n,n,m\n1,2,3\n", b"m,n,n\n1,2,3\n"),
    ],
)
def test_these_tables_leave_the_result_open(one: bytes, other: bytes) -> None:
    """Other columns, blank lines, a name over two lines, two columns of one name."""
    with pytest.raises(OpenQuestionError):
        expected([Op("stack", {"heading": "once"}, ("a", "b"), "c")], {"a": one, "b": other})


def test_each_kind_of_the_lexicon_can_be_computed() -> None:
    """No pattern leads to an operation without a result."""
    from loop.lexicon import lexicons

    elsewhere = {"join", "list_files", "count_files", "convert", "unique_sorted"}
    kinds = {rule.kind for lexicon in lexicons() for rule in lexicon.rules}

    assert kinds - elsewhere <= set(COMPUTE)


def test_variants_that_differ_are_an_open_question() -> None:
    """And the question names the convention."""
    op = Op("unique", {}, ("a",), "b", ({"order": "first"}, {"order": "sorted"}))

    assert expected([op], {"a": b"1\n2\n1\n"}) == {"b": b"1\n2\n"}
    with pytest.raises(OpenQuestionError, match="order"):
        expected([op], {"a": b"2\n1\n2\n"})


def test_a_difference_that_a_later_step_removes_is_none() -> None:
    """Only the files that the person gets must be certain."""
    once = Op("unique", {}, ("a",), ".work/1.txt", ({"order": "first"}, {"order": "sorted"}))
    count = Op("count_lines", {}, (".work/1.txt",), "n")

    assert expected([once, count], {"a": b"2\n1\n2\n"}) == {"n": b"2\n"}


def test_what_is_not_there_cannot_be_meant() -> None:
    """A column that no header names makes the reading unfit, not open."""
    with pytest.raises(UnfitError):
        expected([Op("column", {"column": "size"}, ("a",), "b")], {"a": b"name,age\nx,1\n"})


def test_ends_are_counted_from_their_side() -> None:
    """`head` and `tail` do it for the tools; here by plain slices."""
    text = "a\nb\nc\n"

    assert computed("first", {"count": 2}, text, "in.txt") == b"a\nb\n"
    assert computed("last", {"count": 2}, text, "in.txt") == b"b\nc\n"
    assert computed("last", {"count": 9}, text, "in.txt") == b"a\nb\nc\n"


@pytest.mark.parametrize(
    ("kind", "args", "text"),
    [
        ("sort", {}, "a\nB\n"),
        ("sort", {}, "10\n9\n"),
        ("longest", {}, "ab\ncd\n"),
        ("shortest", {}, "a\n\nbc\n"),
        ("mean", {}, "1\n1\n2\n"),
        ("tally", {"order": "count"}, "a\nb\n"),
        ("csv_sort", {"column": "a"}, "a,b\n1,x\n1,y\n"),
        ("column", {"column": 1}, "name,age\nx,1\n"),
    ],
)
def test_these_inputs_leave_the_result_open(kind: str, args: dict[str, Any], text: str) -> None:
    """Case, numbers as text, equal lengths, endless decimals, equal rows, a header or none."""
    with pytest.raises(OpenQuestionError):
        expected([Op(kind, args, ("a",), "b")], {"a": text.encode()})


def test_sort_lines_is_a_program_of_its_own() -> None:
    """`sort` runs for `sort_lines`; without it the comparison above would say nothing."""
    assert any((Path(p) / "sort").exists() for p in os.environ["PATH"].split(":"))


@pytest.mark.parametrize("kind", ["drop_empty", "count_kept"])
def test_a_line_of_blanks_only_leaves_open_what_is_empty(kind):
    op = Op(kind, {"empty": True} if kind == "count_kept" else {}, ("a.txt",), "o.txt")

    assert expected([op], {"a.txt": b"x\n\ny\n"})
    with pytest.raises(OpenQuestionError, match="blanks only"):
        expected([op], {"a.txt": b"x\n  \ny\n"})
