"""Orders: what cannot be carried out is said in one sentence before anything starts."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from loop.order import MAX_FILE_BYTES, Order, checked, read_accept, read_text, slug
from openry.errors import BadFileError, UsageError


@pytest.fixture
def order(tmp_path):
    return Order("count the lines", str(tmp_path), planner="local/smollm2", model="local/smollm2")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"task": "  \n "}, "empty"),
        ({"task": "x" * 9000}, "characters"),
        ({"task": "a\x00b"}, "control"),
        ({"directory": "/no/such/folder"}, "--dir"),
        ({"rounds": -1}, "--rounds"),
        ({"budget_usd": 0}, "--budget-usd"),
        ({"budget_tokens": -5}, "--budget-tokens"),
        ({"max_minutes": 0.0}, "--max-minutes"),
        ({"name": "../x"}, "../x"),
    ],
)
def test_what_cannot_be_done_is_said(order, change, word):
    """Each mistake is one sentence that names what to change."""
    with pytest.raises(UsageError) as caught:
        checked(replace(order, **change))

    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_must_be_one(order, tmp_path):
    """A file given as folder is named."""
    file = tmp_path / "a.txt"
    file.write_text("x")

    with pytest.raises(UsageError, match="not a folder"):
        checked(replace(order, directory=str(file)))


def test_an_order_survives_the_journal(order):
    """What is stored as JSON comes back as the same order."""
    whole = replace(order, accept=({"type": "file_exists", "path": "a"},), budget_usd=0.5)

    assert Order.from_data(json.loads(json.dumps(whole.to_data()))) == whole


def test_local_models_choose_and_others_draft(order):
    """The strategy follows from the planner's name."""
    assert order.strategy == "grounded"
    assert replace(order, planner="openai/gpt-x").strategy == "structured"


def test_rules_come_inline_or_from_files(tmp_path):
    """Both forms may be mixed; the order is kept."""
    file = tmp_path / "rules.yaml"
    file.write_text("- {type: file_contains, path: a, contains: x}\n")

    rules = read_accept(["file_exists path=out.txt", str(file)])

    assert [rule["type"] for rule in rules] == ["file_exists", "file_contains"]


@pytest.mark.parametrize(
    "given",
    ["file_exist path=a", "no/such.yaml", "file_contains path=a regex=(", "file_exists", ""],
)
def test_a_bad_rule_is_refused(given):
    """Wrong types, missing keys, bad patterns and missing files are all said."""
    with pytest.raises(BadFileError):
        read_accept([given])


OUTSIDE = [
    {"file_exists": {"path": "../x"}},
    {"file_exists": {"path": "/etc/x"}},
    {"unchanged": {"glob": "../*"}},
    {"files_count": {"glob": "a/../../*", "max": 3}},
    {"relation": {"kind": "permutation", "input": ["a", "../b"], "output": "c"}},
]


def test_rules_name_no_file_outside_the_folder(tmp_path):
    """However deep the rule stands in others."""
    for rule in OUTSIDE:
        nested = {"all_of": {"rules": [{"any_of": {"rules": [rule]}}]}}
        for one in (rule, {"not": {"rule": rule}}, nested):
            file = tmp_path / "rules.json"
            file.write_text(json.dumps([one]))
            with pytest.raises(BadFileError, match="is not in the folder"):
                read_accept([str(file)])


def test_a_name_is_made_of_any_language():
    """A task without a Latin letter still gets a name that is a file name."""
    assert slug("统计 app.log 的行数") == "app-log"
    assert slug("统计行数") == "workflow"
    assert slug("Émile's café: räume auf") == "emile-s-cafe-raume-auf"


def test_a_rule_may_be_longer_than_a_files_name():
    """It is taken for a rule; no file of that name is looked for."""
    text = "x" * 300

    (rule,) = read_accept((f"file_contains path=sorted.txt contains={text}",))

    assert rule["contains"] == text


def test_a_file_that_cannot_be_meant_is_not_read(tmp_path):
    """Too large, no text, or a pipe that nobody writes to: one sentence, nothing waits."""
    large, binary, pipe = (tmp_path / name for name in ("large", "binary", "pipe"))
    large.write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    binary.write_bytes(b"\xff")
    os.mkfifo(pipe)

    for path, why in ((large, "larger than 10 MiB"), (binary, "UTF-8"), (pipe, "no regular file")):
        with pytest.raises(BadFileError, match=why):
            read_text(path)
