"""Folders by their real paths: no link on the way is followed, whoever changes it."""

from __future__ import annotations

import os
import stat

from openry.errors import SandboxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from openry.models.command import SandboxSpec

#: Only to go through and to act in; it needs no right to read. Zero where there is no such way.
HELD = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RealFolder:
    """Opened from the root, part by part.

    Args:
        opens: Folders that are closed to us are open meanwhile; the last one, too.
        enters: The same for those above it alone.
        makes: Folders that are not there are made.

    Raises:
        OSError: It is not there; `ELOOP` or `ENOTDIR` when a part of it is a link.
    """

    def __init__(
        self, place: str, *, opens: bool = False, enters: bool = False, makes: bool = False
    ) -> None:
        self._opened: list[tuple[int, int]] = []
        self.fd = os.open("/", HELD)
        try:
            for part in filter(None, place.split("/")):
                if makes:
                    self._make(part)
                self._enter(part, forced=opens or enters)
            if opens:
                self._open_to_us()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def chmod(self, mode: int) -> None:
        """Change the rights of the folder itself."""
        os.chmod(f"/proc/self/fd/{self.fd}", mode)

    def close(self) -> None:
        """Give every folder its rights back."""
        for fd, mode in reversed(self._opened):
            os.chmod(f"/proc/self/fd/{fd}", mode)
            if fd != self.fd:
                os.close(fd)
        self._opened = []
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _make(self, part: str) -> None:
        try:
            os.stat(part, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            try:
                os.mkdir(part, dir_fd=self.fd)
            except FileExistsError:  # somebody was faster
                return

    def _enter(self, part: str, *, forced: bool) -> None:
        try:
            inner = os.open(part, HELD, dir_fd=self.fd)
        except PermissionError:
            if not forced or not self._open_to_us():
                raise
            inner = os.open(part, HELD, dir_fd=self.fd)
        if not self._opened or self._opened[-1][0] != self.fd:
            os.close(self.fd)
        self.fd = inner

    def _open_to_us(self) -> bool:
        """Let its owner do everything in it; whether that was needed, and can be."""
        about = os.fstat(self.fd)
        if about.st_uid != os.geteuid() or about.st_mode & 0o700 == 0o700:
            return False
        self._opened.append((self.fd, stat.S_IMODE(about.st_mode)))
        self.chmod(stat.S_IMODE(about.st_mode) | 0o700)
        return True


def open_real(place: str) -> int:
    """A descriptor of a file or folder by its real path, only to name it by.

    Raises:
        OSError: It is not there, or a part of it is a link.
    """
    with RealFolder(os.path.dirname(place)) as above:
        flags = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(os.path.basename(place) or ".", flags, dir_fd=above.fd)


def shown_folders(spec: SandboxSpec, workspace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The real paths that may only be read, and those that may be written.

    Raises:
        SandboxError: One of the workspace is a link that leads out of it.
    """
    write = {_real(place, workspace, make=True) for place in spec.write}
    read = {_real(place, workspace) for place in spec.read}
    if workspace and not spec.only_named:
        read.add(os.path.realpath(workspace))
    return tuple(sorted(read - write - {""})), tuple(sorted(write - {""}))


def _real(place: str, workspace: str, *, make: bool = False) -> str:
    """Empty for what is not there in the workspace; a folder to write is made."""
    real = os.path.realpath(place)
    if not workspace or not is_below(place, workspace):
        return real
    if not is_below(real, os.path.realpath(workspace)):
        raise SandboxError(f"`{place}` is a link that leads out of the workspace; remove it")
    if make:
        try:
            RealFolder(real, makes=True).close()
        except OSError as error:
            raise SandboxError(f"`{place}` cannot be made: {error.strerror}") from error
    return real if os.path.lexists(real) else ""


def is_within(place: str, folder: str) -> bool:
    """Whether `place` is the folder itself, or below it."""
    return f"{place}/".startswith(f"{folder.rstrip('/')}/")


def is_below(place: str, folder: str) -> bool:
    return place.startswith(folder.rstrip("/") + "/")
