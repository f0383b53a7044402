"""Runs: every change of state is a compare-and-set with its event beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from openry.ledger.change import add, change
from openry.ledger.journal import add_events, columns, event_row, later
from openry.ledger.process import ProcessId
from openry.ledger.schema import (
    LIVE_INSTANCES,
    OPEN_RUNS,
    task_state,
    workflow_instances,
)
from openry.ledger.tokens import hashed, token_of
from openry.models import RunState
from openry.models.states import may_become

_R = RunState
_t = task_state.c


@dataclass(frozen=True, slots=True)
class Move:
    """A transition of a run that the states allow. Another one cannot be made."""

    old: RunState
    new: RunState

    def __post_init__(self) -> None:
        if not may_become(self.old, self.new):
            raise ValueError(f"a run cannot go from `{self.old}` to `{self.new}`")


CLAIM = Move(_R.QUEUED, _R.IN_PROGRESS)
SKIP = Move(_R.QUEUED, _R.SKIPPED)
WITHDRAW = Move(_R.QUEUED, _R.CANCELLED)
COMPLETE = Move(_R.IN_PROGRESS, _R.COMPLETED)
FAIL = Move(_R.IN_PROGRESS, _R.FAILED)
CANCEL = Move(_R.IN_PROGRESS, _R.CANCELLED)
LOSE = Move(_R.IN_PROGRESS, _R.LOST)
ASK = Move(_R.IN_PROGRESS, _R.WAITING_APPROVAL)
VALIDATE = Move(_R.COMPLETED, _R.VALIDATED)
INVALIDATE = Move(_R.COMPLETED, _R.FAILED)
APPROVE = Move(_R.WAITING_APPROVAL, _R.VALIDATED)
REJECT = Move(_R.WAITING_APPROVAL, _R.FAILED)
RECALL = Move(_R.WAITING_APPROVAL, _R.CANCELLED)
FINISH = Move(_R.VALIDATED, _R.DONE)
PROCESS = Move(_R.OVERFLOW, _R.OVERFLOW_PROCESSING)
RESUME = Move(_R.OVERFLOW, _R.RESUMED)
HANDLED = Move(_R.OVERFLOW_PROCESSING, _R.RESUMED)
DROP_FAILED = Move(_R.FAILED, _R.DROPPED)
DROP_LOST = Move(_R.LOST, _R.DROPPED)

#: States in which a run's work is over, for better or worse.
_WORK_OVER = frozenset({_R.COMPLETED, _R.FAILED, _R.CANCELLED, _R.LOST, _R.SKIPPED})


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `task_state`, as the engine sees it."""

    run_id: str
    workflow_instance_id: str
    workflow: str
    big_step: str
    step_id: str
    item: str
    kind: str
    attempt: int
    previous_run_id: str | None
    status: str
    reported_status: str
    reason: str
    validation_status: str
    payload: Mapping[str, Any]
    result: Mapping[str, Any] | None
    data: Mapping[str, Any]
    settled: bool
    cancel_requested: bool
    brake: str
    brake_reason: str
    braked_at: str | None
    sub_step_retry_count: int
    big_step_retry_count: int
    requeue_count: int
    max_tool_calls: int
    tool_calls: int
    tokens: int
    cost_usd: float
    epoch: int
    owner: str
    lease_until: str | None
    pid: int | None
    pid_started_at: str
    host: str
    snapshot_id: str
    not_before: str | None
    deadline_at: str | None
    created_at: str
    started_at: str | None
    ended_at: str | None

    @property
    def process(self) -> ProcessId:
        return ProcessId(self.pid or 0, self.pid_started_at, self.host)

    @property
    def is_spread(self) -> bool:
        """Whether this is a `for_each` that waits for the runs of its items, and nobody's work."""
        return self.status == _R.IN_PROGRESS and "next" in self.data


_RUN_COLUMNS = columns(task_state, Run)
_RUN_NAMES = tuple(each.name for each in fields(Run))
_GET_RUN = select(*_RUN_COLUMNS).where(_t.run_id == bindparam("run_id"))
_RUNS_OF = select(*_RUN_COLUMNS).where(_t.workflow_instance_id == bindparam("instance_id"))
_OPEN = (
    select(*_RUN_COLUMNS)
    .where(OPEN_RUNS, _t.workflow_instance_id.is_not(None))
    .order_by(_t.created_at)
)
# Hidden from the index of instances, which would lead through the whole history of one.
_INSTANCE = func.coalesce(_t.workflow_instance_id, "")
_OPEN_OF = _OPEN.where(_INSTANCE.in_(bindparam("ids", expanding=True)))
_OPEN_ITEMS = _OPEN.where(
    bindparam("instance_id") == _INSTANCE, _t.step_id == bindparam("step_id"), _t.item != ""
)
#: What a new run is in all that is not said of it.
_BLANK: Mapping[str, Any] = {
    **dict.fromkeys(_RUN_NAMES, ""),
    **dict.fromkeys(("settled", "cancel_requested"), False),
    **dict.fromkeys(
        (
            "sub_step_retry_count",
            "big_step_retry_count",
            "requeue_count",
            "max_tool_calls",
            "max_output_tokens",
            "tool_calls",
            "tokens",
            "epoch",
        ),
        0,
    ),
    **dict.fromkeys(
        (
            "previous_run_id",
            "result",
            "braked_at",
            "lease_until",
            "heartbeat_at",
            "pid",
            "not_before",
            "deadline_at",
            "started_at",
            "ended_at",
        )
    ),
    "attempt": 1,
    "cost_usd": 0.0,
    "payload": {},
    "status": _R.QUEUED.value,
}


@dataclass(frozen=True, slots=True)
class Claim:
    """Who takes a run, and for how long without a beat.

    Attributes:
        secret: What the tokens of its runs are made from; only their digests are stored.
    """

    owner: str
    process: ProcessId
    lease_s: float
    secret: bytes = b""

    def columns(self, at: str, run_id: str, epoch: int) -> dict[str, Any]:
        return {
            "epoch": epoch,
            "owner": self.owner,
            "lease_until": later(at, self.lease_s),
            "heartbeat_at": at,
            "started_at": at,
            "pid": self.process.pid,
            "pid_started_at": self.process.started_at,
            "host": self.process.host,
            "token_hash": hashed(token_of(self.secret, run_id, epoch)) if self.secret else "",
        }


def add_run(
    connection: Connection, at: str, values: Mapping[str, Any], claimed: Claim | None = None
) -> Run:
    """A new run, `queued`; with `claimed` taken at once by who queued it."""
    row = {**_BLANK, **values, "created_at": at, "updated_at": at}
    moves: tuple[Move, ...] = ()
    if claimed is not None:
        moves = (CLAIM,)
        row |= {"status": CLAIM.new.value, **claimed.columns(at, row["run_id"], 1)}
    add(connection, task_state, row)
    run = Run(*(row[name] for name in _RUN_NAMES))
    about: dict[str, Any] = {"data": {"attempt": run.attempt}}
    queued = _run_event(at, run, new=_R.QUEUED, **about)
    add_events(connection, queued, *_move_events(at, run, moves, "", _owner(claimed)))
    return run


def _owner(claimed: Claim | None) -> str:
    return claimed.owner if claimed else "engine"


def move_run(
    connection: Connection,
    at: str,
    run: Run,
    *moves: Move,
    reason: str = "",
    actor: str = "engine",
    settled: bool = False,
    **values: Any,
) -> Run | None:
    """Make `moves`, one after the other, and note each. Returns the run as it is then.

    None when the run is not any more as `run` says: in another state, claimed by somebody else
    since (the fence), braked, cancelled or settled. Then nothing is written.

    Args:
        settled: The consequences of how it ended are drawn in this transaction.
    """
    values |= {"updated_at": at}
    if moves:
        if moves[0].old != run.status:
            raise ValueError(f"a run that is `{run.status}` cannot leave `{moves[0].old}`")
        values["status"] = moves[-1].new.value
    if settled:
        values["settled"] = True
    if reason:
        values["reason"] = reason
    if any(move.new in _WORK_OVER for move in moves):
        values["ended_at"] = run.ended_at or at
    as_seen = {
        "run_id": run.run_id,
        "status": run.status,
        "epoch": run.epoch,
        "brake": run.brake,
        "cancel_requested": run.cancel_requested,
        "settled": False,
    }
    if change(connection, task_state, as_seen, values) != 1:
        return None
    add_events(connection, *_move_events(at, run, moves, reason, actor))
    return replace(run, **{name: each for name, each in values.items() if name in _RUN_NAMES})


def _move_events(
    at: str, run: Run, moves: Iterable[Move], reason: str, actor: str
) -> list[dict[str, Any]]:
    return [
        _run_event(
            at,
            run,
            old=move.old,
            new=move.new,
            reason="" if move in (COMPLETE, FINISH) else reason,
            actor=actor,
        )
        for move in moves
    ]


def _run_event(at: str, run: Run, **about: Any) -> dict[str, Any]:
    if run.item:
        about["data"] = {**about.get("data", {}), "item": run.item}
    return event_row(
        at,
        instance_id=run.workflow_instance_id,
        run_id=run.run_id,
        step_id=run.step_id,
        **about,
    )


def claim(connection: Connection, at: str, run: Run, claimed: Claim, **values: Any) -> Run | None:
    """Take a queued run: a lease with an epoch above every one before. None: someone was first."""
    values |= claimed.columns(at, run.run_id, run.epoch + 1)
    return move_run(connection, at, run, CLAIM, actor=claimed.owner, **values)


def beat(
    connection: Connection, at: str, owner: str, held: Iterable[tuple[str, int]], *, lease_s: float
) -> tuple[str, ...]:
    """Prolong the leases of `held` (run, epoch). Returns the runs that are held no longer."""
    lease = {"lease_until": later(at, lease_s), "heartbeat_at": at}
    gone = []
    for run_id, epoch in held:
        mine = {"run_id": run_id, "epoch": epoch, "owner": owner, "settled": False}
        if change(connection, task_state, mine, lease) != 1:
            gone.append(run_id)
    return tuple(gone)


def stale_result(connection: Connection, at: str, run: Run, actor: str) -> None:
    """Write down that a result came too late and was dropped."""
    add_events(connection, _run_event(at, run, kind="stale_result_dropped", actor=actor))


def put_brake(connection: Connection, at: str, run: Run, brake: str, reason: str) -> bool:
    """The soft brake of ours; False when one is on already, or the run is over."""
    where = {"run_id": run.run_id, "status": "in_progress", "brake": ""}
    values = {"brake": brake, "brake_reason": reason, "braked_at": at, "updated_at": at}
    if change(connection, task_state, where, values) != 1:
        return False
    add_events(connection, _run_event(at, run, kind="brake", new=brake, reason=reason))
    return True


def set_run(connection: Connection, at: str, run_id: str, **values: Any) -> None:
    """Write down more of what the engine knows of a run; its state stays."""
    change(connection, task_state, {"run_id": run_id}, {**values, "updated_at": at})


def get_run(connection: Connection, run_id: str) -> Run | None:
    row = connection.execute(_GET_RUN, {"run_id": run_id}).one_or_none()
    return None if row is None else Run(*row)


def find_runs(connection: Connection, prefix: str) -> tuple[str, ...]:
    """Ids of runs that begin with `prefix`, a few."""
    wanted = select(_t.run_id).where(_t.run_id.startswith(prefix, autoescape=True))
    return tuple(connection.execute(wanted.limit(5)).scalars())


def open_runs(connection: Connection, only: Collection[str] | None = None) -> tuple[Run, ...]:
    """Runs with consequences still to be drawn; with `only`, of these instances."""
    if only is None:
        return tuple(Run(*row) for row in connection.execute(_OPEN))
    return tuple(Run(*row) for row in connection.execute(_OPEN_OF, {"ids": list(only)}))


def moving_runs(connection: Connection) -> int:
    """How many open runs there are that need no person to go on."""
    suspended = select(workflow_instances.c.instance_id).where(
        LIVE_INSTANCES, workflow_instances.c.state == "suspended"
    )
    wanted = (
        select(func.count())
        .select_from(task_state)
        .where(OPEN_RUNS, _t.workflow_instance_id.not_in(suspended))
    )
    return int(connection.execute(wanted).scalar_one())


def runs_of(connection: Connection, instance_id: str) -> tuple[Run, ...]:
    """Every run of an instance, in the order in which they were queued."""
    found = connection.execute(_RUNS_OF, {"instance_id": instance_id})
    return tuple(sorted((Run(*row) for row in found), key=_place_in_time))


def _place_in_time(run: Run) -> tuple[int, int, int, int]:
    """Turn by turn; within a `for_each` its own run first, then item by item."""
    return run.data.get("seq", 0), int(run.item or -1), run.attempt, run.requeue_count


def open_items(connection: Connection, above: Run) -> tuple[Run, ...]:
    """Runs of items of the `for_each` run `above` that are not settled."""
    which = {"instance_id": above.workflow_instance_id, "step_id": above.step_id}
    found = (Run(*row) for row in connection.execute(_OPEN_ITEMS, which))
    return tuple(run for run in found if run.data.get("above") == above.run_id)


def items_of(connection: Connection, above: Run) -> dict[int, Run]:
    """For each item of the `for_each` run `above`, its latest run."""
    runs = runs_of(connection, above.workflow_instance_id)
    return {int(run.item): run for run in runs if run.data.get("above") == above.run_id}


def lock_run(connection: Connection, at: str, run_id: str) -> Run | None:
    """The run as it is now, and as it stays until this transaction ends."""
    set_run(connection, at, run_id)
    return get_run(connection, run_id)


def payloads_of(connection: Connection, instance_id: str) -> dict[str, Mapping[str, Any]]:
    """For each step of an instance that is done, what its latest such run ended with."""
    wanted = select(_t.step_id, _t.payload, _t.data).where(
        _t.workflow_instance_id == instance_id, _t.status == _R.DONE.value, _t.item == ""
    )
    found = sorted(connection.execute(wanted), key=lambda row: row[2].get("seq", 0))
    return {step_id: payload for step_id, payload, _ in found}
