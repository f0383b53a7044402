"""Children that left their group and lost their parent: found, and ended with the rest."""

from __future__ import annotations

import os
import select
import time

from openry.sandbox.libc import call
from openry.sandbox.process import KILL, TERM, is_running, signal

_PR_SET_CHILD_SUBREAPER = 36
_adopting = False


def adopt_orphans() -> None:
    """From now on, orphans among our descendants become our children. Linux only.

    Elsewhere, and in a kernel without it, only process groups are ended.
    """
    global _adopting
    if not _adopting and os.path.isdir("/proc/self/task"):
        _adopting = call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def children() -> set[int]:
    """Our present children, of all threads."""
    found: set[int] = set()
    if not _adopting:
        return found
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children", "rb") as file:
                found.update(map(int, file.read().split()))
        except OSError:  # the thread ended
            continue
    return found


def strangers(known: set[int]) -> bool:
    """Whether a child of ours may run that is not among `known`: somebody that a command left."""
    return not _adopting or any(map(is_running, children() - known))


def belongs_to(pid: int, mark: bytes) -> bool:
    """Whether the process was started with `mark` in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read()
    except OSError:
        return False


def end_orphans(known: set[int], mark: bytes, *, alone: bool, grace_s: float) -> list[int]:
    """End those of our children that came to us as orphans; whom we ended.

    Args:
        known: Children that we started ourselves.
        mark: What the environment of this call's processes holds.
        alone: No other call is running, so every orphan is of this call.
    """
    orphans: set[int] = set()
    ended: list[int] = []
    until = time.monotonic() + grace_s
    number = TERM
    while orphans := _left(orphans | _ours(known, mark, alone)):
        for pid in orphans:
            signal(pid, number)
            if pid not in ended and not _reaped(pid):
                ended.append(pid)
        number = KILL if time.monotonic() >= until else 0
        select.select([], [], [], 0.005)
    return ended


def _ours(known: set[int], mark: bytes, alone: bool) -> set[int]:
    orphans = children() - known
    return {pid for pid in orphans if alone or belongs_to(pid, mark)}


def _left(orphans: set[int]) -> set[int]:
    """Those that still run; of one that ended nothing tells any more whose it was."""
    return {pid for pid in orphans if not _reaped(pid)}


def _reaped(pid: int) -> bool:
    """Whether the child has ended; then it is reaped."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
