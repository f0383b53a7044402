"""Whether a sandbox shows what was meant, looked at before anything runs in it.

It is built from paths, and other commands of the same workspace go on meanwhile: one of them may
put a link in the place of a folder, and what that leads to would be shown. So the sandbox is held
back when its mounts are made: they stay what they are from then on, and the kernel says what.
"""

from __future__ import annotations

import os
import re
import select
import time

from openry.errors import SandboxError
from openry.sandbox.process import KILL, is_alive, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openry.sandbox.process import Process

_F_SETPIPE_SZ = 1031
#: Where bubblewrap builds what will be the root.
_NEW_ROOT = b"/newroot"
_LONGEST_S, _TICK_S = 20, 0.001
_OCTAL = re.compile(rb"\\([0-7]{3})")


class Seal:
    """Holds one sandbox back until `check`.

    A pipe that takes one write is given to it as the content of a last file: once that write was
    read everything before is done, and it waits for the rest.

    Args:
        places: Real paths that are mounts in there, each what it is here.
    """

    def __init__(self, places: Sequence[str]) -> None:
        import fcntl

        self._places = tuple(places)
        self.fd, self._hold = os.pipe()
        fcntl.fcntl(self._hold, _F_SETPIPE_SZ, os.sysconf("SC_PAGE_SIZE"))
        os.write(self._hold, b"\n")

    def check(self, process: Process) -> None:
        """Let it go on when everything is as it was meant. One that has ended says so itself.

        Raises:
            SandboxError: Something is another folder, or it is not ready in time.
        """
        poll = select.poll()
        poll.register(self._hold, select.POLLOUT)
        if process.pidfd >= 0:
            poll.register(process.pidfd, select.POLLIN)
        ready = [fd for fd, _ in poll.poll(_LONGEST_S * 1000)]
        try:
            if not ready:
                raise SandboxError(f"it was not ready within {_LONGEST_S} s")
            if self._hold in ready:
                self._compare(process)
        except BaseException:
            _end(process)
            raise
        finally:
            self.close()

    def close(self) -> None:
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1

    def _compare(self, process: Process) -> None:
        while not (pid := process.first_inside()) and not process.has_ended():
            time.sleep(_TICK_S)
        try:
            here, there = _mounts("self"), _mounts(str(pid))
        except OSError as error:
            raise SandboxError("it ended while it was made") from error
        for place in self._places:
            path = os.fsencode(place)
            if there.get(_NEW_ROOT + path) != _expected(path, here):
                raise SandboxError(f"`{place}` became another folder meanwhile; try again")


def _end(process: Process) -> None:
    """Nobody is left who would go on once we let go."""
    process.signal_group(KILL)
    inside = process.first_inside()
    while is_alive(inside):
        signal(inside, KILL)
        time.sleep(_TICK_S)


def _expected(path: bytes, mounts: Mapping[bytes, tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Device and place in it of a real path.

    >>> _expected(b"/w/a", {b"/": (b"8:1", b"/"), b"/w": (b"8:2", b"/x")})
    (b'8:2', b'/x/a')
    """
    above = path
    while above not in mounts:
        above = os.path.dirname(above)
    device, root = mounts[above]
    return device, os.path.normpath(os.path.join(root, path[len(above) :].lstrip(b"/")))


def _mounts(process: str) -> dict[bytes, tuple[bytes, bytes]]:
    """By mount point, as that process sees it: the device, and what of it is mounted there."""
    found = {}
    with open(f"/proc/{process}/mountinfo", "rb") as file:
        for line in file:
            _, _, device, root, point = line.split(b" ", 5)[:5]
            found[_plain(point)] = device, _plain(root)
    return found


def _plain(text: bytes) -> bytes:
    return _OCTAL.sub(lambda match: bytes((int(match[1], 8),)), text)
