"""Rows that lead to each other by their hashes, and checkpoints where some are gone."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from openry.ledger.migrations.words import given, json_value, one_of, partial, serial, text

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("events", text("hash"))
    op.add_column("commands_log", text("started_hash"))
    op.add_column("commands_log", text("ended_hash"))
    checkpoints = op.create_table(
        "checkpoints",
        serial(),
        given("at"),
        text("kind", "prune"),
        json_value("data"),
        text("hash"),
        one_of("checkpoints", "kind", "begin,prune,import"),
        sqlite_autoincrement=True,
    )
    partial("ix_events_head", "events", ["id"], sa.text("kind = 'head'"))
    # Rows up to here were written without hashes.
    newest = {
        table: op.get_bind().execute(sa.text(f"SELECT max(id) FROM {table}")).scalar() or 0  # noqa: S608
        for table in ("events", "commands_log")
    }
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    op.bulk_insert(checkpoints, [{"at": now, "kind": "begin", "data": newest, "hash": ""}])
