"""What was written is told from what was changed since."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

import pytest
from alembic import command
from alembic.config import Config

from openry import cli
from openry.ledger import schema
from openry.ledger.commands import find
from openry.ledger.db import Ledger
from openry.ledger.engine import open_engine
from openry.ledger.fast import FastLedger
from openry.ledger.instances import add_instance, move_instance
from openry.ledger.journal import events_after
from openry.ledger.prune import forget
from openry.ledger.tokens import hashed
from openry.ledger.verify import verify
from openry.models import CommandResult, Ending, InstanceState, RunContext

AT = "2026-03-01T09:00:00.000Z"
_I = InstanceState


@pytest.fixture
def path(tmp_path):
    """A ledger with commands by hand, and two instances that ended."""
    with Ledger(tmp_path / "openry.db") as ledger:
        for name in ("one", "two"):
            with ledger.write() as db:
                add_instance(db, AT, {"instance_id": name, "plan": "", "plan_hash": ""})
                move_instance(db, AT, name, _I.QUEUED, _I.RUNNING)
                run = {"run_id": name, "workflow_instance_id": name, "status": "in_progress"}
                run |= {"created_at": AT, "token_hash": hashed("t")}
                db.execute(schema.task_state.insert(), run)
            commands(tmp_path / "openry.db", RunContext(run_id=name, token="t"))
            with ledger.write() as db:
                move_instance(db, AT, name, _I.RUNNING, _I.COMPLETED)
    return tmp_path / "openry.db"


def commands(path, context) -> None:
    with FastLedger(path) as fast:
        for text in ("echo a", "echo 'é\udcff'", 'say "it\'s"'):
            begun = fast.begin(context, text)
            fast.finish(begun.command_id, CommandResult(0, "out\n", "", 0.01, Ending.EXITED))
        fast.refuse(context, "rm -rf /", reason="no")
        fast.begin(context, "sleep 9")


def look(path, anchor=""):
    with Ledger(path) as ledger, ledger.read() as db:
        return verify(db, anchor)


def in_parts(monkeypatch, processors=3) -> None:
    """Have a few rows read by several processes, by turns."""
    monkeypatch.setattr("openry.ledger.verify._MANY", 1)
    monkeypatch.setattr("openry.ledger.verify._STRIDE", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(processors))


def edit(path, statement: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute(statement)
    db.close()


def test_what_nobody_changed_is_as_written(path):
    """Every row of every kind has its hash, and all fit."""
    commands(path, RunContext())

    found = look(path)
    assert found.ok
    assert found.unhashed == 0
    assert found.rows == 8 + 15 + 1
    assert len(found.head) == 64


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE commands_log SET command = 'true' WHERE id = 2", "commands_log row 2: it was"),
        ("UPDATE commands_log SET exit_code = 1 WHERE id = 3", "commands_log row 3: how it ended"),
        ("UPDATE commands_log SET stdout = 'x' WHERE id = 1", "commands_log row 1: how it ended"),
        ("UPDATE commands_log SET step_id = 'x' WHERE id = 5", "commands_log row 5: it was"),
        (
            "DELETE FROM commands_log WHERE id = 2",
            "commands_log row 3: it was changed, or the command before",
        ),
        ("DELETE FROM commands_log WHERE id = 10", "the commands of instance two are not"),
        ("UPDATE commands_log SET ended_hash = '' WHERE id = 1", "commands_log row 1: how it"),
        ("UPDATE commands_log SET started_hash = '' WHERE id = 1", "commands_log row 1: it was"),
        ("UPDATE events SET reason = 'x' WHERE id = 2", "events row 2: it, or the event before"),
        ("UPDATE events SET data = '{\"a\": 1}' WHERE id = 3", "events row 3: it, or the event"),
        ("DELETE FROM events WHERE id = 2", "events row 3: it, or the event before it"),
        ("DELETE FROM events WHERE instance_id = 'one'", "the instance that ended before this"),
    ],
)
def test_a_changed_row_is_found_with_its_number(path, statement, said):
    """Whatever is changed or taken out, the row is named, or the one after it."""
    edit(path, statement)

    problems = [str(one) for one in look(path).problems]

    assert any(said in one for one in problems), problems
    assert len(problems) <= 4


def test_an_anchor_shows_what_was_made_anew(path):
    """A head kept elsewhere is still there, or the ledger is another one."""
    head = look(path).head

    assert look(path, head).ok
    edit(path, "DELETE FROM events WHERE id = (SELECT max(id) FROM events)")
    assert look(path).ok, "an owner cut the end off: without the anchor nothing shows"
    found = look(path, head)
    assert not found.ok
    assert found.anchored is False


def test_what_was_pruned_leaves_a_checkpoint(path):
    """Rows that went by `prune` are not missed; its checkpoint cannot be changed unseen."""
    head = look(path).head
    with Ledger(path) as ledger, ledger.write() as db:
        forget(db, ["one"])

    assert look(path, head).ok
    edit(path, "UPDATE checkpoints SET data = '{\"heads\": []}' WHERE kind = 'prune'")
    problems = [str(one) for one in look(path).problems]
    assert "checkpoints row 2: it is not what was written" in problems


@pytest.mark.parametrize(
    "data",
    [
        "'x'",
        "'{}'",
        "'[1]'",
        "'{\"heads\": 5}'",
        "x'00'",
        "7",
        "replace(hex(zeroblob(50000)), '00', '[')",
    ],
)
@pytest.mark.parametrize("number", [1, 2])
def test_a_checkpoint_that_says_nothing_is_named(path, number, data):
    """Whatever somebody put there: its row is named, and the rest is looked at."""
    with Ledger(path) as ledger, ledger.write() as db:
        forget(db, ["one"])
    edit(path, f"UPDATE checkpoints SET data = {data} WHERE id = {number}")
    edit(path, "UPDATE commands_log SET command = 'x' WHERE id = 7")

    problems = [str(one) for one in look(path).problems]

    assert f"checkpoints row {number}: it is not what was written" in problems
    assert any("commands_log row 7" in one for one in problems)


def test_a_loss_and_its_correction_are_written_anew(path):
    """What recovery takes for lost, and the truth puts right, is no tampering."""
    with FastLedger(path) as fast:
        assert fast.finish(5, CommandResult(0, "late\n", "", 9.0, Ending.EXITED))
    assert look(path).ok
    code = (
        "import os, sys; from openry.ledger.fast import FastLedger; from openry.models import"
        " RunContext; FastLedger(sys.argv[1]).begin(RunContext(), 'x'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)
    with FastLedger(path) as fast:
        assert fast.recover_lost() == 1
    assert look(path).ok


def test_many_write_one_chain(path):
    """Processes that write at once make one chain of a run's commands."""
    code = (
        "import sys; from openry.ledger.fast import FastLedger; from openry.models import"
        " RunContext\nfor _ in range(20): FastLedger(sys.argv[1]).begin(RunContext(), 'x')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, path]) for _ in range(3)]
    assert [each.wait() for each in running] == [0, 0, 0]

    assert look(path).ok


def test_an_older_ledger_is_upgraded(tmp_path):
    """Rows from before have no hashes, which is said; those after them are held."""
    path = tmp_path / "old.db"
    engine = open_engine(path)
    with engine.connect() as connection, connection.begin():
        config = Config()
        config.set_main_option("script_location", "openry.ledger:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
    engine.dispose()
    edit(
        path,
        "INSERT INTO commands_log (run_id, seq, command, timestamp, started_at, ending, exit_code,"
        f" ended_at) VALUES ('manual', 1, 'old', '{AT}', '{AT}', 'exited', 0, '{AT}')",
    )
    edit(path, f"INSERT INTO events (at, instance_id) VALUES ('{AT}', 'i')")

    commands(path, RunContext())

    found = look(path)
    assert found.ok, found.problems
    assert found.unhashed == 2
    edit(path, "UPDATE commands_log SET command = 'x' WHERE id = 2")
    assert [one.id for one in look(path).problems] == [2]


def test_the_form_says_it_in_words_and_json(path, tmp_path, monkeypatch, capfd):
    """`openry log verify` exits 0 or 1, names rows, and takes an anchor."""
    monkeypatch.setenv("OPENRY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENRY_DB", str(path))
    monkeypatch.delenv("OPENRY_RUN_ID", raising=False)

    assert cli.main(["log", "verify", "--json"]) == 0
    head = json.loads(capfd.readouterr().out)["head"]
    assert cli.main(["log", "verify", "--anchor", head]) == 0
    assert "as written" in capfd.readouterr().out
    edit(path, "UPDATE commands_log SET command = 'x' WHERE id = 7")
    assert cli.main(["log", "verify"]) == 1
    assert "commands_log row 7: it was changed" in capfd.readouterr().out
    assert cli.main(["log", "verify", "--anchor", "0" * 64, "--json"]) == 1
    assert json.loads(capfd.readouterr().out)["anchored"] is False


def test_many_commands_are_verified_in_parts(path, monkeypatch):
    """Processes share the work; what each finds is told as by one, other parts' hashes as well."""
    in_parts(monkeypatch)
    commands(path, RunContext())
    commands(path, RunContext())
    anchor = look(path).head

    found = look(path, anchor)
    assert (found.ok, found.rows) == (True, 8 + 20 + 1)
    edit(path, "UPDATE commands_log SET command = 'x' WHERE id = 13")
    edit(path, "UPDATE commands_log SET stdout = 'x' WHERE id = 2")
    assert [one.id for one in look(path).problems] == [2, 13]


def test_parts_are_read_by_our_program_wherever_we_stand(path, tmp_path, monkeypatch):
    """A folder in which an agent wrote an `openry` of its own gives no judge of its deeds."""
    forged = tmp_path / "workspace" / "openry" / "ledger"
    forged.mkdir(parents=True)
    for name in ("__init__.py", "ledger/__init__.py"):
        (forged.parent / name).write_text("")
    (forged / "verify_part.py").write_text("raise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path / "workspace")
    in_parts(monkeypatch)

    assert look(path).ok


def test_what_is_pruned_meanwhile_is_not_missed(path, monkeypatch):
    """Parts look a moment later than whoever started them: newer checkpoints count as well."""
    in_parts(monkeypatch)
    with Ledger(path) as ledger, ledger.read() as before:
        before.exec_driver_sql("SELECT count(*) FROM events").all()
        with ledger.write() as db:
            forget(db, ["one"])

        found = verify(before)

    assert found.ok, found.problems
    assert found.head


def test_what_is_pruned_meanwhile_shifts_no_turns(path, monkeypatch):
    """Parts that begin when the first rows are gone still read every row that is left."""
    commands(path, RunContext())
    commands(path, RunContext())
    edit(path, "UPDATE commands_log SET command = 'x' WHERE id > 10")
    in_parts(monkeypatch)
    with Ledger(path) as ledger, ledger.read() as before:
        before.exec_driver_sql("SELECT count(*) FROM commands_log").all()
        with ledger.write() as db:
            forget(db, ["one"])

        found = verify(before)

    assert [one.id for one in found.problems if one.table == "commands_log"] == [*range(11, 21)]


@pytest.mark.parametrize(
    "cell",
    [
        "json_set(data, '$.commands', json('1000000000000000000000000000000'))",
        "json_set(data, '$.commands', json('-1'))",
        "json_set(data, '$.commands', json('1e999'))",
        "json_set(data, '$.open', json('[[1]]'))",
        "'[1]'",
        "replace(hex(zeroblob(50000)), '00', '[')",
    ],
    ids=["large", "negative", "endless", "unhashable", "list", "deep"],
)
def test_a_head_that_nobody_wrote_is_named(path, monkeypatch, cell):
    """Whatever stands in its cell: its row is told, and the rest is read, by one or by many."""
    edit(path, f"UPDATE events SET data = {cell} WHERE id = 4")

    for _ in range(2):
        told = [str(one) for one in look(path).problems]
        assert "events row 4: it, or the event before it, was changed or removed" in told
        in_parts(monkeypatch)


def test_a_hash_that_is_no_text_is_named(path, monkeypatch):
    """By one reader and by many."""
    edit(path, "UPDATE events SET hash = x'00ff' WHERE id IN (4, 8)")

    for _ in range(2):
        assert {("events", 4), ("events", 8)} <= {(p.table, p.id) for p in look(path).problems}
        in_parts(monkeypatch)


def test_blobs_and_broken_text_are_named_by_the_form(path, monkeypatch, tmp_path, capfd):
    """What no ledger writes into a cell ends nothing early; the rows are told in plain words."""
    monkeypatch.setenv("OPENRY_DB", str(path))
    edit(path, "UPDATE commands_log SET command = x'00ff' WHERE id = 2")
    edit(path, "UPDATE commands_log SET run_id = CAST(x'61ff' AS TEXT) WHERE id = 7")
    edit(path, "UPDATE events SET data = x'7b7d' WHERE id = 3")

    assert cli.main(["log", "verify", "--json"]) == 1
    problems = json.loads(capfd.readouterr().out)["problems"]
    assert {(one["table"], one["id"]) for one in problems} >= {
        ("commands_log", 2), ("commands_log", 7), ("events", 3),
    }  # fmt: skip
    assert cli.main(["log", "verify"]) == 1
    assert "(run a\\udcff, #2)" in capfd.readouterr().out


def test_a_clock_that_goes_backwards_changes_no_order(tmp_path):
    """Rows follow each other by their numbers: an earlier time breaks no chain and no list."""
    path = tmp_path / "openry.db"
    times = (f"2026-03-01T09:00:{second:02}.000Z" for second in range(59, 0, -1))
    with FastLedger(path, now=lambda: next(times)) as fast:
        for text in ("first", "second", "third"):
            begun = fast.begin(RunContext(), text)
            fast.finish(begun.command_id, CommandResult(0, "", "", 0.01, Ending.EXITED))
    with Ledger(path) as ledger:
        for at in (next(times), next(times)):
            with ledger.write() as db:
                add_instance(db, at, {"instance_id": at, "plan": "", "plan_hash": ""})
                move_instance(db, next(times), at, _I.QUEUED, _I.RUNNING)
                move_instance(db, next(times), at, _I.RUNNING, _I.COMPLETED)
        with ledger.read() as db:
            assert [each.command for each in find(db)] == ["first", "second", "third"]
            assert verify(db).ok
            told = events_after(db, 0, "")
    assert [one.new or one.kind for one in told] == ["queued", "running", "completed", "head"] * 2
