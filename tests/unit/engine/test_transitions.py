"""Transitions: legal ones only, compare-and-set, each with its event, under the fence."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from openry.ledger import runs
from openry.ledger.change import BROKEN_RULE
from openry.ledger.db import Ledger
from openry.ledger.instances import add_instance, get_instance, move_instance, request_cancel
from openry.ledger.journal import events_after
from openry.ledger.process import this_process
from openry.ledger.runs import (
    ASK,
    CLAIM,
    COMPLETE,
    FAIL,
    FINISH,
    LOSE,
    SKIP,
    VALIDATE,
    Claim,
    Move,
    add_run,
    beat,
    claim,
    get_run,
    move_run,
    open_runs,
    put_brake,
)
from openry.models import InstanceState, RunState
from openry.models.states import NEXT_RUN_STATES, may_become

AT = "2026-03-01T09:00:00.000Z"
ME = Claim("me", this_process(), 15.0)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.db") as ledger:
        with ledger.write() as connection:
            add_instance(connection, AT, {"instance_id": "i", "plan": "{}", "plan_hash": "0"})
            add_run(connection, AT, row("r"))
        yield ledger


def row(run_id, step_id="s"):
    return {"run_id": run_id, "workflow_instance_id": "i", "step_id": step_id, "data": {"seq": 1}}


def look(ledger, run_id="r"):
    with ledger.read() as connection:
        return get_run(connection, run_id)


def events(ledger):
    with ledger.read() as connection:
        return [(e.kind, e.old, e.new) for e in events_after(connection, 0, "i")]


@pytest.mark.parametrize(("old", "new"), [*itertools.product(RunState, RunState)])
def test_an_illegal_move_cannot_be_made(old, new):
    """Every pair is either an allowed one, or not even a value."""
    if may_become(old, new):
        assert Move(old, new).new in NEXT_RUN_STATES[old]
    else:
        with pytest.raises(ValueError, match=f"from `{old}` to `{new}`"):
            Move(old, new)


def test_a_move_from_elsewhere_is_a_mistake_of_ours(ledger):
    """Asking for a move the run cannot make is no race but a bug, and says so."""
    with ledger.write() as connection, pytest.raises(ValueError, match="cannot leave"):
        move_run(connection, AT, look(ledger), COMPLETE)


def test_moves_are_noted_one_by_one(ledger):
    """Several moves in one transaction leave one event each, and one row changed once."""
    with ledger.write() as connection:
        run = claim(connection, AT, look(ledger), ME)
        done = move_run(
            connection, AT, run, COMPLETE, VALIDATE, FINISH, settled=True, payload={"n": 1}
        )
    assert done == look(ledger)
    assert (done.status, done.settled, done.payload, done.ended_at) == ("done", True, {"n": 1}, AT)
    assert events(ledger)[-4:] == [
        ("transition", "queued", "in_progress"),
        ("transition", "in_progress", "completed"),
        ("transition", "completed", "validated"),
        ("transition", "validated", "done"),
    ]


def test_of_two_claims_one_wins(ledger):
    """The second claim of a queued run finds no row, and writes nothing."""
    seen = look(ledger)
    with ledger.write() as connection:
        assert claim(connection, AT, seen, ME).epoch == 1
        assert claim(connection, AT, seen, replace(ME, owner="other")) is None
    assert look(ledger).owner == "me"
    assert len(events(ledger)) == 3


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda c, run: move_run(c, AT, run, LOSE),
        lambda c, run: put_brake(c, AT, run, "timeout", "too slow"),
        lambda c, run: request_cancel(c, AT, "i", "ann"),
        lambda c, run: move_run(c, AT, run, FAIL, settled=True),
        lambda c, run: move_run(c, AT, run, epoch=run.epoch + 1),
    ],
)
def test_a_completion_is_dropped_when_anything_changed_since_the_look(ledger, meanwhile):
    """Lost, braked, cancelled, settled or claimed anew: the result is not written over it."""
    with ledger.write() as connection:
        run = claim(connection, AT, look(ledger), ME)
        assert meanwhile(connection, run)
        before = get_run(connection, "r")
        assert move_run(connection, AT, run, COMPLETE, payload={"late": True}) is None
        assert get_run(connection, "r") == before


def test_a_beat_tells_what_is_held_no_longer(ledger):
    """A lease that another took, or that is settled, is not prolonged."""
    with ledger.write() as connection:
        run = claim(connection, AT, look(ledger), ME)
        later_at = "2026-03-01T09:00:05.000Z"
        assert beat(connection, later_at, "me", [("r", 1)], lease_s=15) == ()
        assert get_run(connection, "r").lease_until == "2026-03-01T09:00:20.000Z"
        assert beat(connection, AT, "me", [("r", 2), ("x", 1)], lease_s=15) == ("r", "x")
        move_run(connection, AT, get_run(connection, "r"), LOSE)
        assert beat(connection, AT, "other", [("r", run.epoch)], lease_s=15) == ("r",)


def test_a_step_has_one_active_run(ledger):
    """The schema itself refuses a second queued run of the same step."""
    with pytest.raises(BROKEN_RULE), ledger.write() as connection:
        add_run(connection, AT, row("r2"))
    with ledger.write() as connection:
        move_run(connection, AT, get_run(connection, "r"), CLAIM, ASK)
    with pytest.raises(BROKEN_RULE), ledger.write() as connection:
        add_run(connection, AT, row("r2"))


def test_nothing_is_kept_of_a_transaction_that_fails(ledger):
    """State and event go together, also when the transaction breaks behind them."""
    with pytest.raises(ZeroDivisionError), ledger.write() as connection:
        claim(connection, AT, look(ledger), ME)
        raise ZeroDivisionError
    assert look(ledger).status == "queued"
    assert len(events(ledger)) == 2


def test_an_instance_moves_by_compare_and_set(ledger):
    """The second engine that starts an instance is told that it is started."""
    queued, running = InstanceState.QUEUED, InstanceState.RUNNING
    with ledger.write() as connection:
        assert move_instance(connection, AT, "i", queued, running)
        assert not move_instance(connection, AT, "i", queued, running)
        with pytest.raises(ValueError, match="cannot go from"):
            move_instance(connection, AT, "i", InstanceState.COMPLETED, running)
        assert get_instance(connection, "i").started_at == AT


# --- teeth: without its guard a promise breaks, so the tests above would see it ------------


@pytest.fixture
def without(monkeypatch):
    """Take columns out of every compare of `move_run`."""
    real = runs.change

    def take_away(*columns):
        def change(connection, table, where, values, **more):
            kept = {name: value for name, value in where.items() if name not in columns}
            return real(connection, table, kept, values, **more)

        monkeypatch.setattr(runs, "change", change)

    return take_away


def test_without_the_compare_two_claims_win(ledger, without):
    """Teeth of `test_of_two_claims_one_wins`."""
    without("status", "epoch")
    seen = look(ledger)
    with ledger.write() as connection:
        assert claim(connection, AT, seen, ME)
        assert claim(connection, AT, seen, replace(ME, owner="other"))
    assert look(ledger).owner == "other"


def test_without_the_fence_a_late_result_is_written(ledger, without):
    """Teeth of the fence: a run that another has claimed since is completed by the first."""
    with ledger.write() as connection:
        run = claim(connection, AT, look(ledger), ME)
        move_run(connection, AT, run, epoch=run.epoch + 1)
        assert move_run(connection, AT, run, COMPLETE) is None
        without("epoch")
        assert move_run(connection, AT, run, COMPLETE)


def test_without_settled_two_engines_draw_the_same_consequence(ledger, without):
    """Teeth of `settled`: the step behind would be queued twice."""
    with ledger.write() as connection:
        run = claim(connection, AT, look(ledger), ME)
        failed = move_run(connection, AT, run, FAIL)
        assert move_run(connection, AT, failed, settled=True)
        assert move_run(connection, AT, failed, settled=True) is None
        without("settled")
        assert move_run(connection, AT, failed, settled=True)


@pytest.mark.parametrize("only", [None, ("i",)])
def test_a_scan_touches_open_runs_only(ledger, only):
    """Finished runs cost the patrol nothing: it reads them through an index of open ones."""
    with ledger.write() as connection:
        run = claim(connection, AT, look(ledger), ME)
        move_run(connection, AT, run, COMPLETE, VALIDATE, FINISH, settled=True)
        for number in range(2000):
            finished = add_run(connection, AT, row(f"old-{number}"))
            move_run(connection, AT, finished, SKIP, settled=True)
        add_run(connection, AT, row("new"))
    with ledger.read() as connection:
        steps = 0

        def count():
            nonlocal steps
            steps += 1

        connection.connection.driver_connection.set_progress_handler(count, 1)
        assert [run.run_id for run in open_runs(connection, only)] == ["new"]
        connection.connection.driver_connection.set_progress_handler(None, 0)
    assert steps < 1000
