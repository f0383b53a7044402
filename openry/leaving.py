"""The end of a process in which a model's library may still be at work."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path

#: Name of the threads in which the library works.
LIBRARY_THREAD = "local-model"
#: Folders of the process's own, which are removed at its end.
FOLDERS: set[Path] = set()


def flushed(name: str, status: int) -> int:
    """`status`, all that was said being written; 1, and a sentence, where it cannot be.

    Nobody misses what goes to a closed stream, or to a reader that is gone.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # nor at the very end
            if not isinstance(error, BrokenPipeError):
                status = status or 1
                sys.stderr.write(f"{name}: cannot be written: {str(error.strerror).lower()}\n")
    return status


def leave(name: str, status: int) -> int:
    """`status`, for whoever ends the process now, all that was said being written.

    With the library still at work in a thread the process ends here: as the interpreter takes
    itself down, that thread would crash it.
    """
    status = flushed(name, status)
    if any(thread.name == LIBRARY_THREAD for thread in threading.enumerate()):
        for folder in FOLDERS:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(status)
    return status
