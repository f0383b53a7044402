"""What earlier sessions tried for a failure: found by its words, and only used to rank."""

from __future__ import annotations

import pytest

from loop.diagnose import Diagnosis, FailureClass
from loop.edits import Proposal, SetRetries, SetTimeout
from loop.evidence import CommandSeen, Trial
from loop.journal import Attempt, Journal, Round
from loop.memory import recall, search
from openry.ledger.db import Ledger

SLOW = Diagnosis(
    "fetch", FailureClass.TIMEOUT, "step `fetch` was stopped when its time was over", "s1",
    command=CommandSeen("curl x", 143),
)  # fmt: skip
OTHER = Diagnosis("sum", FailureClass.WRONG_COMMAND, "step `sum` asks for `amuont`", "s2")
LIKE_SLOW = Diagnosis(
    "get", FailureClass.TIMEOUT, "step `get` was stopped when its time was over", "s3"
)
LONGER, AGAIN = SetTimeout(step="fetch", seconds=90), SetRetries(step="fetch", retries=2)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "l.db") as opened:
        yield opened


def remembered(ledger, session, diagnosis, *tried):
    """A session with one round, in which proposals met their verdicts."""
    journal = Journal.begin(ledger, session, {"task": "t"})
    trial = Trial("", "failed", ())
    for place, (edit, verdict) in enumerate(tried):
        proposal = Proposal((edit,), "rule:x", "")
        attempt = Attempt(1, place, proposal, diagnosis.signature, "t", "", (), verdict, "")
        journal.attempt(attempt)
    journal.round(Round(1, "t", trial, "accepted", diagnosis), edits=1, started_at="")


def test_the_likest_failure_comes_first(ledger):
    """Words of the cause, the class and the command find it, whatever the step was called."""
    remembered(ledger, "a", OTHER, (LONGER, "rejected"))
    remembered(ledger, "b", SLOW, (LONGER, "accepted"))

    found = search(ledger, "stopped when its time was over timeout")

    assert [(each["session"], each["verdict"]) for each in found][:1] == [("b", "accepted")]
    assert search(ledger, "nothing of the kind zzz") == []
    assert search(ledger, '"') == []


MISSING = Diagnosis(
    "count", FailureClass.WRONG_COMMAND, "step `count` reads `ap.log`", "s4",
    command=CommandSeen("grep -c ERROR ap.log", 2, stderr="grep: ap.log: No such file"),
)  # fmt: skip
CHINESE = Diagnosis("zh", FailureClass.WRONG_CONTENT, "第二列的日期不对", "s5")


@pytest.mark.parametrize(
    ("words", "session"),
    [
        ("no such file", "a"),
        ("ERROR", "a"),
        ("counting", "a"),
        ("set_retries", "a"),
        ("日期", "b"),
        ("列", "b"),
    ],
)
def test_a_person_finds_it_by_any_word_of_it(ledger, words, session):
    """What a command said and printed counts, what was edited, and other forms of a word."""
    remembered(ledger, "a", MISSING, (AGAIN, "accepted"))
    remembered(ledger, "b", CHINESE, (LONGER, "rejected"))
    remembered(ledger, "c", OTHER, (LONGER, "rejected"))

    assert search(ledger, words)[0]["session"] == session


def test_a_failure_is_compared_by_its_kind_alone(ledger):
    """What was printed and edited in another task says nothing of this one's like."""
    remembered(ledger, "a", MISSING, (AGAIN, "accepted"))
    printed = Diagnosis("x", FailureClass.FLAKY, "retries No such file", "s9")

    assert not recall(ledger, "mine", "9999")(printed).tried


def test_what_helped_ranks_before_what_did_not(ledger):
    """Of two proposals the one whose like was accepted is tried first; the unknown lies between."""
    for session in "abc":
        remembered(ledger, session, SLOW, (AGAIN, "rejected"), (LONGER, "accepted"))
    memory = recall(ledger, "mine", "9999")(LIKE_SLOW)

    ranks = [memory.rank(Proposal((edit,), "", "")) for edit in (LONGER, AGAIN)]
    new = memory.rank(Proposal((), "", "", redraft="x"))

    assert ranks[0] < new < ranks[1]
    assert "`set_timeout` was accepted 3 of 3 times" in memory.lines()


def test_a_session_knows_only_what_was_known_when_it_began(ledger):
    """Its own edits and later ones do not count: resumed, it decides the same again."""
    remembered(ledger, "mine", SLOW, (LONGER, "accepted"))

    assert not recall(ledger, "mine", "9999")(LIKE_SLOW).tried
    assert not recall(ledger, "other", "2000-01-01T00:00:00Z")(LIKE_SLOW).tried
    assert recall(ledger, "other", "9999")(LIKE_SLOW).tried


def test_a_planner_reads_figures_and_nothing_of_other_tasks(ledger):
    """What it is told holds operations and counts only."""
    remembered(ledger, "a", SLOW, (LONGER, "accepted"))

    lines = recall(ledger, "mine", "9999")(LIKE_SLOW).lines()

    assert lines == ("`set_timeout` was accepted 1 of 1 times",)
