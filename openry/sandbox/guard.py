"""Protected names that nothing can be mounted over: they are not there yet, or they are links.

A mount needs something to lie on. To make that something would leave it behind, and every command
would see it. So its folder is watched instead: when the name comes into being or becomes another,
the command is ended at once, and what it made is put away where nobody runs it.
"""

from __future__ import annotations

import errno
import os
import stat

from openry.errors import SandboxError
from openry.models.value import value
from openry.sandbox.libc import call
from openry.sandbox.quarantine import keep
from openry.sandbox.real import RealFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    class Below(Protocol):
        """What knows the names in folders below, which nobody watches."""

        def made(self) -> tuple[Name, ...]: ...
        def close_again(self) -> None: ...


#: Something came, went, or was renamed here.
_CHANGES = 0x40 | 0x80 | 0x100 | 0x200
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
#: An answer names no more.
_MOST_NAMED = 5


@value
class Name:
    """One name, and what stood there before the command.

    Attributes:
        top: The first part of `path` that was not there; what is put away.
        target: Where the name led, as a link; empty when nothing stood there.
    """

    path: str
    top: str
    target: str = ""

    def is_unchanged(self) -> bool:
        """Also False where it cannot be told, because somebody has closed a folder above it."""
        try:
            mode = os.lstat(self.path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return not self.target
        except OSError:
            return False
        return stat.S_ISLNK(mode) and os.readlink(self.path) == self.target


class Guard:
    """Watches over names while one command runs, and looks for those it made deeper after it.

    Raises:
        SandboxError: The system cannot watch a folder.
    """

    def __init__(self, names: Iterable[Name], below: Below) -> None:
        self._names = tuple(names)
        self._below = below
        self._watched: dict[str, int] = {}
        self.fd = _instance()
        if not self._watch():
            self.close()
            raise SandboxError(
                "protected names cannot be watched; raise fs.inotify.max_user_instances"
                " and fs.inotify.max_user_watches"
            )

    def changed(self) -> str:
        """Which names are not as they were; empty when all are. Asked when `fd` is readable."""
        self._read_away()
        self._watch()  # before the look: what comes between the two is an event again
        return _said(self._changed())

    def _changed(self) -> list[Name]:
        return [name for name in self._names if not name.is_unchanged()]

    def settle(self, folder: str) -> str:
        """Once nobody of the command is alive: put away what it made. Which names, or empty.

        Args:
            folder: Where it is kept; made when it is needed.
        """
        self._read_away()
        at_top = self._changed()
        for number, name in enumerate(at_top):
            _put_away(name, folder, number)
        made = self._below.made()
        for number, name in enumerate(made, len(at_top)):
            _put_away(name, folder, number)
        self._below.close_again()
        return _said([*at_top, *made])

    def close(self) -> None:
        """Watch nothing any more."""
        for watch in self._watched.values():
            call("inotify_rm_watch", self.fd, watch)
        if self.fd >= 0:
            self._read_away()
            _free.setdefault(os.getpid(), []).append(self.fd)
            self.fd = -1

    def _watch(self) -> bool:
        """Watch the deepest folder that is there of each name; False when that cannot be."""
        for folder in {_deepest(os.path.dirname(name.path)) for name in self._names}:
            if folder not in self._watched:
                how = _CHANGES | _ONLY_FOLDERS | _NO_LINKS
                watch = call("inotify_add_watch", self.fd, os.fsencode(folder), how)
                if watch < 0:
                    return False
                self._watched[folder] = watch
        return True

    def _read_away(self) -> None:
        try:
            while os.read(self.fd, 64 * 1024):
                continue
        except BlockingIOError:
            return


def _said(names: Sequence[Name]) -> str:
    named = ", ".join(f"`{name.path}`" for name in names[:_MOST_NAMED])
    return f"{named} and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else named


#: Instances that watch nothing, by the process they belong to. The kernel takes 15 ms to close one.
_free: dict[int, list[int]] = {}


def _instance() -> int:
    """A descriptor that changes can be read from; -1 where there can be none."""
    try:
        return _free[os.getpid()].pop()
    except (IndexError, KeyError):
        return call("inotify_init1", os.O_CLOEXEC | os.O_NONBLOCK)


def _deepest(folder: str) -> str:
    while not os.path.isdir(folder) or os.path.islink(folder):
        folder = os.path.dirname(folder)
    return folder


def _put_away(name: Name, folder: str, number: int) -> None:
    """Move it, whatever rights it and the folder above it were given by now.

    Another command may still change the folders on the way: none of them is gone through by a link.
    """
    above, last = os.path.split(name.top)
    try:
        with RealFolder(above, opens=True) as inside:
            try:
                keep(inside, last, folder, f"{number}-{last}")
            finally:
                if name.target:
                    os.symlink(name.target, os.path.basename(name.path), dir_fd=inside.fd)
    except (FileNotFoundError, FileExistsError):  # another command's guard was faster
        return
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise
