"""Start a program in its own session, know when it ended, and leave nothing of it alive."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps in enums, for 5 ms
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from openry.sandbox.launcher import Launch

INT, KILL, PIPE, TERM, XFSZ = 2, 9, 13, 15, 25
#: As a shell expects them, whatever we or our caller did with them.
_DEFAULTS = (INT, PIPE, TERM, XFSZ)


class Process:
    """A started program, leader of its own session and process group."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exit_code: int | None = None  #: 128+N for signal N; None until it was reaped
        self.signalled = False
        self.status_fd = -1  #: where the sandbox reports
        self._status = b""
        self.pidfd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1

    def has_ended(self) -> bool:
        """Whether it ended, not reaping it: its number stays taken as long as we need it."""
        if self.exit_code is not None:
            return True
        options = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self.pid, options) is not None

    def reap(self) -> int:
        """Its exit code, waiting for it if need be."""
        if self.exit_code is None:
            _, status = os.waitpid(self.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            self.signalled = code < 0
            self.exit_code = code if code >= 0 else 128 - code
            if self.pidfd >= 0:
                os.close(self.pidfd)
        return self.exit_code

    def signal_group(self, number: int) -> bool:
        """Send a signal to the whole group. False when nobody is left in it."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:  # somebody is there, under another user
            return True
        return True

    def is_gone(self) -> bool:
        """Whether nobody is left, in its group or its sandbox. It must have been reaped."""
        try:
            while os.waitpid(-self.pid, os.WNOHANG)[0]:  # orphans that came to us and ended
                continue
        except ChildProcessError:
            pass
        return not self.signal_group(0) and not is_alive(self.first_inside())

    def signal_all(self, number: int) -> None:
        """Send a signal to the group and to what runs inside the sandbox.

        The sandbox itself must not get it: it would take everything down with it at once.
        """
        inside = descendants(self.first_inside())
        for pid in inside:
            signal(pid, number)
        if not inside:
            self.signal_group(number)

    def read_status(self) -> None:
        """Take in what the sandbox reported."""
        if self.status_fd >= 0:
            self._status += _read_now(self.status_fd)

    def close(self) -> None:
        """Hear what the sandbox reported last."""
        self.read_status()
        if self.status_fd >= 0:
            os.close(self.status_fd)
            self.status_fd = -1

    def sandbox_trouble(self, stderr: bytes) -> str:
        """Why the sandbox could not be built; empty when it was, or there is none."""
        if not self._sandboxed or b'"exit-code"' in self._status or self.signalled:
            return ""
        lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line]
        return lines[-1].removeprefix("bwrap: ") if lines else "bubblewrap said nothing"

    @property
    def _sandboxed(self) -> bool:
        return self.status_fd >= 0 or bool(self._status)

    def first_inside(self) -> int:
        """The process that the sandbox itself started; 0 until it said so."""
        self.read_status()
        _, found, rest = self._status.partition(b'"child-pid": ')
        return int(rest.split(b",")[0].split(b" ")[0]) if found else 0


def is_alive(pid: int) -> bool:
    """Whether a process, if any, still runs. One that ended and is our child is reaped."""
    if not pid:
        return False
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:  # somebody else's
        return is_running(pid)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    """Every process below `pid`, parents first."""
    found = []
    for child in _children(pid) if pid else ():
        found += [child, *descendants(child)]
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:  # it ended, or the system has no such file
        return found
    return found


def signal(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _read_now(fd: int) -> bytes:
    """What can be read without waiting."""
    os.set_blocking(fd, False)
    data = b""
    try:
        while part := os.read(fd, 4096):
            data += part
    except BlockingIOError:
        pass
    return data


def start(
    launch: Launch,
    env: Mapping[str, str],
    *,
    std: tuple[int, int, int],
    more_fds: tuple[int, ...] = (),
    alone: bool = False,
) -> Process:
    """Start `launch.argv` with these three descriptors and no others of ours.

    Args:
        alone: This process does nothing else: its current folder may be changed. That saves the
            17 ms that importing `subprocess` takes.

    Raises:
        OSError: The program cannot be started.
    """
    by = _start_alone if alone and hasattr(os, "posix_spawn") else _start_by_subprocess
    return by(launch, env, std, (*launch.pass_fds, *more_fds))


def _start_by_subprocess(
    launch: Launch, env: Mapping[str, str], std: tuple[int, int, int], fds: tuple[int, ...]
) -> Process:
    import subprocess

    popen = subprocess.Popen(
        _started_by(launch.argv),
        stdin=std[0],
        stdout=std[1],
        stderr=std[2],
        cwd=launch.cwd,
        env=env,
        pass_fds=fds,
        start_new_session=True,
    )
    popen.returncode = 0  # we reap it ourselves: `subprocess` is to leave it alone
    return Process(popen.pid)


def _started_by(argv: tuple[str, ...]) -> tuple[str, ...] | str:
    if os.name != "nt":
        return argv
    from openry.sandbox.windows import windows_line

    return windows_line(argv)


def _start_alone(
    launch: Launch, env: Mapping[str, str], std: tuple[int, int, int], fds: tuple[int, ...]
) -> Process:
    os.chdir(launch.cwd)
    for fd in fds:
        os.set_inheritable(fd, True)
    actions: list[tuple[int, ...]] = [
        *((os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(map(_high, std))),
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited(fds)),
    ]
    program = _resolved(launch.argv[0], env)
    pid = os.posix_spawn(
        program, launch.argv, env, file_actions=actions, setsid=True, setsigdef=_DEFAULTS
    )
    return Process(pid)


def _high(fd: int) -> int:
    """The same descriptor out of the way of 0, 1 and 2, lest putting one there closes another."""
    if fd > 2:
        return fd
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def _inherited(kept: tuple[int, ...]) -> list[int]:
    """Descriptors that whoever started us left open for us, and that the program must not get."""
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    found = []
    for fd in map(int, os.listdir(folder)):
        try:
            if fd > 2 and fd not in kept and os.get_inheritable(fd):
                found.append(fd)
        except OSError:  # the one that listed the folder
            continue
    return found


def _resolved(program: str, env: Mapping[str, str]) -> str:
    """The program's path by the PATH it will have."""
    if "/" in program:
        return program
    for folder in env.get("PATH", os.defpath).split(":"):
        if os.access(path := f"{folder or '.'}/{program}", os.X_OK) and os.path.isfile(path):
            return path
    raise FileNotFoundError(2, os.strerror(2), program)


def wake_on_signals() -> int:
    """A descriptor that becomes readable on SIGINT or SIGTERM, which do nothing else from now on.

    For the main thread of a process that runs one command.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    _signal.set_wakeup_fd(write)
    for number in (INT, TERM):
        _signal.signal(number, _ignore)
    return read


def _ignore(number: int, frame: object) -> None:
    """The wake-up descriptor says it all."""
