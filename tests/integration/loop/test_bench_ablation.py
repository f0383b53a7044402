"""The ablation of reading by likeness runs readings for real and compares them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.ablation import Found, Trial
from loop.bench import Case
from loop.values import Candidate, Goal
from openry.capability import load_registry
from openry.ledger.fast import FastLedger

LINES = "b\na\nb\n"


@pytest.fixture
def trial(tmp_path: Path):
    tmp_path.chmod(0o700)
    with FastLedger(tmp_path / "openry.db") as ledger:
        yield Trial(load_registry(), ledger, tmp_path)


def reading(tool: str) -> Candidate:
    return Candidate(
        (Goal("", tool, {"path": "in.txt", "output": "out.txt"}, (), ("out.txt",)),), 0
    )


def case(**accept: str) -> Case:
    rules = ({"path": "out.txt", **accept},) if accept else ()
    return Case("1", "sort in.txt", {"in.txt": LINES}, rules, {"out.txt": "a\nb\nb\n"})


def test_the_first_reading_is_delivered_as_it_comes(trial: Trial):
    """Right or wrong; and nothing where there is none or where it fails."""
    wanted = {
        ("sort_lines", "unique_lines"): Found(delivered=True, right=True),
        ("unique_lines", "sort_lines"): Found(delivered=True),
        ("csv_column", "sort_lines"): Found(),
        (): Found(),
    }

    for tools, found in wanted.items():
        assert trial.first(case(), lambda *_, tools=tools: [*map(reading, tools)]) == found


def test_rivals_are_tried_where_rules_fail_and_make_a_result_weak(trial: Trial):
    """The rules of a person decide; where they let several results pass, that is said."""
    read = [reading("unique_lines"), reading("sort_lines")]
    strict = case(type="file_contains", contains="b\nb")
    nothing = case(type="file_contains", contains="z")

    assert trial.tested(strict, lambda *_: read) == Found(delivered=True, right=True)
    assert trial.tested(case(), lambda *_: read) == Found(delivered=True, weak=True)
    assert trial.tested(nothing, lambda *_: read) == Found()
