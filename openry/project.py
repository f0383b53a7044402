"""A project's own folder: the nearest `.openry` above, used once a person trusted its content.

It supplies workflows, policies and capabilities by name and nothing else: no setting is read from
it, and no name of OPENRY_HOME or of a shipped policy or tool means another thing because of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openry.clock import utc_now
from openry.errors import NotFoundError, StorageError, UsageError

NAME = ".openry"
#: What a project may supply; everything else in its folder is left alone.
KINDS = (
    "compositions", "workflows", "overflow_workflows", "overflow", "policies", "capabilities",
)  # fmt: skip
_RECORD = "trusted.json"
_LARGEST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Project:
    """A project's folder and how it stands.

    Attributes:
        files: Digest of each file it supplies, by path in the folder.
        known: The same when it was trusted; None when it never was.
        problem: Why it may not be used whatever was trusted; else empty.
    """

    folder: Path
    files: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] | None = None
    problem: str = ""

    @property
    def trusted(self) -> bool:
        return not self.problem and self.known == self.files

    @property
    def changes(self) -> tuple[str, ...]:
        """What is different since it was trusted, one file each."""
        known = self.known or {}
        names = sorted({*known, *self.files})
        return tuple(
            f"{_how(name, known, self.files)} {name}"
            for name in names
            if known.get(name) != self.files.get(name)
        )

    @property
    def complaint(self) -> str:
        """Why nothing is taken from it, with the way out; empty when it is trusted."""
        if self.trusted:
            return ""
        if self.problem:
            return f"`{self.folder}` is not used: {self.problem}"
        what = "is not trusted yet" if self.known is None else "has changed since it was trusted"
        return f"`{self.folder}` {what}; look at it, then run: openry trust {self.folder.parent}"


def find_project(start: Path | str, home: Path | str) -> Project | None:
    """The nearest project folder at or above `start`; OPENRY_HOME itself is none.

    Args:
        home: OPENRY_HOME, where it is recorded what is trusted.
    """
    here, own = Path(start).resolve(), Path(home).resolve()
    for above in (here, *here.parents):
        folder = above / NAME
        if folder.is_dir() and folder.resolve() != own:
            return _looked_at(folder, own)
    return None


def places(kind: str, home: Path | str, start: Path | str = ".") -> tuple[Path, ...]:
    """Folders in which things of one of `KINDS` are looked for by name, the first one first.

    OPENRY_HOME goes before the project, if that is trusted; what is shipped is the caller's.
    """
    found = [Path(home, kind)]
    project = find_project(start, home)
    if project is not None and project.trusted and kind in KINDS:  # else nobody looked at it
        found.append(project.folder / kind)
    return tuple(folder for folder in found if folder.is_dir())


def untrusted_hint(kind: str, name: str, home: Path | str, start: Path | str = ".") -> str:
    """What to say about a name that only a project which is not trusted has; else empty."""
    project = find_project(start, home)
    if project is None or project.trusted:
        return ""
    here = project.folder / kind
    there = any(Path(here, f"{name}{ending}").exists() for ending in ("", ".yaml", ".yml"))
    return project.complaint if there else ""


def supplies(path: Path | str, home: Path | str) -> bool:
    """Whether the file at `path` is one that a project supplies."""
    whole = Path(path).resolve()
    own = Path(home).resolve()
    return any(
        folder.name == NAME and folder != own and whole.relative_to(folder).parts[0] in KINDS
        for folder in whole.parents
    )


def trust(start: Path | str, home: Path | str) -> Project:
    """Record the content of the project at `start` as trusted. Returns it as it was before.

    Raises:
        NotFoundError: There is none.
        UsageError: It may not be used: another owner, writable by others, links in it.
        StorageError: The record cannot be written.
    """
    project = _needed(start, home)
    if project.problem:
        raise UsageError(project.complaint)
    record = _record(home)
    record[str(project.folder)] = {"files": dict(project.files), "at": utc_now()}
    _write_record(home, record)
    return project


def forget(start: Path | str, home: Path | str) -> Project:
    """Trust it no longer.

    Raises:
        NotFoundError: There is none.
        StorageError: The record cannot be written.
    """
    project = _needed(start, home)
    record = _record(home)
    if record.pop(str(project.folder), None) is not None:
        _write_record(home, record)
    return project


def _needed(start: Path | str, home: Path | str) -> Project:
    if not Path(start).is_dir():
        raise NotFoundError(f"`{start}` is no folder")
    project = find_project(start, home)
    if project is None:
        shown = Path(start).resolve()
        raise NotFoundError(f"there is no `{NAME}` folder in `{shown}` or above it")
    return project


# --- looking at it --------------------------------------------------------------------------


def _looked_at(folder: Path, home: Path) -> Project:
    files: dict[str, str] = {}
    size = 0
    for path in _inside(folder):
        problem = _unsafe(path)
        if problem:
            where = "" if path == folder else f" (`{path.relative_to(folder)}`)"
            return Project(folder, problem=f"{problem}{where}")
        if path.is_file():
            size += path.stat().st_size
            if size > _LARGEST_BYTES:
                return Project(folder, problem=f"it holds more than {_LARGEST_BYTES >> 20} MiB")
            files[str(path.relative_to(folder))] = _digest(path)
    entry = _record(home).get(str(folder))
    return Project(folder, files, entry["files"] if entry else None)


def _inside(folder: Path) -> Iterator[Path]:
    """The folder and everything it supplies, in a fixed order. Links are not followed."""
    yield folder
    for kind in KINDS:
        if (folder / kind).is_symlink() or (folder / kind).exists():
            yield folder / kind
            for root, folders, files in os.walk(folder / kind):
                folders.sort()
                yield from (Path(root, name) for name in sorted((*folders, *files)))


def _unsafe(path: Path) -> str:
    """Why nobody should rely on what is at `path`; empty when one may."""
    try:
        found = path.lstat()
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    if stat.S_ISLNK(found.st_mode):
        return "it holds a link; put the file itself there"
    if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
        return "it holds what is neither a file nor a folder"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & 0o022:
        return "others may write it; run: chmod -R go-w on it"
    return ""


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _how(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> str:
    return "new" if name not in before else "gone" if name not in now else "changed"


# --- what is recorded -----------------------------------------------------------------------


def _record(home: Path | str) -> dict[str, Any]:
    """What is trusted, by folder. A record that is no record trusts nothing."""
    try:
        data = json.loads(Path(home, _RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {
        folder: entry
        for folder, entry in data.items()
        if isinstance(entry, dict) and isinstance(entry.get("files"), dict)
    }


def _write_record(home: Path | str, record: Mapping[str, Any]) -> None:
    from openry.files import write_private

    try:
        write_private(Path(home, _RECORD), json.dumps(record, indent=1, ensure_ascii=False))
    except OSError as error:
        place = Path(home, _RECORD)
        raise StorageError(f"`{place}` cannot be written: {error.strerror}") from error
