"""Whence each line of a finished workflow came: NAME.prov.json beside NAME.yaml, and `blame`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loop.edits import edit_data
from loop.evidence import Trial
from loop.figures import sentence
from loop.finishing import rebuilt
from loop.journal import Attempt, History, Round, text_hash
from loop.order import Order
from openry.errors import BadFileError, NotFoundError
from openry.files import must_be_file

SCHEMA_VERSION = 2
#: Who wrote a line that is not the loop's.
BY_HAND = "by hand"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a workflow and what put it there.

    Attributes:
        edit: `ROUND.POSITION` of the edit; empty for the draft's own lines.
        origin: `draft`, `given`, `by hand`, or who proposed the edit.
        round: The round that accepted it; 0 for the draft.
        instance: The run that speaks for it.
        why: The edit's reason, and the failure it answers.
        reviewer: Who looked at it; empty while nobody has.
    """

    number: int
    text: str
    edit: str = ""
    origin: str = ""
    round: int = 0
    instance: str = ""
    why: str = ""
    reviewer: str = ""


def provenance(
    history: History, round_: Round, order: Order, *, stop: str, strength: Mapping[str, Any]
) -> dict[str, Any]:
    """The whole file: the session's facts, every edit that stands, and each line's origin."""
    return {
        "schema_version": SCHEMA_VERSION,
        "session": history.session["session_id"],
        "task": order.task,
        "planner": order.planner,
        "model": order.model,
        "acceptance": history.session["acceptance"],
        "acceptance_hash": history.session["acceptance_hash"],
        **strength,
        "stop": stop,
        "workflow_hash": text_hash(round_.text),
        "confidence": confidence(round_),
        "certification": [asdict(gate) for gate in round_.gates],
        "evidence": round_.trial.instance_id,
        "draft": {"origin": _born(order), "evidence": history.rounds[0].trial.instance_id},
        "edits": [_edit(each, history) for each in history.accepted],
        "lines": lines(history, round_.text),
        "text": round_.text,
    }


def lines(history: History, text: str) -> list[dict[str, Any]]:
    """For each line of `text` the edit that wrote it; `null` for the draft's own.

    Edits are carried out one by one, as they stand now, on the draft. What they do not explain
    belongs to nobody known (`?`).
    """
    known = [(history.rounds[0].text, "")]
    done: list[Attempt] = []
    for attempt in history.accepted:
        done.append(attempt)
        after = rebuilt(history.rounds[0].text, [each.proposal for each in done])
        known.append((after if after is not None else attempt.text, place(attempt)))
    known.append((text, "?"))
    return [
        {"line": number, "edit": owner or None}
        for number, owner in enumerate(_owners(known), start=1)
    ]


def place(attempt: Attempt) -> str:
    """An edit's name within its session, e.g. `2.0`: round and position."""
    return f"{attempt.round}.{attempt.position}"


def confidence(round_: Round | None) -> str:
    """What the whole runs of a round say: nothing more than they do."""
    if round_ is None:
        return ""
    if not round_.trial.asks_models:
        return "no step asks a model: the same input gives the same result"
    passed, runs = round_.runs if round_.runs[1] else (1, 1)
    return sentence(passed, runs)


def blame(path: Path) -> tuple[Line, ...]:
    """Each line of a workflow file with its origin; what was changed since is `by hand`.

    Raises:
        NotFoundError: There is no such file, or nothing is known of it.
        BadFileError: What is known of it cannot be read.
    """
    notes = path.with_suffix(".prov.json")
    try:
        must_be_file(path)
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"`{path}` cannot be read as a workflow") from error
    if not notes.is_file():
        raise NotFoundError(
            f"`{notes}` does not exist: only workflows that the loop saved know whence they are"
        )
    try:
        data = json.loads(notes.read_text("utf-8"))
        return _blamed(data, text)
    except (ValueError, KeyError, TypeError) as error:
        raise BadFileError(f"{notes}: is no provenance of this version: {error}") from error


def _blamed(data: Mapping[str, Any], text: str) -> tuple[Line, ...]:
    edits = {each["edit"]: each for each in data["edits"]}
    before = str(data["text"]).splitlines()
    owners: list[str | None] = [each["edit"] for each in data["lines"]]
    found: list[Line] = []
    after = text.splitlines()
    for tag, i1, i2, j1, j2 in _opcodes(before, after):
        for offset in range(j2 - j1):
            number, content = j1 + offset + 1, after[j1 + offset]
            if tag != "equal" or i2 == i1:
                found.append(Line(number, content, origin=BY_HAND))
                continue
            found.append(_line(number, content, owners[i1 + offset], edits, data))
    return tuple(found)


def _line(
    number: int,
    text: str,
    owner: str | None,
    edits: Mapping[str, Mapping[str, Any]],
    data: Mapping[str, Any],
) -> Line:
    if owner is None:
        draft = data["draft"]
        return Line(number, text, origin=draft["origin"], instance=draft["evidence"])
    edit = edits.get(owner)
    if edit is None:
        return Line(number, text, origin="?")
    why = "; ".join(filter(None, (edit["failure"], edit["why"])))
    return Line(
        number,
        text,
        owner,
        edit["origin"],
        edit["round"],
        edit["evidence"],
        why,
        edit["reviewer"],
    )


def blame_text(lines: Sequence[Line]) -> str:
    """The table that a person reads: origin before each line, and below why each edit was made."""
    wide = max((len(line.origin) for line in lines), default=0)
    shown = [
        f"{line.edit or '-':>5}  {line.origin:<{wide}}  {line.text}".rstrip() for line in lines
    ]
    edits = {line.edit: line for line in lines if line.edit}
    if edits:
        shown.append("")
    for name, line in sorted(edits.items()):
        reviewer = f", reviewed by {line.reviewer}" if line.reviewer else ""
        shown.append(f"{name}: {line.why} [{line.origin}, run {line.instance or '-'}{reviewer}]")
    return "\n".join(shown)


def failure_of(attempt: Attempt, history: History) -> str:
    """The failure that led to an edit, in one sentence."""
    round_ = next((each for each in history.rounds if each.number == attempt.round), None)
    return round_.diagnosis.cause if round_ and round_.diagnosis else ""


def _edit(attempt: Attempt, history: History) -> dict[str, Any]:
    proposal = attempt.proposal
    trial: Trial | None = attempt.trial
    return {
        "edit": place(attempt),
        "round": attempt.round,
        "edits": [edit_data(edit) for edit in proposal.edits],
        "redraft": bool(proposal.redraft),
        "origin": proposal.origin,
        "why": proposal.why,
        "failure": failure_of(attempt, history),
        "signature": attempt.signature,
        "evidence": trial.instance_id if trial else "",
        "gates": [asdict(gate) for gate in attempt.gates],
        "reviewer": attempt.reviewer,
    }


def _owners(texts: Sequence[tuple[str, str]]) -> list[str]:
    """Who wrote each line of the last text: the first of `texts` in which it stood so."""
    owners: list[str] = []
    before: list[str] = []
    for text, owner in texts:
        after = text.splitlines()
        grown: list[str] = []
        for tag, i1, i2, j1, j2 in _opcodes(before, after):
            grown += owners[i1:i2] if tag == "equal" else [owner] * (j2 - j1)
        owners, before = grown, after
    return owners


def _opcodes(before: Sequence[str], after: Sequence[str]) -> Any:
    return difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()


def _born(order: Order) -> str:
    return "given" if order.source else "draft"
