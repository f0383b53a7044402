"""What was asked of the hand, read back: one value per row of commands_log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from openry.ledger.change import parts
from openry.ledger.schema import STARTED, commands_log

_c = commands_log.c


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """One forwarded command.

    Attributes:
        seq: 1, 2, 3 … within its run.
        command: As it may be shown: redacted.
        ending: A value of `Ending`, or `started` while it runs.
        exit_code: None while it runs, and when it was lost.
        stdout: What the agent read; `stdout_bytes` is the size of what the command wrote.
    """

    id: int
    run_id: str
    workflow: str
    step_id: str
    instance_id: str
    seq: int
    command: str
    fingerprint: str
    shell: str
    cwd: str
    verdict: str
    rule: str
    ending: str
    exit_code: int | None
    stdout: str
    stderr: str
    note: str
    stdout_bytes: int
    stderr_bytes: int
    stdout_digest: str
    stderr_digest: str
    spill_path: str
    duration_ms: int | None
    started_at: str
    ended_at: str | None

    @property
    def ok(self) -> bool:
        return self.ending == "exited" and self.exit_code == 0


_COLUMNS = tuple(_c[field.name] for field in fields(CommandRecord))
_OF_RUNS = (
    select(*_COLUMNS)
    .where(_c.run_id.in_(bindparam("ids", expanding=True)))
    .order_by(_c.run_id, _c.seq)
)


def of_run(connection: Connection, run_id: str) -> tuple[CommandRecord, ...]:
    """What a run asked for, in order."""
    return of_runs(connection, (run_id,)).get(run_id, ())


def of_runs(connection: Connection, run_ids: Sequence[str]) -> dict[str, tuple[CommandRecord, ...]]:
    """For each of these runs that asked for something, what it was, in order."""
    found: dict[str, list[CommandRecord]] = {}
    for some in parts(run_ids):
        for row in connection.execute(_OF_RUNS, {"ids": some}):
            found.setdefault(row.run_id, []).append(CommandRecord(*row))
    return {run_id: tuple(commands) for run_id, commands in found.items()}


def of_step(connection: Connection, instance_id: str, step_id: str) -> tuple[CommandRecord, ...]:
    """What every attempt at a step asked for, in order."""
    of_it = _all().where(_c.instance_id == instance_id, _c.step_id == step_id)
    return _records(connection, of_it.order_by(_c.id))


def find(
    connection: Connection,
    *,
    run_id: str = "",
    step_id: str = "",
    workflow: str = "",
    fingerprint: str = "",
    since: str = "",
    failed: bool = False,
    before: int = 0,
    limit: int = 100,
) -> tuple[CommandRecord, ...]:
    """The last `limit` commands to which all that is given applies, oldest first.

    Args:
        since: A time as `utc_now` writes it.
        failed: Only what ended badly, in whatever way; what still runs has not.
        before: Only ids below this one, to go on from where the last call ended; 0 for all.
    """
    given = {
        _c.run_id: run_id,
        _c.step_id: step_id,
        _c.workflow: workflow,
        _c.fingerprint: fingerprint,
    }
    query = _all().where(*(column == text for column, text in given.items() if text))
    if since:
        query = query.where(_c.started_at >= since)
    if before:
        query = query.where(_c.id < before)
    if failed:
        query = query.where(_c.ending != STARTED, (_c.ending != "exited") | (_c.exit_code != 0))
    # A run's rows are found by its own index; by `id` all of history would be looked through.
    newest = _c.seq.desc() if run_id else _c.id.desc()
    return _records(connection, query.order_by(newest).limit(limit))[::-1]


def at(connection: Connection, ids: Sequence[int]) -> tuple[CommandRecord, ...]:
    """The commands with these ids that are still there, the newest first."""
    return _records(connection, _all().where(_c.id.in_(ids)).order_by(_c.id.desc()))


def newest_names(connection: Connection, column: str, *, limit: int = 200) -> tuple[str, ...]:
    """The different values of `run_id` or `step_id` among the last commands, the newest first."""
    last = select(_c[column]).where(_c[column] != "").order_by(_c.id.desc()).limit(limit)
    return tuple(dict.fromkeys(connection.execute(last).scalars()))


def _all() -> Select[Any]:
    return select(*_COLUMNS)


def _records(connection: Connection, query: Select[Any]) -> tuple[CommandRecord, ...]:
    return tuple(CommandRecord(*row) for row in connection.execute(query))
