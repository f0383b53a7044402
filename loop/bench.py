"""Run a suite of small tasks whose right results the loop never sees, and say how it did.

A suite is a JSONL file: `id`, `task`, `files` (the folder), `accept` (what the person states) and
`expect` (hidden; compared after folding white space), or `everyday`, our own: each kind of task
makes an instance of a seed, and where nothing can be done nothing may be delivered.

Arms are never mixed in one row: `full` is the loop, `draft` its first draft left as it is,
`single_shot` and `best_of_12` the same small model writing shell commands freely through the hand.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from loop import start
from loop.kit import Kit
from loop.order import Order
from loop.suites.making import Wanted
from loop.values import RuleData
from openry.clock import monotonic
from openry.errors import BadFileError, OpenRYError, UsageError

ARMS = ("full", "draft", "single_shot", "best_of_12")
_BEST_OF = 12
#: The name of our own suite.
OWN = "everyday"


@dataclass(frozen=True, slots=True)
class Case:
    """One task of a suite."""

    id: str
    task: str
    files: Mapping[str, str]
    accept: tuple[RuleData, ...]
    expect: Mapping[str, Wanted]


@dataclass(frozen=True, slots=True)
class Score:
    """How one arm did on one task. `wrong` shows the first difference; empty when right."""

    id: str
    arm: str
    right: bool
    outcome: str
    strength: str = ""
    rounds: int = 0
    edits: int = 0
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    wrong: str = ""
    task: str = ""

    @property
    def silent_wrong(self) -> bool:
        """Said to be done, and wrong."""
        return self.outcome == "converged" and not self.right


@dataclass(frozen=True, slots=True)
class Totals:
    """One arm over the whole suite. `strong_right` counts right results reported as strong."""

    arm: str
    tasks: int
    right: int
    converged: int
    silent_wrong: int
    strong_right: int
    strong_wrong: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """All scores of a run of a suite."""

    suite: str
    scores: tuple[Score, ...]

    def totals(self) -> tuple[Totals, ...]:
        """One line an arm, in the order they ran."""
        arms = dict.fromkeys(score.arm for score in self.scores)
        return tuple(_totals(arm, [s for s in self.scores if s.arm == arm]) for arm in arms)

    def to_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "totals": [asdict(total) for total in self.totals()],
            "scores": [asdict(score) for score in self.scores],
            "schema_version": 1,
        }

    def to_text(self) -> str:
        """The table that a person reads."""
        columns = ("outcome", "strength", "rounds", "s")
        head = "{:<8} {:<12} {:<6} {:<14} {:<9} {:>6} {:>6}".format("task", "arm", "", *columns)
        lines = [head, "-" * len(head)]
        lines += [_row(score) for score in self.scores]
        lines.append("")
        lines += [_total_row(total) for total in self.totals()]
        return "\n".join(lines)


def read_suite(path: Path) -> tuple[Case, ...]:
    """The cases of a suite.

    Raises:
        BadFileError: A line is no case; every problem at once.
        UsageError: The file cannot be read.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"`{path}` cannot be read: {why}") from error
    cases, problems = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            cases.append(
                Case(
                    str(data["id"]),
                    data["task"],
                    data.get("files", {}),
                    tuple(data.get("accept", ())),
                    data["expect"],
                )
            )
        except (ValueError, TypeError) as error:
            problems.append(f"{path}:{number}: not JSON: {error}")
        except KeyError as error:
            problems.append(f"{path}:{number}: missing `{error.args[0]}`")
    if problems:
        raise BadFileError("", tuple(problems))
    return tuple(cases)


def own_suite(seeds: int = 1) -> tuple[Case, ...]:
    """The instances of every kind of our own suite, one a seed, from 1 to `seeds`."""
    from loop.suites import KINDS

    made = ((kind, seed, kind.instance(seed)) for seed in range(1, seeds + 1) for kind in KINDS)
    return tuple(
        Case(f"{kind.name}/{seed}", task.said, task.files, (), task.want)
        for kind, seed, task in made
    )


def run(
    kit: Kit,
    suite: str,
    arms: Sequence[str],
    *,
    limit: int | None = None,
    seeds: int = 1,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Run every case in every arm, one after another, in this process.

    Raises:
        UsageError: An arm is unknown, or the suite cannot be read.
    """
    unknown = [arm for arm in arms if arm not in ARMS]
    if unknown:
        raise UsageError(f"unknown arm `{unknown[0]}`: choose among {', '.join(ARMS)}")
    own = suite == OWN and not Path(suite).exists()
    cases = (own_suite(seeds) if own else read_suite(Path(suite)))[:limit]
    scores = []
    for arm in arms:
        for case in cases:
            scores.append(score(kit, case, arm))
            if tell is not None:
                tell(_row(scores[-1]))
    return Outcome(suite, tuple(scores))


def score(kit: Kit, case: Case, arm: str) -> Score:
    """Run one case in a fresh folder and compare what is there afterwards with `expect`."""
    with tempfile.TemporaryDirectory(prefix="openry-bench-") as place:
        folder = Path(place)
        for name, content in case.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        began = monotonic()
        try:
            scored = (
                _loop(kit, case, arm, folder)
                if arm in ("full", "draft")
                else _shell(kit, case, _BEST_OF if arm == "best_of_12" else 1, folder, arm)
            )
        except OpenRYError as error:
            scored = Score(case.id, arm, right=False, outcome="unusable", wrong=str(error))
        wrong = first_difference(case.expect, folder)
        if not case.expect:
            new = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
            new = [name for name in new if name not in case.files]
            wrong = f"{new[0]} was made, and nothing should be" if new else ""
        return replace(
            scored,
            right=not wrong,
            wrong=scored.wrong or wrong,
            seconds=round(monotonic() - began, 2),
            task=case.task,
        )


def first_difference(expect: Mapping[str, Wanted], folder: Path) -> str:
    """The first file that is not as expected, both shown; empty when all are."""
    for name, wanted in expect.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        there = path.read_text("utf-8", "replace")
        if not _is_wanted(there, wanted):
            return f"{name}: got {_folded(there)[:80]!r}, wanted {_folded(str(wanted))[:80]!r}"
    return ""


def _is_wanted(there: str, wanted: Wanted) -> bool:
    """Text but for white space, a JSON value, or figures by group whatever their heading."""
    if isinstance(wanted, str):
        return _folded(there) == _folded(wanted)
    if isinstance(wanted, Mapping):
        rows = [row for row in csv.reader(io.StringIO(there)) if len(row) == 2]
        figures = {name: figure for name, figure in rows if figure.strip("-").isdigit()}
        return figures == {name: str(figure) for name, figure in wanted.items()}
    try:
        return bool(json.loads(there) == wanted)
    except ValueError:
        return False


def _folded(text: str) -> str:
    return " ".join(text.split())


def _loop(kit: Kit, case: Case, arm: str, folder: Path) -> Score:
    config = kit.config
    order = Order(
        case.task,
        str(folder),
        planner=config.planner_model,
        model=config.model,
        rounds=8 if arm == "full" else 0,
        accept=case.accept,
    )
    finished = start.new(kit, order, emit=lambda event, data: None).run()
    return Score(
        case.id,
        arm,
        right=False,
        outcome=finished.outcome,
        strength=finished.acceptance_strength,
        rounds=finished.rounds,
        edits=finished.edits,
        tokens=finished.tokens,
    )


def _shell(kit: Kit, case: Case, tries: int, folder: Path, arm: str) -> Score:
    from loop import freehand

    done = freehand.attempt(kit, case.task, case.accept, folder, tries)
    outcome = "converged" if done.accepted else "not_converged"
    return Score(case.id, arm, right=False, outcome=outcome, calls=done.calls, tokens=done.tokens)


def _totals(arm: str, scores: Sequence[Score]) -> Totals:
    strong = [score for score in scores if score.strength == "strong"]
    return Totals(
        arm,
        tasks=len(scores),
        right=sum(score.right for score in scores),
        converged=sum(score.outcome == "converged" for score in scores),
        silent_wrong=sum(score.silent_wrong for score in scores),
        strong_right=sum(score.right for score in strong),
        strong_wrong=sum(score.silent_wrong for score in strong),
        tokens=sum(score.tokens for score in scores),
        seconds=round(sum(score.seconds for score in scores), 1),
    )


def _row(score: Score) -> str:
    verdict = "right" if score.right else "wrong"
    why = f"  {score.wrong}" if score.wrong else ""
    return (
        f"{score.id:<8} {score.arm:<12} {verdict:<6} {score.outcome:<14} {score.strength:<9} "
        f"{score.rounds:>6} {score.seconds:>6.1f}{why}"
    ).rstrip()


def _total_row(total: Totals) -> str:
    return (
        f"{total.arm}: {total.right} of {total.tasks} right, {total.converged} converged, "
        f"{total.silent_wrong} silently wrong, {total.strong_right} of {total.right} right ones "
        f"strong, {total.strong_wrong} strong and wrong, {total.tokens} tokens, "
        f"{total.seconds:.1f} s"
    )
