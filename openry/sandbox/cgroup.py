"""A control group for one command, where one may be made: the kernel itself holds the limits.

Version 2; of version 1 the counting of processes. Nothing depends on it: who watches the tree
looks all the same, and says which limit it was. This is for what happens between two looks.
"""

from __future__ import annotations

import os
import time

from openry.models.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openry.models.command import SandboxSpec

_ROOT = "/sys/fs/cgroup"
_MIB = 1024 * 1024
#: The sandbox's own two processes are in the group too.
_OURS = 2
_GONE_WITHIN_S = 0.2


@value
class Group:
    """Folders of the kernel's, one for each hierarchy, which whoever is started enters."""

    folders: tuple[str, ...]

    @property
    def doors(self) -> tuple[str, ...]:
        """Files into which a process writes 0 to be in."""
        return tuple(f"{folder}/cgroup.procs" for folder in self.folders)

    def refused(self) -> str:
        """Of what the kernel had to refuse more: `pids`, `memory`, or empty."""
        for folder in self.folders:
            if _count(f"{folder}/pids.events", "max"):
                return "pids"
            if _count(f"{folder}/memory.events", "oom_kill"):
                return "memory"
        return ""

    def remove(self) -> None:
        """Once all of it has ended; the kernel may take a moment to notice.

        What is in use still, by what may live on in the background, is removed another time.
        """
        until = time.monotonic() + _GONE_WITHIN_S
        for folder in self.folders:
            while not _removed(folder):
                if time.monotonic() > until:
                    _left.append(folder)
                    break
                time.sleep(0.001)


_left: list[str] = []


def make_group(spec: SandboxSpec, root: str = _ROOT) -> Group | None:
    """A new group with the limits of `spec`; None where nothing is limited or none can be made."""
    wanted = {"pids": spec.processes and spec.processes + _OURS, "memory": spec.memory_mb * _MIB}
    limits = {name: amount for name, amount in wanted.items() if amount}
    if not limits:
        return None
    made = _made(limits, root)
    return Group(tuple(made)) if made else None


def held_by_groups(root: str = _ROOT) -> tuple[str, ...]:
    """Which of `pids` and `memory` can be limited by a group here; tried, not guessed."""
    held = []
    for name in ("pids", "memory"):
        if made := _made({name: 1 << 20}, root):
            Group(tuple(made)).remove()
            held.append(name)
    return tuple(held)


def shown_limits(root: str = _ROOT) -> str:
    """How the limits of a whole tree are held here."""
    held = held_by_groups(root)
    words = {"pids": "number of processes", "memory": "memory"}
    groups = ", ".join(words[name] for name in held)
    watched = ", ".join([*(words[n] for n in words if n not in held), "processor time", "files"])
    by_group = f"{groups} by control groups, " if groups else ""
    return f"limits: {by_group}{watched} by watching"


def _made(limits: Mapping[str, int], root: str) -> list[str]:
    made: list[str] = []
    name = f"openry-{os.getpid()}-{os.urandom(4).hex()}"
    left = dict(limits)
    for place, held in _places(root):
        mine = {one: left.pop(one) for one in held if one in left}
        if not mine:
            continue
        folder = f"{place}/{name}"
        _sweep(place)
        try:
            os.mkdir(folder)
            made.append(folder)
            for one, amount in mine.items():
                _write(f"{folder}/{one}.max", amount)
        except OSError:  # not ours to make, or not ours to limit
            left.update(mine)
            if made[-1:] == [folder]:
                made.pop()
                _removed(folder)
    return made


def _places(root: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Folders below which a group may perhaps be made, and what can be limited there."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        number, names, own = line.split(":", 2)
        if number == "0":
            top = root if os.path.exists(f"{root}/cgroup.controllers") else f"{root}/unified"
            for place in (own, os.path.dirname(own)):  # one with processes gives its children none
                folder = f"{top}{place}".rstrip("/")
                yield folder, _given(folder)
        elif names == "pids":
            yield f"{root}/pids{own}".rstrip("/"), ("pids",)


def _given(folder: str) -> tuple[str, ...]:
    """What the groups below a folder of version 2 may limit."""
    try:
        with open(f"{folder}/cgroup.subtree_control", encoding="ascii") as file:
            return tuple(file.read().split())
    except OSError:
        return ()


def _count(path: str, name: str) -> int:
    try:
        with open(path, encoding="ascii") as file:
            pairs = [line.split() for line in file]
    except OSError:  # this hierarchy counts something else
        return 0
    return next((int(amount) for key, amount in pairs if key == name), 0)


def _sweep(place: str) -> None:
    """Remove what could not be removed before, and what killed processes of ours left."""
    _left[:] = [folder for folder in _left if not _removed(folder)]
    try:
        names = os.listdir(place)
    except OSError:
        return
    for name in names:
        owner = name.split("-")[1] if name.startswith("openry-") else ""
        if owner and not os.path.exists(f"/proc/{owner}"):
            _removed(f"{place}/{name}")


def _write(path: str, amount: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(str(amount))


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
