"""Snapshots for people and sessions: kept with their row, put back only over what is kept too."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openry.config import Config
from openry.errors import NotFoundError, SnapshotError, UsageError
from openry.ledger.db import Ledger
from openry.ledger.journal import ledger_now
from openry.ledger.places import (
    at_work,
    forget_snapshots,
    kept_for_good,
    kept_ids,
    newest_at,
    runs_snapshots,
    state_at,
)
from openry.ledger.process import is_alive
from openry.ledger.records import SnapshotRow, add_snapshot, snapshots_of
from openry.session.snapshot import Freed, Snapshot, SnapshotStore
from openry.session.tree import Change, compare, show

_SHORTEST_ID = 4
_SHOWN_CHANGES = 3
#: A snapshot younger than this may be one whose row is about to be written.
YOUNG_S = 3600.0


def store_of(config: Config) -> SnapshotStore:
    """Where all snapshots of OPENRY_HOME are."""
    return SnapshotStore(config.home / "snapshots", ignored=config.snapshot_ignore)


@dataclass(frozen=True, slots=True)
class PutBack:
    """What a restore did. `saved`: the snapshot of what it replaced; empty when none was made."""

    snapshot_id: str
    folder: Path
    saved: str = ""


class Keeper:
    """Makes, finds and restores snapshots; each counts once its row is in the ledger."""

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self.config = config
        self.ledger = ledger
        self.store = store_of(config)

    def keep(
        self, folder: Path, *, reason: str = "by hand", about: Mapping[str, Any] | None = None
    ) -> Snapshot:
        """Record a folder, with how the instance stands that works in it: both, or neither.

        Raises:
            SnapshotError: It cannot be recorded; then there is no snapshot.
            StorageError: The ledger cannot be written; then there is none either.
        """
        place = Path(os.path.realpath(folder))
        clean(place, self.config.snapshot_clean)
        made = self.store.create(place)
        with self.ledger.write() as connection:
            state = state_at(connection, str(place))
            whose = {name: state.get(name, "") for name in ("instance_id", "session_id")} | {
                "step_id": state.get("current_step", "")
            }
            row = {
                "snapshot_id": made.id,
                "files": made.files,
                "bytes": made.bytes,
                "seconds": made.seconds,
                "reason": reason,
                "workspace": str(place),
                "state": state,
                **whose,
                **(about or {}),
            }
            add_snapshot(connection, ledger_now(connection), row)
        return made

    def rows(self, instance_id: str = "") -> tuple[SnapshotRow, ...]:
        """The newest first."""
        with self.ledger.read() as connection:
            return snapshots_of(connection, instance_id)

    def find(self, prefix: str) -> str:
        """The whole id of the one snapshot whose id begins with `prefix`.

        Raises:
            NotFoundError: None does, or several do.
            UsageError: It is empty.
        """
        if not prefix:
            raise UsageError("the id of the snapshot is empty; see openry snapshot list")
        known = self.store.ids()
        if prefix in known:
            return prefix
        found = [one for one in known if one.startswith(prefix)]
        if len(prefix) >= _SHORTEST_ID and len(found) == 1:
            return found[0]
        if found:
            raise NotFoundError(
                f"`{show(prefix)}` could be {', '.join(one[:16] for one in found[:5])};"
                " give more of the id"
            )
        raise NotFoundError(
            f"there is no snapshot `{show(prefix)}`: it never was, or it was removed;"
            " see openry snapshot list"
        )

    def diff(self, before: str, after: str) -> tuple[Change, ...]:
        return self.store.diff(self.find(before), self.find(after))

    def place_of(self, snapshot_id: str) -> Path:
        """The folder that a snapshot was last made of.

        Raises:
            UsageError: Nobody wrote it down.
        """
        row = next((one for one in self.rows() if one.snapshot_id == snapshot_id), None)
        if row is None or not row.workspace:
            raise UsageError(
                f"nobody wrote down of which folder snapshot {snapshot_id[:16]} is; name one"
                " with --to"
            )
        return Path(row.workspace)

    def put_back(self, prefix: str, to: Path | None = None, *, force: bool = False) -> PutBack:
        """Make a folder what it was: `to`, else the one the snapshot is of.

        Args:
            force: Also over changes that no snapshot has; these are kept in a new one first.

        Raises:
            SnapshotError: A step or command is at work in it, or it has such changes.
        """
        snapshot_id = self.find(prefix)
        target = Path(os.path.realpath(to or self.place_of(snapshot_id)))
        saved = ""

        def ready() -> None:
            nonlocal saved
            self._refuse_if_busy(target)
            edits = self._edits(target, snapshot_id)
            if edits and not force:
                raise SnapshotError(_would_lose(target, edits))
            if edits:
                saved = self.keep(target, reason="before restore").id

        self.store.restore(snapshot_id, target, ready=ready)
        return PutBack(snapshot_id, target, saved)

    def _refuse_if_busy(self, target: Path) -> None:
        with self.ledger.read() as connection:
            for one in at_work(connection):
                if _overlap(target, one.folder) and is_alive(one.process) is not False:
                    raise SnapshotError(
                        f"{one.what} is at work in `{show(str(target))}`; wait for it or cancel"
                        " it, or restore into another folder with --to"
                    )

    def _edits(self, target: Path, wanted: str) -> tuple[Change, ...]:
        """What is in a folder that no snapshot of it has."""
        if not target.is_dir() or not any(target.iterdir()):
            return ()
        with self.ledger.read() as connection:
            kept = (*newest_at(connection, str(target)), wanted)
        known, now = set(self.store.ids()), self.store.look(target)
        found = [compare(self.store.tree(one), now) for one in kept if one in known]
        return () if not all(found) else found[0]

    # --- tidying up ---------------------------------------------------------------------------

    def collect(
        self, *, most_bytes: int = 0, young_s: float = YOUNG_S, dry_run: bool = False
    ) -> Freed:
        """Delete snapshots that nothing leads to, and beyond `most_bytes` the oldest ones.

        Those of live instances and of sessions of the loop always stay.
        """
        with self.ledger.read() as connection:
            rows, good = kept_ids(connection), kept_for_good(connection)
            named = runs_snapshots(connection)
        keep = {*rows, *good, *named}
        if most_bytes:
            keep = self._within(most_bytes, rows, good)
            if not dry_run:
                with self.ledger.write() as connection:
                    forget_snapshots(connection, [one for one in rows if one not in keep])
        return self.store.collect(keep, young_s=young_s, dry_run=dry_run)

    def _within(self, most_bytes: int, rows: tuple[str, ...], good: frozenset[str]) -> set[str]:
        """The newest snapshots whose contents together take no more than that, and `good`."""
        known = set(self.store.ids())
        sizes = self.store.sizes()
        seen: set[str] = set()
        total = 0
        keep = set(good)
        for snapshot_id in (*good, *(one for one in rows if one not in good)):
            if snapshot_id not in known:
                continue
            contents = self.store.contents_of(snapshot_id) - seen
            total += sum(sizes.get(one, 0) for one in contents)
            if snapshot_id not in good and total > most_bytes:
                break
            seen |= contents
            keep.add(snapshot_id)
        return keep


def clean(workspace: Path, folders: tuple[str, ...]) -> None:
    """Empty the folders of a workspace that hold nothing worth keeping.

    Raises:
        UsageError: One of them is not in the workspace.
    """
    for name in folders:
        folder = workspace / name
        if folder.is_symlink() or not folder.is_dir():
            continue
        if workspace not in Path(os.path.realpath(folder)).parents:
            raise UsageError(f"`snapshot.clean`: `{name}` is no folder inside the workspace")
        for child in folder.iterdir():
            if child.is_dir() and not child.is_symlink():
                shutil.rmtree(child, ignore_errors=True)
            else:
                child.unlink(missing_ok=True)


def _overlap(one: Path, other: str) -> bool:
    if not other:
        return False
    path = Path(os.path.realpath(other))
    return one == path or one in path.parents or path in one.parents


def _would_lose(target: Path, edits: tuple[Change, ...]) -> str:
    shown = ", ".join(f"{one.kind} `{show(one.path)}`" for one in edits[:_SHOWN_CHANGES])
    more = f" and {len(edits) - _SHOWN_CHANGES} more" if len(edits) > _SHOWN_CHANGES else ""
    return (
        f"`{show(str(target))}` has changes that no snapshot has: {shown}{more}; keep them with"
        " `openry snapshot create`, or restore with --force, which does that first"
    )
