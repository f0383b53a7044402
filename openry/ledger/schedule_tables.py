"""Tables of what begins by the clock, and of what somebody is to be told."""

from __future__ import annotations

from sqlalchemy import Table, UniqueConstraint

from openry.ledger.columns import (
    flag,
    json_column,
    key,
    metadata,
    one_of,
    serial,
    stamp,
    text_column,
    time_column,
)

schedules = Table(
    "schedules",
    metadata,
    key("name"),
    text_column("workflow"),  #: a name or a file, looked up anew each time
    text_column("cron"),
    text_column("zone", "UTC"),
    text_column("catch_up", "none"),
    text_column("overlap", "skip"),
    json_column("inputs"),
    text_column("workspace"),
    flag("paused"),
    stamp("created_at"),
    time_column("next_at"),
    one_of("catch_up", ("none", "last", "all")),
    one_of("overlap", ("skip", "queue", "cancel")),
)

firings = Table(
    "firings",
    metadata,
    serial(),
    stamp(),
    text_column("schedule"),
    text_column("due_at"),
    text_column("instance_id"),
    text_column("outcome", "started"),
    text_column("reason"),
    UniqueConstraint("schedule", "due_at"),
    one_of("outcome", ("started", "skipped", "missed", "failed")),
    sqlite_autoincrement=True,
)

notices = Table(
    "notices",
    metadata,
    serial(),
    stamp(),
    text_column("instance_id"),
    text_column("about"),
    text_column("state", "pending"),
    text_column("reason"),
    time_column("ended_at"),
    one_of("state", ("pending", "sent", "failed")),
    sqlite_autoincrement=True,
)
