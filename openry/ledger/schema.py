"""Every table of the ledger, and the states its rows may be in. The schema refuses the rest.

Times are text, ISO 8601 in UTC with milliseconds and `Z` (`openry.clock.utc_now`), so they compare
as they happened. JSON columns come back as Python values. Columns that have a default may be left
out of an INSERT.

A query finds a partial index only when it repeats the index's condition: put `OPEN_RUNS`,
`LIVE_INSTANCES` or `STARTED_COMMANDS` into its WHERE, and its cost does not grow with history.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from openry.ledger.columns import (
    amount,
    count,
    flag,
    is_one_of,
    json_column,
    key,
    metadata,
    one_of,
    serial,
    stamp,
    text_column,
    time_column,
)
from openry.ledger.loop_tables import llm_calls, loop_edits, loop_rounds, loop_sessions
from openry.ledger.schedule_tables import firings, notices, schedules
from openry.models import Ending, InstanceState, RunState

#: A command whose process may be running. Every other `ending` is a value of `Ending`.
STARTED = "started"

# --- instances and runs ---------------------------------------------------------------------

workflow_instances = Table(
    "workflow_instances",
    metadata,
    key("instance_id"),
    text_column("workflow"),
    text_column("kind", "workflow"),
    text_column("state", "queued"),
    text_column("reason"),
    Column("plan", Text, nullable=False),  #: the resolved, validated YAML it was started with
    Column("plan_hash", Text, nullable=False),  #: SHA-256 of `plan`
    text_column("source_file"),
    text_column("interpreter_version"),
    json_column("inputs"),
    json_column("payload"),
    json_column("data"),  #: what else the engine remembers of this instance
    text_column("workspace"),
    flag("drafted"),  #: drafted by the loop: its policy is never widened without a person
    text_column("session_id"),
    Column("parent_instance_id", Text, nullable=True),
    Column("replay_of", Text, nullable=True),
    text_column("replay_from_step"),
    text_column("current_step"),
    count("big_step_retry_count"),
    flag("cancel_requested"),
    count("epoch"),
    text_column("owner"),
    time_column("lease_until"),
    time_column("deadline_at"),
    count("tokens"),
    amount("cost_usd"),
    stamp("created_at"),
    time_column("started_at"),
    time_column("ended_at"),
    time_column("updated_at"),
    one_of("state", InstanceState),
    one_of("kind", ("workflow", "composition")),
    CheckConstraint(
        "(state IN ('completed', 'failed', 'cancelled')) = (ended_at IS NOT NULL)", name="ended"
    ),
)

task_state = Table(
    "task_state",
    metadata,
    key("run_id"),
    Column(
        "workflow_instance_id",
        Text,
        ForeignKey("workflow_instances.instance_id", ondelete="CASCADE"),
        nullable=True,
    ),
    text_column("workflow"),
    text_column("big_step"),  #: the composition's id for this workflow; empty outside a composition
    text_column("step_id"),
    text_column("item"),  #: which child of a `for_each`; empty for a plain step
    text_column("kind"),
    count("attempt", 1),
    Column("previous_run_id", Text, nullable=True),
    text_column("status", "queued"),
    text_column("reported_status"),  #: what the agent claimed, word for word; empty until it did
    text_column("reason"),
    text_column("validation_status"),
    json_column("payload"),
    json_column("result", None),
    json_column("data"),  #: what else the engine remembers of this run
    flag("settled"),  #: the patrol has drawn every consequence of how this run ended
    flag("cancel_requested"),  #: a person's soft brake: ends as `cancelled`
    text_column("brake"),  #: a soft brake of ours: ends as `failed`
    text_column("brake_reason"),
    time_column("braked_at"),
    count("sub_step_retry_count"),
    count("big_step_retry_count"),
    count("requeue_count"),
    count("max_tool_calls"),  #: 0: no limit
    count("tool_calls"),
    count("max_output_tokens"),
    flag("output_overflow"),
    count("output_tokens"),
    count("tokens"),
    amount("cost_usd"),
    count("epoch"),
    text_column("owner"),
    time_column("lease_until"),
    time_column("heartbeat_at"),
    Column("pid", BigInteger, nullable=True),
    Column("pgid", BigInteger, nullable=True),
    text_column("pid_started_at"),
    text_column("host"),
    text_column("token_hash"),
    text_column("snapshot_id"),
    time_column("not_before"),
    time_column("deadline_at"),
    stamp("created_at"),
    time_column("started_at"),
    time_column("ended_at"),
    time_column("updated_at"),
    one_of("status", RunState),
    one_of("brake", ("", "call_limit", "timeout", "budget", "loop", "other")),
    one_of("validation_status", ("", "pending", "passed", "failed")),
    CheckConstraint("attempt >= 1", name="attempt"),
    CheckConstraint("tool_calls >= 0 AND max_tool_calls >= 0", name="tool_calls"),
)

events = Table(
    "events",
    metadata,
    serial(),
    stamp(),
    text_column("instance_id"),
    text_column("run_id"),
    text_column("step_id"),
    text_column("kind", "transition"),
    text_column("old"),
    text_column("new"),
    text_column("reason"),
    text_column("actor"),
    json_column("data"),
    text_column("hash"),  #: see `chain`; empty for rows older than that
    sqlite_autoincrement=True,
)

#: Where rows are missing, and why that is right.
checkpoints = Table(
    "checkpoints",
    metadata,
    serial(),
    stamp(),
    text_column("kind", "prune"),
    json_column("data"),
    text_column("hash"),
    one_of("kind", ("begin", "prune", "import")),
    sqlite_autoincrement=True,
)

payloads = Table(
    "payloads",
    metadata,
    serial(),
    stamp(),
    text_column("instance_id"),
    text_column("run_id"),
    text_column("workflow"),
    text_column("step_id"),
    text_column("status"),  #: the status claimed with it
    json_column("payload"),
    flag("accepted", default=True),  #: whether the run's payload became this
    sqlite_autoincrement=True,
)

validation_results = Table(
    "validation_results",
    metadata,
    serial(),
    stamp(),
    Column("run_id", Text, ForeignKey("task_state.run_id", ondelete="CASCADE"), nullable=False),
    count("position"),
    text_column("rule"),
    Column("passed", Boolean, nullable=False),
    text_column("expected"),
    text_column("actual"),
    text_column("message"),
    flag("vacuous"),
    sqlite_autoincrement=True,
)

retries = Table(
    "retries",
    metadata,
    serial(),
    stamp(),
    text_column("instance_id"),
    text_column("workflow"),
    text_column("big_step"),
    text_column("step_id"),
    text_column("run_id"),  #: the run that ended
    text_column("next_run_id"),  #: the run that follows it
    text_column("level", "sub_step"),
    count("number", 1),
    text_column("reason"),
    amount("delay_s"),
    one_of("level", ("sub_step", "big_step", "requeue", "resume")),
    sqlite_autoincrement=True,
)

approvals = Table(
    "approvals",
    metadata,
    serial(),
    stamp("asked_at"),
    text_column("kind", "step"),
    text_column("instance_id"),
    text_column("run_id"),
    text_column("step_id"),
    Column("command_id", BigInteger, nullable=True),
    text_column("question"),
    json_column("data"),
    text_column("state", "pending"),
    time_column("answered_at"),
    text_column("answered_by"),
    text_column("comment"),
    one_of("kind", ("step", "command", "edit", "unknown_outcome", "other")),
    one_of("state", ("pending", "approved", "rejected", "expired")),
    CheckConstraint("(state = 'pending') = (answered_at IS NULL)", name="answered"),
    sqlite_autoincrement=True,
)

workers = Table(
    "workers",
    metadata,
    key("worker_id"),
    text_column("role", "worker"),
    text_column("pool"),
    text_column("host"),
    Column("pid", BigInteger, nullable=True),
    text_column("pid_started_at"),
    text_column("state", "running"),
    json_column("data"),
    stamp("started_at"),
    time_column("heartbeat_at"),
    time_column("lease_until"),
    time_column("ended_at"),
    one_of("role", ("orchestrator", "worker")),
    one_of("state", ("running", "stopping", "stopped", "lost")),
)

snapshots = Table(
    "snapshots",
    metadata,
    serial(),
    stamp(),
    Column("snapshot_id", Text, nullable=False),  #: the content's id: equal trees share one
    text_column("session_id"),
    text_column("instance_id"),
    text_column("run_id"),
    text_column("big_step"),
    text_column("step_id"),
    text_column("reason"),
    text_column("workspace"),
    count("files"),
    count("bytes"),
    amount("seconds"),
    json_column("state"),
    sqlite_autoincrement=True,
)

# --- what was asked of the hand, and what came of it ----------------------------------------

commands_log = Table(
    "commands_log",
    metadata,
    serial(),
    Column("run_id", Text, nullable=False),
    text_column("workflow"),
    text_column("step_id"),
    text_column("instance_id"),
    Column("seq", BigInteger, nullable=False),  #: 1, 2, 3 … within the run
    Column("command", Text, nullable=False),
    text_column("fingerprint"),
    text_column("shell"),
    text_column("cwd"),
    text_column("verdict", "allow"),
    text_column("rule"),
    text_column("ending", STARTED),
    Column("exit_code", Integer, nullable=True),
    text_column("stdout"),
    text_column("stderr"),
    text_column("note"),
    count("stdout_bytes"),
    count("stderr_bytes"),
    text_column("stdout_digest"),
    text_column("stderr_digest"),
    text_column("spill_path"),
    Column("duration_ms", BigInteger, nullable=True),
    Column("timestamp", Text, nullable=False),  #: the same as `started_at`
    stamp("started_at"),
    time_column("ended_at"),
    Column("pid", BigInteger, nullable=True),  #: the process that writes this row
    text_column("pid_started_at"),
    text_column("host"),
    text_column("started_hash"),  #: see `chain`
    text_column("ended_hash"),
    UniqueConstraint("run_id", "seq"),
    one_of("verdict", ("allow", "confirm", "deny")),
    one_of("ending", (STARTED, *Ending)),
    CheckConstraint("(ending = 'started') = (ended_at IS NULL)", name="ended"),
    CheckConstraint("(ending IN ('started', 'lost')) = (exit_code IS NULL)", name="exit_code"),
    CheckConstraint("ending IN ('refused', 'braked') OR verdict <> 'deny'", name="denied"),
    sqlite_autoincrement=True,
)

outputs = Table(
    "outputs",
    metadata,
    serial(),  #: shown as `out-17`
    stamp(),
    text_column("instance_id"),
    text_column("run_id"),
    text_column("step_id"),
    Column("command_id", BigInteger, nullable=True),
    text_column("stream", "stdout"),
    Column("path", Text, nullable=False),
    count("bytes"),
    count("lines"),
    count("tokens"),
    text_column("digest"),
    flag("compressed"),
    time_column("deleted_at"),
    one_of("stream", ("stdout", "stderr", "both")),
    sqlite_autoincrement=True,
)

# --- what is looked up ----------------------------------------------------------------------

#: Runs the patrol still has to do something about.
OPEN_RUNS = task_state.c.settled == false()
#: A step, or one item of it, has at most one run in these states.
ACTIVE_RUNS = is_one_of(
    task_state.c.status, "queued", "in_progress", "waiting_approval", "overflow_processing"
)
LIVE_INSTANCES = is_one_of(workflow_instances.c.state, "queued", "running", "suspended")
STARTED_COMMANDS = is_one_of(commands_log.c.ending, STARTED)
HEADS = is_one_of(events.c.kind, "head")
PENDING_NOTICES = is_one_of(notices.c.state, "pending")
PENDING_APPROVALS = is_one_of(approvals.c.state, "pending")
LIVE_WORKERS = is_one_of(workers.c.state, "running", "stopping")


def _partial(
    name: str, *columns: Column[Any], where: ColumnElement[bool], unique: bool = False
) -> None:
    # The migrations say it in PostgreSQL's words too; here that would load its dialect for nobody.
    Index(name, *columns, unique=unique, sqlite_where=where)


def _index(table: Table, *columns: str) -> None:
    named = [table.c[name] for name in columns]
    Index(None, *named)


_t = task_state.c
_partial("ix_task_state_open", _t.status, _t.not_before, where=OPEN_RUNS)
_partial(
    "uq_task_state_active",
    _t.workflow_instance_id,
    _t.big_step,
    _t.step_id,
    _t.item,
    where=ACTIVE_RUNS,
    unique=True,
)
_partial("ix_workflow_instances_live", workflow_instances.c.state, where=LIVE_INSTANCES)
_partial("ix_commands_log_started", commands_log.c.started_at, where=STARTED_COMMANDS)
_partial("ix_approvals_pending", approvals.c.asked_at, where=PENDING_APPROVALS)
_partial("ix_notices_pending", notices.c.id, where=PENDING_NOTICES)
_partial("ix_events_head", events.c.id, where=HEADS)
_partial("ix_workers_live", workers.c.lease_until, where=LIVE_WORKERS)
_index(task_state, "workflow_instance_id", "step_id", "attempt")
_index(workflow_instances, "created_at")
_index(commands_log, "instance_id", "step_id")
_index(commands_log, "started_at")
_index(commands_log, "fingerprint")
_index(events, "instance_id")
_index(firings, "instance_id")
_index(events, "run_id")
_index(payloads, "run_id")
_index(validation_results, "run_id")
_index(retries, "instance_id")
_index(approvals, "run_id")
_index(snapshots, "instance_id")
_index(snapshots, "snapshot_id")
_index(outputs, "run_id")
_index(llm_calls, "session_id")
_index(llm_calls, "key")
_index(llm_calls, "run_id")
_index(loop_edits, "signature")

__all__ = [
    "ACTIVE_RUNS",
    "HEADS",
    "LIVE_INSTANCES",
    "LIVE_WORKERS",
    "OPEN_RUNS",
    "PENDING_APPROVALS",
    "PENDING_NOTICES",
    "STARTED",
    "STARTED_COMMANDS",
    "approvals",
    "checkpoints",
    "commands_log",
    "events",
    "firings",
    "llm_calls",
    "loop_edits",
    "loop_rounds",
    "loop_sessions",
    "metadata",
    "notices",
    "outputs",
    "payloads",
    "retries",
    "schedules",
    "snapshots",
    "task_state",
    "validation_results",
    "workers",
    "workflow_instances",
]
