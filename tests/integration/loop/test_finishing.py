"""Certification takes back what is worse; pruning takes out what does nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loop import finishing, selftest
from loop.apply import apply, dump
from loop.edits import AddCheck, Proposal, SetPrompt, ToShell
from loop.evidence import StepRun, Trial
from loop.journal import Attempt, Journal, Round
from loop.rounds import Rounds
from loop.simulator import Mode, Simulator
from openry.ledger.db import Ledger
from openry.models import RuleResult

#: Half of all runs do right; "harmful" takes twenty points more, "helpful" gives them.
WORLD = Simulator(3, (Mode("wrong_content", 0.5, {}),), {"helpful": 0.4, "harmful": -0.4})


@pytest.fixture
def journal(tmp_path):
    with Ledger(tmp_path / "l.db") as ledger:
        yield Journal.begin(ledger, "s", {"task": "say"})


def agent(words: str) -> str:
    return dump({"sub_steps": [{"id": "a", "kind": "agent", "description": words}]})


def good(text: str) -> Trial:
    return next(t for t in (WORLD.run(text, n) for n in range(5000, 9000)) if t.acceptable)


def accepted(journal, *texts: str) -> None:
    """The draft, and a round for each further text, as if the gates had let it in."""
    for number, text in enumerate(texts):
        if number:
            proposal = Proposal((SetPrompt(step="a", text=f"{number}"),), "planner", "")
            journal.attempt(Attempt(number, 0, proposal, "s", text, "", (), "accepted", ""))
        journal.round(Round(number, text, good(text), "accepted"), edits=number, started_at="")


def rounds(journal, instances: int) -> Rounds:
    work = replace(selftest.dice_work(), instances=instances)
    return Rounds(work, WORLD, journal, lambda *event: None)


def test_what_certification_finds_worse_is_taken_back(journal):
    """Edits that each got in by luck are reverted together, and the draft stands again."""
    draft, worse = agent("say it"), agent("say a harmful thing")
    accepted(journal, draft, worse)
    history = journal.history()

    rounds(journal, 120)._certify(history, history.current)

    after = journal.history()
    assert [each.verdict for each in after.attempts] == ["reverted"]
    assert (after.current.verdict, after.current.text) == ("reverted", draft)
    assert "worse" in after.rounds[-2].gates[-1].note


def test_what_certification_finds_better_stands(journal):
    """A better one stays, with its runs on record, and is the base of the next certification."""
    accepted(journal, agent("say it"), agent("say a helpful thing"))
    history = journal.history()

    rounds(journal, 120)._certify(history, history.current)

    after = journal.history()
    assert [each.verdict for each in after.attempts] == ["accepted"]
    assert after.current.runs[1] == 120
    assert not finishing.due(after, after.current.number)


def test_three_accepted_edits_are_certified_before_the_next(journal):
    """Certification is due after every third, and only then."""
    accepted(journal, *(agent(f"say it {n}") for n in range(4)))
    history = journal.history()

    assert finishing.due(history, 0)
    assert not finishing.due(history, 1)


SHELL = {"id": "a", "kind": "shell", "command": "one"}
FLOW = dump({"sub_steps": [SHELL, {**SHELL, "id": "b", "command": "two"}]})


def edited(journal, *proposals: Proposal):
    """A history of edits, the last of which made it good."""
    text = FLOW
    journal.round(Round(0, text, Trial(text, "failed", ()), "failed"), edits=0, started_at="")
    for number, proposal in enumerate(proposals, start=1):
        text = apply(text, proposal.edits)
        journal.attempt(Attempt(number, 0, proposal, "s", text, "", (), "accepted", ""))
        trial = run(text, 0)
        journal.round(Round(number, text, trial, "accepted"), edits=number, started_at="")
    return journal.history()


def run(text: str, draw: int) -> Trial:
    """Right only with the command `right`, and whatever else stands there."""
    held = "command: right" in text
    steps = (StepRun("a", "shell", "done", attempts=1),)
    return Trial(text, "completed", steps, hard=(RuleResult("right", held),))


def shell(command: str, step: str = "a") -> Proposal:
    return Proposal((ToShell(step=step, command=command),), "planner", command)


def test_an_edit_without_effect_is_pruned_and_one_with_effect_is_not(journal):
    """Taken back alone: what is as good without it goes, the rest stays."""
    history = edited(journal, shell("idle", "b"), shell("half"), shell("right"))

    pruned = finishing.prune(history, history.current, run)

    assert [each.proposal.why for each in pruned.dropped] == ["idle", "half"]
    assert "command: two" in pruned.text
    assert "command: right" in pruned.text
    assert "taken out" in pruned.gate.note


def test_a_check_is_not_pruned_for_having_nothing_to_say(journal):
    """In a good run a check has no effect; that is not what it is for."""
    rule = {"type": "file_exists", "path": "x"}
    check = Proposal((AddCheck(step="b", rule=rule),), "planner", "check")
    history = edited(journal, check, shell("right"))

    assert finishing.prune(history, history.current, run).dropped == ()


def test_where_dice_have_a_part_nothing_is_dropped(journal):
    """One run of a model shows no effect either way: the edit is named for a person."""

    def rolled(text: str, draw: int) -> Trial:
        return replace(run(text, draw), steps=(StepRun("a", "agent", "done", attempts=1),))

    history = edited(journal, shell("idle", "b"), shell("right"))
    pruned = finishing.prune(history, history.current, rolled)

    assert pruned.dropped == ()
    assert pruned.gate.indecisive
    assert "idle" in pruned.gate.note
