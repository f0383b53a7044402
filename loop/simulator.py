"""L1: a world without models or processes, in which the gates can be tried a thousand times.

A step fails in named ways. How often depends on what its YAML says (a check, an example, a
narrowed answer), and errors of one draw go together, as hard inputs make them. Nothing here says
how good a real model is; it only shows what the loop's own machinery does with chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from loop import apply
from loop.evidence import StepRun, Trial
from loop.values import RuleData
from openry.models import RuleResult

data_of = lru_cache(maxsize=64)(apply.data_of)
#: How much of an error is the input's fault: the same for parent and child of one draw.
SHARED = 0.4


@dataclass(frozen=True, slots=True)
class Mode:
    """One way in which a step fails.

    Attributes:
        rate: Chance per run without any help.
        eased_by: Keys or operations in the YAML, and by what they multiply the rate.
        silent: The step passes all the same, unless it has a check.
    """

    name: str
    rate: float
    eased_by: Mapping[str, float]
    silent: bool = False


#: What small models do wrong, and what helps; assumed, not measured on any one model.
MODES = (
    Mode("bad_format", 0.20, {"narrowed": 0.15, "example": 0.5}),
    Mode("wrong_content", 0.20, {"example": 0.6, "context": 0.7, "short": 0.6}, silent=True),
    Mode("flaky", 0.10, {"retries": 0.3}),
)


@dataclass(frozen=True, slots=True)
class Simulator:
    """Runs workflow texts by dice; a seed and a draw fix every outcome.

    Attributes:
        modes: How steps fail.
        effects: Words that change a step's chance of passing by so much where its prompt has them.
        base: Snapshot name that runs begin with.
    """

    seed: int = 0
    modes: tuple[Mode, ...] = MODES
    effects: Mapping[str, float] = ()  # type: ignore[assignment]  # an empty mapping
    base: str = "base"

    def run(self, text: str, draw: int = 0) -> Trial:
        """One whole run: it ends at the first step that fails."""
        return self._run(text, draw, lambda step_id: draw)

    def rest(self, trial: Trial, step_id: str, draw: int) -> Trial:
        """What came before the step stays as it was, right or wrong; the rest is drawn anew."""
        first = int(trial.instance_id.rpartition("-")[2])
        ids = [step.id for step in trial.steps]
        before = set(ids[: ids.index(step_id)])
        return self._run(trial.text, draw, lambda each: first if each in before else draw)

    def first_wrong(self, trial: Trial) -> str:
        """The first step of a run that did wrong, whether it said so or not; empty for none."""
        draw = int(trial.instance_id.rpartition("-")[2])
        steps = {step["id"]: step for step in data_of(trial.text)["sub_steps"]}
        ran = (steps[step.id] for step in trial.steps if step.ran)
        return next((str(step["id"]) for step in ran if not self._step(step, draw)[1]), "")

    def _run(self, text: str, draw: int, draw_of: Callable[[str], int]) -> Trial:
        steps: list[StepRun] = []
        wrong = False
        for step in data_of(text)["sub_steps"]:
            if steps and not steps[-1].passed:
                steps.append(StepRun(step["id"], step.get("kind", "agent"), ""))
                continue
            done, right = self._step(step, draw_of(step["id"]))
            wrong |= not right
            steps.append(done)
        passed = all(step.passed for step in steps)
        return Trial(
            text=text,
            state="completed" if passed else "failed",
            steps=tuple(steps),
            hard=(RuleResult("right", passed and not wrong, "the right result"),),
            instance_id=f"{self.seed}-{draw}",
            before=self.base,
            after=self.base,
        )

    def replay(
        self,
        text: str,
        step_id: str,
        snapshot: str,
        payload: Mapping[str, Any],
        draw: int = 0,
        referee: Sequence[RuleData] = (),
    ) -> StepRun:
        """One step alone; a referee sees what is silently wrong."""
        step = next(each for each in data_of(text)["sub_steps"] if each["id"] == step_id)
        done, right = self._step(step, draw)
        seen = (RuleResult("right", right),) if done.passed else ()
        return StepRun(**{**_fields(done), "referee": seen})

    def judge(
        self, rules: Sequence[RuleData], folder: Path, payload: Mapping[str, Any]
    ) -> Sequence[RuleResult]:
        """Nothing lies in a simulated folder: no rule holds."""
        return [RuleResult(str(rule.get("type")), False) for rule in rules]

    @contextmanager
    def open_copy(self, snapshot: str) -> Iterator[Path]:
        """A folder that is not there."""
        yield Path("/nonexistent")

    def depends(
        self,
        text: str,
        step_id: str,
        snapshot: str,
        payload: Mapping[str, Any],
        paths: Sequence[str],
    ) -> bool:
        """Results are not simulated."""
        return True

    def chance(self, step: Mapping[str, Any]) -> float:
        """How often a step does right."""
        chance = 1.0
        helped = _helps(step)
        for mode in self.modes:
            rate = mode.rate
            for help_, factor in mode.eased_by.items():
                rate *= factor if help_ in helped else 1.0
            chance *= 1 - rate
        words = str(step.get("description") or "") + str(step.get("prompt_blocks") or "")
        shift = sum(by for word, by in dict(self.effects).items() if word in words)
        return min(1.0, max(0.0, chance + shift))

    def _step(self, step: Mapping[str, Any], draw: int) -> tuple[StepRun, bool]:
        kind = str(step.get("kind", "agent"))
        if kind != "agent":
            return self._done(step, draw, "done"), True
        if self._luck(step, draw) < self.chance(step):
            return self._done(step, draw, "done"), True
        mode = self._mode(step, draw)
        if mode.silent and not step.get("validation"):
            return self._done(step, draw, "done"), False
        return self._done(step, draw, "failed", mode.name), False

    def _luck(self, step: Mapping[str, Any], draw: int) -> float:
        """Uniform on [0, 1]: with chance SHARED the input's own luck, the same for every text."""
        own = _dice(self.seed, draw, step)
        shared = _dice(self.seed, draw, step["id"])
        return shared.random() if shared.random() < SHARED else own.random()

    def _mode(self, step: Mapping[str, Any], draw: int) -> Mode:
        dice = _dice(self.seed, draw, step["id"], "mode")
        return dice.choices(self.modes, weights=[mode.rate for mode in self.modes])[0]

    def _done(self, step: Mapping[str, Any], draw: int, state: str, reason: str = "") -> StepRun:
        kind = str(step.get("kind", "agent"))
        said = {"said": draw} if kind == "agent" else {}
        return StepRun(
            step["id"], kind, state, reason, attempts=1, payload=said, snapshot=self.base
        )


def _dice(*about: object) -> random.Random:
    return random.Random(repr(about))  # noqa: S311  # dice of a game, to be thrown again


def _helps(step: Mapping[str, Any]) -> set[str]:
    """What in a step's YAML makes failures rarer."""
    blocks = step.get("prompt_blocks") or []
    labels = {block.get("label") for block in blocks}
    rules = {rule.get("type") for rule in step.get("validation") or []}
    found = {"example"} if "example" in labels else set[str]()
    found |= {"context"} if labels - {"example"} else set()
    found |= {"narrowed"} if rules & {"payload_value_in_set", "payload_value_matches"} else set()
    found |= (
        {"retries"} if step.get("max_sub_step_retries", 3) and step.get("validation") else set()
    )
    return found | ({"short"} if len(str(step.get("description") or "")) < 80 else set())


def _fields(step: StepRun) -> dict[str, Any]:
    return {name: getattr(step, name) for name in StepRun.__dataclass_fields__}
