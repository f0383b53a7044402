"""The benchmark's own honesty: suites, comparison, totals."""

from __future__ import annotations

import json

import pytest

from loop.bench import Outcome, Score, first_difference, own_suite, read_suite
from loop.freehand import command_in
from loop.suites import KINDS
from openry.errors import BadFileError, UsageError

CASE = {"id": "a", "task": "t", "files": {"x": "1"}, "accept": [], "expect": {"y": "1"}}


def test_a_suite_is_read(tmp_path):
    """One case a line; blank lines do not count."""
    suite = tmp_path / "suite.jsonl"
    suite.write_text(json.dumps(CASE) + "\n\n" + json.dumps({**CASE, "id": "b"}) + "\n")

    assert [case.id for case in read_suite(suite)] == ["a", "b"]


def test_every_bad_line_is_named(tmp_path):
    """All problems at once, each with its line."""
    suite = tmp_path / "suite.jsonl"
    suite.write_text('{"id": "a"}\nno json\n')

    with pytest.raises(BadFileError) as caught:
        read_suite(suite)

    assert len(caught.value.problems) == 2
    assert ":1: missing `task`" in caught.value.problems[0]


def test_a_missing_suite_is_one_sentence(tmp_path):
    """No traceback for a path that does not exist."""
    with pytest.raises(UsageError, match="cannot be read"):
        read_suite(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("there", "right"), [("2  fig\n1 kiwi", True), ("2 fig 1", False), (None, False)]
)
def test_white_space_is_folded_and_nothing_else(tmp_path, there, right):
    """Results are compared after folding white space."""
    if there is not None:
        (tmp_path / "y").write_text(there)

    assert (first_difference({"y": "2 fig\n1 kiwi\n"}, tmp_path) == "") is right


def test_totals_count_what_was_silently_wrong():
    """Converged and wrong is silent; strong and wrong is worse and counted by itself."""
    scores = (
        Score("a", "full", True, "converged", "strong"),
        Score("b", "full", False, "converged", "weak"),
        Score("c", "full", False, "converged", "strong"),
        Score("d", "full", False, "not_converged", "weak"),
        Score("e", "full", True, "converged", "weak"),
    )

    (total,) = Outcome("s", scores).totals()

    assert (total.right, total.converged, total.silent_wrong) == (2, 4, 2)
    assert (total.strong_right, total.strong_wrong) == (1, 1)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_answer_is_a_command_that_fails(text):
    """The comparison never mistakes silence for success."""
    assert command_in(text) == "false"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_who_does_nothing_or_cheats_scores_nothing(kind, tmp_path):
    """Of four instances of a kind, neither the untouched folder nor a copy or an empty result is
    right; an instance is the same each time it is made, and its own result is right."""
    for seed in range(4):
        task = kind.instance(seed)
        assert kind.instance(seed) == task
        if not task.want:
            continue
        folder = tmp_path / str(seed)
        for name, text in task.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        assert first_difference(task.want, folder), "nothing done"
        new = [name for name in task.want if name not in task.files]
        for content in ("", "0\n", *task.files.values()):
            for name in new:
                (folder / name).write_text(content)
            as_wanted = any(content.split() == str(task.want[name]).split() for name in new)
            assert as_wanted or first_difference(task.want, folder), content
        for name, wanted in task.want.items():
            (folder / name).write_text(_written(wanted))
        assert not first_difference(task.want, folder)


def _written(wanted) -> str:
    if isinstance(wanted, dict):
        return "".join(f"{name},{figure}\n" for name, figure in wanted.items())
    return wanted if isinstance(wanted, str) else json.dumps(wanted)


def test_our_own_suite_has_enough_of_each(tmp_path):
    """At least 40 chores, three that nobody can do, three whose input gives orders."""
    groups = [kind.group for kind in KINDS]

    assert len(KINDS) >= 46 and len({kind.name for kind in KINDS}) == len(KINDS)
    assert groups.count("impossible") == groups.count("injected") == 3
    assert len(own_suite(seeds=2)) == 2 * len(KINDS)
