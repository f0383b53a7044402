"""`openry` inside a run: it hands over what is asked and prints what is answered.

It knows no ledger, no settings and no rules: those are the worker's, at the other end of the
socket. Imports what an interpreter has loaded anyway, and the socket.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps in enums, for 5 ms
import _socket
import os
import sys

from openry.errors import WireError
from openry.forwarder.frames import INTERRUPT, MAX_BODY, Asked, read_reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_USAGE, _BROKEN = 2, 74
_INT, _TERM = 2, 15
#: Options whose value may be `-`: what is meant is our standard input.
_FROM_STDIN = ("-c", "--payload", "--args")
_GONE = "the worker of this run is gone; end your work"
_LOST = "the worker of this run ended before it answered; whether anything was run is unknown"


def ask(words: Sequence[str], env: Mapping[str, str] = os.environ) -> int:
    """Have the worker at OPENRY_SOCKET do what `words` say; the exit status."""
    form = _form(words)
    body = _standard_input() if form.reads else b""
    try:
        request = Asked(env.get("OPENRY_RUN_TOKEN", ""), _here(), words, body).to_bytes()
    except WireError as error:
        return form.trouble(_USAGE, str(error))
    line = _Line()
    try:
        line.connection.connect(env["OPENRY_SOCKET"])
    except OSError:
        return form.gone()
    try:
        line.say(request, pass_stdin="--stdin" in words)
        status, out, err = read_reply(line.connection.recv)
    except (OSError, WireError):
        return form.trouble(_BROKEN, _LOST)
    _write(1, out)
    _write(2, err)
    return status


class _Form:
    """Which kind of answer the caller waits for."""

    def __init__(self, *, reads: bool, json: bool, status: str) -> None:
        self.reads, self.json, self.status = reads, json, status

    def gone(self) -> int:
        """Nobody is there any more: the run is over, and its agent has to end."""
        if self.json and not self.status:
            return self._answer(0, f"User requested immediate stop\n{_GONE}", "", 0)
        return self.trouble(_BROKEN, _GONE)

    def trouble(self, status: int, sentence: str) -> int:
        if self.status:
            from openry.models.command import quoted

            told = f'"acknowledged": false, "message": {quoted(sentence)}'
            said = f'{{"status": {quoted(self.status)}, "payload": {{}}, {told}}}\n'
            _write(1, said.encode("utf-8", "replace"))
            return status
        if self.json:
            return self._answer(status, "", f"openry: {sentence}\n", status)
        _write(2, f"openry: {sentence}\n".encode())
        return status

    def _answer(self, code: int, out: str, err: str, status: int) -> int:
        from openry.models.command import Answer

        _write(1, (Answer(code, out, err, 0).to_json() + "\n").encode("utf-8", "replace"))
        return status


def _form(words: Sequence[str]) -> _Form:
    pairs = list(zip(words, (*words[1:], ""), strict=True))
    reads = any(
        (name in _FROM_STDIN and given == "-") or name in ("--payload=-", "--args=-")
        for name, given in pairs
    )
    told = [name.partition("=")[2] or given for name, given in pairs if name[:8] == "--status"]
    return _Form(reads=reads, json=words[0].startswith("-"), status=told[0] if told else "")


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _standard_input() -> bytes:
    """All of it, unless there is more than may be sent: the worker says so then."""
    found = b""
    while len(found) < MAX_BODY and (part := os.read(0, MAX_BODY - len(found))):
        found += part
    return found


class _Line:
    """The connection. On SIGINT and SIGTERM the worker is told to end the command, and answers."""

    def __init__(self) -> None:
        self.connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._said = self._interrupted = False
        for number in (_INT, _TERM):
            _signal.signal(number, self._interrupt)

    def say(self, request: bytes, *, pass_stdin: bool) -> None:
        """All of it; with its first byte our standard input, when the command is to read that."""
        if pass_stdin:
            stdin = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, (0).to_bytes(4, sys.byteorder))]
            self.connection.sendmsg([request[:1]], stdin)
            request = request[1:]
        self.connection.sendall(request)
        self._said = True
        if self._interrupted:
            self.connection.send(INTERRUPT)

    def _interrupt(self, number: int, frame: object) -> None:
        self._interrupted = True
        if not self._said:  # it must not stand in the middle of the request
            return
        try:
            self.connection.send(INTERRUPT)
        except OSError:  # it has answered, or is gone: either way we shall know
            return


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:  # nobody reads it any more
        return
