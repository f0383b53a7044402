"""Where that lies which a command made under a protected name: kept a while, never much of it."""

from __future__ import annotations

import errno
import os
import stat
import time

from openry.sandbox.real import HELD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.sandbox.real import RealFolder

#: What is older goes, and of what is more the oldest.
KEPT_DAYS, KEPT_MIB, KEPT_ENTRIES = 30, 256, 500
_MIB = 1024 * 1024
_DAY_S = 86_400


def keep(inside: RealFolder, name: str, folder: str, kept: str) -> None:
    """Move what lies under `name` into `folder`, as `kept`; what cannot be kept is removed.

    Raises:
        FileNotFoundError: Nothing lies there any more.
    """
    os.stat(name, dir_fd=inside.fd, follow_symlinks=False)
    try:
        _open_to_us(inside, name)
        os.makedirs(folder, 0o700, exist_ok=True)
        _move(inside, name, f"{folder}/{kept}")
    except OSError:  # a full disk, or a folder that cannot be written: it must go all the same
        _remove(f"./{name}", inside)


def _open_to_us(inside: RealFolder, name: str) -> None:
    """A folder is only moved by who may write it."""
    about = os.stat(name, dir_fd=inside.fd, follow_symlinks=False)
    if stat.S_ISDIR(about.st_mode) and about.st_mode & 0o700 != 0o700:
        held = os.open(name, HELD, dir_fd=inside.fd)
        try:
            os.chmod(f"/proc/self/fd/{held}", stat.S_IMODE(about.st_mode) | 0o700)
        finally:
            os.close(held)


def _move(inside: RealFolder, name: str, kept: str) -> None:
    try:
        os.rename(name, kept, src_dir_fd=inside.fd)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        place = f"/proc/self/fd/{inside.fd}/{name}"
        if _size_bytes(place, opens=False) <= KEPT_MIB * _MIB:
            _copy(place, kept)
        _remove(f"./{name}", inside)


def _copy(place: str, kept: str) -> None:
    import shutil

    if os.path.islink(place) or not os.path.isdir(place):
        shutil.copy2(place, kept, follow_symlinks=False)
    else:
        shutil.copytree(place, kept, symlinks=True)


def make_room(root: str) -> int:
    """Remove what is too old or too much; how many entries.

    Args:
        root: The folder of all entries.
    """
    return _remove_all(root, time.time() - KEPT_DAYS * _DAY_S, KEPT_MIB * _MIB, KEPT_ENTRIES)


def forget(root: str, before_s: float) -> int:
    """Remove what was put away before a time (seconds of the epoch); how many entries."""
    return _remove_all(root, before_s, KEPT_MIB * _MIB, KEPT_ENTRIES)


def contents(root: str) -> tuple[int, int]:
    """How many entries there are, and their bytes on disk."""
    entries = _entries(root)
    return len(entries), sum(_size_bytes(place) for _, place in entries)


def _remove_all(root: str, before_s: float, most_bytes: int, most: int) -> int:
    gone, used = 0, 0
    for number, (at_s, place) in enumerate(_entries(root), 1):
        used += _size_bytes(place)
        if at_s < before_s or used > most_bytes or number > most:
            _remove(place)
            gone += 1
    return gone


def _entries(root: str) -> list[tuple[float, str]]:
    """When each was put away, and where it is; the newest first."""
    try:
        with os.scandir(root) as found:
            entries = [(one.stat(follow_symlinks=False).st_ctime, one.path) for one in found]
    except OSError:
        return []
    return sorted(entries, reverse=True)


def _size_bytes(place: str, *, opens: bool = True) -> int:
    """On disk; links are not followed.

    Args:
        opens: Open folders that are closed to us, for good. Only for what is ours alone.
    """
    total, waiting = 0, [place]
    while waiting:
        one = waiting.pop()
        try:
            about = os.lstat(one)
            total += about.st_blocks * 512
            if stat.S_ISDIR(about.st_mode):
                if opens and about.st_mode & 0o700 != 0o700:
                    os.chmod(one, 0o700)
                waiting += [f"{one}/{name}" for name in os.listdir(one)]
        except OSError:
            continue
    return total


def _remove(place: str, inside: RealFolder | None = None) -> None:
    """However deep it is, which `rm` alone can do; it follows no links.

    Args:
        inside: The folder that `place` is named from; without it, it is one of our entries.
    """
    import subprocess

    if inside is None:
        _size_bytes(place)
    cwd = f"/proc/self/fd/{inside.fd}" if inside else None
    argv = ("rm", "-rf", "--", place)
    subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True)
