"""Snapshots on a disk that is really full: a small file system of one's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

#: Mounts a file system of 4 MB at its argument, then does the rest of its words on it.
MOUNTED = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"'
AS_ONE_WITH_MOUNTS = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)))


def on_a_small_disk(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [*AS_ONE_WITH_MOUNTS, "sh", "-c", MOUNTED, "sh", os.fspath(place), *words]
    return subprocess.run(argv, capture_output=True, text=True)


@pytest.fixture
def disk(tmp_path):
    """Where the small file system will be, for whoever runs on it."""
    place = tmp_path / "disk"
    place.mkdir()
    if shutil.which("unshare") is None or on_a_small_disk(place, "true").returncode:
        pytest.skip("no file system can be mounted here")
    return place


BEGIN = """
import os, sys
from pathlib import Path
from openry.errors import SnapshotError
from openry.session.snapshot import SnapshotStore

disk, outside = Path(sys.argv[1]), Path(sys.argv[2])
store = SnapshotStore(disk / "store")

def free():
    found = os.statvfs(disk)
    return found.f_bfree, found.f_ffree

def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}

def refused(act):
    try:
        act()
    except SnapshotError as error:
        assert "No space left on device; check space and permissions there" in str(error), error
    else:
        raise AssertionError("there was room")

def everything():
    return sorted(map(str, store.root.rglob("*")))

folder = outside / "ws"
folder.mkdir()
for number in range(100):
    (folder / f"{number}").write_bytes(os.urandom(5000))
first = store.create(folder)
"""

CREATE = """
before, there = free(), everything()
for number in range(int(sys.argv[3])):
    (folder / f"new {number}").write_bytes(os.urandom(int(sys.argv[4])))
for _ in range(2):
    refused(lambda: store.create(folder))
    assert everything() == there
    assert free() == before
store.restore(first.id, outside / "copy")
assert len(files(outside / "copy")) == 100
for path in folder.glob("new *"):
    path.unlink()
(folder / "small").write_bytes(b"fits")
assert store.read(store.create(folder).id, "small") == b"fits"
"""

RESTORE = """
ws = disk / "ws"
ws.mkdir()
(ws / "mine").write_text("as it was")
(disk / "ballast").write_bytes(bytes(free()[0] * os.statvfs(disk).f_bsize - 200_000))
before = free()
refused(lambda: store.restore(first.id, ws))
assert files(ws) == {"mine": b"as it was"}
assert sorted(p.name for p in disk.iterdir()) == ["ballast", "store", "ws"]
assert free()[0] >= before[0] - 1, "but for the folder of locks"
(disk / "ballast").unlink()
store.restore(first.id, ws)
assert files(ws) == files(folder)
"""

TIDY = """
for number in range(50):
    (folder / f"{number}").unlink()
stays = store.create(folder)
rest = free()[0] * os.statvfs(disk).f_bsize
(disk / "ballast").write_bytes(bytes(rest))
assert free()[0] == 0
freed = store.collect([stays.id], young_s=-1)
assert freed.snapshots == 1
store.restore(stays.id, outside / "copy")
assert files(outside / "copy") == files(folder)
store.collect([], young_s=-1)
assert sum(store.sizes().values()) == 0
assert free()[0] > 100, "what was kept gave its room back"
"""


@pytest.mark.parametrize(
    ("what", "words"),
    [
        pytest.param(CREATE, ("800", "9000"), id="many small files"),
        pytest.param(CREATE, ("3", "4000000"), id="a few large files"),
        pytest.param(RESTORE, (), id="a restore"),
        pytest.param(TIDY, (), id="tidying up"),
    ],
)
def test_a_full_disk_keeps_what_it_had(disk, tmp_path, what, words):
    """One sentence, nothing half kept, the room free again; and afterwards it goes on."""
    done = on_a_small_disk(
        disk, sys.executable, "-P", "-c", BEGIN + what, str(disk), str(tmp_path), *words
    )

    assert done.returncode == 0, done.stderr
