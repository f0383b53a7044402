"""Bring accepted results into the person's folder: all of them or none, and nothing else."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from openry.errors import UsageError, WorkspaceChangedError

#: Folders of ours; what lies in them is never a result.
PRIVATE = (".work", ".openry", ".git")
#: Where the `delete` capability puts what it takes away; it must be found again.
TRASH = ".trash"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What goes where.

    Attributes:
        left_out: What changed in the copy, but the task did not ask for it.
        unchanged: Results that were made, and are as they were before.
    """

    write: tuple[str, ...]
    remove: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[str, ...]:
        """The files that the task was about, new or as they were."""
        return tuple(p for p in (*self.write, *self.unchanged) if p.split("/")[0] != TRASH)


def is_hidden(path: str) -> bool:
    """Whether a path lies in a folder of ours."""
    return path.split("/")[0] in PRIVATE


def plan(
    changed: Iterable[str], removed: Iterable[str], is_result: Callable[[str], bool]
) -> Delivery:
    """Split what changed in the copy into results and what stays behind."""
    written, gone = sorted(set(changed)), sorted(set(removed))
    visible = [path for path in written if not is_hidden(path)]
    return Delivery(
        tuple(path for path in visible if is_result(path)),
        tuple(path for path in gone if is_result(path) and not is_hidden(path)),
        tuple(path for path in (*visible, *gone) if not is_result(path)),
    )


def deliver(delivery: Delivery, *, source: Path, base: Path, target: Path) -> None:
    """Write the results of `source` into `target`, and remove what was removed.

    Args:
        source: The copy in which the workflow ran.
        base: The folder as it was when the loop began.
        target: The person's folder.

    Raises:
        WorkspaceChangedError: A file to be written is no longer what it was in `base`. Nothing
            was written.
        UsageError: A file cannot be written. What had been written is put back.
    """
    paths = (*delivery.write, *delivery.remove)
    changed = [path for path in paths if _changed(path, source, base, target)]
    if changed:
        names = ", ".join(f"`{name}`" for name in changed)
        raise WorkspaceChangedError(
            f"{names} changed in {target} while the loop worked; nothing was written"
            " (move the file away and resume)"
        )
    staged: list[tuple[Path, Path]] = []
    done: list[str] = []
    try:
        for path in delivery.write:  # one by one: what is staged so far is cleared on failure
            staged.append((_stage(source / path, target / path, target), target / path))  # noqa: PERF401
        for path, (temporary, place) in zip(delivery.write, staged, strict=True):
            temporary.replace(place)
            done.append(path)
        for path in delivery.remove:
            (target / path).unlink(missing_ok=True)
            done.append(path)
    except OSError as error:
        _put_back(done, base, target)
        raise UsageError(
            f"`{error.filename or target}` cannot be written: {(error.strerror or '').lower()};"
            " nothing was changed"
        ) from error
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def _changed(path: str, source: Path, base: Path, target: Path) -> bool:
    """Whether `target` has neither the old nor already the new state of `path`."""
    return not _same(target / path, base / path) and not _same(target / path, source / path)


def _same(one: Path, other: Path) -> bool:
    if not one.is_file() or not other.is_file():
        return not os.path.lexists(one) and not os.path.lexists(other)
    return filecmp.cmp(one, other, shallow=False)


def _stage(source: Path, place: Path, target: Path) -> Path:
    """A finished copy beside `place`, ready to be renamed."""
    if not place.parent.resolve().is_relative_to(target.resolve()):
        raise OSError(0, "a link leads out of the folder", str(place))
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".openry-", dir=place.parent)
    os.close(handle)
    shutil.copy2(source, name)
    return Path(name)


def _put_back(done: Sequence[str], base: Path, target: Path) -> None:
    for path in done:
        with suppress(OSError):
            if (base / path).is_file():
                shutil.copy2(base / path, target / path)
            else:
                (target / path).unlink(missing_ok=True)
