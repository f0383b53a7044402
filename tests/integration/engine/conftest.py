"""A real engine on a real ledger; workflows are text, steps are real commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from openry.config import Config, load_config
from openry.ledger.consistency import inconsistencies
from openry.ledger.journal import Event, events_after
from openry.ledger.runs import Run, runs_of
from openry.llm import Model, ScriptedModel
from openry.orchestrator.cli import main
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.outcomes import InstanceOutcome
from openry.orchestrator.room import Times

QUICK = Times(interval_s=0.5, watch_s=0.02, beat_s=0.2, self_kill_s=0.6, lease_s=1.0, grace_s=0.5)


@dataclass
class Bench:
    """What most tests want: start a text, look at what came of it."""

    engine: Engine
    workspace: Path
    models: dict[str, Model] = field(default_factory=dict)

    def submit(self, text: str, **more: Any) -> str:
        loaded = load(dedent(text))
        assert not loaded.errors, loaded.errors
        return self.engine.submit(loaded, workspace=self.workspace, **more)

    def run(self, text: str, **more: Any) -> InstanceOutcome:
        return self.engine.run(self.submit(text, **more))

    def script(self, *replies: Any, **more: Any) -> ScriptedModel:
        model = ScriptedModel(replies, **more)
        self.models["scripted"] = model
        return model

    def runs(self, instance_id: str) -> tuple[Run, ...]:
        with self.engine.ledger.read() as connection:
            return runs_of(connection, instance_id)

    def events(self, instance_id: str) -> tuple[Event, ...]:
        with self.engine.ledger.read() as connection:
            return events_after(connection, 0, instance_id)

    def read(self, name: str) -> str:
        return (self.workspace / name).read_text()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    home = tmp_path / "home"
    home.mkdir()
    return replace(load_config(home, env={}), sandbox="none", model="scripted")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def bench(config: Config, workspace: Path) -> Iterator[Bench]:
    models: dict[str, Model] = {}
    with Engine(config, open_model=lambda name: models[name], times=QUICK) as engine:
        yield Bench(engine, workspace, models)
        with engine.ledger.read() as connection:
            assert list(inconsistencies(connection)) == []


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with an OPENRY_HOME of its own and no sandbox."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("sandbox: none\n")
    monkeypatch.setenv("OPENRY_HOME", str(home))
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def call(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line: its exit status, standard output, standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        status = main(words)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def call_json(call: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, Any]]:
    """The same with `--json`: its exit status, and what the one line says."""

    def run(*words: str) -> tuple[int, Any]:
        status, out, err = call(*words, "--json")
        assert err == ""
        said = json.loads(out)
        assert said["schema_version"] == 1
        return status, said

    return run
