"""How instances and steps stand, read back from the ledger as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openry.errors import NotFoundError
from openry.ledger.commands import CommandRecord, of_runs
from openry.ledger.heads import head_of
from openry.ledger.instances import Instance, get_instance
from openry.ledger.journal import Transaction
from openry.ledger.records import validations_of
from openry.ledger.runs import Run, runs_of
from openry.models import RuleResult
from openry.orchestrator.plan import Plan, read_plan

#: Instance states in which nothing happens any more by itself.
FINAL = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """How one item of a `for_each` stands, by its latest run."""

    place: int
    item: Any
    state: str
    attempts: int
    run_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How a step stands, by its latest run.

    Attributes:
        state: State of the latest run; `pending` before the first.
        attempts: Runs so far, requeued ones included.
        reason: Why the latest run ended as it did; empty when all is well.
        rules: What validation said of the latest run.
        commands: What the latest run asked of the hand.
        items: In a `for_each`, how each item stands that has been begun; `expected` is how many
            there are in all.
    """

    id: str
    state: str
    attempts: int = 0
    run_id: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    rules: tuple[RuleResult, ...] = ()
    commands: tuple[CommandRecord, ...] = ()
    kind: str = ""
    workflow: str = ""
    big_step: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    tokens: int = 0
    result: Mapping[str, Any] | None = None
    items: tuple[ItemOutcome, ...] = ()
    expected: int = 0

    @property
    def ok(self) -> bool:
        return self.state in ("done", "validated", "skipped")


@dataclass(frozen=True, slots=True)
class InstanceOutcome:
    """How an instance stands.

    Attributes:
        steps: Those of every big step entered so far, in the order of their first run; then
            those of the current workflow that have not run yet.
        head: The hash that stands for all it did; empty before it has ended.
    """

    instance_id: str
    state: str
    workflow: str
    steps: tuple[StepOutcome, ...]
    reason: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    workspace: str = ""
    plan_hash: str = ""
    created_at: str = ""
    ended_at: str | None = None
    head: str = ""

    @property
    def ok(self) -> bool:
        return self.state == "completed"

    @property
    def final(self) -> bool:
        return self.state in FINAL

    def step(self, step_id: str) -> StepOutcome:
        """The latest step of that id.

        Raises:
            NotFoundError: The workflow has no such step.
        """
        for step in reversed(self.steps):
            if step.id == step_id:
                return step
        known = ", ".join(f"`{step.id}`" for step in self.steps)
        raise NotFoundError(
            f"instance `{self.instance_id}` has no step `{step_id}` (it has {known})"
        )


def outcome_of(connection: Transaction, instance_id: str) -> InstanceOutcome:
    """Everything the ledger knows of an instance.

    Raises:
        NotFoundError: It knows no such instance.
    """
    instance = get_instance(connection, instance_id)
    if instance is None:
        raise NotFoundError(f"there is no instance `{instance_id}`")
    runs = runs_of(connection, instance_id)
    steps = _steps(connection, _grouped(runs))
    if instance.state not in FINAL:
        steps += _pending(instance, read_plan(instance.plan), runs)
    return InstanceOutcome(
        instance_id,
        instance.state,
        instance.workflow,
        tuple(steps),
        instance.reason,
        instance.payload,
        instance.workspace,
        instance.plan_hash,
        instance.created_at,
        instance.ended_at,
        _head_of(connection, instance_id),
    )


def _head_of(connection: Transaction, instance_id: str) -> str:
    head = head_of(connection, instance_id)
    return head.hash if head else ""


def _grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of one step in one visit of its big step belong together."""
    groups: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.data.get("visit", 1), run.step_id), []).append(run)
    return list(groups.values())


def step_of(connection: Transaction, runs: Sequence[Run]) -> StepOutcome:
    """How a step stands, from its runs in order, those of its items among them."""
    return _steps(connection, [runs])[0]


def _steps(connection: Transaction, groups: Sequence[Sequence[Run]]) -> list[StepOutcome]:
    """The same of several steps, with two questions to the ledger for them all."""
    last_of = [_own(runs)[-1].run_id for runs in groups]
    rules, commands = validations_of(connection, last_of), of_runs(connection, last_of)
    return [
        _step(runs, rules.get(run_id, ()), commands.get(run_id, ()))
        for runs, run_id in zip(groups, last_of, strict=True)
    ]


def _own(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs of a step itself, without those of its items."""
    return [run for run in runs if not run.item] or runs


def _step(
    runs: Sequence[Run], rules: tuple[RuleResult, ...], commands: tuple[CommandRecord, ...]
) -> StepOutcome:
    own = _own(runs)
    last = own[-1]
    return StepOutcome(
        last.step_id,
        last.status,
        len(own),
        last.run_id,
        last.payload,
        last.reason,
        rules,
        commands,
        last.kind,
        last.workflow,
        last.big_step,
        last.started_at,
        last.ended_at,
        last.tokens,
        last.result,
        _items(last, runs),
        len((last.result or {}).get("items", ())) if "next" in last.data else 0,
    )


def _items(above: Run, runs: Sequence[Run]) -> tuple[ItemOutcome, ...]:
    latest: dict[int, list[Run]] = {}
    for run in runs:
        if run.data.get("above") == above.run_id:
            latest.setdefault(int(run.item), []).append(run)
    return tuple(
        ItemOutcome(
            place, all_[-1].data["item"], all_[-1].status, len(all_), all_[-1].run_id,
            all_[-1].reason,
        )
        for place, all_ in sorted(latest.items())
    )  # fmt: skip


def _pending(instance: Instance, plan: Plan, runs: Sequence[Run]) -> list[StepOutcome]:
    """Steps of the workflow it is in that have not been reached; it may never need them."""
    place, visit = instance.data.get("place", 0), instance.data.get("visit", 1)
    spec = plan.workflow_at(place)
    seen = {run.step_id for run in runs if run.data.get("visit", 1) == visit}
    big_step = plan.big_steps[place].ref if plan.composition else ""
    return [
        StepOutcome(step.id, "pending", kind=step.kind.value, workflow=spec.name, big_step=big_step)
        for step in spec.sub_steps
        if step.id not in seen
    ]
