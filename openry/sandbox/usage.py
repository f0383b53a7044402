"""What a tree of processes uses, and whether that is more than it may. Linux only."""

from __future__ import annotations

import os
import stat
import sys
import time

from openry.ledger.process import read_text
from openry.sandbox.process import descendants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from openry.models.command import SandboxSpec
    from openry.sandbox.cgroup import Group

_MIB = 1024 * 1024
#: The clock of file systems on Linux: it moves at every tick only.
_COARSE = 5
#: Of all time so little goes into looking through folders.
_SHARE = 0.1


class Usage:
    """What one command uses, looked at now and then.

    Args:
        roots: The processes it began with, at the moment of asking.
        groups: The control groups it is in.
        folders: Where it writes; what was changed in them since now is its own.
    """

    def __init__(
        self,
        spec: SandboxSpec,
        roots: Callable[[], Iterable[int]],
        groups: Iterable[Group],
        folders: Iterable[str],
    ) -> None:
        self._spec, self._roots, self._groups = spec, roots, groups
        self._folders = tuple(folders)
        self._since_s = time.clock_gettime(_COARSE) if sys.platform == "linux" else time.time()
        self._next_walk = 0.0

    def excess(self) -> str:
        """What it uses too much of, in a few words; empty when nothing.

        Memory is what is its alone: shared pages, of libraries for one, are not counted.
        """
        if refused := self.refused():
            return refused
        spec = self._spec
        tree = [pid for root in self._roots() for pid in (root, *descendants(root))]
        if spec.processes and len(tree) > spec.processes:
            return f"{len(tree)} processes at once, {spec.processes} are allowed"
        if spec.memory_mb:
            used_mb = sum(map(_memory_bytes, tree)) // _MIB
            if used_mb > spec.memory_mb:
                return f"{used_mb:,} MiB of memory, {spec.memory_mb:,} are allowed"
        if spec.cpu_s:
            used_s = sum(map(_cpu_s, tree))
            if used_s > spec.cpu_s:
                return f"{used_s:.0f} s of processor time, {spec.cpu_s} are allowed"
        return self._too_much_written() if spec.disk_mb else ""

    def refused(self) -> str:
        """What the kernel kept it from, even if it has ended by itself since."""
        said = {
            "pids": f"too many processes at once, {self._spec.processes} are allowed",
            "memory": f"too much memory, {self._spec.memory_mb:,} MiB are allowed",
        }
        return next((said[found] for group in self._groups if (found := group.refused())), "")

    def _too_much_written(self) -> str:
        began = time.monotonic()
        if began < self._next_walk:
            return ""
        used_mb = sum(map(self._written_bytes, self._folders)) // _MIB
        now = time.monotonic()
        self._next_walk = now + (now - began) / _SHARE
        if used_mb <= self._spec.disk_mb:
            return ""
        return f"{used_mb:,} MiB of files, {self._spec.disk_mb:,} are allowed"

    def _written_bytes(self, folder: str) -> int:
        return sum(
            found.st_blocks * 512
            for found in _files(folder)
            if found.st_ctime > self._since_s and stat.S_ISREG(found.st_mode)
        )


def _files(folder: str) -> Iterator[os.stat_result]:
    """Everything below a folder that is no folder; links are not followed."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False)
    except OSError:  # it went, or is not for us to read
        return


def _memory_bytes(pid: int) -> int:
    fields = read_text(f"/proc/{pid}/statm").split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _cpu_s(pid: int) -> float:
    """Of the process and of its children that ended."""
    fields = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    ticks = sum(map(int, fields[11:15])) if fields else 0
    return ticks / os.sysconf("SC_CLK_TCK")
