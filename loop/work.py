"""What stays the same in all rounds of a session, and who runs its workflows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from loop.edits import Proposal
from loop.evidence import StepRun, Trial
from loop.memory import Remember, nothing
from loop.rules import Scene
from loop.values import Candidate, RuleData, Survey
from openry.capability.registry import Registry
from openry.models import RuleResult

Emit = Callable[[str, Mapping[str, Any]], None]


class Runner(Protocol):
    """Whoever runs workflows in copies of the workspace."""

    def run(self, text: str, draw: int = 0) -> Trial:
        """Run a workflow in a fresh copy and judge what came of it.

        `draw` says which of several independent runs this is.
        """
        ...

    def replay(
        self,
        text: str,
        step_id: str,
        snapshot: str,
        payload: Mapping[str, Any],
        draw: int = 0,
        referee: Sequence[RuleData] = (),
    ) -> StepRun:
        """Run one step alone in a copy of `snapshot`; `referee` judges its result from outside."""
        ...

    def rest(self, trial: Trial, step_id: str, draw: int) -> Trial:
        """Run a trial anew from one of its steps on, from the files as they were before it."""
        ...

    def depends(
        self,
        text: str,
        step_id: str,
        snapshot: str,
        payload: Mapping[str, Any],
        paths: Sequence[str],
    ) -> bool:
        """Whether what a step writes to `paths` is different once every file is emptied.

        True as well where it writes none of them.
        """
        ...

    def judge(
        self, rules: Sequence[RuleData], folder: Path, payload: Mapping[str, Any]
    ) -> Sequence[RuleResult]:
        """What rules say of a folder."""
        ...

    def open_copy(self, snapshot: str) -> AbstractContextManager[Path]:
        """A throw-away copy of a snapshot."""
        ...


#: A model's proposal; None when it has none.
AskPlanner = Callable[["Question"], Proposal | None]


@dataclass(frozen=True, slots=True)
class Question:
    """What a planner is asked in one round.

    Attributes:
        step: The blamed step's YAML.
        tried: What was tried for this failure and how it went, in words.
        helped: What helped in other tasks, in words of ours.
        round: Which round it is for.
        rung: Which planner of the ladder is asked, counted from 0.
    """

    scene: Scene
    step: str
    tried: Sequence[str]
    helped: Sequence[str]
    round: int
    rung: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """What stays the same in all rounds of a session.

    Attributes:
        hard: The hard acceptance rules, in the order of a trial's verdicts.
        soft: The soft ones, in theirs.
        soft_counts: Whether a trial that breaks only soft rules is worth another round. A person's
            workflow that passes a person's rules is left alone.
        candidates: Other readings of the task, best first.
        make: Plain data of a candidate's workflow.
        drafted: Whether the workflow grew from a reading; else a person wrote it.
        contract: The rules that a step's call ensures by itself.
        ask: The planner, when it can propose.
        max_rounds: After this many rounds the loop stops.
        instances: Whole runs by which a workflow that asks models is certified.
        rungs: How many planners may be asked, from small to large.
        remember: What earlier sessions tried for failures like one.
        time_is_over: True once the order's minutes are used.
    """

    task: str
    hard: tuple[RuleData, ...]
    soft: tuple[RuleData, ...]
    soft_counts: bool
    survey: Survey
    registry: Registry
    candidates: tuple[Candidate, ...]
    make: Callable[[Candidate], Mapping[str, Any]]
    results: tuple[str, ...]
    drafted: bool
    contract: Callable[[Mapping[str, Any]], Sequence[RuleData]]
    ask: AskPlanner | None
    max_rounds: int
    instances: int = 1
    rungs: int = 1
    remember: Remember = nothing
    time_is_over: Callable[[], bool] = lambda: False
