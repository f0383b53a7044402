"""The states of a run and of an instance, and which transition is legal."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """One attempt at one sub step."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    VALIDATED = "validated"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    OVERFLOW = "overflow"
    OVERFLOW_PROCESSING = "overflow_processing"
    RESUMED = "resumed"
    WAITING_APPROVAL = "waiting_approval"
    SKIPPED = "skipped"
    DROPPED = "dropped"


class InstanceState(StrEnum):
    """One started composition or workflow."""

    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_R = RunState
#: From each state, the states a run may go to. What is not here cannot happen.
NEXT_RUN_STATES: dict[RunState, frozenset[RunState]] = {
    _R.QUEUED: frozenset({_R.IN_PROGRESS, _R.CANCELLED, _R.SKIPPED}),
    _R.IN_PROGRESS: frozenset(
        {_R.COMPLETED, _R.FAILED, _R.CANCELLED, _R.LOST, _R.OVERFLOW, _R.WAITING_APPROVAL}
    ),
    _R.COMPLETED: frozenset({_R.VALIDATED, _R.FAILED}),
    _R.VALIDATED: frozenset({_R.DONE}),
    _R.WAITING_APPROVAL: frozenset({_R.VALIDATED, _R.FAILED, _R.CANCELLED}),
    _R.OVERFLOW: frozenset({_R.OVERFLOW_PROCESSING, _R.RESUMED}),
    _R.OVERFLOW_PROCESSING: frozenset({_R.RESUMED}),
    _R.FAILED: frozenset({_R.DROPPED}),
    _R.LOST: frozenset({_R.DROPPED}),
}


def may_become(old: RunState, new: RunState) -> bool:
    """Whether a run in `old` may go to `new`."""
    return new in NEXT_RUN_STATES.get(old, frozenset())


_I = InstanceState
#: The same for an instance. A person's `retry` takes one up again that had failed.
NEXT_INSTANCE_STATES: dict[InstanceState, frozenset[InstanceState]] = {
    _I.QUEUED: frozenset({_I.RUNNING, _I.FAILED, _I.CANCELLED}),
    _I.RUNNING: frozenset({_I.SUSPENDED, _I.COMPLETED, _I.FAILED, _I.CANCELLED}),
    # A step under way as it was suspended may be the last one.
    _I.SUSPENDED: frozenset({_I.RUNNING, _I.COMPLETED, _I.FAILED, _I.CANCELLED}),
    _I.FAILED: frozenset({_I.RUNNING}),
    _I.CANCELLED: frozenset({_I.RUNNING}),
}


def instance_may_become(old: InstanceState, new: InstanceState) -> bool:
    """Whether an instance in `old` may go to `new`."""
    return new in NEXT_INSTANCE_STATES.get(old, frozenset())
