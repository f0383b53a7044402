"""Keep what a command prints within bounds: both ends in memory, the whole in a file."""

from __future__ import annotations

import os

from openry.models.value import value
from openry.output.fold import Folder
from openry.output.redact import Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Spill(Protocol):
        """A file for one stream's whole output. Its name may change until it is closed."""

        @property
        def name(self) -> str: ...

        def write(self, data: bytes, /) -> object: ...

        def close(self) -> None: ...

    #: Opens one.
    OpenSpill = Callable[[], Spill]


@value
class Captured:
    """What one stream printed.

    Attributes:
        head: The whole of it when `tail` is empty, else its beginning: folded and redacted.
        left_out: Bytes between head and tail.
        size: Bytes the command really wrote.
        shown: Bytes after folding, of which head and tail are the ends.
        digest: SHA-256 of the redacted bytes; empty when there are none.
        spill: Path of the file with the redacted bytes; empty when they are all in `head`.
        dropped: Bytes beyond the largest file allowed, which nothing keeps.
        trouble: Why the file could not be written; else empty.
    """

    head: bytes
    tail: bytes
    size: int
    shown: int
    lines: int
    digest: str
    spill: str
    dropped: int
    trouble: str

    @property
    def left_out(self) -> int:
        return self.shown - len(self.head) - len(self.tail)


class Capture:
    """One stream. Memory stays under about four times `limit`, whatever comes.

    Args:
        limit: Bytes of the answer; half of it is kept of each end when more comes.
        open_spill: Called when more than `limit` comes.
        spill_limit: Largest file.
        watch: Given the redacted bytes as they come.
    """

    def __init__(
        self,
        redactor: Redactor,
        *,
        limit: int,
        open_spill: OpenSpill,
        spill_limit: int,
        raw: bool = False,
        watch: Callable[[bytes], None] | None = None,
    ) -> None:
        self.size = 0
        self._redact = redactor.stream()
        self._watch = watch
        self._folder = None if raw else Folder()
        self._kept = _Ends(limit)
        self._whole = _Whole(limit, open_spill, spill_limit)

    def feed(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._keep(self._redact.feed(chunk))

    def end(self) -> Captured:
        self._keep(self._redact.end())
        if self._folder:
            self._kept.add(self._folder.end())
        digest, spill = self._whole.close()
        head, tail = self._kept.both()
        return Captured(
            head,
            tail,
            self.size,
            self._kept.size,
            self._whole.lines,
            digest,
            spill,
            self._whole.dropped,
            self._whole.trouble,
        )

    def keep(self) -> str:
        """Put the whole into a file although it fits into memory. Its path; empty if that fails.

        After `end`.
        """
        return self._whole.keep()

    @property
    def path(self) -> str:
        """Of the file with the whole; empty when there is none."""
        return self._whole.path

    def _keep(self, clean: bytes) -> None:
        if clean:
            self._whole.add(clean)
            self._kept.add(self._folder.feed(clean) if self._folder else clean)
            if self._watch:
                self._watch(clean)


class _Ends:
    """The first and the last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._head: bytes | None = None  #: set once more than the limit came
        self._rest = bytearray()

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self._rest += data
        if self._head is None and len(self._rest) > self._limit:
            self._head = bytes(self._rest[: self._limit // 2])
            del self._rest[: self._limit // 2]
        if self._head is not None and len(self._rest) > self._limit:
            del self._rest[: len(self._rest) - self._limit // 2]

    def both(self) -> tuple[bytes, bytes]:
        if self._head is None:
            return bytes(self._rest), b""
        tail = bytes(self._rest[-(self._limit // 2) :])
        return whole_start(self._head), whole_end(tail)


class _Whole:
    """Every byte: in memory while there are few, then in a file as far as that may grow."""

    def __init__(self, limit: int, open_spill: OpenSpill, spill_limit: int) -> None:
        self.lines = 0
        self.dropped = 0
        self.trouble = ""
        self._limit = limit
        self._room = spill_limit
        self._open_spill = open_spill
        self._few = bytearray()
        self._file: Spill | None = None
        self.path = ""
        self._digest: Any = None

    def add(self, data: bytes) -> None:
        if self._digest is None:
            import hashlib

            self._digest = hashlib.sha256()
        self._digest.update(data)
        self.lines += data.count(b"\n")
        if self._file is None and not self.trouble:
            self._few += data
            if len(self._few) > self._limit:
                self._write(self._start())
        else:
            self._write(data)

    def close(self) -> tuple[str, str]:
        try:
            if self._file:
                self._file.close()
                self.path = str(self._file.name)
        except OSError as error:
            self._give_up(error)
        return (self._digest.hexdigest() if self._digest else ""), self.path

    def keep(self) -> str:
        if not self.path and not self.trouble:
            self._write(self._start())
            self.close()
        return self.path

    def _start(self) -> bytes:
        few, self._few = bytes(self._few), bytearray()
        try:
            self._file = self._open_spill()
            self.path = str(self._file.name)
        except OSError as error:
            self._give_up(error)
        return few

    def _write(self, data: bytes) -> None:
        part = data[: self._room] if self._file else b""
        self.dropped += len(data) - len(part)
        self._room -= len(part)
        try:
            if self._file and part:
                self._file.write(part)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Go on without the file; a part of it would only take the space that others need."""
        self.trouble = error.strerror or str(error)
        file, self._file = self._file, None
        if file is None:
            return
        try:
            os.unlink(str(file.name))
            file.close()
        except OSError:  # what was still to be written cannot be
            pass
        self.path = ""


def whole_start(data: bytes) -> bytes:
    """`data` without the beginning of a character that its end cuts, nor half of a CRLF.

    >>> whole_start("aé".encode()[:2]), whole_start(b"a\\r"), whole_start(b"a\\xff")
    (b'a', b'a', b'a\\xff')
    """
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF8 else 1
            return data[:-back] if needed > back else data
        if byte < 0x80:
            break
    return data.removesuffix(b"\r")


def whole_end(data: bytes) -> bytes:
    """`data` without the end of a character that its beginning cuts.

    >>> whole_end("éa".encode()[1:])
    b'a'
    """
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]
