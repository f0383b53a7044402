"""Many small contents in one file: making five thousand files takes longer than filling them.

A pack holds contents one after the other, then a record for each of them, then how many. It is
written aside and gets its name when it is whole; nobody writes to it after that.
"""

# ruff: noqa: PTH104, PTH108, PTH208

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
#: A larger pack is closed and another one begun, so that tidying one up takes little room.
_MOST_BYTES = 64 << 20
_BUFFER = 1 << 20
#: A digest, where the content begins, how many bytes it takes, whether it is compressed.
_RECORD = Struct(">32sQI?")
_END = Struct(">Q8s")
_MAGIC = b"openry 1"


class Part(NamedTuple):
    """Where a content stands in a pack."""

    pack: str
    start: int
    length: int
    is_compressed: bool


class Packs:
    """The packs of a store, and what is in them; read when they are first asked for."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._names: frozenset[str] = frozenset()
        self._parts: dict[bytes, Part] = {}

    def refresh(self) -> None:
        """Look again which packs there are. One that holds nothing is looked at each time."""
        names = self._listed()
        if gone := self._names - names:
            self._parts = {key: one for key, one in self._parts.items() if one.pack not in gone}
            self._names -= gone
        for name in names - self._names:
            if parts := self.parts_of(name):
                self._parts |= parts
                self._names |= {name}

    def parts_of(self, name: str) -> dict[bytes, Part]:
        """What is in one pack, by digest. A pack that was cut short holds nothing."""
        with suppress(FileNotFoundError), open(f"{self.folder}/{name}", "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _END.size))
            end = file.read()
            count, magic = _END.unpack(end) if len(end) == _END.size else (0, b"")
            begin = size - _END.size - count * _RECORD.size
            if magic == _MAGIC and begin >= 0:
                file.seek(begin)
                records = file.read(count * _RECORD.size)
                return {key: Part(name, *one) for key, *one in _RECORD.iter_unpack(records)}
        return {}

    def find(self, digest: str) -> Part | None:
        return self._parts.get(bytes.fromhex(digest))

    def read(self, part: Part) -> bytes:
        """What stands there.

        Raises:
            OSError: The pack is gone; `refresh`.
        """
        descriptor = os.open(f"{self.folder}/{part.pack}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, part.length, part.start)
        finally:
            os.close(descriptor)

    def every(self) -> Iterator[tuple[str, dict[bytes, Part]]]:
        """Each pack's name with what is in it."""
        for name in sorted(self._listed()):
            yield name, self.parts_of(name)

    def thin(self, name: str, wanted: Collection[bytes], aside: str) -> bool:
        """Leave only `wanted` in a pack: written anew at `aside`, then the old one goes.

        False when that cannot be written, as on a full disk: the pack stays as it is.
        """
        parts = [(key, part) for key, part in self.parts_of(name).items() if key in wanted]
        if parts:
            try:
                draft = Draft(aside)
                try:
                    for key, part in parts:
                        draft.add(key, self.read(part), is_compressed=part.is_compressed)
                    draft.end()
                finally:
                    draft.close()
                os.rename(aside, f"{self.folder}/{draft.name}")
            except OSError:
                with suppress(OSError):
                    os.unlink(aside)
                return False
        os.unlink(f"{self.folder}/{name}")
        return True

    def _listed(self) -> frozenset[str]:
        with suppress(FileNotFoundError):
            return frozenset(os.listdir(self.folder))
        return frozenset()


class Draft:
    """A pack that is being written, at `place`."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.name = ""
        self._descriptor = os.open(place, NEW, 0o600)
        self._waiting = bytearray()
        self._records: list[bytes] = []
        self._size = 0

    @property
    def is_full(self) -> bool:
        return self._size >= _MOST_BYTES

    def add(self, digest: bytes, content: bytes, *, is_compressed: bool) -> None:
        self._records.append(_RECORD.pack(digest, self._size, len(content), is_compressed))
        self._size += len(content)
        self._waiting += content
        if len(self._waiting) >= _BUFFER:
            self._flush()

    def end(self) -> None:
        """Write the records; the pack is whole then, and `name` is what it is to be called."""
        records = b"".join(self._records)
        self._waiting += records + _END.pack(len(self._records), _MAGIC)
        self._flush()
        self.name = blake2b(records, digest_size=16).hexdigest()

    def close(self) -> None:
        """Let the file go, whole or not."""
        os.close(self._descriptor)

    def _flush(self) -> None:
        write_all(self._descriptor, bytes(self._waiting))
        self._waiting.clear()


def write_all(descriptor: int, chunk: bytes) -> None:
    while written := os.write(descriptor, chunk):
        if written == len(chunk):
            return
        chunk = chunk[written:]
