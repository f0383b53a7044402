"""Canonical text and edits over data and texts that nobody thought of."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from openry.errors import BadFileError
from openry.orchestrator import yaml12
from openry.orchestrator.canonical import dump
from openry.orchestrator.editing import (
    insert_step,
    load_document,
    remove_step,
    remove_value,
    replace_step,
    set_value,
)

WORDS = st.sampled_from(
    [
        "a", "on", "1", "1.10", "012", "null", "~", "", " x", "x ", "a: b", "a #b", "#", "- a", "[",
        "{{ x }}", "it's", '"q"', "a\nb", "a\nb\n", "a\n\nb\n\n", "\n", "  a\nb", "a\n  b\n", "\ta",
        "\\", "é", "\U0001f600", "a\r\nb", "\x00", "\x7f", "\x85", "\u2028", "\ufeff", "---",
        "--- a", "...", "!t", "&a", "*a", "%", "@", "`", "|", ">", "?", ":", "a:", "=", "<<",
        "12:30", "true", "2026-01-01", "a" * 120, "x\n" + "y" * 120, "a\n \nb", "a\t\nb\n", "0o7",
        "1e3", ".5", "a,b", "a]", "end\n# no comment\n",
    ]
)  # fmt: skip
TEXT = st.one_of(WORDS, st.text(max_size=20))
KEYS = st.one_of(
    st.sampled_from(["description", "command", "args", "env", "validation", "note", "on_failure"]),
    TEXT.filter(lambda key: key not in ("id", "<<", "sub_steps")),
)
SCALARS = st.one_of(
    TEXT, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False), st.just(10**30)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
STEPS = st.dictionaries(KEYS, VALUES, max_size=5)


@st.composite
def workflows(draw):
    count = draw(st.integers(1, 4))
    steps = [{"id": f"s{n}", **draw(STEPS)} for n in range(count)]
    return {"name": "w", **draw(st.dictionaries(KEYS, VALUES, max_size=2)), "sub_steps": steps}


def whole(value):
    """What can be written at all: no lone surrogates."""
    if isinstance(value, dict):
        return {whole(key): whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def read(text):
    document = yaml12.compose(text)
    assert document.problems == (), (document.problems, text)
    return yaml12.plain(document.data)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(workflows())
def test_canonical_text_reads_back_and_is_a_fixed_point(workflow):
    """Whatever the data: reading gives it back, writing again gives the same text."""
    text = dump(workflow)

    assert read(text) == whole(workflow)
    assert dump(read(text)) == text
    again = whole(workflow)
    assert dump(dict(reversed(again.items()))).splitlines()[0] == text.splitlines()[0]


def made_untidy(text: str, dice: random.Random) -> str:
    """Comments and blank lines between steps, as people leave them."""
    lines = []
    for line in text.split("\n"):
        if line.startswith("  - id: ") and dice.random() < 0.5:
            lines += ["  # a comment", ""][: dice.randint(1, 2)]
        lines.append(line)
    return "\n".join(lines)


def region(text: str, place: int) -> tuple[int, int]:
    """0-based lines from a step's dash up to where the next step, or its comments, may begin."""
    lines = text.split("\n")
    dashes = [n for n, line in enumerate(lines) if line.startswith("  - id: ")]
    following = dashes[place + 1] if place + 1 < len(dashes) else len(lines)
    return dashes[place], following


@settings(max_examples=120, deadline=None, derandomize=True)
@given(workflows(), st.data(), st.integers(0, 10**6), st.sampled_from(["\n", "\r\n"]))
def test_an_edit_touches_its_step_only(workflow, data, seed, ending):
    """Lines before and behind the edited step are the same bytes, in either line ending."""
    text = made_untidy(dump(workflow), random.Random(seed))
    place = data.draw(st.integers(0, len(workflow["sub_steps"]) - 1))
    step_id = f"s{place}"
    step = read(text)["sub_steps"][place]
    key = data.draw(st.one_of(st.sampled_from(sorted(step)), KEYS).filter(lambda k: k != "id"))
    value = data.draw(VALUES)
    start, end = region(text, place)
    if "\r" in dump(workflow) or ending == "\r\n":
        text = text.replace("\n", ending)
    choice = data.draw(st.sampled_from(["set", "remove", "replace"]))
    if choice == "set":
        new = set_value(text, step_id, key, value)
    elif choice == "remove":
        new = remove_value(text, step_id, key)
    else:
        new = replace_step(text, step_id, {"id": step_id, key: value})

    old_lines, new_lines = text.split(ending), new.split(ending)
    behind = len(old_lines) - end
    assert new_lines[:start] == old_lines[:start]
    assert new_lines[len(new_lines) - behind :] == old_lines[end:]
    after = read(new)["sub_steps"]
    assert [s for n, s in enumerate(after) if n != place] == [
        s for n, s in enumerate(read(text)["sub_steps"]) if n != place
    ]
    if choice != "remove":
        assert after[place][whole(key)] == whole(value)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(workflows(), STEPS, st.data(), st.integers(0, 10**6))
def test_steps_come_and_go_between_untouched_lines(workflow, step, data, seed):
    """Putting a step in only adds lines; taking it out again gives the text back."""
    text = made_untidy(dump(workflow), random.Random(seed))
    after = data.draw(st.sampled_from([None, *(s["id"] for s in workflow["sub_steps"])]))
    grown = insert_step(text, after, {"id": "new", **step})

    rest = iter(grown.split("\n"))
    assert all(line in rest for line in text.split("\n"))
    shrunk = remove_step(grown, "new")
    assert [line for line in shrunk.split("\n") if line] == [
        line for line in text.split("\n") if line
    ]
    assert read(shrunk) == read(text)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.text(max_size=200), TEXT)
def test_no_text_makes_an_edit_crash(text, key):
    """Whatever is in the file, an edit either works or is a sentence."""
    for source in (text, f"sub_steps:\n  - id: a\n    {text}\n"):
        try:
            load_document(source)
            set_value(source, "a", key or "k", 1)
        except BadFileError:
            pass
        except LookupError:
            raise
        except Exception as error:
            assert type(error).__module__ == "openry.errors"
