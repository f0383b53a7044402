"""The real hand, in a workspace of its own, without and with bubblewrap."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openry.capability import Registry, ToolResult, invoke, load_registry
from openry.config import load_config
from openry.forwarder import Hand
from openry.ledger.fast import FastLedger
from openry.models import RunCommand, RunContext, SandboxSpec


@pytest.fixture(scope="session")
def registry() -> Registry:
    return load_registry()


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RunCommand]]:
    """`runner(folder, backend)` is a hand that may write `folder`."""
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o700)
    config = load_config(home, env={})
    own = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home)}
    with FastLedger(config.ledger) as ledger:

        def runner(folder: Path, backend: str = "none", network: bool = False) -> RunCommand:
            sandbox = SandboxSpec(backend, (str(folder),), network=network)
            context = RunContext(workspace=str(folder), sandbox=sandbox)
            return Hand(ledger, context, config, env=own).forward

        yield runner


@pytest.fixture(params=["none", pytest.param("bubblewrap", marks=pytest.mark.sandbox)])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def call(
    registry: Registry, runner: Callable[..., RunCommand], workspace: Path
) -> Callable[..., ToolResult]:
    """`call("tool", **arguments)` in the workspace, through the hand."""

    def call(name: str, backend: str = "none", **arguments: Any) -> ToolResult:
        run = runner(workspace, backend)
        return invoke(registry.get(name), arguments, run, workspace)

    return call
