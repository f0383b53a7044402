"""The journal, on a real ledger."""

from __future__ import annotations

import pytest

from loop.diagnose import diagnose
from loop.edits import Proposal, ToShell
from loop.evidence import CommandSeen, StepRun, Trial
from loop.journal import Attempt, Gate, Journal, Round
from openry.clock import utc_now
from openry.ledger.db import Ledger
from openry.models import RuleResult

RULES = [{"type": "file_exists", "path": "out.txt"}]
FAILED = Trial(
    "name: w",
    "failed",
    (StepRun("a", "shell", "failed", attempts=1, commands=(CommandSeen("x", 2, stderr="no"),)),),
    hard=(RuleResult("file_exists", False),),
)
DONE = Trial("name: v", "completed", (), hard=(RuleResult("file_exists", True),))


@pytest.fixture
def journal(tmp_path):
    with Ledger(tmp_path / "openry.db") as ledger:
        yield Journal.begin(ledger, "s1", {"task": "do it", "name": "w"})


def attempt(position: int = 0, round_: int = 1) -> Attempt:
    proposal = Proposal((ToShell(step="a", command="ls", why="y"),), "rule:x", "y")
    gates = (Gate("G0", True, "fine"), Gate("run", False, "no better"))
    return Attempt(
        round_, position, proposal, "sig", "name: v", "-a\n+b", gates, "rejected", "no", DONE
    )


def test_the_history_is_what_was_written(journal):
    """Rounds and attempts come back as equal values, in order."""
    first = Round(0, "name: w", FAILED, "failed", seconds=0.5)
    second = Round(1, "name: v", DONE, "accepted", diagnose(FAILED, RULES), tokens=7, cost_usd=0.25)

    journal.round(first, edits=0, started_at=utc_now())
    journal.attempt(attempt())
    journal.round(second, edits=1, started_at=utc_now())
    history = journal.history()

    assert history.rounds == (first, second)
    assert history.attempts == (attempt(),)
    assert history.current == second
    assert history.session["workflow_text"] == "name: v"
    assert history.session["rounds"] == 1
    assert history.open_attempts == ()


def test_what_a_killed_round_tried_is_not_forgotten(journal):
    """Attempts of a round without record are open; those of earlier rounds are not."""
    journal.round(Round(0, "name: w", FAILED, "failed"), edits=0, started_at=utc_now())
    journal.attempt(attempt(0))
    journal.attempt(attempt(1))

    assert journal.history().open_attempts == (attempt(0), attempt(1))


def test_an_unknown_session_has_no_history(journal):
    """Asking for what is not there is no error."""
    assert Journal(journal.ledger, "s2").history() is None


def test_an_ended_session_says_when(journal):
    """A session that stands still has no end; an ended one has."""
    journal.end("interrupted", stop="interrupted")
    assert journal.history().session["ended_at"] is None

    journal.end("ended", outcome="converged")
    assert journal.history().session["ended_at"] is not None
