"""One process at a time in a folder, where folders can be locked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock on `folder`. Elsewhere nothing is held: slower ways must be as safe.

    Not to be taken twice by one process: it would wait for itself.
    """
    descriptor = -1
    with suppress(ImportError, OSError):
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)
