"""The schema, the migrations and a new ledger say the same."""

from __future__ import annotations

import re
import sqlite3

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateIndex, CreateTable

from openry.ledger import fresh, schema
from openry.ledger.db import Ledger
from openry.ledger.migrate import migrate
from openry.ledger.version import HEAD, REVISIONS
from openry.models import Ending, InstanceState, RunState

AT = "2026-03-01T09:00:00.000Z"

FIRST_ROWS = (
    "SELECT version_num FROM alembic_version",
    "SELECT id, kind, data, hash FROM checkpoints",
    "SELECT name, seq FROM sqlite_sequence",
)
#: What other programs and older ledgers already rely on.
PROMISED = {
    "commands_log": "run_id workflow step_id command exit_code stdout stderr duration_ms timestamp",
    "task_state": "status payload validation_status cancel_requested sub_step_retry_count"
    " big_step_retry_count max_tool_calls output_overflow workflow_instance_id",
}


def _parts(connection) -> dict[str, list[str]]:
    """Each table and index by name, as a sorted list of what it is declared with.

    SQLite writes a column that was added later behind the constraints, in one line with them.
    """
    found = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        " AND name NOT IN ('alembic_version', 'sqlite_sequence')"
    )
    return {
        name: sorted(part for each in re.split(r",|\n", sql) if (part := each.strip(" \t()")))
        for name, sql in found
    }


def test_migrations_make_exactly_the_schema(tmp_path):
    """A migrated ledger has the tables, columns, checks and indices that `schema` declares."""
    migrate(tmp_path / "migrated.db")
    declared = create_engine(f"sqlite:///{tmp_path / 'declared.db'}")
    schema.metadata.create_all(declared)
    declared.dispose()

    one, other = (sqlite3.connect(tmp_path / f"{name}.db") for name in ("migrated", "declared"))

    assert _parts(one) == _parts(other)
    one.close()
    other.close()


def test_a_new_ledger_is_what_the_migrations_come_to(tmp_path):
    """What is made at once is to the letter, and in its first rows, what the migrations make.

    Where they have changed: `python -m openry.ledger.fresh >openry/ledger/fresh.sql`.
    """
    migrate(tmp_path / "migrated.db")
    Ledger(tmp_path / "made.db").close()
    paths = [str(tmp_path / f"{name}.db") for name in ("migrated", "made")]
    migrated, made = (
        [connection.execute(asked).fetchall() for asked in FIRST_ROWS]
        for connection in map(sqlite3.connect, paths)
    )

    assert fresh.statements_of(paths[0]) == fresh.statements_of(paths[1])
    assert migrated == made


def test_the_light_list_of_revisions_is_the_migrations():
    """`version.REVISIONS`, which the forwarder reads, names the migrations in their order."""
    config = Config()
    config.set_main_option("script_location", "openry.ledger:migrations")
    walked = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]

    assert tuple(reversed(walked)) == REVISIONS
    assert walked[0] == HEAD


@pytest.mark.parametrize("table", PROMISED)
def test_promised_columns_are_there(table):
    """Columns that were there before keep their names."""
    assert set(PROMISED[table].split()) <= set(schema.metadata.tables[table].c.keys())


def test_the_schema_is_one_that_postgresql_takes():
    """Every table and index can be said in PostgreSQL's words, booleans as booleans."""
    dialect = postgresql.dialect()
    for table in schema.metadata.sorted_tables:
        for index in table.indexes:
            where = index.dialect_options["sqlite"]["where"]
            index.dialect_options["postgresql"]["where"] = where
    said = [
        str(CreateIndex(index).compile(dialect=dialect))
        for table in schema.metadata.sorted_tables
        if str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes
    ]

    assert any("WHERE settled = false" in text for text in said)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "openry.db") as made:
        yield made


def _command(**columns: object) -> dict[str, object]:
    row = {"run_id": "manual", "seq": 1, "command": "true", "timestamp": AT, "started_at": AT}
    return {**row, **columns}


@pytest.mark.parametrize("ending", [e.value for e in Ending])
def test_a_command_may_end_in_every_known_way(ledger, ending):
    """Each `Ending` is a value the column takes; only a lost command has no exit code."""
    code = None if ending == "lost" else 0
    with ledger.write() as db:
        db.execute(
            schema.commands_log.insert(), _command(ending=ending, exit_code=code, ended_at=AT)
        )


@pytest.mark.parametrize(
    "columns",
    [
        {"ending": "vanished", "exit_code": 0, "ended_at": AT},
        {"ending": "exited", "exit_code": 0},
        {"ending": "exited", "ended_at": AT},
        {"ending": "started", "ended_at": AT},
        {"ending": "started", "exit_code": 0},
        {"ending": "lost", "exit_code": 0, "ended_at": AT},
        {"verdict": "deny"},
        {"verdict": "perhaps"},
    ],
)
def test_an_impossible_command_is_refused(ledger, columns):
    """A command that ended without a time, ran though denied, or is half finished has no row."""
    with pytest.raises(IntegrityError), ledger.write() as db:
        db.execute(schema.commands_log.insert(), _command(**columns))


def test_only_known_states_are_stored(ledger):
    """Every state of the models is stored, and no other."""
    runs = [{"run_id": state.value, "status": state.value, "created_at": AT} for state in RunState]
    over = ("completed", "failed", "cancelled")
    instances = [
        {
            "instance_id": state.value,
            "state": state.value,
            "plan": "",
            "plan_hash": "",
            "created_at": AT,
            "ended_at": AT if state in over else None,
        }
        for state in InstanceState
    ]
    with ledger.write() as db:
        db.execute(schema.task_state.insert(), runs)
        for row in instances:
            db.execute(schema.workflow_instances.insert(), row)

    for update in ({"status": "paused"}, {"brake": "tired"}, {"attempt": 0}, {"tool_calls": -1}):
        with pytest.raises(IntegrityError), ledger.write() as db:
            db.execute(schema.task_state.update().values(update))
    with pytest.raises(IntegrityError), ledger.write() as db:
        db.execute(schema.workflow_instances.update().values(state="completed", ended_at=None))


def test_a_step_has_one_active_run(ledger):
    """Two runs of one step cannot be active; two items of it can, and who ended is not."""
    with ledger.write() as db:
        db.execute(
            schema.workflow_instances.insert(),
            {"instance_id": "i", "plan": "", "plan_hash": "", "created_at": AT},
        )

    def add(run_id: str, status: str, item: str = "") -> None:
        row = {"run_id": run_id, "workflow_instance_id": "i", "step_id": "s", "item": item}
        with ledger.write() as db:
            db.execute(schema.task_state.insert(), {**row, "status": status, "created_at": AT})

    add("first", "failed")
    add("second", "in_progress")
    add("third", "queued", item="2")
    with pytest.raises(IntegrityError):
        add("fourth", "queued")


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (
            select(schema.task_state.c.run_id).where(
                schema.OPEN_RUNS, schema.task_state.c.status == "queued"
            ),
            "ix_task_state_open",
        ),
        (
            select(schema.workflow_instances.c.instance_id).where(schema.LIVE_INSTANCES),
            "ix_workflow_instances_live",
        ),
        (
            select(schema.commands_log.c.id).where(schema.STARTED_COMMANDS),
            "ix_commands_log_started",
        ),
        (select(schema.approvals.c.id).where(schema.PENDING_APPROVALS), "ix_approvals_pending"),
        (select(schema.workers.c.worker_id).where(schema.LIVE_WORKERS), "ix_workers_live"),
    ],
)
def test_active_rows_are_found_by_their_own_index(ledger, query, index):
    """A patrol's question reads an index of active rows only, so history costs it nothing."""
    with ledger.read() as db:
        text = str(query.compile(db, compile_kwargs={"literal_binds": True}))
        plan = " ".join(row[-1] for row in db.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}"))

    assert index in plan
