"""What a thin client and its worker say to each other: one request, one reply, whole or refused.

Fields are separated by NUL, which no argument can hold, so neither side needs a parser. On the
client's path: nothing but `os` and the socket is imported.
"""

from __future__ import annotations

import os

from openry.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    #: Gives at most that many of the next bytes; none at the end.
    Read = Callable[[int], bytes]

MAGIC = b"openry/1"
#: Longest list of words, and longest standard input sent with it: a little more than the hand
#: takes, so that it can say what is too long.
MAX_HEAD = 2 * 1024 * 1024
MAX_BODY = 1024 * 1024 + 1
#: Longest reply: 1 MiB of answer, each character written as six, and what stands round it.
MAX_REPLY = 64 * 1024 * 1024
#: Sent by a client that is to end its command.
INTERRUPT = b"\x03"
_LENGTH = 4


class Asked:
    """A request.

    Attributes:
        token: What shows that the caller was started for the run.
        cwd: The caller's folder.
        words: The arguments of `openry`.
        body: What the caller read from its standard input, when the words ask for it.
    """

    __slots__ = ("body", "cwd", "token", "words")

    def __init__(self, token: str, cwd: str, words: Sequence[str], body: bytes = b"") -> None:
        self.token, self.cwd, self.words, self.body = token, cwd, tuple(words), body

    def to_bytes(self) -> bytes:
        """
        Raises:
            WireError: It is too long, or a word holds what no argument can.
        """
        fields = [os.fsencode(field) for field in (self.token, self.cwd, *self.words)]
        if any(b"\0" in field for field in fields):
            raise WireError("an argument holds a NUL character")
        head = b"\0".join([MAGIC, *fields])
        if len(head) > MAX_HEAD or len(self.body) > MAX_BODY:
            raise WireError("the arguments are too long; put what is long into a file")
        return _size(head) + _size(self.body) + head + self.body


def read_request(read: Read) -> Asked:
    """
    Raises:
        WireError: What comes is no request, is too long, or ends too early.
    """
    sizes = _exactly(read, 2 * _LENGTH)
    head_size, body_size = _number(sizes[:_LENGTH]), _number(sizes[_LENGTH:])
    if head_size > MAX_HEAD or body_size > MAX_BODY:
        raise WireError("the request is too long, or none of openry's")
    magic, *fields = _exactly(read, head_size).split(b"\0")
    if magic != MAGIC or len(fields) < 2:
        raise WireError("this is no request of openry's, or of another version of it")
    token, cwd, *words = map(os.fsdecode, fields)
    return Asked(token, cwd, words, _exactly(read, body_size))


class Reply:
    """What the client prints, and the status it exits with."""

    __slots__ = ("status", "stderr", "stdout")

    def __init__(self, stdout: str, status: int = 0, stderr: str = "") -> None:
        self.stdout, self.status, self.stderr = stdout, status, stderr

    def to_bytes(self) -> bytes:
        out = self.stdout.encode("utf-8", "replace")
        err = self.stderr.encode("utf-8", "replace")
        return bytes([self.status & 255]) + _size(out) + _size(err) + out + err


def read_reply(read: Read) -> tuple[int, bytes, bytes]:
    """Status, standard output and standard error.

    Raises:
        WireError: What comes is no reply, or ends too early.
    """
    head = _exactly(read, 1 + 2 * _LENGTH)
    out_size, err_size = _number(head[1 : 1 + _LENGTH]), _number(head[1 + _LENGTH :])
    if out_size + err_size > MAX_REPLY:
        raise WireError("the answer is none of openry's")
    return head[0], _exactly(read, out_size), _exactly(read, err_size)


def _exactly(read: Read, size: int) -> bytes:
    parts = []
    while size:
        part = read(min(size, 65536))
        if not part:
            raise WireError("it ended too early")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _size(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH, "big")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")
