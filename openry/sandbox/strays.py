"""Processes that outlived whoever started them, found by what stands in their environment."""

from __future__ import annotations

import os
import signal
import time

_PROC = "/proc"
_LOOK_S = 0.01


def end_strays(mark: bytes, *, grace_s: float = 1.0) -> tuple[int, ...]:
    """End every process of ours with `mark` in the environment it was started with.

    SIGTERM, then after `grace_s` SIGKILL. A number is signalled only through a handle taken before
    the mark was looked for, so a stranger that gets the number later is not meant. Linux only;
    elsewhere nothing is found. Returns whom it ended.
    """
    ended: dict[int, None] = {}
    until = time.monotonic() + grace_s
    number = signal.SIGTERM
    while strays := _signalled(mark, number):
        ended |= dict.fromkeys(strays)
        if time.monotonic() >= until + grace_s:
            break  # it cannot be ended by us: another user's, or stuck in the kernel
        time.sleep(_LOOK_S)
        number = signal.SIGKILL if time.monotonic() >= until else signal.SIGCONT
    return tuple(ended)


def marked_instances() -> frozenset[str]:
    """Ids of the instances for which processes that are there were started. Linux only."""
    found = set()
    for name in os.listdir(_PROC) if os.path.isdir(_PROC) else ():
        try:
            with open(f"{_PROC}/{name}/environ", "rb") as file:
                marks = file.read().split(b"\0OPENRY_IDEMPOTENCY_KEY=")[1:]
        except OSError:
            continue
        found |= {mark.partition(b"\0")[0].decode("utf-8", "replace") for mark in marks}
    # A key is `INSTANCE-VISIT-FOLDED-STEP`, and ids of all but the engine's own may have dashes.
    parts = (key.split("-") for key in found)
    return frozenset("-".join(each[:upto]) for each in parts for upto in range(1, len(each)))


def _signalled(mark: bytes, number: int) -> list[int]:
    if not os.path.isdir(_PROC):
        return []
    others = (int(name) for name in os.listdir(_PROC) if name.isdigit())
    return [pid for pid in others if pid != os.getpid() and _signal(pid, mark, number)]


def _signal(pid: int, mark: bytes, number: int) -> bool:
    """Whether the process had the mark, and was sent the signal."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:
            if mark not in file.read():
                return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
