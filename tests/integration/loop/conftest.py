"""A real kit: ledger, engine, sandbox and embeddings; only models may be doubles."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from loop.kit import Kit
from loop.order import Order
from loop.start import new
from openry.config import load_config
from tests.integration.loop.helpers import fill, kit_in, order_for


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


@pytest.fixture
def kit(home, reader):
    with kit_in(home, reader) as made:
        yield made


@pytest.fixture
def order(folder):
    """An order for the folder; any field may be given."""

    return partial(order_for, folder)


@pytest.fixture
def run(kit):
    """Run an order to its end; the outcome and every event."""

    def go(order: Order, **more):
        events: list = []
        session = new(more.pop("kit", kit), order, emit=lambda *e: events.append(e), **more)
        return session.run(), events

    return go
