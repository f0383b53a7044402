"""Timing that survives a busy machine: medians of runs that take turns."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        ours: The figure, in `unit`.
        peer: What it stands beside, and `theirs` its figure; empty when nothing does.
        target: What is asked for, in words.
        met: Whether this run met it; None when there is no target.
    """

    what: str
    ours: float
    unit: str
    peer: str = ""
    theirs: float | None = None
    target: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        return round(self.ours / self.theirs, 3) if self.theirs else None

    def to_data(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}


@dataclass(frozen=True, slots=True)
class Spent:
    """What one process took. `peak_mib` is its largest resident size, at least our own."""

    wall_ms: float
    cpu_ms: float
    peak_mib: float
    output: str


Case = Callable[[Path], list[Row]]
BIN = Path(sys.executable).parent
#: The unit in which the system counts resident sizes.
_PER_MIB = 1024 * 1024 if sys.platform == "darwin" else 1024


def environment(place: Path) -> dict[str, str]:
    """Nobody's settings, and a home of its own."""
    return {"PATH": os.environ["PATH"], "HOME": str(place), "OPENRY_HOME": str(place / "home")}


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Spent:
    """Run a program to its end; a failure is an error of the benchmark."""
    began = time.perf_counter()
    with subprocess.Popen(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_ms = (time.perf_counter() - began) * 1000
    if process.returncode:
        raise SystemExit(f"bench: {' '.join(argv)} ended with {process.returncode}: {output}")
    cpu_ms = (usage.ru_utime + usage.ru_stime) * 1000
    return Spent(wall_ms, cpu_ms, usage.ru_maxrss / _PER_MIB, output)


_LEAN = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_mib(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> float:
    """A program's largest resident size, in MiB.

    It is started by a small process, for the size of whoever starts one counts as its own.
    """
    lean = (sys.executable, "-I", "-S", "-c", _LEAN, *argv)
    return int(run(lean, cwd=cwd, env=env).output) / _PER_MIB


def tree(pid: int) -> list[int]:
    """A process and all below it, those of them that are there."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        parents[int(entry.parent.name)] = int(fields[1])
    members = [pid]
    for member in members:
        members += [child for child, parent in parents.items() if parent == member]
    return members


def pss_mib(pid: int) -> float:
    """A process's part of the memory: its own pages, and its share of those it shares.

    None for one that is just being started (`vfork`): until it runs its program, the memory that
    it is seen with is its parent's.
    """
    try:
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        same = all(_of(pid, name) == _of(parent, name) for name in ("cmdline", "statm"))
        lines = [] if same else Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _of(pid: int | str, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def in_turns(times: int, *calls: Callable[[], Any]) -> list[list[Any]]:
    """What each call returned, over `times` rounds in which all take turns; one warm-up round."""
    for call in calls:
        call()
    rounds = [[call() for call in calls] for _ in range(times)]
    return [list(results) for results in zip(*rounds, strict=True)]


def timed(call: Callable[[], Any]) -> Callable[[], float]:
    """`call` as one that returns how many milliseconds it took."""

    def wrapped() -> float:
        began = time.perf_counter()
        call()
        return (time.perf_counter() - began) * 1000

    return wrapped


def cost(call: Callable[[], Any]) -> Callable[[], tuple[float, float]]:
    """`call` as one that returns its wall and its processor milliseconds, with its children's.

    On a busy machine the first says how long others kept it waiting; the second does not.
    """

    def spent_ms() -> float:
        return sum(os.times()[:4]) * 1000

    def wrapped() -> tuple[float, float]:
        began, cpu = time.perf_counter(), spent_ms()
        call()
        return (time.perf_counter() - began) * 1000, spent_ms() - cpu

    return wrapped


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all are at most.

    >>> percentile([4, 1, 3, 2], 0.5)
    2
    """
    return sorted(values)[max(0, ceil(len(values) * share) - 1)]


def middle(values: Sequence[float]) -> float:
    return round(median(values), 2)


def machine() -> dict[str, Any]:
    """What it ran on, without its name or anybody's folder."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
