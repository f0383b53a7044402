"""Read what processes print while they run, and know when to stop."""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openry.output.capture import Capture
    from openry.sandbox.process import Process
    from openry.sandbox.tree import Tree

ENDED, TIMEOUT, INTERRUPTED = "ended", "timeout", "interrupted"
EXCESS, TRESPASS = "excess", "trespass"
_CHUNK = 256 * 1024
_PIPE = 64 * 1024
_TICK_S = 0.005
_LOOK_S = 0.1
#: Longest single wait; `poll` counts milliseconds in an int.
_LONGEST_WAIT_S = 3600.0
#: More than a full pipe takes; who still writes then does not hold us.
_LAST_READS = 64
_F_SETPIPE_SZ = 1031


class Pump:
    """Feeds captures from descriptors.

    Args:
        streams: Read ends, each closed by us at its end.
        wake_fd: Becomes readable when the caller is interrupted; -1 when that cannot happen.
        excess: Asked now and then what the processes use too much of; empty when nothing.

    The guards of the tree are asked when their folders change.
    """

    def __init__(
        self,
        tree: Tree,
        streams: Mapping[int, Capture],
        wake_fd: int = -1,
        excess: Callable[[], str] | None = None,
    ) -> None:
        self.said = ""  #: what `excess`, or a guard, said when it ended the wait
        self._tree = tree
        self._streams = dict(streams)
        self._running = {_key(process): process for process in tree.processes}
        self._wake_fd = wake_fd
        self._excess = excess
        self._guards = {guard.fd: guard for guard in tree.guards}
        self._next_look = time.monotonic() + _LOOK_S
        self._poll = select.poll()
        for fd in (*self._streams, *self._running, *self._guards, wake_fd):
            if fd >= 0:
                self._poll.register(fd, select.POLLIN)

    def until_ended(self, seconds: float, drain_s: float) -> str:
        """Until every process ended, and then until the streams did, but at most `drain_s` more.

        A background process may hold a stream for as long as it likes; it does not hold us.
        """
        until = time.monotonic() + seconds
        while self._running:
            left = until - time.monotonic()
            if left <= 0:
                return TIMEOUT
            if self._step(min(left, _LOOK_S) if self._excess else left):
                return INTERRUPTED
            if self.said:
                return TRESPASS
            if self._uses_too_much():
                return EXCESS
        self.drain(drain_s)
        return ENDED

    def _uses_too_much(self) -> bool:
        now = time.monotonic()
        if self._excess is None or now < self._next_look:
            return False
        self._next_look = now + _LOOK_S
        self.said = self._excess()
        return bool(self.said)

    def drain(self, seconds: float) -> None:
        """Until every stream is at its end, or `seconds` are over and what is there was read."""
        self._until(lambda: not self._streams, seconds, tick_s=seconds)
        for _ in range(_LAST_READS):
            if not self._streams or not self._poll.poll(0):
                return
            self._step(0.0)

    def until_gone(self, seconds: float) -> bool:
        """Until nobody is left in any group, reading on; False when `seconds` were not enough."""
        return self._until(self._is_gone, seconds, tick_s=_TICK_S)

    @property
    def held_open(self) -> bool:
        return bool(self._streams)

    def close(self) -> None:
        for fd in (*self._streams,):
            self._forget_stream(fd)

    def _is_gone(self) -> bool:
        for process in list(self._running.values()):
            if process.has_ended():  # before it is reaped, which closes its pidfd
                self._forget_process(process)
        return self._tree.is_gone()

    def _until(self, done: Callable[[], bool], seconds: float, *, tick_s: float) -> bool:
        until = time.monotonic() + seconds
        while not done():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._step(min(left, tick_s))
        return True

    def _step(self, seconds: float) -> bool:
        """Wait for something to happen and take note of it. True when we are interrupted."""
        blind = [process for process in self._running.values() if process.pidfd < 0]
        if blind:
            seconds = min(seconds, _TICK_S)
        woken = False
        for fd, _ in self._poll.poll(min(max(0.0, seconds), _LONGEST_WAIT_S) * 1000):
            if fd in self._streams:
                self._read(fd)
            elif fd in self._running:
                self._forget_process(self._running[fd])
            elif fd in self._guards:
                self.said = self.said or self._guards[fd].changed()
            elif fd == self._wake_fd:
                self._poll.unregister(fd)
                woken = True
        for process in blind:
            if process.has_ended():
                self._forget_process(process)
        return woken

    def _read(self, fd: int) -> None:
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            self._forget_stream(fd)
            return
        self._streams[fd].feed(chunk)
        if len(chunk) == _PIPE:
            _widen(fd)

    def _forget_stream(self, fd: int) -> None:
        self._poll.unregister(fd)
        del self._streams[fd]
        os.close(fd)

    def _forget_process(self, process: Process) -> None:
        if self._running.pop(_key(process), None) and process.pidfd >= 0:
            self._poll.unregister(process.pidfd)


def _key(process: Process) -> int:
    """Its pidfd; where the system has none, a number that is no descriptor."""
    return process.pidfd if process.pidfd >= 0 else -process.pid


def _widen(fd: int) -> None:
    """Let a busy pipe hold more, where the system can: fewer turns for the same bytes."""
    try:
        import fcntl

        fcntl.fcntl(fd, _F_SETPIPE_SZ, _CHUNK)
    except OSError:
        return
