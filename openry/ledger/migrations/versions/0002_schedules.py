"""Schedules, what they began, and notices."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from openry.ledger.migrations.words import (
    flag,
    given,
    index,
    json_value,
    key,
    maybe,
    one_of,
    partial,
    serial,
    text,
    texts,
)

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schedules",
        key("name"),
        *texts("workflow", "cron"),
        text("zone", "UTC"),
        text("catch_up", "none"),
        text("overlap", "skip"),
        json_value("inputs"),
        text("workspace"),
        flag("paused"),
        given("created_at"),
        maybe("next_at"),
        one_of("schedules", "catch_up", "none,last,all"),
        one_of("schedules", "overlap", "skip,queue,cancel"),
    )
    op.create_table(
        "firings",
        serial(),
        given("at"),
        *texts("schedule", "due_at", "instance_id"),
        text("outcome", "started"),
        text("reason"),
        sa.UniqueConstraint("schedule", "due_at", name="uq_firings_schedule_due_at"),
        one_of("firings", "outcome", "started,skipped,missed,failed"),
        sqlite_autoincrement=True,
    )
    index("firings", "instance_id")
    op.create_table(
        "notices",
        serial(),
        given("at"),
        *texts("instance_id", "about"),
        text("state", "pending"),
        text("reason"),
        maybe("ended_at"),
        one_of("notices", "state", "pending,sent,failed"),
        sqlite_autoincrement=True,
    )
    partial("ix_notices_pending", "notices", ["id"], sa.text("state = 'pending'"))
