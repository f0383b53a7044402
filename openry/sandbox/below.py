"""Protected names at any depth below the folders that may be written.

Nothing can be mounted over a folder that is not there yet, and nobody can watch every folder that
is. So all folders are known before a command, and looked into again after it where they changed.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from openry.models.value import value
from openry.sandbox.guard import Name
from openry.sandbox.real import RealFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

#: Protected in every folder.
NAMES = (".openry", ".vscode")
#: Protected in every folder that git takes for a repository, whatever it is called.
OF_GIT = ("commondir", "config", "config.worktree", "hooks")
_NAMES = frozenset(NAMES)
_TOLD_APART = frozenset((*OF_GIT, ".git", "HEAD", "objects"))
#: In `.git` by the hundred, and nothing is run from them.
_PASSED_OVER = frozenset(("logs", "objects", "refs"))
#: The clock of a file system may move as seldom as this.
_COARSE_NS = 2_500_000_000
#: More folders than these are not remembered from one command to the next.
_MOST_REMEMBERED = 50_000


@value
class _Folder:
    """What is known of one folder.

    Attributes:
        state: Device, inode and time of change, which no program can set.
        is_fresh: It had changed just before: the same time of change would say nothing.
        folders: The folders in it that are looked into.
        names: Its protected names, and which file each was.
    """

    state: tuple[int, int, int]
    is_fresh: bool
    folders: Sequence[str] = ()
    names: Sequence[tuple[str, object]] = ()


class Below:
    """Every folder below `tops` (real paths) as it is now.

    What was found is remembered in this process: a folder that did not change costs a microsecond.

    Args:
        more: What else is protected in every folder: a name, or the last parts of a path.
    """

    def __init__(self, tops: Sequence[str], more: Sequence[str] = ()) -> None:
        self._tops, self._more = tuple(tops), tuple(sorted({*more}))
        self._known = _Look(self._more, _remembered.get(self._key, {})).through(self._tops)
        self._opened: list[tuple[str, int]] = []
        self._remember(self._known)

    def names(self) -> Iterator[tuple[str, str]]:
        """Folder, and protected name in it, of all that are there."""
        for place, folder in self._known.items():
            for name, _ in folder.names:
                yield place, name

    def made(self) -> tuple[Name, ...]:
        """Names that were not there or were another file, once nobody of the command is alive.

        Folders that the command closed to us stay open until `close_again`.
        """
        look = _Look(self._more, self._known, opens=True)
        now = look.through(self._tops)
        self._opened = look.opened
        had = {which for folder in self._known.values() for _, which in folder.names}
        found = [
            Name(f"{place}/{name}", self._top(place, name))
            for place, folder in now.items()
            for name, which in folder.names
            if which not in had
        ]
        found += [Name(place, self._first_new(place)) for place in look.too_deep]
        if not found:
            self._remember(now)
        return tuple({name.top: name for name in found}.values())

    def close_again(self) -> None:
        """Give folders the rights back that the command left them with."""
        while self._opened:
            place, mode = self._opened.pop()
            try:
                with RealFolder(place, enters=True) as folder:
                    folder.chmod(mode)
            except OSError:  # it was put away
                continue

    def _top(self, place: str, name: str) -> str:
        """A repository that is new goes as a whole; else the name alone."""
        is_new = os.path.basename(place) == ".git" and place not in self._known
        return place if is_new else f"{place}/{name}"

    def _first_new(self, place: str) -> str:
        while (above := os.path.dirname(place)) not in self._known and above != place:
            place = above
        return place

    @property
    def _key(self) -> _Key:
        return self._tops, self._more

    def _remember(self, known: dict[str, _Folder]) -> None:
        if len(known) <= _MOST_REMEMBERED:
            _remembered[self._key] = known
        else:
            _remembered.pop(self._key, None)


_Key = tuple[tuple[str, ...], tuple[str, ...]]
_remembered: dict[_Key, dict[str, _Folder]] = {}


class _Look:
    """One walk, which reads only what is not as it was known.

    Args:
        opens: Open folders of ours that are closed to us; they changed, so a command closed them.
    """

    def __init__(
        self, more: Sequence[str], known: Mapping[str, _Folder], *, opens: bool = False
    ) -> None:
        self._more = {each: os.path.basename(each) for each in more}
        self._known, self._opens = known, opens
        self.opened: list[tuple[str, int]] = []
        self.too_deep: list[str] = []

    def through(self, tops: Sequence[str]) -> dict[str, _Folder]:
        found: dict[str, _Folder] = {}
        known, look_at = self._known, os.lstat  # a loop for many thousands
        waiting = list(tops)
        while waiting:
            place = waiting.pop()
            try:
                about = look_at(place)
                folder = known.get(place)
                if (
                    folder is None
                    or folder.is_fresh
                    or folder.state != (about.st_dev, about.st_ino, about.st_ctime_ns)
                ):
                    folder = self._folder(place, about)
            except OSError as error:  # it went, or is not for us to see
                if error.errno == errno.ENAMETOOLONG:
                    self.too_deep.append(place)
                continue
            if folder is not None and place not in found:
                found[place] = folder
                if folder.folders:
                    waiting += folder.folders
        return found

    def _folder(self, place: str, about: os.stat_result) -> _Folder | None:
        if not stat.S_ISDIR(about.st_mode):
            return None
        state = about.st_dev, about.st_ino, about.st_ctime_ns
        if self._opens and about.st_uid == os.geteuid() and about.st_mode & 0o700 != 0o700:
            with RealFolder(place, enters=True) as folder:
                folder.chmod(stat.S_IMODE(about.st_mode) | 0o700)
            self.opened.append((place, stat.S_IMODE(about.st_mode)))
        try:
            folders, names = _read(place, about.st_dev, self._names_in(place))
        except PermissionError:
            return _Folder(state, is_fresh=False)
        return _Folder(state, time.time_ns() - about.st_ctime_ns < _COARSE_NS, folders, names)

    def _names_in(self, place: str) -> frozenset[str]:
        if not self._more:
            return _NAMES
        path = f"{place}/"
        more = (name for each, name in self._more.items() if f"{path}{name}".endswith(f"/{each}"))
        return _NAMES.union(more)


def _read(
    place: str, device: int, protected: Container[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, object], ...]]:
    """The folders in a folder that are to be looked into, and its protected names."""
    folders: list[str] = []
    others: dict[str, os.DirEntry[str]] = {}
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name in _TOLD_APART or entry.name in protected:
                others[entry.name] = entry
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    names: list[tuple[str, object]] = []
    of_git = OF_GIT if looks_like_git(place, others) else ()
    for name, entry in others.items():
        is_folder = entry.is_dir(follow_symlinks=False)
        if name in protected or name in of_git or (name == ".git" and not is_folder):
            # Where a link leads depends on where it is.
            is_link = entry.is_symlink()
            names.append((name, entry.path if is_link else (device, entry.inode())))
        elif is_folder:
            folders.append(name)
    if os.path.basename(place) == ".git":
        folders = [name for name in folders if name not in _PASSED_OVER]
    return tuple(f"{place}/{name}" for name in folders), tuple(names)


def looks_like_git(place: str, names: Container[str]) -> bool:
    """Whether git may take a folder with these names in it for a repository.

    >>> looks_like_git("/w/a", ("HEAD", "objects")), looks_like_git("/w/a", ("HEAD", "config"))
    (True, False)
    """
    if os.path.basename(place) == ".git":
        return True
    return "HEAD" in names and ("objects" in names or "commondir" in names)
