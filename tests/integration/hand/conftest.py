"""The real `openry`, a real shell, a ledger in a file of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hand_helpers import OpenRY, need_sandbox

from openry.config import load_config
from openry.forwarder import Hand
from openry.ledger.fast import FastLedger
from openry.models import RunContext, SandboxSpec


@pytest.fixture
def openry(tmp_path: Path) -> OpenRY:
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    return OpenRY(tmp_path / "home", cwd)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ledger, made once: making one imports SQLAlchemy."""
    path = tmp_path_factory.mktemp("ledger") / "openry.db"
    with FastLedger(path) as ledger:
        ledger.run("nobody")
    return path


SANDBOXES = [pytest.param(name, marks=pytest.mark.sandbox) for name in ("bubblewrap", "landlock")]


@pytest.fixture(params=["none", *SANDBOXES])
def backend(request: pytest.FixtureRequest) -> str:
    """Each way to run a command."""
    need_sandbox(str(request.param))
    return str(request.param)


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest) -> str:
    """Each sandbox."""
    need_sandbox(str(request.param))
    return str(request.param)


@pytest.fixture
def make_hand(tmp_path: Path, migrated: Path) -> Iterator[Callable[..., Hand]]:
    """Makes a hand in this process, with a workspace `ws` that it may write."""
    home, workspace = tmp_path / "home", tmp_path / "ws"
    home.mkdir(mode=0o700)
    workspace.mkdir()
    shutil.copy(migrated, home / "openry.db")
    config = load_config(home, env={})
    ledger = FastLedger(config.ledger)

    def make(backend: str = "none", **context: Any) -> Hand:
        sandbox = SandboxSpec(backend, (str(workspace),))
        own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
        context = {"workspace": str(workspace), "sandbox": sandbox} | context
        return Hand(ledger, RunContext(**context), config, env=own)

    yield make
    ledger.close()
