"""Folders as values: what is in one, and what is different in another."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from openry.errors import SnapshotError

#: Never part of a snapshot, at whatever depth; a restore leaves it where it is.
IGNORED = ".openry"
#: The same for what programs make again by themselves.
CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
#: Where a restore is prepared when it must be inside the folder; a crash may leave one.
STAGE = ".openry-restore-"


class Entry(NamedTuple):
    """One thing in a tree.

    Attributes:
        kind: `d` folder, `f` file, `l` symbolic link.
        content: The digest of a file, the target of a link, empty for a folder.
    """

    kind: str
    mode: int
    mtime_ns: int
    size: int
    content: str

    def same_as(self, other: Entry) -> bool:
        """Whether they hold the same; when they were written does not count."""
        return (self.kind, self.mode, self.content) == (other.kind, other.mode, other.content)


#: What a folder holds by path relative to it; the folder itself is the empty path.
Tree = Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one path: `added`, `changed` or `deleted`.

    A folder is named only when that says more than its contents: it is empty, or has a new mode.
    """

    kind: str
    path: str


class Found(NamedTuple):
    """Something met on a walk, not read yet."""

    path: str  #: relative to the folder walked
    place: str
    status: os.stat_result


def is_ignored(name: str, ignored: Collection[str]) -> bool:
    return name in ignored or name.startswith(STAGE)


def walk(folder: Path, *, avoid: Path, ignored: Collection[str]) -> Iterator[Found]:
    """Everything under `folder`, itself first; links are not followed, `avoid` is left out.

    What vanishes meanwhile is left out.

    Raises:
        SnapshotError: A folder cannot be read.
    """
    shunned = _identity(avoid)
    waiting = [Found("", str(folder), folder.stat())]
    while waiting:
        found = waiting.pop()
        if (found.status.st_dev, found.status.st_ino) == shunned:
            continue
        yield found
        if stat.S_ISDIR(found.status.st_mode):
            waiting.extend(_children(found, ignored))


def _children(parent: Found, ignored: Collection[str]) -> list[Found]:
    prefix = f"{parent.path}/" if parent.path else ""
    try:
        with os.scandir(parent.place) as listing:
            names = [child for child in listing if not is_ignored(child.name, ignored)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(parent.place, error) from error
    children = []
    for child in names:
        with suppress(FileNotFoundError):
            status = child.stat(follow_symlinks=False)
            children.append(Found(prefix + child.name, child.path, status))
    return children


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def unreadable(place: str, error: OSError) -> SnapshotError:
    return SnapshotError(
        f"`{show(place)}` cannot be read ({error.strerror}), so no snapshot was made;"
        " make it readable, or move it out of the workspace"
    )


def show(path: str) -> str:
    """A path for a message, also one that is not UTF-8."""
    return path.encode("utf-8", "backslashreplace").decode()


def compare(before: Tree, after: Tree) -> tuple[Change, ...]:
    """What happened from `before` to `after`, sorted by path."""
    gone, come = _telling(before), _telling(after)
    changes = [Change("deleted", path) for path in gone - after.keys()]
    changes += [Change("added", path) for path in come - before.keys()]
    both = (before.keys() & after.keys()) - {""}
    changes += [Change("changed", path) for path in both if not before[path].same_as(after[path])]
    return tuple(sorted(changes, key=lambda change: change.path))


def _telling(tree: Tree) -> set[str]:
    """The paths that say something by being there: all but folders that hold something."""
    return tree.keys() - {path.rpartition("/")[0] for path in tree} - {""}
