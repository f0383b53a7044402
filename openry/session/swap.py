"""Puts a tree that was built aside into the place of another, whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from openry.session.tree import STAGE, is_ignored

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def stage_for(target: Path) -> Iterator[Path]:
    """A folder to build a tree in that can be renamed to `target`: beside it, else inside.

    It is locked while it is used, so that `sweep` can tell it from one left behind.
    """
    if os.access(target.parent, os.W_OK | os.X_OK) and not _is_mount_point(target):
        stage = Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
    else:
        stage = Path(tempfile.mkdtemp(prefix=STAGE, dir=target))
    descriptor = os.open(stage, os.O_RDONLY)
    try:
        _lock(descriptor)
        yield stage
    finally:
        os.close(descriptor)
        with suppress(OSError), _same_time(stage.parent):
            remove_tree(stage)  # what stays is swept away by the next restore


def put_in_place(built: Path, target: Path, ignored: Collection[str]) -> None:
    """Let `built` take the place of `target`, which may not exist. The old tree stays beside."""
    if built.parent.parent == target:
        _exchange_entries(built, target, ignored)
    elif target.exists():
        _exchange(built, target)
        _carry_ignored(built, target, ignored)
    else:
        built.rename(target)


def sweep(target: Path, ignored: Collection[str]) -> None:
    """Clear away what a killed restore left behind, and save from it what belongs to `target`."""
    for left in _leftovers(target):
        descriptor = os.open(left, os.O_RDONLY)
        try:
            if _lock(descriptor):
                _save_from(left, target, ignored)
                remove_tree(left)
        finally:
            os.close(descriptor)


def remove_tree(folder: Path) -> None:
    """Delete a folder with everything in it, also below folders that may not be written."""
    try:
        shutil.rmtree(folder)
    except PermissionError:
        for place, names, _ in os.walk(folder):
            for name in names:
                inner = Path(place, name)
                if not inner.is_symlink():
                    inner.chmod(0o700)
        shutil.rmtree(folder)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _save_from(left: Path, target: Path, ignored: Collection[str]) -> None:
    old = left / "old"
    if old.is_dir() and not target.exists():
        old.rename(target)
    for tree in (left / "tree", old):
        if tree.is_dir() and target.is_dir():
            _carry_ignored(tree, target, ignored)


def _is_mount_point(folder: Path) -> bool:
    """Also when a folder of the same file system is mounted there, which `ismount` does not see."""
    return folder.exists() and (
        os.path.ismount(folder) or _mount_id(folder) != _mount_id(folder.parent)
    )


def _mount_id(folder: Path) -> str:
    """Linux's number of the mount that `folder` is on; empty elsewhere."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii").splitlines()
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return next((line for line in lines if line.startswith("mnt_id:")), "")


def _prefix(target: Path) -> str:
    return f".{target.name}{STAGE}"


def _leftovers(target: Path) -> list[Path]:
    beside = [p for p in target.parent.iterdir() if p.name.startswith(_prefix(target))]
    inside = [p for p in target.iterdir() if p.name.startswith(STAGE)] if target.is_dir() else []
    return beside + inside


def _exchange(new: Path, target: Path) -> None:
    """Let two folders change places, in one step where the system can."""
    if _exchange_at_once(new, target):
        return
    old = new.with_name("old")
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    old.rename(new)


def _exchange_at_once(one: Path, other: Path) -> bool:
    """Linux's `renameat2(RENAME_EXCHANGE)`; False where there is none."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    paths = os.fsencode(one), os.fsencode(other)
    if rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(number, os.strerror(number), os.fspath(other))


def _exchange_entries(built: Path, target: Path, ignored: Collection[str]) -> None:
    """Exchange what is in `target`, one entry after the other; back again when one fails."""
    old = built.with_name("old")
    old.mkdir()
    meant = built.stat()
    done: list[tuple[Path, Path]] = []
    try:
        for source, sink in ((target, old), (built, target)):
            for entry in [p for p in source.iterdir() if not is_ignored(p.name, ignored)]:
                entry.rename(sink / entry.name)
                done.append((entry, sink / entry.name))
        target.chmod(stat.S_IMODE(meant.st_mode))
        os.utime(target, ns=(meant.st_atime_ns, meant.st_mtime_ns))
    except BaseException:
        for before, after in reversed(done):
            after.rename(before)
        raise
    _carry_ignored(old, target, ignored)


def _carry_ignored(old: Path, target: Path, ignored: Collection[str]) -> None:
    """Move what is no part of the old tree to where it was, if that folder still is one."""
    for kept in list(_ignored_in(old, ignored)):
        place = target / kept.relative_to(old)
        if place.parent.is_dir() and not os.path.lexists(place):
            with _same_time(place.parent):
                kept.rename(place)


@contextmanager
def _same_time(folder: Path) -> Iterator[None]:
    """Leave a folder's time of change as it is, whatever is done in it."""
    status = folder.stat()
    yield
    os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))


def _ignored_in(folder: Path, ignored: Collection[str]) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *files) if name in ignored)
        folders[:] = [name for name in folders if name not in ignored]
