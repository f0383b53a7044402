"""From a wish (`SandboxSpec`) to the program that is really started."""

from __future__ import annotations

import os
import sys

from openry.errors import SandboxError
from openry.models.command import SandboxSpec
from openry.models.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    from openry.sandbox.cgroup import Group
    from openry.sandbox.guard import Guard
    from openry.sandbox.proxy import Proxy
    from openry.sandbox.seal import Seal

    class Launcher(Protocol):
        """Puts a sandbox round an argument vector."""

        backend: str
        #: Set for the command instead of the host's, e.g. its HOME.
        env: Mapping[str, str]
        #: Changes when the program that builds it does.
        identity: str
        #: Whether it ends all its processes by itself and has a /tmp of its own.
        confines_processes: bool
        #: What it can hold, of `LAYERS`.
        gives: Sequence[str]

        def launch(self, argv: Sequence[str], cwd: str, tmp: str) -> Launch: ...


@value
class Launch:
    """What to start.

    Attributes:
        argv: Program and arguments.
        cwd: Folder to start it in.
        pass_fds: Descriptors it inherits; closed by us once it is started, or cannot be.
        status_fd: Where the sandbox reports; -1 without one.
        helper: The proxy of its network while it runs; to be closed when it ended.
        guard: Watches over protected names while it runs; to be settled when it ended.
        group: Its control group; to be removed when it ended.
        seal: Holds it back; to be checked once it is started.
    """

    argv: tuple[str, ...]
    cwd: str
    pass_fds: tuple[int, ...] = ()
    status_fd: int = -1
    helper: Proxy | None = None
    guard: Guard | None = None
    group: Group | None = None
    seal: Seal | None = None

    def forsake(self) -> None:
        """It could not be started: close what its process would have been watched by."""
        if self.status_fd >= 0:
            os.close(self.status_fd)
        if self.seal:
            self.seal.close()


class Opened:
    """What was opened on the way to a launch, to be closed should that come to nothing."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def fd(self, fd: int) -> int:
        self._undo.append(lambda: os.close(fd))
        return fd

    def then(self, undo: Callable[[], None]) -> None:
        self._undo.append(undo)

    def close(self) -> None:
        while self._undo:
            self._undo.pop()()


class Unconfined:
    """Backend `none`: only the limits of each process hold."""

    backend = identity = "none"
    confines_processes = False
    gives: Sequence[str] = ()
    env: Mapping[str, str] = {}

    def __init__(self, spec: SandboxSpec) -> None:
        self._spec = spec

    def launch(self, argv: Sequence[str], cwd: str, tmp: str) -> Launch:
        group = group_of(self._spec)
        return Launch(limited(argv, self._spec, group.doors if group else ()), cwd, group=group)


def group_of(spec: SandboxSpec) -> Group | None:
    """A control group for one command, where something is limited that it could hold."""
    if not (spec.memory_mb or spec.processes):
        return None
    from openry.sandbox.cgroup import make_group

    return make_group(spec)


def launcher(
    spec: SandboxSpec, workspace: str, *, hide: Sequence[str] = (), bare: bool = False
) -> Launcher:
    """The launcher for `spec`.

    Args:
        workspace: Folder that the command may read; also write, when `spec.write` has it.
        hide: What stays out of sight, whatever the lists say: the ledger, for one.
        bare: Without the interpreters on our PATH, each of which costs a mount.

    Raises:
        SandboxError: It cannot be built on this machine, or cannot hold what is required.
    """
    if spec.refused:
        raise SandboxError(spec.refused)
    made = _made(spec, workspace, hide, bare=bare)
    lacking = [f"`{layer}`" for layer in spec.require if layer not in made.gives]
    if lacking:
        raise SandboxError(
            f"{', '.join(lacking)} is required, which `{made.backend}` cannot hold;"
            f" {_WAY_OUT.get(made.backend, _INSTALL)}"
        )
    return made


_INSTALL = "run: apt-get install bubblewrap"
_WAY_OUT = {
    "none": "write `sandbox: auto`",
    "seatbelt": "run it on Linux with bubblewrap",
}


def _made(spec: SandboxSpec, workspace: str, hide: Sequence[str], *, bare: bool) -> Launcher:
    if spec.backend == "none":
        return Unconfined(spec)
    if spec.backend == "landlock":
        from openry.sandbox.landlock import Landlock

        return Landlock(spec, workspace, hide=hide)
    if spec.backend == "seatbelt" or (spec.backend == "auto" and sys.platform == "darwin"):
        from openry.sandbox.seatbelt import Seatbelt

        return Seatbelt(spec, workspace, hide=hide)
    if spec.backend not in ("auto", "bubblewrap"):
        raise SandboxError(
            f"there is no sandbox `{spec.backend}`;"
            " use auto, bubblewrap, landlock, seatbelt or none"
        )
    program = find_program("bwrap")
    if not program:
        raise SandboxError(f"bubblewrap is not installed; {_INSTALL}")
    from openry.sandbox.bubblewrap import Bubblewrap

    return Bubblewrap(program, spec, workspace, hide=hide, bare=bare)


def limited(argv: Sequence[str], spec: SandboxSpec, doors: Sequence[str] = ()) -> tuple[str, ...]:
    """`argv` under the limits that hold for each process by itself; a shell sets them.

    Args:
        doors: Files of a control group, which it enters first.
    """
    limits = (
        ("d", spec.memory_mb * 1024),
        ("t", spec.cpu_s),
        ("f", min(filter(None, (spec.file_mb, spec.disk_mb)), default=0) * 2048),  # of 512 bytes
    )
    said = [f"ulimit -{letter} {amount}; " for letter, amount in limits if amount]
    said += [f"echo 0 >'{door}'; " for door in doors]
    if not said:
        return tuple(argv)
    return "/bin/sh", "-c", f'{{ ulimit -c 0; {"".join(said)}}} 2>/dev/null; exec "$@"', "sh", *argv


def readable_fd(data: bytes) -> int:
    """A descriptor to read `data` from.

    Raises:
        SandboxError: It is more than a pipe holds, and this system has nothing else.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    fits = os.write(write, data) == len(data)
    os.close(write)
    if fits:
        return read
    os.close(read)
    if not hasattr(os, "memfd_create"):
        raise SandboxError("too many folders are named for a sandbox; name their parents")
    held = os.memfd_create("openry")
    with open(held, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(held, 0, os.SEEK_SET)
    return held


def find_program(name: str) -> str:
    """Full path of a program on our own PATH; empty when there is none.

    `shutil.which` would cost the forwarder 10 ms of imports.
    """
    for folder in os.get_exec_path():
        path = f"{folder}/{name}"
        if os.access(path, os.X_OK):
            return path
    return ""
