"""The JSON tools against the json module and plain look-ups."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.jsons import steps

SOME = settings(max_examples=25, deadline=None)
TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), TEXT)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
PEOPLE = [{"name": "Ann", "age": 41, "tags": ["x"]}, {"name": "Bo", "age": 9, "city": "Oslo"}]


def stored(value) -> bytes:
    return json.dumps(value).encode()


@SOME
@given(VALUES, st.integers(0, 4), st.booleans(), st.booleans())
def test_pretty_json_is_the_same_value(call, value, indent, sort_keys, compact):
    """Whatever the form; the forms are those of the json module."""
    made = call(
        "json_pretty", stored(value), indent=indent, sort_keys=sort_keys, compact=compact
    ).decode()

    separators = (",", ":") if compact else (",", ": ")
    form = {"indent": None if compact else indent, "separators": separators}
    assert made == json.dumps(value, ensure_ascii=False, sort_keys=sort_keys, **form) + "\n"


def test_decimal_numbers_stay_as_they_were_written(call):
    """1.10 is not 1.1, and 1e400 is not infinity."""
    content = b"[1.10, 1e400, 0.1000000000000000055511151231257827, -0.0]"

    assert call("json_pretty", content, compact=True).decode().strip() == (
        "[1.10,1e400,0.1000000000000000055511151231257827,-0.0]"
    )


@SOME
@given(VALUES)
def test_a_path_through_any_value_leads_to_what_is_there(call, value):
    """Every path, step by step, ends at the value that Python's own indexing finds."""
    for path, there in _paths({"top": value}):
        query = "".join(
            f"[{json.dumps(step, ensure_ascii=False)}]" if isinstance(step, str) else f"[{step}]"
            for step in path
        )
        if any("\\" in json.dumps(step) for step in path if isinstance(step, str)):
            continue  # escapes inside brackets are for quotes only
        found = call("json_query", stored({"top": value}), query=query, as_json=True)
        assert json.loads(found) == there


def _paths(value, path=()):
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield (*path, key), inner
        yield from _paths(inner, (*path, key))


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("0.name", "Ann\n"),
        ("*.name", "Ann\nBo\n"),
        ("name", "Ann\nBo\n"),
        ("$[1].age", "9\n"),
        ("[-1].city", "Oslo\n"),
        ("*.city", "Oslo\n"),
        ("0.tags.0", "x\n"),
        ("0.tags", "x\n"),
        ("*.tags.*", "x\n"),
    ],
)
def test_dotted_paths(call, query, answer):
    """Names, places, every element; plain values bare, one per line."""
    assert call("json_query", stored(PEOPLE), query=query).decode() == answer


def test_steps_of_a_path():
    """Dots, brackets and quotes part a path in one way only."""
    assert steps('a.b[0]["c.d"].*') == ["a", "b", "0", "c.d", "*"]
    assert steps("$.a") == steps(".a") == steps("a") == ["a"]


def test_a_literal_key_wins_over_a_path(call):
    """`a.b` as a key is found as such."""
    assert call("json_query", b'{"a.b": 1, "a": {"b": 2}}', query="a.b") == b"1\n"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("nmae", "no key `nmae` (did you mean `name`?)"),
        ("tags.5", "no element `tags.5`: the list has 1"),
        ("age.x", "nothing lies below `age`"),
    ],
)
def test_a_path_to_nowhere_says_where_it_ends(call, query, said):
    """And what there is instead."""
    with pytest.raises(ToolFailure) as failure:
        call("json_query", stored(PEOPLE[0]), query=query)
    assert said in str(failure.value)
    assert failure.value.error_class == "not_found"


@SOME
@given(st.lists(st.dictionaries(TEXT.filter(bool), SCALARS, max_size=4)))
def test_keys_are_those_of_all_objects(call, objects):
    """In the order of their first appearance."""
    keys = list(dict.fromkeys(key for each in objects for key in each))

    assert call("json_keys", stored(objects)).decode("utf-8") == "".join(f"{k}\n" for k in keys)
    assert int(call("json_count", stored(objects))) == len(objects)


@SOME
@given(st.lists(st.fixed_dictionaries({"n": st.integers(-9, 9)})), st.integers(-9, 9))
def test_filtered_objects_are_whole_and_meet_the_condition(call, objects, limit):
    """Compared as numbers."""
    kept = call("json_filter", stored(objects), field="n", op=">=", value=limit)

    assert json.loads(kept) == [each for each in objects if each["n"] >= limit]


def test_filtering_reaches_into_objects_and_lists_in_objects(call):
    """A dotted field; the one list of objects in an object is meant."""
    content = stored({"page": 1, "rows": [{"a": {"b": 1}}, {"a": {"b": 2}}]})

    assert json.loads(call("json_filter", content, field="a.b", value=2)) == [{"a": {"b": 2}}]
    with pytest.raises(ToolFailure, match="did you mean `name`"):
        call("json_filter", stored(PEOPLE), field="nmae", value="Ann")


def test_a_table_has_all_fields_and_plain_cells(call):
    """Nothing for null, JSON for what is no plain value, chosen columns in their order."""
    rows = list(csv.reader(io.StringIO(call("json_to_csv", stored(PEOPLE)).decode())))

    assert rows == [
        ["name", "age", "tags", "city"],
        ["Ann", "41", '["x"]', ""],
        ["Bo", "9", "", "Oslo"],
    ]
    assert call("json_to_csv", stored(PEOPLE), columns=["age", "name"]) == (
        b"age,name\n41,Ann\n9,Bo\n"
    )


def test_lines_of_json_are_a_list(call, capsys):
    """JSONL is read as such, and said."""
    assert call("json_query", b'{"a": 1}\n{"a": 2}\n', query="a") == b"1\n2\n"
    assert "every line is a JSON value" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"{", b"{'a': 1}", b"[1,]", b"NaN", b"nonsense"])
def test_what_is_no_json_is_told_with_its_place(call, content):
    """One sentence; the file stays as it is."""
    with pytest.raises(ToolFailure, match="is no JSON: ") as failure:
        call("json_pretty", content)
    assert failure.value.error_class == "bad_arguments"
