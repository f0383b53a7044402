"""Which process a row belongs to. A number alone is not an identity: it is given again.

On the forwarder's path, hence without `pathlib`, `dataclasses` and `functools`.
"""

from __future__ import annotations

import os

from openry.models.value import value

_GONE = frozenset("ZXx")


@value
class ProcessId:
    """One process, once.

    Attributes:
        started_at: Boot, PID namespace and start tick; empty where the system does not say.
    """

    pid: int
    started_at: str
    host: str


_this: ProcessId | None = None


def this_process() -> ProcessId:
    """Ourselves; looked at once, and again after a `fork`."""
    global _this
    if _this is None or _this.pid != os.getpid():
        _this = process_id(os.getpid())
    return _this


def process_id(pid: int) -> ProcessId:
    """The identity of the process that has `pid` now; `started_at` is empty when none has."""
    return ProcessId(pid, _started_at(pid), host_name())


def is_alive(process: ProcessId) -> bool | None:
    """Whether `process` still runs. None when that cannot be judged from here.

    It cannot on another host, nor inside a container whose numbers are not ours.
    """
    if process.host != host_name():
        return None
    if not process.started_at:
        # Where start times are known, one without had ended before anybody looked.
        return False if _boot() else _has_number(process.pid)
    boot, namespace, _ = process.started_at.split("/")
    if boot != _boot():
        return False
    if namespace != _namespace():
        return None
    return _started_at(process.pid) == process.started_at


def host_name() -> str:
    return os.uname().nodename


def _started_at(pid: int) -> str:
    stat = read_text(f"/proc/{pid}/stat")
    # The name of the program comes second, in parentheses, and may hold anything.
    fields = stat.rpartition(")")[2].split()
    return f"{boot_and_namespace()}/{fields[19]}" if fields and fields[0] not in _GONE else ""


def boot_and_namespace() -> str:
    """What the start ticks of processes that we see are counted in."""
    return f"{_boot()}/{_namespace()}"


def _boot() -> str:
    return read_text("/proc/sys/kernel/random/boot_id")[:13]


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")  # noqa: PTH115
    except OSError:
        return ""


def read_text(path: str) -> str:
    """What the kernel says in one of its files; empty when it has none, as of an ended process."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _has_number(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
