"""Finished workflows and where their lines came from."""

from __future__ import annotations

import pytest

from loop import report
from loop.edits import Proposal, ToShell
from loop.evidence import StepRun, Trial
from loop.journal import Attempt, Gate, History, Round
from loop.provenance import confidence
from loop.shelf import place_for
from openry.errors import UsageError
from openry.models import RuleResult


def test_a_name_of_ours_gives_way(tmp_path):
    """Nothing on the shelf is overwritten by a name that nobody chose."""
    (tmp_path / "a.yaml").write_text("x")

    assert place_for(tmp_path, "a", chosen=False) == tmp_path / "a-2.yaml"
    assert place_for(tmp_path, "a", chosen=False, text="x") == tmp_path / "a.yaml"


def test_whatever_has_the_name_is_left_alone(tmp_path):
    """A folder, and a file that is no text."""
    (tmp_path / "count.yaml").mkdir()
    (tmp_path / "count-2.yaml").write_bytes(b"\xff")

    assert place_for(tmp_path, "count", chosen=False, text="x").name == "count-3.yaml"


def test_a_chosen_name_that_is_taken_is_refused(tmp_path):
    """Whoever names a workflow hears that the name is taken."""
    (tmp_path / "a.yaml").write_text("x")

    with pytest.raises(UsageError, match="--name"):
        place_for(tmp_path, "a", chosen=True)


def test_confidence_claims_no_more_than_one_run_shows():
    """One run of a model says little; a run without a model says that it repeats."""
    model = Round(0, "", Trial("", "completed", (StepRun("a", "agent", "done"),)), "satisfied")
    plain = Round(0, "", Trial("", "completed", (StepRun("a", "shell", "done"),)), "satisfied")

    assert "at least 5%" in confidence(model)
    assert "no step asks a model" in confidence(plain)


def test_the_report_is_one_page_that_loads_nothing():
    """Plan, chart, failure, edit and gate are there; no script, no address."""
    session = {
        "session_id": "s1",
        "name": "w",
        "task": "count <lines> & more",
        "directory": "folder",
        "state": "ended",
        "outcome": "converged",
        "stop": "target_met",
        "acceptance": {"hard": [{"type": "file_exists", "path": "a b.txt"}]},
        "acceptance_origin": "given",
        "acceptance_strength": "weak",
        "weak_because": ["a rival passes"],
        "goals": ["count lines"],
        "tokens": 7,
        "cost_usd": 0.25,
        "seconds": 1.5,
        "workflow_path": "",
        "workflow_text": "name: w",
        "results": ["out.txt"],
    }
    failed = Trial("", "failed", (StepRun("a", "shell", "failed", reason="boom", attempts=1),))
    done = Trial("", "completed", (), hard=(RuleResult("file_exists", True),))
    gates = (Gate("G0", True, "fine"),)
    attempt = Attempt(
        1, 0, Proposal((ToShell(step="a", command="x < y"),), "rule:r", "w"), "sig", "t",
        "-old\n+new", gates, "accepted", "better", done,
    )  # fmt: skip
    history = History(
        session, (Round(0, "t", failed, "failed"), Round(1, "u", done, "accepted")), (attempt,)
    )

    page = report.html(history)

    assert "count &lt;lines&gt; &amp; more" in page
    for word in ("<svg", "boom", "to_shell", "G0", "a rival passes", "count lines", "x &lt; y"):
        assert word in page
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page
