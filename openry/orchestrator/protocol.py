"""What an engine is to everybody else: five verbs. `local` is the one that ships.

Ours on every engine: the language, the frozen plan, routing, what a step does, and the ledger with
its fence. The engine's: taking an instance on once, bringing its steps to a machine, waiting, and
noticing that a worker is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from openry.orchestrator.loader import Loaded
from openry.orchestrator.outcomes import InstanceOutcome
from openry.orchestrator.spec import WorkflowSpec

Signal = Literal["approve", "reject"]


class WorkflowEngine(Protocol):
    """One conformance suite holds for each of them: `tests/integration/engine/test_conformance`."""

    def submit(
        self,
        loaded: Loaded | WorkflowSpec,
        *,
        inputs: Mapping[str, Any] | None = None,
        workspace: Path | None = None,
        instance_id: str = "",
    ) -> str:
        """Take an instance on. The same id again with the same plan is the same instance."""

    def signal(self, instance_id: str, signal: Signal, *, by: str, comment: str = "") -> int:
        """A person's answer to everything that waits; how many questions that were."""

    def cancel(self, instance_id: str, *, by: str = "person") -> bool:
        """Ask an instance to end; False when it has ended already."""

    def describe(self, instance_id: str) -> InstanceOutcome:
        """How an instance stands, by the ledger."""

    def run_worker(
        self, *, once: bool = False, should_stop: Callable[[], bool] | None = None
    ) -> None:
        """Carry out what there is, with `once` until nothing can go on by itself."""
