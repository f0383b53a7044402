"""Contents kept once each, found by their digest. Names are plain text here: it is the hot part."""

# ruff: noqa: PTH102, PTH103, PTH104, PTH108, PTH112, PTH116, PTH208

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from hashlib import blake2b
from itertools import count
from typing import Any

from openry.errors import SnapshotError
from openry.session.packs import NEW, Draft, Packs, write_all

_CHUNK = 1 << 20
#: Never follow a link, never wait for a pipe's other end.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: So many contents of a batch get files of their own; the others share packs.
_ALONE = 32
#: A file takes whole blocks of the disk: below this size, compressing it saves none.
_WORTH_ALONE, _WORTH_TOGETHER = 8192, 512
_PACKED = ".zst"
#: Each thread's: making one takes longer than unpacking a small file.
_OWN = threading.local()
_FASTEST = 1


class Contents:
    """Contents under `root`, found by the blake2b digest of what they are.

    One has a file of its own named after that, or stands in a pack. What gets smaller by it is
    compressed with zstd, and the file's name or the pack says so.
    """

    def __init__(self, root: str) -> None:
        self.objects = f"{root}/objects"
        self.packs = Packs(f"{root}/packs")
        self._new = f"{root}/new"
        self._lock = f"{root}/lock"

    def make_folders(self) -> None:
        os.makedirs(self.objects, mode=0o700, exist_ok=True)
        os.makedirs(self.packs.folder, mode=0o700, exist_ok=True)
        os.makedirs(self._new, mode=0o700, exist_ok=True)

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Contents to be kept together: `publish` keeps them, leaving without it keeps none."""
        with self.held(LOCK_SH):
            self._sweep()
            batch = Batch(self, self._aside())
            try:
                yield batch
            finally:
                batch.close()

    @contextmanager
    def held(self, how: int) -> Iterator[None]:
        """Many may keep contents at once (`LOCK_SH`); who takes some away is alone (`LOCK_EX`)."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)

    def known(self, prefix: str) -> frozenset[str]:
        """The digests with files of their own that begin with `prefix`, without it."""
        return frozenset(name.removesuffix(_PACKED) for name in _listed(f"{self.objects}/{prefix}"))

    def place(self, digest: str) -> str:
        return f"{self.objects}/{digest[:2]}/{digest[2:]}"

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The content with that digest, checked by the time its last part has been given.

        Raises:
            SnapshotError: It is missing, or not what it was.
        """
        check = blake2b(digest_size=32)
        for chunk in self._stored(digest):
            check.update(chunk)
            yield chunk
        if check.hexdigest() != digest:
            raise _damaged(digest, "is not what it was")

    def _stored(self, digest: str) -> Iterator[bytes]:
        try:
            try:
                found, is_compressed = self._opened(digest)
            except FileNotFoundError:
                self.packs.refresh()  # somebody made a pack since, or tidied one up
                found, is_compressed = self._opened(digest)
        except OSError as error:
            raise _damaged(digest, f"cannot be read ({error.strerror})") from error
        if isinstance(found, bytes):
            yield _unpacked(found, digest) if is_compressed else found
            return
        try:
            yield from _streamed(found, digest) if is_compressed else chunks_of(found)
        finally:
            os.close(found)

    def _opened(self, digest: str) -> tuple[bytes | int, bool]:
        """What a pack has, or the descriptor of a file; and whether it is compressed."""
        if part := self.packs.find(digest):
            return self.packs.read(part), part.is_compressed
        place = self.place(digest)
        try:
            return os.open(place, READ), False
        except FileNotFoundError:
            return os.open(place + _PACKED, READ), True

    def sizes(self) -> dict[str, int]:
        """What each content takes on the disk, in bytes."""
        alone = {digest: size for digest, _, size in self._alone()}
        packs = [parts for _, parts in self.packs.every()]
        return alone | {key.hex(): part.length for parts in packs for key, part in parts.items()}

    def remove_all_but(self, wanted: Collection[str], *, dry_run: bool) -> tuple[int, int]:
        """Take away every other content; how many, and the bytes they took. `held` alone."""
        dust = [one for one in self._alone() if one[0] not in wanted]
        count, size = len(dust), sum(size for _, _, size in dust)
        for _, place, _ in () if dry_run else dust:
            os.unlink(place)
        keys = frozenset(map(bytes.fromhex, wanted))
        for name, parts in self.packs.every():
            gone = [part.length for key, part in parts.items() if key not in keys]
            if (gone or not parts) and (dry_run or self.packs.thin(name, keys, self._aside())):
                count, size = count + len(gone), size + sum(gone)
        return count, size

    def _alone(self) -> Iterator[tuple[str, str, int]]:
        """(digest, place, size on disk in bytes) of every content with a file of its own."""
        for folder in _listed(self.objects):
            for name in _listed(f"{self.objects}/{folder}"):
                place = f"{self.objects}/{folder}/{name}"
                with suppress(FileNotFoundError):
                    size = os.lstat(place).st_blocks * 512
                    yield folder + name.removesuffix(_PACKED), place, size

    def _aside(self) -> str:
        return f"{self._new}/{os.getpid()}-{os.urandom(4).hex()}"

    def _sweep(self) -> None:
        """Clear away what killed batches left behind."""
        for name in os.listdir(self._new):
            place = f"{self._new}/{name}"
            with suppress(OSError):
                if not os.path.isdir(place):
                    os.unlink(place)
                    continue
                descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    flock(descriptor, LOCK_EX | LOCK_NB)
                    shutil.rmtree(place)
                finally:
                    os.close(descriptor)


class Batch:
    """New contents, written aside in `folder` until they are published."""

    def __init__(self, contents: Contents, folder: str) -> None:
        self._contents = contents
        self._folder, self._held = _made_and_held(folder)
        self._numbers = count()
        self._compressor: Any = None
        self._known: dict[str, frozenset[str]] = {}
        self._alone: dict[str, tuple[str, str]] = {}  # digest: where it is, what ends its name
        self._packed: set[str] = set()
        self._drafts: list[Draft] = []

    def keep_file(self, descriptor: int, expected: int) -> tuple[str, int]:
        """Keep what an open file holds; its digest and size. A big one never is in memory whole."""
        if expected < _CHUNK:
            content = os.read(descriptor, _CHUNK)
            if len(content) == expected:
                return self._keep(content), expected
            os.lseek(descriptor, 0, os.SEEK_SET)
            expected = os.fstat(descriptor).st_size
        # No more than that: who writes faster than we read would keep us for ever.
        return self.keep_stream(chunks_of(descriptor, most=expected), expected)

    def write(self, content: bytes) -> str:
        """Write another file of the store; its place, to be renamed from after `publish`."""
        place = self._name()
        _write(place, (content,))
        return place

    def has(self, digest: str) -> bool:
        """Whether that content is kept, or will be by this batch."""
        return self._has(digest)

    def publish(self) -> None:
        """Let everybody find what was kept. A rename needs no space."""
        for draft in self._drafts:
            draft.end()
        for digest, (written, ending) in self._alone.items():
            place = self._contents.place(digest) + ending
            try:
                os.rename(written, place)
            except FileNotFoundError:
                os.makedirs(place.rpartition("/")[0], mode=0o700, exist_ok=True)
                os.rename(written, place)
        for draft in self._drafts:
            os.rename(draft.place, f"{self._contents.packs.folder}/{draft.name}")

    def close(self) -> None:
        try:
            # What stays, as on a disk that fails, is swept away by the next batch.
            shutil.rmtree(self._folder, ignore_errors=True)
        finally:
            os.close(self._held)
            for draft in self._drafts:
                draft.close()

    def _keep(self, content: bytes) -> str:
        key = blake2b(content, digest_size=32)
        digest = key.hexdigest()
        if self._has(digest):
            return digest
        is_alone, is_compressed = len(self._alone) < _ALONE, False
        if len(content) >= (_WORTH_ALONE if is_alone else _WORTH_TOGETHER):
            compressed = self._packer().compress(content)
            if len(compressed) < len(content) * 7 // 8:
                content, is_compressed = compressed, True
        if is_alone:
            place = self._name()
            _write(place, (content,))
            self._alone[digest] = place, _PACKED if is_compressed else ""
        else:
            self._draft().add(key.digest(), content, is_compressed=is_compressed)
            self._packed.add(digest)
        return digest

    def _draft(self) -> Draft:
        if not self._drafts or self._drafts[-1].is_full:
            self._drafts.append(Draft(self._name()))
        return self._drafts[-1]

    def keep_stream(self, chunks: Iterable[bytes], expected: int) -> tuple[str, int]:
        """Keep what comes in parts, about `expected` bytes; its digest and size."""
        if expected < _CHUNK:
            content = b"".join(chunks)
            return self._keep(content), len(content)
        place, digest, size = self._name(), blake2b(digest_size=32), 0

        def packed() -> Iterator[bytes]:
            nonlocal size
            packer = self._packer().compressobj()
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                yield packer.compress(chunk)
            yield packer.flush()

        _write(place, packed())
        name = digest.hexdigest()
        if self._has(name):
            os.unlink(place)
        else:
            self._alone[name] = place, _PACKED
        return name, size

    def _has(self, digest: str) -> bool:
        prefix = digest[:2]
        if not self._known:
            self._contents.packs.refresh()
        if prefix not in self._known:  # one look at a folder is cheaper than one for each file
            self._known[prefix] = self._contents.known(prefix)
        is_alone = digest in self._alone or digest[2:] in self._known[prefix]
        return is_alone or digest in self._packed or bool(self._contents.packs.find(digest))

    def _packer(self) -> Any:
        """Made once for all, but not for all threads."""
        if self._compressor is None:
            from zstandard import ZstdCompressor

            self._compressor = ZstdCompressor(level=_FASTEST)
        return self._compressor

    def _name(self) -> str:
        return f"{self._folder}/{next(self._numbers)}"


class Digests:
    """A batch that keeps nothing: for whoever only asks whether something changed."""

    def keep_file(self, descriptor: int, expected: int) -> tuple[str, int]:
        digest, size = blake2b(digest_size=32), 0
        for chunk in chunks_of(descriptor, most=max(expected, _CHUNK)):
            digest.update(chunk)
            size += len(chunk)
        return digest.hexdigest(), size


def _made_and_held(folder: str) -> tuple[str, int]:
    """A new folder, locked. Another batch may sweep it away before that; then it is made again."""
    while True:
        os.mkdir(folder, 0o700)
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                flock(descriptor, LOCK_EX)
                if os.path.samestat(os.stat(folder), os.fstat(descriptor)):
                    return folder, os.dup(descriptor)
            finally:
                os.close(descriptor)


def _unpacked(content: bytes, digest: str) -> bytes:
    import zstandard

    unpacker = getattr(_OWN, "unpacker", None)
    if unpacker is None:
        unpacker = _OWN.unpacker = zstandard.ZstdDecompressor()
    try:
        if zstandard.frame_content_size(content) <= _CHUNK:  # damaged, it may ask for any size
            unpacked: bytes = unpacker.decompress(content)
            return unpacked
    except zstandard.ZstdError:
        pass
    raise _damaged(digest, "is not what it was")


def _streamed(descriptor: int, digest: str) -> Iterator[bytes]:
    from zstandard import ZstdDecompressor, ZstdError

    try:
        with open(descriptor, "rb", closefd=False) as file:
            yield from ZstdDecompressor().read_to_iter(file, write_size=_CHUNK)
    except ZstdError as error:
        raise _damaged(digest, "is not what it was") from error


def _write(place: str, chunks: Iterable[bytes]) -> None:
    descriptor = os.open(place, NEW, 0o600)
    try:
        for chunk in chunks:
            write_all(descriptor, chunk)
    finally:
        os.close(descriptor)


def chunks_of(descriptor: int, *, most: int = -1) -> Iterator[bytes]:
    """What can be read from where `descriptor` stands, up to `most` bytes if that is not -1."""
    while chunk := os.read(descriptor, _CHUNK if most < 0 else min(most, _CHUNK)):
        yield chunk
        if most >= 0:
            most -= len(chunk)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _damaged(digest: str, how: str) -> SnapshotError:
    return SnapshotError(f"the snapshot is damaged: object {digest[:12]} {how}; use another one")
