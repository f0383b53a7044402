"""`openry doctor --disk`: what takes room in OPENRY_HOME, and what would give it back."""

from __future__ import annotations

import os
from collections.abc import Iterator

from openry.cli.output import write, write_json, write_table
from openry.config import Config
from openry.ledger.place import sqlite_path

_PARTS = (
    ("ledger", "", "openry-orchestrator prune --older-than 30d"),
    ("snapshots", "snapshots", "openry snapshot gc, or `retention.snapshots`"),
    ("outputs", "runs", "`retention.spills`"),
    ("workspaces", "instances", "openry-orchestrator prune --older-than 30d"),
    ("sessions of the loop", "loops", ""),
    ("quarantine", "quarantine", "openry-orchestrator prune --older-than 30d"),
)


def report(config: Config, *, as_json: bool) -> int:
    """Print each part with its size; the exit status."""
    rows = []
    for name, folder, fix in _PARTS:
        places = [f"{config.home_dir}/{folder}"] if folder else list(_ledger(config))
        rows.append((name, sum(map(size_bytes, places)), fix))
    if as_json:
        write_json([{"part": name, "bytes": size, "fix": fix} for name, size, fix in rows])
        return 0
    total = sum(size for _, size, _ in rows)
    cells = [(name, f"{shown(size):>10}", fix if size else "") for name, size, fix in rows]
    write_table([*cells, ("together", f"{shown(total):>10}", "")])
    status = os.statvfs(config.home_dir if os.path.isdir(config.home_dir) else "/")
    write(f"free there: {shown(status.f_bavail * status.f_frsize)}\n")
    return 0


def _ledger(config: Config) -> Iterator[str]:
    path = sqlite_path(config.ledger)
    for ending in ("", "-wal", "-shm", ".words", ".words-wal", ".words-shm") if path else ():
        yield f"{path}{ending}"


def size_bytes(place: str) -> int:
    """What a file or folder takes on the disk; 0 for what is not there."""
    try:
        total = os.lstat(place).st_blocks * 512
    except OSError:
        return 0
    for folder, folders, files in os.walk(place):
        for name in (*folders, *files):
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:  # it went meanwhile
                continue
    return total


def shown(size: float) -> str:
    """A size for a person.

    >>> shown(0), shown(2048), shown(3 * 1024 ** 3)
    ('0 B', '2.0 KiB', '3.0 GiB')
    """
    if size < 1024:
        return f"{size:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1024 or unit == "TiB":
            break
    return f"{size:.1f} {unit}"
