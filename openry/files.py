"""Files that only their owner may read, written whole or not at all; and files somebody named."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

#: What a shell's `<(…)` opened for us: a pipe that has a writer.
_HANDED_OVER = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def must_be_file(named: str | Path) -> None:
    """Whether a file that somebody named can be read to an end.

    A pipe may have no writer: to open it waits for one. A device may have no end.

    Raises:
        OSError: It is not there, or is none.
    """
    name = os.fspath(named)
    if name.startswith(_HANDED_OVER):
        return
    mode = Path(name).stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", name)


def make_private_folder(folder: Path) -> None:
    """A folder that only we may enter, with those above it.

    Raises:
        OSError: It cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_private(path: Path, text: str) -> None:
    """Put `text` into a file of mode 0600, in place of the one that is there.

    Raises:
        OSError: It cannot be written; what was there is as it was.
    """
    make_private_folder(path.parent)
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with open(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
