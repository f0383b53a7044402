"""What is kept, and for how long: `retention: {runs, spills, snapshots}`. Live instances always."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from openry.config import Config
from openry.ledger.db import Ledger
from openry.ledger.journal import later, ledger_now
from openry.ledger.place import sqlite_path
from openry.ledger.prune import (
    delete_outputs,
    ended_before,
    forget,
    forget_workers,
    outputs_by_age,
    spills_of,
)
from openry.ledger.words import forget_words
from openry.session.keeper import Keeper


@dataclass(frozen=True, slots=True)
class Went:
    """How much was deleted."""

    instances: int = 0
    outputs: int = 0
    snapshots: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return any(asdict(self).values())


def apply_retention(
    config: Config, ledger: Ledger, *, should_stop: Callable[[], bool] = lambda: False
) -> Went:
    """Delete what `retention` does not keep, a little at a time.

    Raises:
        StorageError: The ledger could not be written.
        SnapshotError: A snapshot cannot be read or deleted.
    """
    instances = outputs = freed = 0
    if config.retention_runs_s:
        with ledger.read() as connection:
            before = later(ledger_now(connection), -config.retention_runs_s)
        instances = prune_ended(config, ledger, before, should_stop=should_stop)
    if config.retention_spills_bytes:
        outputs, freed = _outputs(ledger, config.retention_spills_bytes)
    snapshots = 0
    if config.retention_snapshots_bytes and not should_stop():
        went = Keeper(config, ledger).collect(most_bytes=config.retention_snapshots_bytes)
        snapshots, freed = went.snapshots, freed + went.bytes
    return Went(instances, outputs, snapshots, freed)


def prune_ended(
    config: Config,
    ledger: Ledger,
    before: str,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Delete instances that ended before, with their rows, outputs and folders. How many.

    Rows go first: what is killed in between leaves a folder that nobody asks for.
    """
    gone = 0
    while not should_stop():
        with ledger.write() as connection:
            ids = ended_before(connection, before)
            spills = spills_of(connection, ids)
            forget(connection, ids)
            forget_workers(connection, before)
        for spill in spills:
            with suppress(OSError):
                Path(spill).unlink()
        for instance_id in ids:
            shutil.rmtree(config.home / "instances" / instance_id, ignore_errors=True)
        gone += len(ids)
        if not ids:
            break
    path = sqlite_path(ledger.where)
    if gone and path is not None:
        forget_words(path)
    return gone


def _outputs(ledger: Ledger, most_bytes: int) -> tuple[int, int]:
    """Delete the oldest kept outputs beyond `most_bytes`: how many, and their bytes."""
    with ledger.read() as connection:
        kept = outputs_by_age(connection)
    total = freed = 0
    gone = []
    for number, place, is_live in kept:
        with suppress(OSError):
            size = Path(place).stat().st_size
            total += size
            if total > most_bytes and not is_live:
                Path(place).unlink()
                gone.append(number)
                freed += size
    if gone:
        with ledger.write() as connection:
            delete_outputs(connection, ledger_now(connection), gone)
    return len(gone), freed
