"""A real kit: ledger, engine, sandbox and embeddings; only models may be doubles."""

from __future__ import annotations

from pathlib import Path

import pytest

from loop.kit import Kit
from loop.order import Order
from loop.start import new
from openry.config import load_config
from openry.llm import ScriptedModel
from openry.llm.cassette import Cassetted


@pytest.fixture(scope="session")
def reader_home(pytestconfig) -> Path:
    """A home whose cached embeddings of the examples outlive the test run."""
    return pytestconfig.cache.mkdir("openry-home")


@pytest.fixture(scope="session")
def reader(reader_home):
    """The reader of tasks, loaded once for all tests."""
    with Kit(load_config(reader_home, env={})) as kit:
        yield kit.reader


@pytest.fixture
def home(tmp_path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path) -> Path:
    """The person's folder."""
    return fill(tmp_path / "work")


def fill(made: Path) -> Path:
    """A log, a table, some names."""
    made.mkdir(parents=True)
    (made / "app.log").write_text("09:00 INFO start\n09:01 ERROR disk\n09:02 ERROR net\n")
    (made / "sales.csv").write_text("region,amount\nnorth,10\nsouth,9\nwest,200\n")
    (made / "names.txt").write_text("bob\nal\ncy\n")
    return made


class Scripts:
    """Opens scripted models, each behind the session's own cassette, and counts their calls."""

    def __init__(self, replies=()) -> None:
        self.model = ScriptedModel(replies, name="openai/scripted")

    def __call__(self, name, *, cassette=None, **rest):
        return self.model if cassette is None else Cassetted(self.model, cassette)

    @property
    def calls(self) -> int:
        return len(self.model.requests)


@pytest.fixture
def kit(home, reader):
    with Kit(load_config(home, env={})) as made:
        made.__dict__["reader"] = reader
        yield made


@pytest.fixture
def order(folder):
    """An order for the folder; any field may be given."""

    def make(task: str, **values) -> Order:
        local = {"planner": "local/smollm2", "model": "local/smollm2"}
        return Order(task, str(folder), **{**local, **values})

    return make


@pytest.fixture
def run(kit):
    """Run an order to its end; the outcome and every event."""

    def go(order: Order, **more):
        events: list = []
        session = new(more.pop("kit", kit), order, emit=lambda *e: events.append(e), **more)
        return session.run(), events

    return go


def tree(folder: Path) -> dict[str, str]:
    """Everything below a folder, for comparison."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
