"""Gates for what a model's dice decide: parent and child run in pairs, and the pairs are counted.

One run of a model proves nothing. Here a change is admitted by a short walk over replays of its
step (G3), must keep what held in two of three whole runs (G4), and is certified by whole runs in
pairs at a level that a session cannot spend twice (G5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from loop.diagnose import said
from loop.evidence import StepRun, Trial
from loop.figures import level, sign_test
from loop.journal import Gate

#: Where the walk over pairs ends: so far up it admits, so far down it refuses.
ADMIT, REFUSE = 4, -3
#: Pairs of replays at most.
MAX_PAIRS = 40
#: Equal pairs in a row after which a model is taken to answer the same each time.
SAME = 12
#: Whole runs by which what held before is protected, and how many of them must keep it.
RUNS, MUST_HOLD = 3, 2

#: One pair of outcomes: the parent's and the child's.
Pair = tuple[bool, bool]


def rewarded(step: StepRun) -> bool:
    """Whether a replay is a good one: never by the edited step's own word alone.

    Its own checks must pass, and so must the rules that judge it from outside.
    """
    return step.passed and all(rule.passed for rule in step.referee)


def walk(pairs: Iterator[Pair]) -> Gate:
    """G3 where a model acts: up where only the child does well, down where the parent.

    Takes no pair more than it needs from `pairs`.
    """
    place = taken = 0
    for parent, child in islice(pairs, MAX_PAIRS):
        taken += 1
        place += int(child) - int(parent)
        if place >= ADMIT:
            return Gate("G3", True, f"better by {ADMIT} after {taken} pairs of replays")
        if place <= REFUSE:
            return Gate("G3", False, f"worse by {-REFUSE} after {taken} pairs of replays")
    return Gate("G3", False, f"no better: {place:+d} after {taken} pairs of replays")


def until_settled(replays: Iterator[tuple[StepRun, StepRun]]) -> Iterator[Pair]:
    """The outcomes of pairs of replays; one that is always the same stands for all."""
    last, same = None, 0
    for parent, child in replays:
        pair = rewarded(parent), rewarded(child)
        yield pair
        seen = _acts(parent), _acts(child)
        same = same + 1 if seen == last else 1
        last = seen
        if same >= SAME:
            while True:
                yield pair


def protect(parent: Trial, child: Sequence[Trial]) -> Gate:
    """G4: what held in the parent's run holds in the child's, or in two of three of them."""
    needed = min(MUST_HOLD, len(child))
    broken = [
        f"step `{step.id}` passed before"
        for step in parent.steps
        if step.passed and sum(_fails(trial, step.id) for trial in child) > len(child) - needed
    ]
    broken += [
        said(next(t.hard[place] for t in child if not t.hard[place].passed))
        for place, rule in enumerate(parent.hard)
        if rule.passed and sum(trial.hard[place].passed for trial in child) < needed
    ]
    if broken:
        return Gate("G4", False, f"breaks what held before: {'; '.join(broken)}"[:300])
    held = sum(rule.passed for rule in parent.hard) + sum(step.passed for step in parent.steps)
    runs = "run" if len(child) == 1 else f"{len(child)} runs"
    return Gate("G4", True, f"all {held} that held before hold ({runs})")


@dataclass(frozen=True, slots=True)
class Certified:
    """What a certification found. `better` and `worse` are both false where it could not tell."""

    gate: Gate
    better: bool
    worse: bool
    passed: int = 0
    runs: int = 0


def certify(pairs: Callable[[], Iterator[Pair]], number: int, looks: Sequence[int]) -> Certified:
    """G5: the session's `number`-th certification, by whole runs of base and candidate in pairs.

    Args:
        pairs: Makes the pairs, one by one.
        looks: After how many pairs the counts are looked at; each look has its share of the level.
    """
    wins = losses = passed = runs = 0
    found = pairs()
    for look in looks:
        for parent, child in islice(found, look - runs):
            runs, passed = runs + 1, passed + child
            wins, losses = wins + (child > parent), losses + (parent > child)
        share = level(number) * look / sum(looks)
        counts = f"{wins} better, {losses} worse of {runs} pairs of whole runs"
        if sign_test(wins, losses) <= share:
            return Certified(Gate("G5", True, f"better: {counts}"), True, False, passed, runs)
        if sign_test(losses, wins) <= share:
            return Certified(Gate("G5", False, f"worse: {counts}"), False, True, passed, runs)
    gate = Gate("G5", True, f"no difference shown: {counts}", indecisive=True)
    return Certified(gate, False, False, passed, runs)


def _fails(trial: Trial, step_id: str) -> bool:
    """Whether a step that is still there does not pass; one that was taken away fails nothing."""
    step = trial.step(step_id)
    return step is not None and step.ran and not step.passed


def _acts(step: StepRun) -> tuple[object, ...]:
    commands = tuple((each.command, each.exit_code, each.stdout) for each in step.commands)
    return (step.state, commands, repr(sorted(step.payload.items())))
