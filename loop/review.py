"""What a person reviews: each edit of a session as one hunk, and what their decisions lead to.

Values only; `reviewing` carries decisions out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import ValidationError

from loop.apply import apply
from loop.edits import Edit, Proposal, edit_data, parse_edit
from loop.journal import Attempt, History
from loop.provenance import failure_of, place
from openry.errors import BadFileError

DECISIONS = ("accept", "reject", "edit", "skip")
#: Verdicts of edits that a person may look at: those that stand, wait, or were decided on.
_SHOWN = ("accepted", "waiting")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One edit as a person sees it.

    Attributes:
        name: `ROUND.POSITION`.
        verdict: `accepted` or `waiting`.
        failure: Why there was anything to edit.
        command: The command that shows the failure, and what came back.
        gates: What every gate said.
        cost: Tokens and USD of the round.
    """

    name: str
    verdict: str
    summary: str
    origin: str
    why: str
    failure: str
    command: str
    diff: str
    gates: tuple[str, ...]
    cost: str
    edits: tuple[dict[str, Any], ...]
    reviewer: str

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person says to one hunk; `edits` only where they edited it."""

    hunk: str
    decision: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What decisions make of a session's edits.

    Attributes:
        kept: Edits that stand, in their order, each with what it now proposes.
        rejected: Edits that go.
        text: The workflow with `kept` alone.
    """

    kept: tuple[tuple[Attempt, Proposal], ...]
    rejected: tuple[Attempt, ...]
    text: str


def hunks(history: History) -> tuple[Hunk, ...]:
    """All that a person may decide on, in the order it was made."""
    return tuple(_hunk(each, history) for each in shown(history))


def shown(history: History) -> tuple[Attempt, ...]:
    """The attempts behind `hunks`."""
    return tuple(each for each in history.attempts if each.verdict in _SHOWN)


def waiting(history: History) -> tuple[Hunk, ...]:
    """Hunks that only a person may accept, and nobody has decided on."""
    return tuple(hunk for hunk in hunks(history) if hunk.verdict == "waiting")


def read_decisions(data: Any, history: History) -> tuple[Decision, ...]:
    """Decisions as `--decisions FILE` and the page write them.

    Raises:
        BadFileError: Every problem at once.
    """
    given = data.get("decisions") if isinstance(data, Mapping) else data
    if not isinstance(given, list):
        raise BadFileError('decisions: must be `{"decisions": [{"hunk": …, "decision": …}]}`')
    known = {place(each) for each in shown(history)}
    found, problems = [], []
    for number, each in enumerate(given):
        try:
            found.append(_decision(each, known))
        except BadFileError as error:
            problems.append(f"decisions[{number}]: {error}")
    names = [each.hunk for each in found]
    problems += [
        f"`{name}` is decided twice" for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    if problems:
        raise BadFileError("", tuple(problems))
    return tuple(found)


def read_edits(data: Any) -> tuple[Edit, ...]:
    """Edits as a person wrote them: one, or a list of up to three.

    Raises:
        BadFileError: What is wrong, and where.
    """
    listed = data if isinstance(data, list) else [data]
    if not 1 <= len(listed) <= 3:
        raise BadFileError("an edit is one to three operations; to have none, reject it")
    try:
        return tuple(parse_edit(each) for each in listed)
    except (ValidationError, TypeError, ValueError) as error:
        raise BadFileError(_first_line(error)) from error


def outcome(history: History, decisions: Sequence[Decision]) -> Outcome:
    """What the decisions lead to: the draft, and on it every edit that stands.

    Waiting edits stand only where they are accepted.

    Raises:
        BadFileError: An edit that stands rests on one that goes.
    """
    said = {each.hunk: each for each in decisions}
    kept: list[tuple[Attempt, Proposal]] = []
    gone: list[Attempt] = []
    for attempt in shown(history):
        decision = said.get(place(attempt), Decision(place(attempt), "skip"))
        if decision.decision == "reject":
            gone.append(attempt)
        elif decision.decision == "edit":
            proposal = Proposal(decision.edits, "person", "edited in review")
            kept.append((attempt, proposal))
        elif attempt.accepted or decision.decision == "accept":
            kept.append((attempt, attempt.proposal))
    return Outcome(tuple(kept), tuple(gone), _carried_out(history, kept, gone))


def _carried_out(
    history: History, kept: Sequence[tuple[Attempt, Proposal]], gone: Sequence[Attempt]
) -> str:
    text = history.rounds[0].text
    for attempt, proposal in kept:
        try:
            text = proposal.redraft or apply(text, proposal.edits)
        except BadFileError as error:
            earlier = [place(each) for each in gone if each.round <= attempt.round]
            hint = f" (it may rest on {', '.join(earlier)}: reject or edit both)" if earlier else ""
            raise BadFileError(
                f"edit {place(attempt)} cannot be carried out: {error}{hint}"
            ) from error
    return text


def _hunk(attempt: Attempt, history: History) -> Hunk:
    proposal = attempt.proposal
    round_ = next((each for each in history.rounds if each.number == attempt.round), None)
    command = round_.diagnosis.command if round_ and round_.diagnosis else None
    came = f"$ {command.command}\n{command.stderr or command.stdout}".rstrip() if command else ""
    return Hunk(
        place(attempt),
        attempt.verdict,
        proposal.summary,
        proposal.origin,
        proposal.why,
        failure_of(attempt, history),
        came,
        attempt.diff,
        tuple(
            f"{each.name} {_word(each.passed, each.indecisive)}: {each.note}"
            for each in attempt.gates
        ),
        f"{round_.tokens} tokens, {round_.cost_usd:.4f} USD" if round_ else "",
        tuple(edit_data(edit) for edit in proposal.edits),
        attempt.reviewer,
    )


def _word(passed: bool, indecisive: bool) -> str:
    return "indecisive" if indecisive else "passed" if passed else "refused"


def _decision(data: Any, known: set[str]) -> Decision:
    if not isinstance(data, Mapping):
        raise BadFileError("must be a mapping")
    hunk, said = str(data.get("hunk") or ""), str(data.get("decision") or "")
    if hunk not in known:
        raise BadFileError(f"no edit is called `{hunk}` (there are {', '.join(sorted(known))})")
    if said not in DECISIONS:
        raise BadFileError(f"`{said}` is no decision: use {', '.join(DECISIONS)}")
    edits = read_edits(data.get("edits") or []) if said == "edit" else ()
    return Decision(hunk, said, edits)


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"`{where}`: {first['msg']}" if where else str(first["msg"])
    return str(error).splitlines()[0]
