"""Which names in writable folders are closed, and how: by a mount, or by being watched."""

from __future__ import annotations

import os
import stat

from openry.models.value import value
from openry.sandbox.below import NAMES, OF_GIT, Below, looks_like_git
from openry.sandbox.guard import Name
from openry.sandbox.real import is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: In every writable folder: what programs outside the sandbox run or are led by later. Of git also
#: the two files that make it read its settings elsewhere.
ALWAYS = (*(f".git/{name}" for name in OF_GIT), *NAMES)
#: How a policy says that a name is protected in every folder.
_ANYWHERE = "**/"


@value
class Closed:
    """What is to be done before a command may write.

    Attributes:
        kept: Folders that become mounts of their own, still writable, so that nobody renames them.
        shut: Places that become mounts which can only be read.
        watched: Names that nothing can be mounted over.
        below: The same names in folders below, by which is found what a command made of them.
    """

    kept: tuple[str, ...]
    shut: tuple[str, ...]
    watched: tuple[Name, ...]
    below: Below


def closed(write: Sequence[str], more: Iterable[str] = (), workspace: str = "") -> Closed:
    """What protects the names of `ALWAYS`, and `more`, in the folders that may be written.

    Args:
        write: Real paths.
        more: Paths from the workspace, or absolute; outside `write` they need nothing.
    """
    anywhere = [one.removeprefix(_ANYWHERE) for one in more if one.startswith(_ANYWHERE)]
    found, below = _Found(write), Below(write, anywhere)
    for folder, name in _named(write, more, workspace):
        found.walk(folder, name)
    for folder, name in below.names():
        found.walk_below(folder, name)
    return Closed(tuple(sorted(found.kept)), tuple(sorted(found.shut)), tuple(found.watched), below)


class _Found:
    def __init__(self, write: Sequence[str]) -> None:
        self.write = write
        self.kept: set[str] = set()
        self.shut: set[str] = set()
        self.watched: dict[Name, None] = {}
        self._links: set[tuple[str, ...]] = set()

    def walk(self, folder: str, name: str) -> None:
        """From a writable folder to a name in it, as far as there is something."""
        place, parts = folder, name.split("/")
        for number, part in enumerate(parts, 1):
            place = f"{place}/{part}"
            mode = _mode(place)
            if mode == 0:
                self.watched[Name("/".join((place, *parts[number:])), place)] = None
                return
            if stat.S_ISLNK(mode):
                self.watched[Name(place, place, os.readlink(place))] = None
                self._behind(place, parts[number:])
                return
            if number == len(parts) or not stat.S_ISDIR(mode):
                self.shut.add(place)
                return
            self.kept.add(place)

    def walk_below(self, folder: str, name: str) -> None:
        """A name in a folder of any depth, which is there. A repository is kept in its place.

        Right below a folder that may be written, the folder round it is kept as well; deeper that
        would only make more mounts, between which nothing can be renamed.
        """
        if name == ".git":  # a link or a file, which leads to a repository
            for one in OF_GIT:
                self.walk(folder, f".git/{one}")
            return
        if os.path.basename(folder) == ".git":
            folder, name = os.path.dirname(folder), f".git/{name}"
            if (above := os.path.dirname(folder)) in self.write:
                folder, name = above, f"{os.path.basename(folder)}/{name}"
        self.walk(folder, name)

    def _behind(self, link: str, rest: Sequence[str]) -> None:
        """What a link leads to is closed too, where it may be written."""
        real = os.path.realpath(link)
        if (link, *rest) in self._links or os.path.islink(real):
            return
        self._links.add((link, *rest))
        for folder in self.write:
            if is_below(real, folder):
                self.walk(folder, "/".join((os.path.relpath(real, folder), *rest)))


def _named(write: Sequence[str], more: Iterable[str], workspace: str) -> Iterator[tuple[str, str]]:
    for folder in write:
        yield from ((folder, name) for name in ALWAYS)
    for one in more:
        if one.startswith(_ANYWHERE):
            continue
        place = os.path.normpath(os.path.join(workspace, one))
        place = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
        yield from ((f, os.path.relpath(place, f)) for f in write if is_below(place, f))


def protected_name(path: str, folders: Iterable[str]) -> str:
    """The protected name that a real path is, or lies below, in one of the folders; else empty.

    >>> protected_name("/w/.git/hooks/x", ["/w"]), protected_name("/w/.github/x", ["/w"])
    ('.git/hooks', '')
    >>> protected_name("/w/a/.vscode/x", ["/w"]), protected_name("/w/a/.git", ["/w"])
    ('a/.vscode', 'a/.git')
    """
    for folder in map(os.path.realpath, folders):
        if is_below(path, folder):
            parts = os.path.relpath(path, folder).split("/")
            for number, part in enumerate(parts, 1):
                above = os.path.join(folder, *parts[: number - 1])
                if part in NAMES or _is_of_git(above, part, is_last=number == len(parts)):
                    return "/".join(parts[:number])
    return ""


def _is_of_git(folder: str, name: str, *, is_last: bool) -> bool:
    """A setting or the hooks of a repository, or what stands where one would be."""
    if name == ".git":
        return is_last
    return name in OF_GIT and looks_like_git(folder, _Names(folder))


class _Names:
    """The names in a folder, of which few are asked for."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __contains__(self, name: object) -> bool:
        return os.path.lexists(f"{self._folder}/{name}")


def _mode(place: str) -> int:
    """0 when nothing is there."""
    try:
        return os.lstat(place).st_mode
    except OSError:
        return 0
