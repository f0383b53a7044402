"""`python -m openry.orchestrator` is `openry-orchestrator`."""

import atexit
import os
import sys
import threading
from typing import NoReturn

from openry.leaving import flushed
from openry.starting import run

#: As in `terminal`, which takes longer to load than the program may take to begin.
NAME = "openry-orchestrator"


def program() -> NoReturn:
    """The console script."""
    run(NAME, "openry.orchestrator.cli", _leave)


def _leave(status: int) -> NoReturn:
    """End with what was asked for at the end done, and the interpreter not tidied up.

    To free a hundred thousand objects one by one takes a tenth of what `start` takes. Where others
    are still at work, it waits for them in the usual way.
    """
    if all(each.daemon for each in threading.enumerate() if each is not threading.main_thread()):
        atexit._run_exitfuncs()
        os._exit(flushed(NAME, status))
    sys.exit(flushed(NAME, status))


if __name__ == "__main__":
    program()
