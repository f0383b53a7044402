"""Is this process inside a run? Then it is no free use by hand, whatever its environment says.

A process can unset a variable. It cannot change who started it, what its sandbox was started
with, or what the kernel keeps from it. On the forwarder's path, hence without `pathlib`.
"""

from __future__ import annotations

import os

from openry.ledger.process import boot_and_namespace
from openry.models.command import MANUAL_RUN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: A folder every sandbox of ours is started with, as the first program in it shows to all.
SANDBOX_MARK = "/run/openry"
_SANDBOX = f"\0--dir\0{SANDBOX_MARK}\0".encode()
#: What commands and agents of a run are started with.
_MARKS = (b"\0OPENRY_IDEMPOTENCY_KEY=", b"\0OPENRY_RUN_TOKEN=")
#: More generations than there are: a number given twice must not lead round in circles.
_GENERATIONS = 64

IN_SANDBOX = "this is inside a run's sandbox"
_GO_OUT = "; call it from outside, or from a run's agent with OPENRY_SOCKET and OPENRY_RUN_TOKEN"


def inside_a_run(env: Mapping[str, str] = os.environ) -> str:
    """Why this is inside a run, by all that shows without the ledger; empty when it is not."""
    run_id = env.get("OPENRY_RUN_ID") or MANUAL_RUN
    if run_id != MANUAL_RUN:
        return f"this is inside run `{run_id}`"
    if any(env.get(name) for name in ("OPENRY_SOCKET", "OPENRY_RUN_TOKEN")):
        return "this is inside a run"
    if _in_sandbox():
        return f"{IN_SANDBOX}{_GO_OUT}"
    if any(_is_marked(pid) for pid, _ in _chain(os.getpid())):
        return f"this is below a running step{_GO_OUT}"
    return ""


def inside_one_of(running: Iterable[tuple[str, int, str]]) -> str:
    """Why this is below one of these runs (id, process, when it started); empty when it is not.

    A run's process is its engine; who *is* one, as the loop is, is not below it.
    """
    above = _above()
    for run_id, pid, started_at in running:
        if above.get(pid) == started_at:
            return f"this is below run `{run_id}`{_GO_OUT}"
    return ""


_known: tuple[int, int, dict[int, str]] = (0, 0, {})


def _above() -> dict[int, str]:
    """Who started us, who started them, and so on, each with when it was started."""
    global _known
    key = (os.getpid(), os.getppid())
    if _known[:2] != key:
        where = boot_and_namespace()
        _known = (*key, {pid: f"{where}/{tick}" for pid, tick in _chain(os.getppid())})
    return _known[2]


def _chain(pid: int) -> Iterator[tuple[int, str]]:
    """`pid` and its parents, up to the first process there is."""
    for _ in range(_GENERATIONS):
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if not fields:
            return
        yield pid, fields[19].decode()
        pid = int(fields[1])
        if not pid:
            return


def _in_sandbox() -> bool:
    """Whether one of our sandboxes is round us.

    In bubblewrap the first process is the sandbox itself. Landlock lets nobody read /proc, where
    it is there for all to see.
    """
    if _SANDBOX in _read("/proc/1/cmdline"):
        return True
    return os.access("/proc/self", os.F_OK) and not _read("/proc/self/stat")


def _is_marked(pid: int) -> bool:
    """Whether the process was started by a run, for it."""
    given = b"\0" + _read(f"/proc/{pid}/environ")
    return any(mark in given for mark in _MARKS)


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    found = b""
    try:
        while part := os.read(fd, 65536):
            found += part
    except OSError:
        pass
    os.close(fd)
    return found
