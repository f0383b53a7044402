"""The ledger of OpenRY 0.1."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from openry.ledger.migrations.words import (
    amount,
    check,
    count,
    counts,
    flag,
    given,
    index,
    json_value,
    key,
    maybe,
    maybes,
    one_of,
    parent,
    partial,
    serial,
    text,
    texts,
)

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _approvals() -> None:
    op.create_table(
        "approvals",
        serial(),
        given("asked_at"),
        text("kind", "step"),
        *texts("instance_id", "run_id", "step_id"),
        sa.Column("command_id", sa.BigInteger, nullable=True),
        text("question"),
        json_value("data"),
        text("state", "pending"),
        maybe("answered_at"),
        *texts("answered_by", "comment"),
        check("approvals", "answered", "(state = 'pending') = (answered_at IS NULL)"),
        one_of("approvals", "kind", "step,command,edit,unknown_outcome,other"),
        one_of("approvals", "state", "pending,approved,rejected,expired"),
        sqlite_autoincrement=True,
    )
    partial("ix_approvals_pending", "approvals", ["asked_at"], sa.text("state = 'pending'"))
    index("approvals", "run_id")


def _commands_log() -> None:
    op.create_table(
        "commands_log",
        serial(),
        given("run_id"),
        *texts("workflow", "step_id", "instance_id"),
        sa.Column("seq", sa.BigInteger, nullable=False),
        given("command"),
        *texts("fingerprint", "shell", "cwd"),
        text("verdict", "allow"),
        text("rule"),
        text("ending", "started"),
        sa.Column("exit_code", sa.Integer, nullable=True),
        *texts("stdout", "stderr", "note"),
        *counts("stdout_bytes", "stderr_bytes"),
        *texts("stdout_digest", "stderr_digest", "spill_path"),
        sa.Column("duration_ms", sa.BigInteger, nullable=True),
        given("timestamp"),
        given("started_at"),
        maybe("ended_at"),
        sa.Column("pid", sa.BigInteger, nullable=True),
        *texts("pid_started_at", "host"),
        check("commands_log", "denied", "ending IN ('refused', 'braked') OR verdict <> 'deny'"),
        check("commands_log", "ended", "(ending = 'started') = (ended_at IS NULL)"),
        one_of(
            "commands_log",
            "ending",
            "started,exited,signalled,timeout,refused,braked,interrupted,lost",
        ),
        check("commands_log", "exit_code", "(ending IN ('started', 'lost')) = (exit_code IS NULL)"),
        one_of("commands_log", "verdict", "allow,confirm,deny"),
        sa.UniqueConstraint("run_id", "seq", name=op.f("uq_commands_log_run_id_seq")),
        sqlite_autoincrement=True,
    )
    index("commands_log", "fingerprint")
    index("commands_log", "instance_id", "step_id")
    partial(
        "ix_commands_log_started", "commands_log", ["started_at"], sa.text("ending = 'started'")
    )
    index("commands_log", "started_at")


def _events() -> None:
    op.create_table(
        "events",
        serial(),
        given("at"),
        *texts("instance_id", "run_id", "step_id"),
        text("kind", "transition"),
        *texts("old", "new", "reason", "actor"),
        json_value("data"),
        sqlite_autoincrement=True,
    )
    index("events", "instance_id")
    index("events", "run_id")


def _llm_calls() -> None:
    op.create_table(
        "llm_calls",
        serial(),
        given("at"),
        *texts("session_id", "instance_id", "run_id", "step_id"),
        count("round"),
        *texts("purpose", "model", "key"),
        count("attempt", 1),
        text("state", "settled"),
        json_value("request", None),
        text("reply"),
        json_value("tool_calls", None),
        text("finish_reason"),
        *counts("prompt_tokens", "completion_tokens"),
        amount("cost_usd"),
        flag("cached"),
        count("duration_ms"),
        *texts("error_code", "error"),
        json_value("data"),
        maybe("ended_at"),
        one_of("llm_calls", "state", "reserved,settled,failed"),
        sqlite_autoincrement=True,
    )
    index("llm_calls", "key")
    index("llm_calls", "run_id")
    index("llm_calls", "session_id")


def _loop_sessions() -> None:
    op.create_table(
        "loop_sessions",
        key("session_id"),
        text("name"),
        given("task"),
        text("directory"),
        text("state", "running"),
        *texts("phase", "outcome", "stop"),
        json_value("settings"),
        json_value("spec"),
        json_value("acceptance", "[]"),
        *texts("acceptance_hash", "acceptance_origin", "acceptance_strength"),
        json_value("weak_because", "[]"),
        json_value("goals", "[]"),
        *texts("workflow_text", "workflow_path"),
        *counts("best_round", "rounds", "edits", "tokens"),
        amount("cost_usd"),
        amount("seconds"),
        text("snapshot_id"),
        json_value("results", "[]"),
        json_value("data"),
        sa.Column("pid", sa.BigInteger, nullable=True),
        *texts("pid_started_at", "host"),
        given("created_at"),
        *maybes("updated_at", "ended_at"),
        one_of("loop_sessions", "acceptance_strength", ",strong,weak"),
        check("loop_sessions", "ended", "(state = 'ended') = (ended_at IS NOT NULL)"),
        one_of("loop_sessions", "state", "running,interrupted,waiting,ended"),
    )


def _outputs() -> None:
    op.create_table(
        "outputs",
        serial(),
        given("at"),
        *texts("instance_id", "run_id", "step_id"),
        sa.Column("command_id", sa.BigInteger, nullable=True),
        text("stream", "stdout"),
        given("path"),
        *counts("bytes", "lines", "tokens"),
        text("digest"),
        flag("compressed"),
        maybe("deleted_at"),
        one_of("outputs", "stream", "stdout,stderr,both"),
        sqlite_autoincrement=True,
    )
    index("outputs", "run_id")


def _payloads() -> None:
    op.create_table(
        "payloads",
        serial(),
        given("at"),
        *texts("instance_id", "run_id", "workflow", "step_id", "status"),
        json_value("payload"),
        flag("accepted", sa.true()),
        sqlite_autoincrement=True,
    )
    index("payloads", "run_id")


def _retries() -> None:
    op.create_table(
        "retries",
        serial(),
        given("at"),
        *texts("instance_id", "workflow", "big_step", "step_id", "run_id", "next_run_id"),
        text("level", "sub_step"),
        count("number", 1),
        text("reason"),
        amount("delay_s"),
        one_of("retries", "level", "sub_step,big_step,requeue,resume"),
        sqlite_autoincrement=True,
    )
    index("retries", "instance_id")


def _snapshots() -> None:
    op.create_table(
        "snapshots",
        serial(),
        given("at"),
        given("snapshot_id"),
        *texts("session_id", "instance_id", "run_id", "big_step", "step_id", "reason", "workspace"),
        *counts("files", "bytes"),
        amount("seconds"),
        json_value("state"),
        sqlite_autoincrement=True,
    )
    index("snapshots", "instance_id")
    index("snapshots", "snapshot_id")


def _workers() -> None:
    op.create_table(
        "workers",
        key("worker_id"),
        text("role", "worker"),
        *texts("pool", "host"),
        sa.Column("pid", sa.BigInteger, nullable=True),
        text("pid_started_at"),
        text("state", "running"),
        json_value("data"),
        given("started_at"),
        *maybes("heartbeat_at", "lease_until", "ended_at"),
        one_of("workers", "role", "orchestrator,worker"),
        one_of("workers", "state", "running,stopping,stopped,lost"),
    )
    partial(
        "ix_workers_live", "workers", ["lease_until"], sa.text("state IN ('running', 'stopping')")
    )


def _workflow_instances() -> None:
    op.create_table(
        "workflow_instances",
        key("instance_id"),
        text("workflow"),
        text("kind", "workflow"),
        text("state", "queued"),
        text("reason"),
        given("plan"),
        given("plan_hash"),
        *texts("source_file", "interpreter_version"),
        json_value("inputs"),
        json_value("payload"),
        json_value("data"),
        text("workspace"),
        flag("drafted"),
        text("session_id"),
        *maybes("parent_instance_id", "replay_of"),
        *texts("replay_from_step", "current_step"),
        count("big_step_retry_count"),
        flag("cancel_requested"),
        count("epoch"),
        text("owner"),
        *maybes("lease_until", "deadline_at"),
        count("tokens"),
        amount("cost_usd"),
        given("created_at"),
        *maybes("started_at", "ended_at", "updated_at"),
        check(
            "workflow_instances",
            "ended",
            "(state IN ('completed', 'failed', 'cancelled')) = (ended_at IS NOT NULL)",
        ),
        one_of("workflow_instances", "kind", "workflow,composition"),
        one_of(
            "workflow_instances", "state", "queued,running,suspended,completed,failed,cancelled"
        ),
    )
    index("workflow_instances", "created_at")
    partial(
        "ix_workflow_instances_live",
        "workflow_instances",
        ["state"],
        sa.text("state IN ('queued', 'running', 'suspended')"),
    )


def _loop_edits() -> None:
    op.create_table(
        "loop_edits",
        serial(),
        given("at"),
        given("session_id"),
        sa.Column("round", sa.Integer, nullable=False),
        count("position"),
        given("operation"),
        text("step_id"),
        json_value("arguments"),
        *texts("origin", "signature", "diff", "before_hash", "after_hash"),
        json_value("gates", "[]"),
        text("verdict", "proposed"),
        *texts("reason", "reviewer"),
        maybe("reviewed_at"),
        json_value("data"),
        one_of("loop_edits", "verdict", "proposed,accepted,rejected,waiting,pruned,reverted"),
        parent("loop_edits", "session_id", "loop_sessions", "session_id"),
        sa.UniqueConstraint(
            "session_id", "round", "position", name=op.f("uq_loop_edits_session_id_round_position")
        ),
        sqlite_autoincrement=True,
    )
    index("loop_edits", "signature")


def _loop_rounds() -> None:
    op.create_table(
        "loop_rounds",
        serial(),
        given("session_id"),
        sa.Column("number", sa.Integer, nullable=False),
        *texts(
            "kind",
            "phase",
            "workflow_text",
            "workflow_hash",
            "instance_id",
            "snapshot_before",
            "snapshot_after",
            "outcome",
            "signature",
            "failure_class",
        ),
        json_value("diagnosis", None),
        text("verdict"),
        json_value("gates", "[]"),
        json_value("data"),
        count("tokens"),
        amount("cost_usd"),
        amount("seconds"),
        given("started_at"),
        maybe("ended_at"),
        parent("loop_rounds", "session_id", "loop_sessions", "session_id"),
        sa.UniqueConstraint("session_id", "number", name=op.f("uq_loop_rounds_session_id_number")),
        sqlite_autoincrement=True,
    )


def _task_state() -> None:
    op.create_table(
        "task_state",
        key("run_id"),
        maybe("workflow_instance_id"),
        *texts("workflow", "big_step", "step_id", "item", "kind"),
        count("attempt", 1),
        maybe("previous_run_id"),
        text("status", "queued"),
        *texts("reported_status", "reason", "validation_status"),
        json_value("payload"),
        json_value("result", None),
        json_value("data"),
        flag("settled"),
        flag("cancel_requested"),
        *texts("brake", "brake_reason"),
        maybe("braked_at"),
        *counts(
            "sub_step_retry_count",
            "big_step_retry_count",
            "requeue_count",
            "max_tool_calls",
            "tool_calls",
            "max_output_tokens",
        ),
        flag("output_overflow"),
        *counts("output_tokens", "tokens"),
        amount("cost_usd"),
        count("epoch"),
        text("owner"),
        *maybes("lease_until", "heartbeat_at"),
        sa.Column("pid", sa.BigInteger, nullable=True),
        sa.Column("pgid", sa.BigInteger, nullable=True),
        *texts("pid_started_at", "host", "token_hash", "snapshot_id"),
        *maybes("not_before", "deadline_at"),
        given("created_at"),
        *maybes("started_at", "ended_at", "updated_at"),
        check("task_state", "attempt", "attempt >= 1"),
        one_of("task_state", "brake", ",call_limit,timeout,budget,loop,other"),
        one_of(
            "task_state",
            "status",
            "queued,in_progress,completed,validated,done,failed,cancelled,lost,"
            "overflow,overflow_processing,resumed,waiting_approval,skipped,dropped",
        ),
        check("task_state", "tool_calls", "tool_calls >= 0 AND max_tool_calls >= 0"),
        one_of("task_state", "validation_status", ",pending,passed,failed"),
        parent("task_state", "workflow_instance_id", "workflow_instances", "instance_id"),
    )
    partial(
        "ix_task_state_open",
        "task_state",
        ["status", "not_before"],
        sa.column("settled") == sa.false(),
    )
    index("task_state", "workflow_instance_id", "step_id", "attempt")
    partial(
        "uq_task_state_active",
        "task_state",
        ["workflow_instance_id", "big_step", "step_id", "item"],
        sa.text("status IN ('queued', 'in_progress', 'waiting_approval', 'overflow_processing')"),
        unique=True,
    )


def _validation_results() -> None:
    op.create_table(
        "validation_results",
        serial(),
        given("at"),
        given("run_id"),
        count("position"),
        text("rule"),
        flag("passed", None),
        *texts("expected", "actual", "message"),
        flag("vacuous"),
        parent("validation_results", "run_id", "task_state", "run_id"),
        sqlite_autoincrement=True,
    )
    index("validation_results", "run_id")


def upgrade() -> None:
    _approvals()
    _commands_log()
    _events()
    _llm_calls()
    _loop_sessions()
    _outputs()
    _payloads()
    _retries()
    _snapshots()
    _workers()
    _workflow_instances()
    _loop_edits()
    _loop_rounds()
    _task_state()
    _validation_results()
