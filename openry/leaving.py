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


def leave(status: int) -> int:
    """`status`, for whoever ends the process now.

    With the library still at work in a thread the process ends here: as the interpreter takes
    itself down, that thread would crash it.
    """
    if any(thread.name == LIBRARY_THREAD for thread in threading.enumerate()):
        for folder in FOLDERS:
            shutil.rmtree(folder, ignore_errors=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
