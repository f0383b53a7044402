"""What was gamed or won by luck elsewhere (cases B61 and B63) gains nothing here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loop import pairs, report, selftest
from loop.apply import dump
from loop.edits import Proposal, SetPrompt
from loop.evidence import StepRun, Trial
from loop.guards import objections
from loop.journal import Journal, Round
from loop.rounds import Rounds
from loop.simulator import Simulator
from openry.ledger.db import Ledger
from openry.models import RuleResult

STEP = {"id": "write", "kind": "shell", "command": "sort notes.txt > report.txt"}


def trial(*held: bool) -> Trial:
    rules = tuple(RuleResult(f"task {n + 1}", each) for n, each in enumerate(held))
    state = "completed" if all(held) else "failed"
    return Trial("t", state, (StepRun("write", "shell", "done"),), hard=rules)


@pytest.fixture
def journal(tmp_path):
    with Ledger(tmp_path / "l.db") as ledger:
        row = {
            "task": "four tasks", "name": "w", "acceptance": {"hard": []},
            "settings": {}, "snapshot_id": "s",
        }  # fmt: skip
        yield Journal.begin(ledger, "s", row)


def test_b61_an_echo_of_the_checkers_literal_is_refused():
    """A last step that writes what the regex looks for is no computation."""
    child = {**STEP, "command": "printf '# Findings\\n' > report.txt"}

    found = objections({"sub_steps": [STEP]}, {"sub_steps": [child]}, task="report on notes.txt")

    assert any("constant" in what for what in found)


def test_b61_a_gain_on_one_task_pays_for_no_loss_on_another(journal):
    """Three rules more and one less: refused by name; the report lists every rule's change."""
    before, after = trial(True, False, False, False), trial(False, True, True, True)

    gate = pairs.protect(before, [after])
    journal.round(Round(0, "t", before, "failed"), edits=0, started_at="")
    journal.round(Round(1, "u", after, "accepted"), edits=1, started_at="")
    page = report.html(journal.history())

    assert not gate.passed
    assert "task 1" in gate.note
    assert "no longer holds: <code>task 1</code>" in page
    assert page.count("holds now: <code>") == 3


@pytest.mark.parametrize("copies", [20])
def test_b63_a_copy_wins_no_oftener_than_the_stated_rate(copies):
    """Under a judge that is right half the time, copies are hardly ever certified."""
    won = sum(selftest.certified("idle", seed)[0] for seed in range(1000, 1000 + copies))

    assert won <= 1


def test_b63_an_identical_candidate_is_known_by_its_hash(journal):
    """The same text is not run again, however often it is proposed, and nothing is accepted."""
    world = Simulator(7)
    text = dump({"sub_steps": [{"id": "a", "kind": "agent", "description": "say"}]})
    asked = []

    def ask(question):
        asked.append(question)
        return Proposal((SetPrompt(step="a", text="say"),), "planner:x", "the same again")

    work = replace(selftest.dice_work(), ask=ask, instances=1)
    rounds = Rounds(work, world, journal, lambda *event: None)
    failing = next(t for t in (world.run(text, n) for n in range(99)) if not t.acceptable)
    journal.round(Round(0, text, failing, "failed"), edits=0, started_at="")

    stop = rounds.go(journal.history())

    assert asked
    assert (stop.reason, journal.history().attempts) == ("plateau", ())
