"""What is kept, what goes, and what is never touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from openry.config import load_config
from openry.ledger import schema
from openry.ledger.db import Ledger
from openry.ledger.verify import verify
from openry.ledger.words import place_of
from openry.session.retention import Went, apply_retention

OLD, NEW = "2020-01-01T00:00:00.000Z", "2199-01-01T00:00:00.000Z"


@pytest.fixture
def config(tmp_path):
    return replace(load_config(tmp_path / "home", env={}), ledger=str(tmp_path / "openry.db"))


@pytest.fixture
def ledger(config):
    with Ledger(config.ledger) as made:
        yield made


def add(ledger, name, state, ended_at) -> None:
    row = {"instance_id": name, "plan": "", "plan_hash": "", "created_at": OLD, "state": state}
    with ledger.write() as db:
        db.execute(schema.workflow_instances.insert(), {**row, "ended_at": ended_at})


def names(ledger) -> set[str]:
    with ledger.read() as db:
        return set(db.execute(schema.workflow_instances.select()).scalars())


def test_nothing_goes_unasked(config, ledger):
    """Without `retention` everything stays."""
    add(ledger, "old", "completed", OLD)

    assert apply_retention(config, ledger) == Went()
    assert names(ledger) == {"old"}


def test_what_ended_long_ago_goes_and_live_ones_never(config, ledger):
    """Old ended instances go with their folders; the index of texts goes too."""
    for name, state, ended_at in (
        ("old", "completed", OLD),
        ("new", "failed", NEW),
        ("live", "suspended", None),
    ):
        add(ledger, name, state, ended_at)
    folder = config.home / "instances" / "old"
    folder.mkdir(parents=True)
    place_of(config.ledger).touch()

    went = apply_retention(replace(config, retention_runs_s=3600.0), ledger)

    assert went == Went(instances=1)
    assert names(ledger) == {"new", "live"}
    assert not folder.exists()
    assert not place_of(config.ledger).exists()
    with ledger.read() as db:
        assert verify(db).ok


def test_the_oldest_outputs_go_beyond_the_limit(config, ledger, tmp_path):
    """Newest first while they fit; a live instance's stays whatever it takes; rows stay."""
    add(ledger, "live", "running", None)
    for number, instance in enumerate(["live", "", "", ""]):
        path = tmp_path / f"out-{number}"
        path.write_bytes(bytes(1000))
        row = {"at": OLD, "instance_id": instance, "path": str(path)}
        with ledger.write() as db:
            db.execute(schema.outputs.insert(), row)

    went = apply_retention(replace(config, retention_spills_bytes=2500), ledger)

    assert (went.outputs, went.bytes) == (1, 1000)
    assert [Path(tmp_path, f"out-{n}").exists() for n in range(4)] == [True, False, True, True]
    with ledger.read() as db:
        deleted = [row.deleted_at is not None for row in db.execute(schema.outputs.select())]
    assert deleted == [False, True, False, False]
