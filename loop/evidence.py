"""What one run of a workflow showed, as plain frozen values that the journal can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from openry.models import RuleResult

#: Longest piece of a command's output that is kept as evidence, in characters.
MAX_OUTPUT_CHARS = 2000


@dataclass(frozen=True, slots=True)
class CommandSeen:
    """One forwarded command and its answer, output cut to head and tail."""

    command: str
    exit_code: int
    stdout: str = ""
    stderr: str = ""
    ending: str = "exited"


@dataclass(frozen=True, slots=True)
class StepRun:
    """One step of a trial: its latest attempt, and every command of all attempts.

    Attributes:
        state: `done`, `failed`, `dropped`, … as the engine names it; `` when it never ran.
        reason: Why it failed, in the engine's words.
        error_class: A capability's own error class, e.g. `not_found`; else empty.
        changed: Files that differ after the step, relative to the workspace.
        snapshot: The workspace as it was before the step; empty when it never ran.
        referee: In a replay, what rules that are not the step's own say of its result.
    """

    id: str
    kind: str
    state: str
    reason: str = ""
    attempts: int = 0
    error_class: str = ""
    error: str = ""
    rules: tuple[RuleResult, ...] = ()
    commands: tuple[CommandSeen, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    snapshot: str = ""
    referee: tuple[RuleResult, ...] = ()

    @property
    def ran(self) -> bool:
        return self.attempts > 0

    @property
    def passed(self) -> bool:
        return self.state in ("done", "validated")

    @property
    def broken_rules(self) -> tuple[RuleResult, ...]:
        return tuple(rule for rule in self.rules if not rule.passed)


@dataclass(frozen=True, slots=True)
class Trial:
    """One whole run of one workflow text in a copy of the workspace, judged.

    Attributes:
        text: The YAML that ran.
        state: `completed`, `failed`, `suspended` or `cancelled`.
        hard: Verdicts of the hard acceptance rules, in their order.
        soft: Verdicts of the soft ones.
        after: Snapshot of the workspace at the end.
        changed: Files that differ from the workspace the trial began with.
    """

    text: str
    state: str
    steps: tuple[StepRun, ...]
    hard: tuple[RuleResult, ...] = ()
    soft: tuple[RuleResult, ...] = ()
    instance_id: str = ""
    before: str = ""
    after: str = ""
    changed: tuple[str, ...] = ()
    seconds: float = 0.0
    tokens: int = 0
    cost_usd: float = 0.0

    @property
    def asks_models(self) -> bool:
        """Whether dice had a part in it: a step asks a model."""
        return any(step.kind == "agent" for step in self.steps)

    @property
    def acceptable(self) -> bool:
        """Ran to its end and broke no hard rule."""
        return self.state == "completed" and all(rule.passed for rule in self.hard)

    @property
    def satisfied(self) -> bool:
        """Acceptable, and the soft rules hold too."""
        return self.acceptable and all(rule.passed for rule in self.soft)

    @property
    def score(self) -> tuple[int, int, float, int]:
        """Larger is better: acceptable, hard rules held, share of steps passed, soft rules held."""
        return (
            int(self.acceptable),
            sum(rule.passed for rule in self.hard),
            sum(step.passed for step in self.steps) / max(len(self.steps), 1),
            sum(rule.passed for rule in self.soft),
        )

    def step(self, step_id: str) -> StepRun | None:
        return next((step for step in self.steps if step.id == step_id), None)

    def writer(self, path: str) -> StepRun | None:
        """The last step that changed `path`."""
        return next((step for step in reversed(self.steps) if path in step.changed), None)

    def to_data(self) -> dict[str, Any]:
        """Plain data for the journal."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The trial that `to_data` wrote."""
        steps = tuple(_step(each) for each in data["steps"])
        changes = {"steps": steps, "changed": tuple(data["changed"])}
        rules = {key: _rules(data[key]) for key in ("hard", "soft")}
        return cls(**{**data, **changes, **rules})


def cut(text: str, limit: int = MAX_OUTPUT_CHARS) -> str:
    """`text`, or its head and tail with a note of how much is missing between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def _rules(data: Any) -> tuple[RuleResult, ...]:
    return tuple(RuleResult(**each) for each in data)


def _step(data: Mapping[str, Any]) -> StepRun:
    commands = tuple(CommandSeen(**each) for each in data["commands"])
    return StepRun(
        **{
            **data,
            "rules": _rules(data["rules"]),
            "commands": commands,
            "changed": tuple(data["changed"]),
            "referee": _rules(data.get("referee", ())),
        }
    )
