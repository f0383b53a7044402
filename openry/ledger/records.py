"""What belongs to a run: payloads, verdicts, retries, snapshots, questions to a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, bindparam, select, update

from openry.errors import UsageError
from openry.ledger.change import add, parts
from openry.ledger.journal import columns
from openry.ledger.runs import Run
from openry.ledger.schema import approvals, payloads, retries, snapshots, validation_results
from openry.models import RuleResult
from openry.models.command import MANUAL_RUN

_v = validation_results.c
_VALIDATIONS = (
    select(_v.run_id, _v.rule, _v.passed, _v.expected, _v.actual, _v.message, _v.vacuous)
    .where(_v.run_id.in_(bindparam("ids", expanding=True)))
    .order_by(_v.run_id, _v.position, _v.id)
)


def add_payload(connection: Connection, at: str, run: Run, payload: Mapping[str, Any]) -> None:
    """Keep what the engine stored as a run's payload; an agent's own are kept by the hand."""
    row = {
        "at": at,
        "instance_id": run.workflow_instance_id,
        "run_id": run.run_id,
        "workflow": run.workflow,
        "step_id": run.step_id,
        "status": "completed",
        "payload": dict(payload),
    }
    add(connection, payloads, row)


def add_validation(
    connection: Connection, at: str, run_id: str, results: Iterable[RuleResult]
) -> None:
    rows = [
        {
            "at": at,
            "run_id": run_id,
            "position": position,
            "rule": result.rule,
            "passed": result.passed,
            "expected": result.expected,
            "actual": result.actual,
            "message": result.message,
            "vacuous": result.vacuous,
        }
        for position, result in enumerate(results)
    ]
    add(connection, validation_results, *rows)


def validation_of(connection: Connection, run_id: str) -> tuple[RuleResult, ...]:
    return validations_of(connection, (run_id,)).get(run_id, ())


def validations_of(
    connection: Connection, run_ids: Sequence[str]
) -> dict[str, tuple[RuleResult, ...]]:
    """For each of these runs that was validated by rules, what they said, in order."""
    found: dict[str, list[RuleResult]] = {}
    for some in parts(run_ids):
        for run_id, *result in connection.execute(_VALIDATIONS, {"ids": some}):
            found.setdefault(run_id, []).append(RuleResult(*result))
    return {run_id: tuple(results) for run_id, results in found.items()}


def add_retry(
    connection: Connection,
    at: str,
    run: Run,
    next_run_id: str,
    *,
    level: str,
    number: int,
    reason: str,
    delay_s: float,
) -> None:
    row = {
        "at": at,
        "instance_id": run.workflow_instance_id,
        "workflow": run.workflow,
        "big_step": run.big_step,
        "step_id": run.step_id,
        "run_id": run.run_id,
        "next_run_id": next_run_id,
        "level": level,
        "number": number,
        "reason": reason,
        "delay_s": delay_s,
    }
    add(connection, retries, row)


def add_snapshot(connection: Connection, at: str, values: Mapping[str, Any]) -> None:
    add(connection, snapshots, {**values, "at": at})


def last_snapshot(connection: Connection, instance_id: str, reason: str) -> str:
    """Id of the newest snapshot of an instance made for `reason`; empty when there is none."""
    s = snapshots.c
    wanted = (
        select(s.snapshot_id)
        .where(s.instance_id == instance_id, s.reason == reason)
        .order_by(s.id.desc())
    )
    return connection.execute(wanted.limit(1)).scalar() or ""


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A row of `snapshots`."""

    at: str
    snapshot_id: str
    instance_id: str
    run_id: str
    step_id: str
    reason: str
    workspace: str
    files: int
    bytes: int
    seconds: float


_SNAPSHOT_COLUMNS = columns(snapshots, SnapshotRow)


def snapshots_of(connection: Connection, instance_id: str = "") -> tuple[SnapshotRow, ...]:
    """Snapshots, the newest first; with an id, those of that instance."""
    wanted = select(*_SNAPSHOT_COLUMNS).order_by(snapshots.c.id.desc())
    if instance_id:
        wanted = wanted.where(snapshots.c.instance_id == instance_id)
    return tuple(SnapshotRow(*row) for row in connection.execute(wanted.limit(1000)))


# --- approvals ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to a person."""

    id: int
    kind: str
    instance_id: str
    run_id: str
    step_id: str
    question: str
    data: Mapping[str, Any]
    asked_at: str

    def refuse_strangers(self, by: str) -> None:
        """Who may answer is named by a step's `approvers`; nobody named means anybody.

        Raises:
            UsageError: `by` is not among them.
        """
        named = self.data.get("approvers") or ()
        if named and by not in named:
            raise UsageError(f"`{self.step_id}` waits for {', '.join(named)}; you are {by}")


_APPROVAL_COLUMNS = columns(approvals, Approval)


def ask_person(
    connection: Connection, at: str, run: Run, question: str, *, kind: str, data: Mapping[str, Any]
) -> None:
    row = {
        "asked_at": at,
        "kind": kind,
        "instance_id": run.workflow_instance_id,
        "run_id": run.run_id,
        "step_id": run.step_id,
        "question": question,
        "data": dict(data),
    }
    add(connection, approvals, row)


def pending_approvals(connection: Connection, instance_id: str = "") -> tuple[Approval, ...]:
    """What waits for a person: everywhere, in an instance, or by hand (`manual`)."""
    a = approvals.c
    wanted = select(*_APPROVAL_COLUMNS).where(a.state == "pending").order_by(a.id)
    if instance_id == MANUAL_RUN:
        wanted = wanted.where(a.run_id == MANUAL_RUN, a.instance_id == "")
    elif instance_id:
        wanted = wanted.where(a.instance_id == instance_id)
    return tuple(Approval(*row) for row in connection.execute(wanted))


def answer_approval(
    connection: Connection, at: str, approval_id: int, state: str, *, by: str, comment: str
) -> bool:
    """Write down a person's answer; False when it was answered or expired before."""
    a = approvals.c
    values = {"state": state, "answered_at": at, "answered_by": by, "comment": comment}
    where = and_(a.id == approval_id, a.state == "pending")
    return connection.execute(update(approvals).where(where).values(**values)).rowcount == 1


def approvals_of(connection: Connection, run_id: str) -> tuple[Approval, ...]:
    """What was asked of a person about a run and is not answered."""
    a = approvals.c
    wanted = select(*_APPROVAL_COLUMNS).where(a.run_id == run_id, a.state == "pending")
    return tuple(Approval(*row) for row in connection.execute(wanted.order_by(a.id)))


def ask_no_longer(connection: Connection, at: str, run_id: str) -> None:
    """What a person was asked about a run and has not answered is moot."""
    for asked in approvals_of(connection, run_id):
        answer_approval(connection, at, asked.id, "expired", by="", comment="")
