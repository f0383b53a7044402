"""Before a workflow is said to be good: certify it whole (G5), prune what does nothing (G6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loop import pairs
from loop.apply import apply
from loop.diagnose import rule_path
from loop.edits import Proposal
from loop.evidence import Trial
from loop.figures import sentence
from loop.journal import Attempt, Gate, History, Round
from loop.values import RuleData
from loop.work import Runner
from openry.errors import BadFileError

#: Certification comes after so many accepted edits, and at the end.
EVERY = 3
#: Edits that show no effect in one good run by their nature: they speak when something goes wrong.
_QUIET = frozenset(
    {"add_check", "strengthen_check", "set_output", "narrow_policy", "add_fallback", "set_retries",
     "set_timeout", "set_overflow"}
)  # fmt: skip

#: Runs a workflow whole; the second argument says which draw.
Run = Callable[[str, int], Trial]


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is left without the edits that do nothing.

    Attributes:
        text: The workflow without them.
        trial: Its run.
        dropped: The edits that were taken out.
        gate: What was found, in words.
    """

    text: str
    trial: Trial
    dropped: tuple[Attempt, ...]
    gate: Gate


def due(history: History, last: int) -> bool:
    """Whether so many edits were accepted since round `last` was certified that it is time."""
    since = [attempt for attempt in history.accepted if attempt.round > last]
    return len(since) >= EVERY


def certified(
    base: Round, current: Round, number: int, instances: int, run: Run
) -> pairs.Certified:
    """G5 for `current` beside `base`, the last round that was certified.

    Where no step asks a model one run decides; with a single instance dice are not tried.
    """
    if not (base.trial.asks_models or current.trial.asks_models):
        better = current.trial.score > base.trial.score
        gate = Gate("G5", True, "no step asks a model: one run each decides")
        return pairs.Certified(gate, better, False, int(current.trial.acceptable), 1)
    if instances <= 1:
        note = "one run of a model certifies nothing; `--instances N` asks for more"
        gate = Gate("G5", True, note, indecisive=True)
        return pairs.Certified(gate, False, False, int(current.trial.acceptable), 1)
    if base.text == current.text:
        outcomes = [current.trial, *(run(current.text, draw) for draw in range(1, instances))]
        passed = sum(trial.acceptable for trial in outcomes)
        gate = Gate("G5", True, sentence(passed, instances), indecisive=True)
        return pairs.Certified(gate, False, False, passed, instances)

    def both() -> Iterator[pairs.Pair]:
        yield base.trial.acceptable, current.trial.acceptable
        for draw in range(1, instances):
            yield run(base.text, draw).acceptable, run(current.text, draw).acceptable

    return pairs.certify(both, number, (instances,))


def prune(history: History, current: Round, run: Run) -> Pruned | None:
    """G6: every accepted edit taken back alone; what shows no effect is dropped or marked.

    Nothing is dropped where dice had a part, or where the edit is a guard against what did not
    happen: such an edit is named for the reviewer. None where there is nothing to try.
    """
    edits = history.accepted
    if len(edits) < 2 or not current.trial.acceptable:
        return None
    base = _birth(history)
    edits = tuple(edit for edit in edits if edit.round > base.number)
    text, trial, dropped, marked = current.text, current.trial, list[Attempt](), list[str]()
    for edit in edits[:-1]:  # without the last one it is its parent, which was worse
        left = [each for each in edits if each is not edit and each not in dropped]
        without = rebuilt(base.text, [each.proposal for each in left])
        if without is None or _quiet(edit.proposal):
            continue
        found = run(without, 0)
        if found.score < trial.score:
            continue
        if found.asks_models:
            marked.append(f"{edit.proposal.summary[:80]}: no effect in one run")
        else:
            text, trial = without, found
            dropped.append(edit)
    gone = [f"without effect, taken out: {each.proposal.summary[:80]}" for each in dropped]
    note = "; ".join([*gone, *marked]) or "every edit has an effect of its own"
    return Pruned(text, trial, tuple(dropped), Gate("G6", True, note, indecisive=bool(marked)))


def made_up(trial: Trial, task: str, hard: Sequence[RuleData], runner: Runner) -> str:
    """The step whose result never changes with its input, in a sentence; empty where none is known.

    For a workflow that a model drafted: its edits are tried so by G3, its draft by nothing else.
    What the task itself says word for word may be written as it stands.
    """
    judged = tuple(dict.fromkeys(path for path in map(rule_path, hard) if path))
    payload: Mapping[str, Any] = {}
    for step in trial.steps:
        paths = [path for path in judged if path in step.changed]
        given, payload = payload, step.payload
        if step.kind == "agent" or not step.snapshot or not paths:
            continue
        with runner.open_copy(trial.after) as folder:
            paths = [path for path in paths if not _said(folder / path, task)]
        if paths and not runner.depends(trial.text, step.id, step.snapshot, given, paths):
            return f"step `{step.id}` writes the same {paths[0]} whatever the files hold"
    return ""


def _said(place: Path, task: str) -> bool:
    """Whether a file holds only what the task says."""
    try:
        words = place.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return True
    return words in task


def rebuilt(text: str, proposals: Sequence[Proposal]) -> str | None:
    """`text` with proposals carried out in their order; None where one rests on another."""
    try:
        for proposal in proposals:
            text = proposal.redraft or apply(text, proposal.edits)
    except BadFileError:
        return None
    return text


def _birth(history: History) -> Round:
    """The latest round whose text was written whole: the draft, or a redraft."""
    whole = [attempt.round for attempt in history.accepted if attempt.proposal.redraft]
    number = max(whole, default=0)
    return next(each for each in history.rounds if each.number == number)


def _quiet(proposal: Proposal) -> bool:
    return all(edit.op in _QUIET for edit in proposal.edits)
