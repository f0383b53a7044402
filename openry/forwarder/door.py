"""The socket by which a run's agent reaches its worker: one connection, one request, one reply.

Each connection has a thread, so one that is slow or silent keeps nobody waiting but itself.
What is asked is answered by somebody else; here it is only taken in and handed back.
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import stat
import struct
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress

from openry.errors import StorageError, WireError
from openry.forwarder.frames import Asked, Reply, read_request

#: Answers a request. The descriptors: one that becomes readable when the caller is interrupted or
#: gone, and the caller's standard input (-1 when it was not sent).
Answer = Callable[[Asked, int, int], Reply]

NAME = "hand"
#: Longest path of a socket on Linux; elsewhere it is a little less.
_LONGEST_PATH = 103
#: How long a caller may take over its request, and over taking the reply.
_PATIENCE_S = 15.0
_MOST_CALLERS = 64
_CLOSING_S = 10.0
_BACKLOG = 64
_STALE_S = 60.0
_PREFIX = "openry-run-"


class Door:
    """Open from when it is made until `close`. Its folder is 0700, its socket 0600.

    Attributes:
        folder: What to show in a sandbox: the socket, and what else is put there for the agent.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.folder = _new_folder()
        self.path = f"{self.folder}/{NAME}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        os.chmod(self.path, 0o600)
        self._listener.listen(_BACKLOG)
        self._stop, self._stopper = socket.socketpair()
        self._lock = threading.Lock()
        self._callers: dict[socket.socket, threading.Thread] = {}
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="openry-door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let nobody in any more, interrupt who is inside, and wait until they are gone."""
        with self._lock:
            self._closing = True
            callers = dict(self._callers)
        self._stopper.close()
        self._thread.join(_CLOSING_S)
        for connection in callers:
            with suppress(OSError):  # it reads as the caller's end, and lets the answer out
                connection.shutdown(socket.SHUT_RD)
        until = time.monotonic() + _CLOSING_S
        for thread in callers.values():
            thread.join(max(0.0, until - time.monotonic()))
        self._listener.close()
        self._stop.close()
        _remove(self.folder)

    # --- threads ----------------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            readable, _, _ = select.select([self._listener, self._stop], [], [])
            if self._stop in readable:
                return
            try:
                connection, _ = self._listener.accept()
            except OSError:  # it has gone again, or we have too many open files
                time.sleep(0.01)
                continue
            self._take_in(connection)

    def _take_in(self, connection: socket.socket) -> None:
        thread = threading.Thread(
            target=self._attend, args=(connection,), name="openry-caller", daemon=True
        )
        with self._lock:
            wanted = not self._closing and _is_ours(connection)
            room = len(self._callers) < _MOST_CALLERS
            if wanted and room:
                self._callers[connection] = thread
        if wanted and room:
            thread.start()
            return
        if wanted:
            busy = _trouble("too many calls at once; try again when one has ended", 75)
            connection.setblocking(False)
            with suppress(OSError):
                connection.send(busy.to_bytes())
        connection.close()

    def _attend(self, connection: socket.socket) -> None:
        """One request and its reply; whatever goes wrong is this caller's alone."""
        passed: list[int] = []
        try:
            connection.settimeout(_PATIENCE_S)
            reply = self._reply(connection, passed)
            connection.settimeout(_PATIENCE_S)
            connection.sendall(reply.to_bytes())
        except OSError:  # it is gone, or does not take its answer
            pass
        finally:
            for fd in passed:
                os.close(fd)
            with self._lock:
                self._callers.pop(connection, None)
            connection.close()

    def _reply(self, connection: socket.socket, passed: list[int]) -> Reply:
        try:
            asked = read_request(_reader(connection, passed))
        except TimeoutError:
            return _trouble("the request did not arrive in time", 74)
        except WireError as error:
            return _trouble(str(error), error.exit_status)
        try:
            stdin = passed[0] if passed else -1
            if stdin >= 0 and stat.S_ISDIR(os.fstat(stdin).st_mode):
                raise WireError("standard input is a folder")
            return self._answer(asked, connection.fileno(), stdin)
        except WireError as error:
            return _trouble(str(error), error.exit_status)
        except StorageError as error:
            return _trouble(str(error), error.exit_status)
        except Exception as error:  # a mistake of ours must not close the door on the others
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{os.path.basename(last.filename)}:{last.lineno}"
            return _trouble(f"internal error: {type(error).__name__}: {error} ({place})", 70)


def _trouble(sentence: str, status: int) -> Reply:
    from openry.models.command import Answer as FourKeys

    return Reply(FourKeys(status, "", f"openry: {sentence}\n", 0).to_json() + "\n", status)


def _reader(connection: socket.socket, passed: list[int]) -> Callable[[int], bytes]:
    """Reads from the caller, who has so long for all of it; keeps what is passed along."""
    until = time.monotonic() + _PATIENCE_S

    def read(size: int) -> bytes:
        connection.settimeout(max(0.001, until - time.monotonic()))
        data, fds, _, _ = socket.recv_fds(connection, size, 1)
        passed.extend(fds)
        return data

    return read


def _is_ours(connection: socket.socket) -> bool:
    """Whether the caller is the same user; where the system does not say, the folder's mode is."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return bool(user == os.geteuid())


# --- the folder -----------------------------------------------------------------------------


def _new_folder() -> str:
    """A folder of ours alone, whose path leaves room for the socket's name."""
    for base in _bases():
        if len(os.fsencode(base)) + len(_PREFIX) + 8 + 1 + len(NAME) > _LONGEST_PATH:
            continue
        try:
            _sweep(base)
            return tempfile.mkdtemp(prefix=_PREFIX, dir=base)
        except OSError:
            continue
    raise StorageError("a run's socket needs a folder with a short path; set TMPDIR to one")


def _bases() -> Iterator[str]:
    for name in ("XDG_RUNTIME_DIR", "TMPDIR"):
        if os.environ.get(name):
            yield os.environ[name]
    yield "/tmp"  # noqa: S108


def _sweep(base: str) -> None:
    """Remove what a killed worker left: nobody listens there any more."""
    for entry in os.scandir(base):
        if not entry.name.startswith(_PREFIX):
            continue
        with suppress(OSError):
            found = entry.stat(follow_symlinks=False)
            old = time.time() - found.st_mtime > _STALE_S
            if old and found.st_uid == os.geteuid() and not _listens(f"{entry.path}/{NAME}"):
                _remove(entry.path)


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
        try:
            tried.connect(path)
        except ConnectionRefusedError:
            return False
        except FileNotFoundError:
            return False
        except OSError:
            return True
    return True


def _remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
