"""How the larger programs begin."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn

#: Objects made before circles among the young ones are looked for. Python's own 700 are for small
#: programs: loading one of these makes 200,000 that all stay, and looking through them takes a
#: tenth of the time.
_YOUNG = 50_000


def run(name: str, module: str, leave: Callable[[int], NoReturn] = sys.exit) -> NoReturn:
    """Load `module`, call its `main` and leave with what that returns.

    A Ctrl-C is one word also while the program still loads.
    """
    gc.set_threshold(_YOUNG)
    try:
        leave(import_module(module).main())
    except KeyboardInterrupt:
        sys.stderr.write(f"{name}: interrupted\n")
        sys.exit(130)
