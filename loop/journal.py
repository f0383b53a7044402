"""What happened, written down as it happens: one record a round, one an edit that was tried.

A record is on disk before the next act begins. All that the loop knows of its past it reads from
here, so a killed session goes on as if nothing had been.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from loop.diagnose import Diagnosis
from loop.edits import Proposal, edit_data, parse_edit
from loop.evidence import Trial
from loop.order import Order
from openry.clock import utc_now
from openry.ledger import loops
from openry.ledger.db import Ledger


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate's verdict. `note` says what was compared, or why it was refused.

    `indecisive` marks a gate that could not show anything either way; it does not refuse.
    """

    name: str
    passed: bool
    note: str = ""
    indecisive: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One proposal that was tried in a round, and what the gates said.

    Attributes:
        text: The workflow it leads to; empty when it could not even be written.
        verdict: `accepted`, `rejected` or `waiting` (for a person); later also `reverted` (by a
            certification or a person) or `pruned`.
        reviewer: Who looked at it; empty while nobody has.
        trial: The whole run, where it came to one.
    """

    round: int
    position: int
    proposal: Proposal
    signature: str
    text: str
    diff: str
    gates: tuple[Gate, ...]
    verdict: str
    reason: str
    trial: Trial | None = None
    reviewer: str = ""

    @property
    def accepted(self) -> bool:
        return self.verdict == "accepted"


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of the loop: what was wrong, what it led to, how the workflow stands after it.

    Round 0 is the draft and its first run; it has no diagnosis.

    Attributes:
        verdict: `accepted`, `nothing accepted`, `reverted` (a certification took edits back) or
            `pruned` (edits without an effect were taken out); of round 0 how its run ended.
        gates: What was found of the workflow as a whole: certification and pruning.
        runs: (passed, all) of the whole runs by which it was certified.
    """

    number: int
    text: str
    trial: Trial
    verdict: str
    diagnosis: Diagnosis | None = None
    seconds: float = 0.0
    tokens: int = 0
    cost_usd: float = 0.0
    gates: tuple[Gate, ...] = ()
    runs: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class History:
    """A session as the journal has it."""

    session: Mapping[str, Any]
    rounds: tuple[Round, ...]
    attempts: tuple[Attempt, ...]
    times: Mapping[int, str] = field(default_factory=dict)

    @property
    def current(self) -> Round | None:
        return self.rounds[-1] if self.rounds else None

    @property
    def open_attempts(self) -> tuple[Attempt, ...]:
        """What was tried in a round that never came to its record."""
        last = self.rounds[-1].number if self.rounds else -1
        return tuple(each for each in self.attempts if each.round > last)

    def of_round(self, number: int) -> tuple[Attempt, ...]:
        return tuple(each for each in self.attempts if each.round == number)

    @property
    def accepted(self) -> tuple[Attempt, ...]:
        """The edits that stand, in the order they were taken."""
        return tuple(each for each in self.attempts if each.accepted)


class Journal:
    """The records of one session. Every method has written when it returns."""

    def __init__(self, ledger: Ledger, session_id: str) -> None:
        self.ledger = ledger
        self.session_id = session_id

    @classmethod
    def begin(cls, ledger: Ledger, session_id: str, values: Mapping[str, Any]) -> Self:
        """Write a new session; `values` are columns of `loop_sessions`."""
        loops.create(ledger, session_id, values)
        return cls(ledger, session_id)

    def note(self, **values: Any) -> None:
        """Set columns of the session."""
        loops.change(self.ledger, self.session_id, values)

    def end(self, state: str, **values: Any) -> None:
        """The session is over (`ended`), or stands still (`interrupted`, `waiting`)."""
        ended = {"ended_at": utc_now()} if state == "ended" else {}
        loops.change(self.ledger, self.session_id, {"state": state, **ended, **values})

    def attempt(self, attempt: Attempt) -> None:
        """Write one proposal and its verdict."""
        proposal = attempt.proposal
        edits = [edit_data(edit) for edit in proposal.edits]
        row = {
            "round": attempt.round,
            "position": attempt.position,
            "operation": edits[0]["op"] if edits else "redraft",
            "step_id": edits[0]["step"] if edits else "",
            "arguments": {"edits": edits, "redraft": proposal.redraft, "why": proposal.why},
            "origin": proposal.origin,
            "signature": attempt.signature,
            "diff": attempt.diff,
            "after_hash": text_hash(attempt.text),
            "gates": [asdict(gate) for gate in attempt.gates],
            "verdict": attempt.verdict,
            "reason": attempt.reason,
            "data": {
                "text": attempt.text,
                "trial": attempt.trial.to_data() if attempt.trial else None,
            },
        }
        loops.add_edit(self.ledger, self.session_id, row)

    def judged(self, attempt: Attempt, verdict: str, **values: Any) -> None:
        """Write that an attempt's verdict is another one from now on."""
        place = (attempt.round, attempt.position)
        loops.change_edit(self.ledger, self.session_id, place, {"verdict": verdict, **values})

    def certified(self, number: int, gates: Sequence[Gate], runs: tuple[int, int]) -> None:
        """Write what was found of a round's workflow as a whole."""
        found = [asdict(gate) for gate in gates]
        loops.change_round(self.ledger, self.session_id, number, {"gates": found}, runs)

    def round(self, round_: Round, *, edits: int, started_at: str) -> None:
        """Write one round, and what it makes of the session: best text, counts, costs."""
        trial, diagnosis = round_.trial, round_.diagnosis
        row = {
            "number": round_.number,
            "kind": "draft" if round_.number == 0 else "edit",
            "workflow_text": round_.text,
            "workflow_hash": text_hash(round_.text),
            "instance_id": trial.instance_id,
            "snapshot_before": trial.before,
            "snapshot_after": trial.after,
            "outcome": trial.state,
            "signature": diagnosis.signature if diagnosis else "",
            "failure_class": str(diagnosis.failure_class) if diagnosis else "",
            "diagnosis": diagnosis.to_data() if diagnosis else None,
            "verdict": round_.verdict,
            "gates": [asdict(gate) for gate in round_.gates],
            "data": {"trial": trial.to_data(), "runs": list(round_.runs)},
            "tokens": round_.tokens,
            "cost_usd": round_.cost_usd,
            "seconds": round_.seconds,
            "started_at": started_at,
            "ended_at": utc_now(),
        }
        session = {
            "workflow_text": round_.text,
            "best_round": round_.number,
            "rounds": round_.number,
            "edits": edits,
        }
        loops.add_round(self.ledger, self.session_id, row, session)

    def history(self) -> History | None:
        """All that was written, or None when there is no such session."""
        session = loops.session(self.ledger, self.session_id)
        if session is None:
            return None
        rounds = loops.rounds(self.ledger, self.session_id)
        edits = loops.edits(self.ledger, self.session_id)
        return History(
            session,
            tuple(map(_round, rounds)),
            tuple(map(_attempt, edits)),
            {row["number"]: row["ended_at"] for row in rounds},
        )


def text_hash(text: str) -> str:
    """The name of a workflow text."""
    return hashlib.sha256(text.encode()).hexdigest()


def made_before(ledger: Ledger, order: Order) -> frozenset[str]:
    """Files that the same sentence made in this folder when it was said before.

    They are its results this time as well: not what it reads, though they are there.
    """
    for row in loops.sessions(ledger):
        same = (row["task"], row["directory"]) == (order.task, order.directory)
        if same and row["outcome"] == "converged":
            return frozenset((row["data"] or {}).get("made", ()))
    return frozenset()


def _round(row: Mapping[str, Any]) -> Round:
    diagnosis = row["diagnosis"]
    return Round(
        row["number"],
        row["workflow_text"],
        Trial.from_data(row["data"]["trial"]),
        row["verdict"],
        Diagnosis.from_data(diagnosis) if diagnosis else None,
        row["seconds"],
        row["tokens"],
        row["cost_usd"],
        tuple(Gate(**gate) for gate in row["gates"]),
        _pair(row["data"].get("runs", (0, 0))),
    )


def _attempt(row: Mapping[str, Any]) -> Attempt:
    arguments, trial = row["arguments"], row["data"]["trial"]
    proposal = Proposal(
        tuple(parse_edit(each) for each in arguments["edits"]),
        row["origin"],
        arguments["why"],
        arguments["redraft"],
    )
    return Attempt(
        row["round"],
        row["position"],
        proposal,
        row["signature"],
        row["data"]["text"],
        row["diff"],
        tuple(Gate(**gate) for gate in row["gates"]),
        row["verdict"],
        row["reason"],
        Trial.from_data(trial) if trial else None,
        row["reviewer"],
    )


def _pair(data: Sequence[int]) -> tuple[int, int]:
    passed, runs = data
    return passed, runs
