"""A file that is compressed once it has become large, beside whoever writes it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedWriter
    from typing import Any

#: What is smaller is left as it is: it can be looked into anywhere, and takes little space.
LARGE_BYTES = 16 * 1024 * 1024
_SAMPLE_BYTES = 1024 * 1024
#: What shrinks less than this is not worth the time.
_WORTH = 1.5
_GZIP = 31
_CHUNK = 1024 * 1024
#: Chunks that may wait for the compressor; then the writer waits too.
_WAITING = 6


class PackedFile:
    """Written like a file. `name` is the path, which ends in `.gz` once it is compressed.

    Args:
        file: New and empty; closed by us.
        large: How many bytes may come before it is compressed.
    """

    def __init__(self, file: BufferedWriter, *, large: int = LARGE_BYTES) -> None:
        self._file = file
        self._large = large
        self._size = 0
        self._packer: _Packer | None = None

    @property
    def name(self) -> str:
        return str(self._packer.name if self._packer else self._file.name)

    def write(self, data: bytes) -> None:
        """Write all of `data`.

        Raises:
            OSError: It cannot be written; perhaps some that came before could not either.
        """
        if self._packer:
            self._packer.write(data)
            return
        self._file.write(data)
        self._size += len(data)
        if self._size > self._large:
            self._pack()

    def close(self) -> None:
        """Write what still waits.

        Raises:
            OSError: It cannot be written.
        """
        (self._packer or self._file).close()

    def _pack(self) -> None:
        """Go on compressed, if that is worth it and there is room for both for a moment."""
        self._large = 1 << 62  # tried once, whatever comes of it
        self._file.flush()
        with open(self._file.name, "rb") as written:
            if not _shrinks(written.read(_SAMPLE_BYTES)):
                return
            written.seek(0)
            packer = None
            try:
                packer = _Packer(f"{self._file.name}.gz")
                while chunk := written.read(_CHUNK):
                    packer.write(chunk)
                packer.flush()
            except OSError:
                if packer:
                    packer.give_up()
                return
        self._packer = packer
        self._file.close()
        os.unlink(self._file.name)


class _Packer:
    """Compresses in a thread of its own: another core's work while the next bytes are read."""

    def __init__(self, name: str) -> None:
        import zlib
        from queue import Queue
        from threading import Thread

        self.name = name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        self._file = open(os.open(name, flags, 0o600), "wb")  # noqa: SIM115  # closed by `close`
        self._press: Any = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        self._queue: Queue[bytes | None] = Queue(_WAITING)
        self._trouble: OSError | None = None
        self._thread = Thread(target=self._work, name="openry-pack", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        if self._trouble:
            raise self._trouble
        self._queue.put(data)

    def flush(self) -> None:
        """Until everything that came is in the file, but for what the compressor holds back."""
        self._queue.join()
        if self._trouble:
            raise self._trouble
        self._file.flush()

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._file.close()
        if self._trouble:
            raise self._trouble

    def give_up(self) -> None:
        """End, and leave no file."""
        os.unlink(self.name)
        try:
            self.close()
        except OSError:  # what was still to be written cannot be
            return

    def _work(self) -> None:
        while True:
            data = self._queue.get()
            try:
                if self._trouble is None:
                    packed = self._press.flush() if data is None else self._press.compress(data)
                    self._file.write(packed)
            except OSError as error:
                self._trouble = error  # and go on taking, lest the writer wait for ever
            self._queue.task_done()
            if data is None:
                return


def _shrinks(sample: bytes) -> bool:
    import zlib

    return len(zlib.compress(sample, 1)) * _WORTH < len(sample)
