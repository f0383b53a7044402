"""Carry a review out: certify what the decisions lead to, then write it, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loop import shelf
from loop.apply import check_text
from loop.diagnose import said
from loop.events import diff
from loop.evidence import Trial
from loop.journal import Attempt, Gate, History, Journal, Round
from loop.order import Order
from loop.provenance import place, provenance
from loop.review import Decision, Outcome, outcome, shown
from loop.runner import EngineRunner, closing
from loop.second import second_reading
from loop.understanding import unsealed
from openry.clock import utc_now
from openry.errors import BadFileError, UsageError

if TYPE_CHECKING:
    from loop.kit import Kit


@dataclass(frozen=True, slots=True)
class Reviewed:
    """How a review ended.

    Attributes:
        certified: The workflow was run and is at least as good as before. False: nothing was
            written.
        sentence: What a person should know.
    """

    session: str
    certified: bool
    sentence: str
    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    workflow: str = ""

    @property
    def exit_status(self) -> int:
        return 0 if self.certified else 1

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "schema_version": 1}


def carry_out(kit: Kit, history: History, decisions: Sequence[Decision], reviewer: str) -> Reviewed:
    """Run what the decisions lead to against the sealed acceptance, and write it if it holds.

    Raises:
        BadFileError: The decisions do not lead to a workflow that loads.
        UsageError: Somebody changed the workflow file by hand, or the session has not run.
    """
    current = history.current
    if current is None:
        raise UsageError("nothing ran in this session, so there is nothing to review")
    where = _untouched(history)
    decided = outcome(history, decisions)
    problems = check_text(decided.text, kit.registry, history.rounds[0].text)
    if problems:
        raise BadFileError("", problems)
    trial = current.trial
    if decided.text != current.text:
        trial = _run(kit, history, decided.text)
    names = _names(history, decisions)
    session = history.session["session_id"]
    allowed = trial.acceptable or trial.score >= current.trial.score
    if not allowed:
        return Reviewed(session, False, f"nothing was written: {_worse(trial)}")
    after = _write(kit, history, decided, decisions, trial, reviewer)
    workflow, sentence = _saved(kit, after, trial, where, reviewer)
    return replace(names, session=session, certified=True, sentence=sentence, workflow=workflow)


def _untouched(history: History) -> Path | None:
    """The saved workflow, if there is one.

    Raises:
        UsageError: It is not as the loop wrote it.
    """
    path = Path(history.session["workflow_path"] or "")
    if not path.is_file():
        return None
    if not shelf.is_as_written(path, history):
        raise UsageError(
            f"`{path}` was edited by hand since: `openry-loop blame` shows the lines; put the file"
            " back as it was, or start from it with `openry-loop new --from`"
        )
    return path


def _run(kit: Kit, history: History, text: str) -> Trial:
    """One run of `text` on the session's snapshot, judged by its sealed acceptance."""
    session = history.session
    order = Order.from_data(session["settings"])
    folder = kit.config.home / "loops" / session["session_id"]
    with kit.open_copy(session["snapshot_id"], folder / "review") as base:
        wanted = second_reading(order.task, kit.survey(base), base)
    runner = EngineRunner(
        kit,
        session["session_id"],
        session["snapshot_id"],
        unsealed(session),
        folder / "review",
        kit.models(order, session["session_id"]),
        wanted=wanted,
        on_step=lambda event: None,
        should_stop=lambda: False,
    )
    with closing(runner):
        return runner.run(text)


def _write(
    kit: Kit,
    history: History,
    decided: Outcome,
    decisions: Sequence[Decision],
    trial: Trial,
    reviewer: str,
) -> History:
    """The decisions and the workflow they lead to, in the journal."""
    session_id = history.session["session_id"]
    journal = Journal(kit.ledger, session_id)
    seen: dict[str, Any] = {"reviewer": reviewer, "reviewed_at": utc_now()}
    said_of = {each.hunk: each.decision for each in decisions}
    proposals = {place(each): proposal for each, proposal in decided.kept}
    for attempt in shown(history):
        decision = said_of.get(place(attempt), "skip")
        if decision == "skip":
            continue
        if decision == "accept":
            journal.judged(attempt, "accepted", **seen)
            continue
        journal.judged(attempt, "reverted", reason=f"{decision}ed by {reviewer}", **seen)
        if decision == "edit":
            new = _edited(attempt, proposals[place(attempt)], history, trial)
            journal.attempt(new)
            journal.judged(new, "accepted", **seen)
    assert history.current is not None, "asked before"
    if decided.text != history.current.text:
        gate = Gate("G5", True, f"run again after a review by {reviewer}")
        number = history.current.number + 1
        round_ = Round(number, decided.text, trial, "reviewed", gates=(gate,), runs=(1, 1))
        journal.round(round_, edits=len(decided.kept), started_at=utc_now())
    after = journal.history()
    assert after is not None, "the session is there"
    return after


def _edited(attempt: Attempt, proposal: Any, history: History, trial: Trial) -> Attempt:
    """The edit in a person's form, behind the one it replaces."""
    last = max(each.position for each in history.of_round(attempt.round))
    before = _before(attempt, history)
    gate = Gate("G5", True, "run again after the review")
    return replace(
        attempt,
        position=last + 1,
        proposal=proposal,
        text=trial.text,
        diff=diff(before, trial.text),
        gates=(gate,),
        verdict="accepted",
        reason="edited in review",
        trial=trial,
    )


def _before(attempt: Attempt, history: History) -> str:
    earlier = [each.text for each in history.rounds if each.number < attempt.round]
    return earlier[-1] if earlier else history.rounds[0].text


def _saved(
    kit: Kit, after: History, trial: Trial, where: Path | None, reviewer: str
) -> tuple[str, str]:
    """Write the workflow where it belongs; (its path, what to say)."""
    session, current = after.session, after.current
    assert current is not None, "asked before"
    journal = Journal(kit.ledger, session["session_id"])
    order = Order.from_data(session["settings"])
    folder = kit.config.home / "workflows"
    if not trial.acceptable:
        path = shelf.keep_best(kit.config.home / "loops" / session["session_id"], after)
        journal.end("interrupted", ended_at=None, workflow_path=str(path))
        return str(path), f"written down; go on with `openry-loop resume {session['session_id']}`"
    if where is None or where.parent != folder:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        where = shelf.place_for(folder, session["name"], chosen=False, text=current.text)
    notes: Mapping[str, Any] = {
        "acceptance_strength": session["acceptance_strength"] or "weak",
        "weak_because": session["weak_because"],
        "reviewer": reviewer,
    }
    prov = provenance(after, current, order, stop=session["stop"], strength=notes)
    shelf.write(where, current.text, prov)
    ended = {"outcome": "converged", "stop": session["stop"] or "reviewed"}
    journal.end("ended", workflow_path=str(where), **ended)
    return str(where), "certified again and written"


def _names(history: History, decisions: Sequence[Decision]) -> Reviewed:
    said_of = {each.hunk: each.decision for each in decisions}
    found: dict[str, list[str]] = {"accepted": [], "rejected": [], "edited": [], "skipped": []}
    words = {"accept": "accepted", "reject": "rejected", "edit": "edited", "skip": "skipped"}
    for attempt in shown(history):
        found[words[said_of.get(place(attempt), "skip")]].append(place(attempt))
    return Reviewed(
        session="",
        certified=False,
        sentence="",
        accepted=tuple(found["accepted"]),
        rejected=tuple(found["rejected"]),
        edited=tuple(found["edited"]),
        skipped=tuple(found["skipped"]),
    )


def _worse(trial: Trial) -> str:
    """Why a run is not good enough, in words."""
    broken = [said(rule) for rule in trial.hard if not rule.passed]
    stuck = next((step for step in trial.steps if step.ran and not step.passed), None)
    if stuck is not None:
        why = stuck.error or stuck.reason or "; ".join(map(said, stuck.broken_rules))
        broken.insert(0, f"step `{stuck.id}` fails: {why}")
    return "; ".join(broken)[:500] or f"the run ended `{trial.state}`"
