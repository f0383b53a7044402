"""What a step changed: files between the snapshots round it, its payload, its commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from openry.errors import NotFoundError, SnapshotError
from openry.ledger.commands import CommandRecord, of_run
from openry.ledger.instances import find_instance, list_instances
from openry.ledger.journal import Transaction
from openry.ledger.records import snapshots_of
from openry.ledger.runs import Run, runs_of
from openry.session.snapshot import SnapshotStore
from openry.session.tree import Change
from openry.texts import bracketed, did_you_mean

_DIFF_BYTES = 64 * 1024
_LOOKED_THROUGH = 500


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file, with a unified diff where both sides are text of a readable size."""

    kind: str
    path: str
    diff: str = ""


@dataclass(frozen=True, slots=True)
class StepChanges:
    """What the latest run of a step changed.

    Attributes:
        files: None when nobody kept the files before and after it; `note` says what to do.
        payload: Key by key (before, after); a missing side is None.
    """

    instance_id: str
    step_id: str
    run_id: str
    files: tuple[FileChange, ...] | None
    note: str
    payload: Mapping[str, tuple[Any, Any]]
    commands: tuple[CommandRecord, ...]


def changes_of(
    connection: Transaction, store: SnapshotStore, step: str, instance: str = ""
) -> StepChanges:
    """What `step` changed in an instance, else in the newest one that ran it.

    Raises:
        NotFoundError: No instance ran a step of that name.
    """
    instance_id, runs = _runs_with(connection, step, instance)
    own = [run for run in runs if not run.item]
    last = max(place for place, run in enumerate(own) if run.step_id == step)
    run, following = own[last], own[last + 1 :]
    done = [one for one in own[:last] if one.status == "done"]
    before = done[-1].payload if done else {}
    files, note = _files(connection, store, run, following)
    payload = _differences(before, run.payload if run.payload else before)
    commands = of_run(connection, run.run_id)
    return StepChanges(instance_id, step, run.run_id, files, note, payload, commands)


def _runs_with(connection: Transaction, step: str, instance: str) -> tuple[str, tuple[Run, ...]]:
    if instance:
        ids = [find_instance(connection, instance)]
    else:
        ids = [one.instance_id for one in list_instances(connection, limit=_LOOKED_THROUGH)]
    seen: dict[str, None] = {}
    for instance_id in ids:
        runs = runs_of(connection, instance_id)
        if any(run.step_id == step for run in runs):
            return instance_id, runs
        seen |= dict.fromkeys(run.step_id for run in runs)
    hint = bracketed(did_you_mean(step, seen))
    where = f"instance `{ids[0]}`" if instance else "no instance"
    raise NotFoundError(f"{where} {'never ' if instance else ''}ran a step `{step}`{hint}")


def _files(
    connection: Transaction, store: SnapshotStore, run: Run, following: Sequence[Run]
) -> tuple[tuple[FileChange, ...] | None, str]:
    kept = snapshots_of(connection, run.workflow_instance_id)
    after = next(
        (one.snapshot_id for one in kept if (one.run_id, one.reason) == (run.run_id, "after step")),
        "",
    )
    if not after and following:
        after = following[0].snapshot_id
    if not run.snapshot_id or not after:
        missing = "before" if not run.snapshot_id else "after"
        return None, f"nobody kept the files {missing} it: give the step `snapshot: both`"
    try:
        changes = store.diff(run.snapshot_id, after)
        found = tuple(_with_diff(store, one, run.snapshot_id, after) for one in changes)
    except (NotFoundError, SnapshotError) as error:
        return None, f"its snapshots are gone: {error}"
    return found, ""


def _with_diff(store: SnapshotStore, change: Change, before: str, after: str) -> FileChange:
    old = None if change.kind == "added" else _text(store, before, change.path)
    new = None if change.kind == "deleted" else _text(store, after, change.path)
    if (old is None and change.kind != "added") or (new is None and change.kind != "deleted"):
        return FileChange(change.kind, change.path)
    lines = unified_diff(
        (old or "").splitlines(), (new or "").splitlines(), "before", "after", lineterm="", n=2
    )
    return FileChange(change.kind, change.path, "\n".join(list(lines)[2:]))


def _text(store: SnapshotStore, snapshot_id: str, path: str) -> str | None:
    """A file as text; None for what is no file, too large, or no text."""
    entry = store.tree(snapshot_id).get(path)
    if entry is None or entry.kind != "f" or entry.size > _DIFF_BYTES:
        return None
    try:
        return store.read(snapshot_id, path).decode()
    except UnicodeDecodeError:
        return None


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    keys = sorted(before.keys() | after.keys())
    return {
        key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)
    }
