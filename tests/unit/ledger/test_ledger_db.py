"""What is written is whole, or was not."""

from __future__ import annotations

import os
import sqlite3
import threading

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from openry.errors import StorageError
from openry.ledger import schema
from openry.ledger.change import driver
from openry.ledger.db import Ledger
from openry.ledger.engine import open_engine
from openry.ledger.fast import FastLedger
from openry.models import CommandResult, RunContext

AT = "2026-03-01T09:00:00.000Z"


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "openry.db") as made:
        yield made


def _add_event(db, **columns) -> None:
    db.execute(schema.events.insert(), {"at": AT, **columns})


def _events(ledger) -> list:
    with ledger.read() as db:
        return list(db.execute(select(schema.events.c.new).order_by(schema.events.c.id)).scalars())


def test_a_write_is_kept_whole_or_not_at_all(ledger):
    """What is done before an error inside `write` is undone."""
    with ledger.write() as db:
        _add_event(db, new="kept")
    with pytest.raises(KeyError), ledger.write() as db:
        _add_event(db, new="lost")
        raise KeyError

    assert _events(ledger) == ["kept"]


def test_a_write_waits_for_the_disk_unless_it_need_not(ledger):
    """What the disk is waited for is set anew for each, whoever had the connection before."""

    def level(**how) -> int:
        with ledger.write(**how) as db:
            return db.exec_driver_sql("PRAGMA synchronous").scalar()

    full, normal = 2, 1
    assert [level(), level(durable=False), level(durable=False), level(), level()] == [
        full, normal, normal, full, full,
    ]  # fmt: skip


def test_our_own_mistakes_keep_their_name(ledger):
    """A broken constraint is no trouble with the disk."""
    with pytest.raises(IntegrityError), ledger.write() as db:
        db.execute(schema.events.insert(), {})


def test_a_writer_waits_for_the_other(ledger):
    """Both read before they write, and neither loses: the lock is taken at the beginning."""

    def count_one_more() -> None:
        for _ in range(25):
            with ledger.write() as db:
                seen = db.execute(select(schema.workflow_instances.c.epoch)).scalar_one()
                db.execute(schema.workflow_instances.update().values(epoch=seen + 1))

    with ledger.write() as db:
        row = {"instance_id": "i", "plan": "", "plan_hash": "", "created_at": AT}
        db.execute(schema.workflow_instances.insert(), row)
    threads = [threading.Thread(target=count_one_more) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with ledger.read() as db:
        assert db.execute(select(schema.workflow_instances.c.epoch)).scalar_one() == 100


def test_a_look_stays_the_same_while_others_write(ledger):
    """Two questions in one `read` see one state of the ledger."""
    query = select(schema.events.c.id)
    with ledger.read() as db:
        before = db.execute(query).all()
        with ledger.write() as writer:
            _add_event(writer)
        assert db.execute(query).all() == before

    assert len(_events(ledger)) == 1


def test_values_come_back_as_they_went(ledger):
    """JSON in any language, truth values and nothing survive the way through the database."""
    row = {
        "run_id": "r",
        "created_at": AT,
        "payload": {"名": ["值", None, 1.5]},
        "result": None,
        "cancel_requested": True,
    }
    with ledger.write() as db:
        db.execute(schema.task_state.insert(), row)

    with ledger.read() as db:
        found = db.execute(select(schema.task_state)).mappings().one()
        text = db.exec_driver_sql("SELECT payload FROM task_state").scalar_one()
    assert {key: found[key] for key in row} == row
    assert (found["settled"], found["data"], found["attempt"]) == (False, {}, 1)
    assert text == '{"名": ["值", null, 1.5]}'


def test_deleting_an_instance_deletes_its_runs(ledger):
    """No run is left behind without the instance it belongs to."""
    instance = {"instance_id": "i", "plan": "", "plan_hash": "", "created_at": AT}
    with ledger.write() as db:
        db.execute(schema.workflow_instances.insert(), instance)
        db.execute(
            schema.task_state.insert(),
            {"run_id": "r", "workflow_instance_id": "i", "created_at": AT},
        )
        db.execute(schema.validation_results.insert(), {"run_id": "r", "passed": True, "at": AT})
        db.execute(schema.workflow_instances.delete())

    with ledger.read() as db:
        assert db.execute(select(schema.task_state)).all() == []
        assert db.execute(select(schema.validation_results)).all() == []


def test_numbers_are_not_given_again(ledger):
    """An event's number is never used twice, so whoever waits for newer ones misses none."""
    with ledger.write() as db:
        _add_event(db)
        _add_event(db)
        db.execute(schema.events.delete())
        _add_event(db)

    with ledger.read() as db:
        assert db.execute(select(schema.events.c.id)).scalar_one() == 3


@pytest.mark.parametrize("url", ["postgresql://u:p@h/db", "postgres://h/db"])
def test_a_postgresql_url_gets_its_driver(url):
    """The driver is ours to choose; without it installed the error is the driver's absence."""
    with pytest.raises(StorageError, match=r"psycopg.*install that database's driver"):
        open_engine(url)


def test_a_transaction_that_sqlite_ended_by_itself_is_not_called_kept(ledger):
    """Whoever hides an error that took everything back is told at the end of the transaction."""
    with pytest.raises(StorageError), ledger.write() as db:
        _add_event(db, new="lost")
        db.exec_driver_sql("ROLLBACK")

    with ledger.write() as db:
        _add_event(db, new="kept")
    assert _events(ledger) == ["kept"]


def test_connections_are_kept_and_a_failed_one_is_not(ledger):
    """One after the other they are the same connection; one that something befell is closed."""

    def used() -> int:
        with ledger.read() as db:
            return id(driver(db))

    first = used()
    assert used() == first
    with ledger.read() as one, ledger.write() as other:
        assert driver(one) is not driver(other)
        _add_event(other, new="kept")
    failed = None
    with pytest.raises(KeyError), ledger.read() as db:
        failed = driver(db)
        raise KeyError
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        failed.execute("SELECT 1")
    assert _events(ledger) == ["kept"]


def test_a_closed_ledger_keeps_no_connection(ledger):
    """Also one that was in use as it was closed is closed when its user has done."""
    with ledger.write() as db:
        own = driver(db)
        ledger.close()
        _add_event(db, new="kept")

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        own.execute("SELECT 1")
    assert _events(ledger) == ["kept"]


def test_a_child_of_fork_has_connections_of_its_own(ledger):
    """It writes by another connection than its parent's, and closes none of the parent's."""
    with ledger.write() as db:
        own = driver(db)
    pid = os.fork()
    if pid == 0:
        with ledger.write() as db:
            _add_event(db, new="child")
            mine = driver(db) is not own
        os._exit(0 if mine else 1)

    assert os.waitpid(pid, 0)[1] == 0
    with ledger.write() as db:
        assert driver(db) is own
        _add_event(db, new="parent")
    assert _events(ledger) == ["child", "parent"]


@pytest.fixture
def hand(ledger):
    with FastLedger(ledger.path) as made:
        yield made


def test_a_write_by_the_hand_is_kept_whole_or_not_at_all(ledger, hand):
    """It is one transaction of the hand's own connection, and both go on after one that failed."""
    with ledger.write(hand=hand) as db:
        _add_event(db, new="kept")
        assert hand.connected().in_transaction
    with pytest.raises(KeyError), ledger.write(hand=hand) as db:
        _add_event(db, new="lost")
        raise KeyError
    with pytest.raises(IntegrityError), ledger.write(hand=hand) as db:
        _add_event(db, new="lost")
        db.execute(schema.events.insert(), {})

    assert hand.begin(RunContext(), "true").command_id == 1
    with ledger.write(hand=hand) as db:
        _add_event(db, new="kept too")
    assert _events(ledger) == ["kept", "kept too"]


def test_a_write_by_the_hand_waits_for_the_disk_unless_it_need_not(ledger, hand):
    """Whatever the hand did last, and the other way round."""

    def level(**how) -> int:
        with ledger.write(hand=hand, **how) as db:
            return db.exec_driver_sql("PRAGMA synchronous").scalar()

    full, normal = 2, 1
    assert [level(), level(durable=False)] == [full, normal]
    begun = hand.begin(RunContext(), "true")
    assert hand.connected().execute("PRAGMA synchronous").fetchone() == (full,)
    hand.finish(begun.command_id, CommandResult(0, "", "", 0.1))
    assert [level(), level(durable=False)] == [full, normal]


def test_a_write_by_the_hand_holds_to_what_rows_refer_to(ledger, hand):
    """What refers to a row that is not there is refused, as by any other connection."""
    row = {"at": AT, "run_id": "nobody", "position": 0, "rule": "x", "passed": True}
    with pytest.raises(IntegrityError), ledger.write(hand=hand) as db:
        db.execute(schema.validation_results.insert(), row)


def test_who_writes_by_the_hand_keeps_others_of_it_out(ledger, hand):
    """Nobody else's row gets into the transaction, and nobody else ends it."""
    others = [
        threading.Thread(target=hand.begin, args=(RunContext(), f"echo {number}"))
        for number in range(4)
    ]
    with pytest.raises(KeyError), ledger.write(hand=hand) as db:
        for each in others:
            each.start()
        _add_event(db, new="lost")
        assert db.execute(select(schema.commands_log.c.id)).all() == []
        raise KeyError
    for each in others:
        each.join()

    with ledger.read() as db:
        assert len(db.execute(select(schema.commands_log.c.id)).all()) == len(others)
    assert _events(ledger) == []
