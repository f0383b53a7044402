"""The arms of the benchmark on the real engine."""

from __future__ import annotations

import json

import pytest

from loop import bench, start
from loop.bench import Case
from loop.kit import Kit
from loop.variant import Variant
from openry.config import load_config
from openry.errors import StorageError
from tests.integration.loop.helpers import order_for

SORT = "Sort the lines of names.txt alphabetically into sorted.txt"
FILES = {"names.txt": "b\na\n"}


@pytest.fixture
def kit(tmp_path):
    """A kit that need not read sentences."""
    with Kit(load_config(tmp_path / "home", env={})) as made:
        yield made


def case(want: str = "a\nb\n", by_hand: str = "sort names.txt > sorted.txt") -> Case:
    return Case("sort", SORT, FILES, (), {"sorted.txt": want}, by_hand)


def test_a_person_does_it_by_hand(kit):
    """The command is run as a workflow of one step; without one the person declines."""
    done = bench.score(kit, case(), "human")
    declined = bench.score(kit, case(by_hand=""), "human")

    assert (done.right, done.outcome, done.calls) == (True, "converged", 0)
    assert (declined.right, declined.outcome) == (False, "needs_human")


@pytest.mark.parametrize("arm", ["full", "without_gates", "always_accept", "soft_off", "soft_hard"])
def test_what_is_right_at_once_is_right_in_every_arm(kit, arm):
    """Without anything to mend no part of the loop stands in the way."""
    score = bench.score(kit, case(), arm)

    assert (score.right, score.arm, score.rounds) == (True, arm, 0)
    assert score.marks[-1].right
    assert (score.again_cpu_s > 0) == (arm == "full"), "what another run costs is measured once"


def test_what_is_wrong_is_not_measured_again(kit):
    """What another run costs is told for each right result."""
    score = bench.score(kit, case(want="other"), "full")

    assert not score.right
    assert (score.outcome, score.again_cpu_s) == ("converged", 0.0)


def test_a_failure_after_the_run_is_that_task_s_alone(kit, monkeypatch):
    """A ledger or a copy that fails as the figures are taken ends no measurement of hours."""

    def fail(*_):
        raise StorageError("disk is full")

    monkeypatch.setattr(bench, "_again", fail)

    score = bench.score(kit, case(), "full")

    assert (score.outcome, score.wrong, score.right) == ("unusable", "disk is full", False)
    assert not score.marks[-1].right


def test_ctrl_c_ends_with_what_is_done(kit, tmp_path):
    """A long measurement that is broken off gives its figures so far; one without any, none."""
    suite = tmp_path / "suite.jsonl"
    line = {"id": "a", "task": SORT, "files": FILES, "expect": {"sorted.txt": "a\nb\n"}}
    lines = [{**line, "id": name, "by_hand": "sort names.txt > sorted.txt"} for name in "abc"]
    suite.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    told = []

    def tell(row: str) -> None:
        told.append(row)
        if len(told) == 2:
            raise KeyboardInterrupt

    found = bench.run(kit, str(suite), ["human"], tell=tell)

    assert [score.id for score in found.scores] == ["a", "b"]
    with pytest.raises(KeyboardInterrupt), bench.until_interrupted(lambda: False):
        raise KeyboardInterrupt


BROKEN = """\
name: numbers
sub_steps:
  - id: sort
    kind: shell
    command: sort nums.txt > sorted.txt
  - id: top
    kind: shell
    command: head -n 1 sortd.txt > top.txt
"""


@pytest.mark.parametrize(
    ("gates", "outcome"), [("all", "converged"), ("none", "converged"), ("accept", "converged")]
)
def test_gates_can_be_left_out(kit, tmp_path, gates, outcome):
    """A mistake with one honest mend is mended with and without the gates."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "nums.txt").write_text("2\n1\n")
    order = order_for(
        tmp_path / "work",
        "Write the smallest line of nums.txt to top.txt",
        accept=({"type": "file_contains", "path": "top.txt", "regex": r"\A1\s*\Z"},),
        source=BROKEN,
        source_file="numbers.yaml",
    )
    session = start.new(kit, order, emit=lambda event, data: None, variant=Variant(gates=gates))

    finished = session.run()
    names = {gate.name for each in start.history(kit, session.id).attempts for gate in each.gates}

    assert (finished.outcome, finished.edits) == (outcome, 1)
    assert ("G3" in names, "run" in names) == (gates == "all", gates != "accept")


def test_soft_checks_can_be_hard_or_off(kit, tmp_path):
    """What a second reading computes is a soft rule, a hard one, or none at all."""
    rules = {}
    for soft in ("off", "soft", "hard"):
        folder = tmp_path / soft
        folder.mkdir()
        (folder / "names.txt").write_text("b\na\n")
        order = order_for(folder, SORT)
        variant = Variant(soft=soft)
        session = start.new(kit, order, emit=lambda event, data: None, variant=variant)
        assert session.run().outcome == "converged"
        (first, *_) = start.history(kit, session.id).rounds
        rules[soft] = (len(first.trial.hard), len(first.trial.soft))

    (hard, none), (same, one), (more, gone) = rules["off"], rules["soft"], rules["hard"]
    assert (none, gone) == (0, 0) and one >= 1
    assert hard == same and more == hard + one
