"""A real hand on a real ledger, with one run in progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from openry.agent.react import run_agent
from openry.agent.task import AgentOutcome, AgentTask
from openry.capability import Registry, load_registry
from openry.config import load_config
from openry.forwarder.hand import Hand
from openry.ledger.commands import CommandRecord, of_run
from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.ledger.instances import add_instance
from openry.ledger.process import this_process
from openry.ledger.runs import Claim, Run, add_run, get_run
from openry.ledger.tokens import token_of
from openry.llm import Model
from openry.models import RunContext

SECRET = b"of the engine of these tests"
AT = "2026-03-01T09:00:00.000Z"


@dataclass
class Desk:
    """Where an agent sits in these tests."""

    workspace: Path
    ledger: Ledger
    hand: Hand
    registry: Registry

    def task(self, text: str, **more: object) -> AgentTask:
        return AgentTask(text, self.workspace, **more)

    def run(self, task: AgentTask, model: Model, **more: object) -> AgentOutcome:
        return run_agent(task, model, self.hand, self.registry, **more)

    def commands(self) -> tuple[CommandRecord, ...]:
        with self.ledger.read() as connection:
            return of_run(connection, "r1")

    def row(self) -> Run:
        with self.ledger.read() as connection:
            run = get_run(connection, "r1")
        assert run is not None
        return run


@pytest.fixture(scope="session")
def registry() -> Registry:
    return load_registry()


@pytest.fixture
def make_desk(tmp_path: Path, registry: Registry) -> Iterator[Callable[..., Desk]]:
    ledger = Ledger(tmp_path / "ledger.db")
    fast = FastLedger(tmp_path / "ledger.db")
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def make(*, max_tool_calls: int = 0) -> Desk:
        config = load_config(tmp_path / "home", env={})
        with ledger.write() as connection:
            row = {"instance_id": "i1", "plan": "{}", "plan_hash": "0", "workspace": str(workspace)}
            add_instance(connection, AT, row)
            add_run(
                connection,
                AT,
                {
                    "run_id": "r1",
                    "workflow_instance_id": "i1",
                    "step_id": "s",
                    "kind": "agent",
                    "max_tool_calls": max_tool_calls,
                    "data": {},
                },
                Claim("test", this_process(), 60, SECRET),
            )
        token = token_of(SECRET, "r1", 1)
        context = RunContext(run_id="r1", step_id="s", workspace=str(workspace), token=token)
        env = {"PATH": "/usr/bin:/bin", "SERVICE_TOKEN": "hunter2-hunter2"}
        return Desk(workspace, ledger, Hand(fast, context, config, env=env), registry)

    yield make
    fast.close()
    ledger.close()


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    return make_desk()
