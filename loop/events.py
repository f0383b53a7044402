"""What the loop tells while it works: plain data, for `--json`, the live view and `show`."""

from __future__ import annotations

import difflib
from typing import Any

from loop.edits import Proposal
from loop.journal import Attempt, Gate, Round


def diff(old: str, new: str) -> str:
    """A unified diff with one line of context."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), "before", "after", n=1, lineterm=""
    )
    return "\n".join(lines)


def trying_event(proposal: Proposal) -> dict[str, Any]:
    """What is said of a proposal before the gates look at it."""
    return {"edit": proposal.summary, "origin": proposal.origin, "why": proposal.why}


def attempt_event(attempt: Attempt) -> dict[str, Any]:
    """What `--json` and the live view say of an attempt."""
    return {
        "round": attempt.round,
        "edit": attempt.proposal.summary,
        "origin": attempt.proposal.origin,
        "why": attempt.proposal.why,
        "verdict": attempt.verdict,
        "reason": attempt.reason,
        "diff": attempt.diff,
        "gates": [{"gate": g.name, "passed": g.passed, "note": g.note} for g in attempt.gates],
    }


def judged_event(round_: Round, gate: Gate) -> dict[str, Any]:
    """What is said of a workflow as a whole: its certification, or what pruning found."""
    return {
        "round": round_.number,
        "gate": gate.name,
        "passed": gate.passed,
        "indecisive": gate.indecisive,
        "note": gate.note,
        "models": round_.trial.asks_models,
    }


def round_event(round_: Round) -> dict[str, Any]:
    """What `--json` and the live view say of a round."""
    trial = round_.trial
    return {
        "round": round_.number,
        "verdict": round_.verdict,
        "state": trial.state,
        "steps": {step.id: step.state for step in trial.steps},
        "held": sum(rule.passed for rule in trial.hard),
        "rules": len(trial.hard),
        "seconds": round_.seconds,
        "tokens": round_.tokens,
        "cost_usd": round_.cost_usd,
        "instance": trial.instance_id,
    }
