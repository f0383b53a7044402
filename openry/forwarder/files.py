"""Descriptors for a command's input and output files."""

from __future__ import annotations

import os

from openry.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import BufferedWriter
    from typing import BinaryIO


def readable(data: bytes) -> int:
    """A descriptor to read `data` from, however much of it there is."""
    fd = os.memfd_create("openry") if hasattr(os, "memfd_create") else _unlinked()
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _unlinked() -> int:
    import tempfile

    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


def open_spill(folder: str, name: str) -> BufferedWriter:
    """A file that only we may read, in a folder that only we may enter."""
    for place in (os.path.dirname(folder), folder):
        if not os.path.isdir(place):
            os.makedirs(place, 0o700, exist_ok=True)
    fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    os.close(fd)
    return open(f"{folder}/{name}", "wb")


def open_kept(path: str) -> BinaryIO:
    """A spill to be read, whether it is compressed (its name ends in `.gz` then) or not.

    Raises:
        OSError: It cannot be opened, e.g. because it was removed.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not path.endswith(".gz"):
        return open(fd, "rb")
    import gzip
    from typing import cast

    return cast("BinaryIO", gzip.open(open(fd, "rb")))


class OutputFile:
    """A file written whole or not at all, and only inside the folders that may be written.

    Folders above it are made.

    Args:
        path: Where it will be, relative to `cwd`.
        roots: The folders it must be in, links resolved.

    Raises:
        UsageError: It would be outside, its folder cannot be made, or it is a folder itself.
    """

    def __init__(self, path: str, cwd: str, roots: Sequence[str]) -> None:
        from openry.sandbox.protect import protected_name
        from openry.sandbox.real import RealFolder

        self.path = os.path.realpath(os.path.join(cwd, path))
        folder, self._name = os.path.split(self.path)
        if not any(_is_inside(self.path, os.path.realpath(root)) for root in roots):
            raise UsageError(f"output file `{path}` is outside the folders that may be written")
        if name := protected_name(self.path, roots):
            raise UsageError(f"output file `{path}` is in `{name}`, which is protected")
        if os.path.isdir(self.path):
            raise UsageError(f"output file `{path}` is a folder; name a file in it")
        try:
            self._held = RealFolder(folder, makes=True)
        except OSError as error:
            raise UsageError(
                f"output file `{path}`: folder `{folder}`: {error.strerror}"
            ) from error
        self._draft = f".{self._name[:200]}.{os.urandom(4).hex()}"
        mode = _mode(self.path)
        try:
            self.fd = os.open(
                self._draft,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW,
                0o666 if mode is None else 0o600,
                dir_fd=self._held.fd,
            )
        except OSError as error:
            self._held.close()
            raise UsageError(f"output file `{path}`: {error.strerror}") from error
        if mode is not None:
            os.fchmod(self.fd, mode)

    def close(self, *, keep: bool) -> None:
        """Put the file in its place, or leave what was there as it was."""
        os.close(self.fd)
        with self._held as folder:
            if keep:
                os.rename(self._draft, self._name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
            else:
                os.unlink(self._draft, dir_fd=folder.fd)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode & 0o777
    except OSError:
        return None


def _is_inside(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")
