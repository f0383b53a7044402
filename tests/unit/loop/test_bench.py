"""The benchmark's own honesty: suites, comparison, totals."""

from __future__ import annotations

import json
import subprocess

import pytest

from loop import bench
from loop.bench import ARMS, arms_for, first_difference, mending_suite, own_suite, read_suite
from loop.bench_figures import all_of, bootstrap, share
from loop.bench_tables import ANEW, Mark, Outcome, Score, break_even
from loop.freehand import Try, command_in
from loop.suites import KINDS
from loop.suites.by_hand import BY_HAND, command
from loop.suites.faults import FAULTS
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
    with pytest.raises(BadFileError, match="cannot be read"):
        read_suite(tmp_path / "none.jsonl")


def test_a_suite_without_a_task_is_said(tmp_path):
    """No table of nothing."""
    (tmp_path / "empty.jsonl").write_text("\n")

    with pytest.raises(BadFileError, match="holds no task"):
        read_suite(tmp_path / "empty.jsonl")


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


def test_an_interval_is_as_wide_as_the_tasks_are_few():
    """Instances of one task are drawn together: a hundred of them are no hundred tasks."""
    few = {"a": [1.0] * 50, "b": [0.0] * 50}
    many = {str(n): [float(n % 2)] for n in range(100)}

    assert bootstrap(few, share) == (0.0, 1.0)
    low, high = bootstrap(many, share)
    assert 0.35 < low < 0.5 < high < 0.65
    assert bootstrap(many, share) == (low, high), "a seed fixes the draws"


def test_all_five_runs_must_pass():
    """pass^5 forgives no run of a task."""
    assert all_of(5)([[1.0] * 5, [1.0] * 4 + [0.0]]) == 0.5


def test_pass_hat_needs_five_instances_of_each():
    """Where a task has fewer, nothing is claimed."""
    one = tuple(Score(f"a/{n}", "full", True, "converged") for n in range(5))

    (five,) = Outcome("s", one).totals()
    (four,) = Outcome("s", one[:4]).totals()

    assert (five.all_five, four.all_five) == (1.0, None)


def test_at_equal_cost_counts_only_what_could_be_paid():
    """An arm that needs more than the loop in all does only a part of the tasks for as much."""
    scores = (
        Score("a", "full", True, "converged", cpu_s=1.0),
        Score("b", "full", False, "converged", cpu_s=1.0),
        Score("a", "human", True, "converged", cpu_s=2.0),
        Score("b", "human", True, "converged", cpu_s=0.5),
        Score("a", "draft", True, "converged", cpu_s=0.1),
        Score("b", "draft", True, "converged", cpu_s=0.1),
    )

    full, human, draft = Outcome("s", scores).totals()

    assert (full.at_equal_cost, human.at_equal_cost, draft.at_equal_cost) == (0.5, 0.8, 1.0)


def test_break_even_is_where_the_loop_has_cost_less():
    """Counted run by run the formula's number is the first at which the loop is cheaper."""
    for first, again, anew in [(10.0, 1.0, 3.0), (9.0, 1.0, 3.0), (5.0, 0.1, 0.2), (1.0, 2.0, 1.5)]:
        cheaper = [n for n in range(1, 100) if first + (n - 1) * again < n * anew]

        assert break_even(first, again, anew) == cheaper[0]
    assert break_even(1.0, 0.2, 0.2) is None
    assert break_even(1.0, 0.2, None) == 1, "what is never right is dearer at once"


def test_only_arms_that_write_anew_break_even():
    """The loop's own variants and the person leave something to run again, as the loop does."""
    scores = (
        Score("a", "full", True, "converged", cpu_s=3.0, again_cpu_s=0.5),
        Score("b", "full", False, "not_converged", cpu_s=3.0),
        Score("a", "best_of_12", True, "converged", cpu_s=1.0),
        Score("b", "best_of_12", False, "not_converged", cpu_s=1.0),
        Score("a", "human", True, "converged", cpu_s=0.5),
        Score("b", "human", True, "converged", cpu_s=0.5),
    )

    found = {total.arm: total.break_even for total in Outcome("s", scores).totals()}

    assert found == {"full": None, "best_of_12": 4, "human": None}
    (alone,) = Outcome("s", scores[2:4]).totals()
    assert alone.break_even is None, "without the loop there is nothing to compare with"


class Told:
    """Tries that were written down beforehand."""

    def __init__(self, *tries: Try) -> None:
        self.tries = tries

    def up_to(self, most):
        return iter(self.tries[:most])


def test_the_arms_that_write_anew_are_those_of_the_free_shell():
    """The two lists cannot drift apart."""
    assert set(ANEW) == set(bench._SHELLS)


def test_who_writes_commands_stops_where_its_own_judge_says_so():
    """One shot never looks, blind retries stop at status 0, best-of-12 at the checker's word."""
    fails = Try(False, False, "x", 10, 1.0, 1.0)
    runs = Try(True, False, "x", 10, 1.0, 1.0)
    right = Try(True, True, "", 10, 1.0, 1.0)
    case = bench.Case("a", "t", {}, (), {"y": "1"})
    told = Told(fails, runs, right, fails)

    shot, blind, best = (
        bench._shell(case, arm, told) for arm in ("single_shot", "blind_retry", "best_of_12")
    )

    assert [one.calls for one in (shot, blind, best)] == [1, 2, 3]
    assert [one.right for one in (shot, blind, best)] == [False, False, True]
    assert [one.silent_wrong for one in (shot, blind, best)] == [False, True, False]
    assert best.marks == (Mark(False, 10, 1.0), Mark(False, 20, 2.0), Mark(True, 30, 3.0))


def test_the_page_has_a_curve_for_each_arm():
    """The table and both pictures are there; nothing is loaded and nothing runs."""
    scores = tuple(
        Score("a", arm, True, "converged", marks=(Mark(False, 0, 0.1), Mark(True, 50, 0.2)))
        for arm in ARMS
    )

    page = Outcome("s", scores).to_html()

    assert page.count("<svg") == 2 and page.count("<polyline") == 2 * len(ARMS)
    assert "<script" not in page and "http" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize("kind", sorted(BY_HAND))
def test_what_a_person_types_is_right(kind, tmp_path):
    """The command by hand gives the hidden result, whichever wording its sentence has."""
    made = next(each for each in KINDS if each.name == kind)
    for seed in range(1, 4):
        task = made.instance(seed)
        folder = tmp_path / str(seed)
        for name, text in task.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        subprocess.run(["sh", "-c", command(kind, task.said)], cwd=folder, check=True)
        assert not first_difference(task.want, folder)


def test_a_person_has_written_what_can_be_done():
    """Each kind has a command by hand but those that nobody can do; instances have theirs."""
    possible = {kind.name for kind in KINDS if kind.group != "impossible"}

    assert set(BY_HAND) == possible
    assert all(bool(case.by_hand) == bool(case.expect) for case in own_suite(seeds=3))


def test_what_is_to_be_mended_is_wrong_at_first(tmp_path):
    """Each kind of mistake is planted somewhere; a person's command is right and this is not."""
    cases = mending_suite(2)

    assert {case.id.rpartition("/")[2] for case in cases} == {each.__name__ for each in FAULTS}
    assert len(cases) == len({case.id for case in cases}) == 2 * len(BY_HAND)
    for number, case in enumerate(cases[::9]):
        folder = tmp_path / str(number)
        for name, text in case.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        subprocess.run(["sh", "-c", case.start], cwd=folder, check=False, capture_output=True)
        assert first_difference(case.expect, folder), case.start


def test_the_person_has_no_row_where_nobody_wrote_anything():
    """`all` means every arm that the suite allows; an unknown one is named."""
    alone, written = bench.Case("a", "t", {}, (), {}), bench.Case("a", "t", {}, (), {}, "sort a")

    assert set(ARMS) - set(arms_for(["all"], [alone])) == {"human"}
    assert arms_for(["all"], [alone, written]) == ARMS
    assert arms_for(["full", "full"], [alone]) == ("full",), "once is enough"
    with pytest.raises(UsageError, match="magic"):
        arms_for(["full", "magic"], [alone])


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
