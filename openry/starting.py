"""How the larger programs begin."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn

#: Objects made before circles among the young ones are looked for. Python's own 700 are for small
#: programs: loading one of these makes 200,000 that all stay, and looking through them takes a
#: tenth of the time.
_YOUNG = 50_000
#: Whatever is written to then, a trace of ours would help nobody.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _open_what_is_closed() -> None:
    """Streams that whoever started us closed (`>&-`) lead nowhere, as with `/dev/null`.

    Else the first file that we open would get their number, and what is said be written into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # it stays


def run(name: str, module: str, leave: Callable[[int], NoReturn] = sys.exit) -> NoReturn:
    """Load `module`, call its `main` and leave with what that returns.

    A Ctrl-C is one word also while the program still loads, a full disk is a sentence.
    """
    _open_what_is_closed()
    gc.set_threshold(_YOUNG)
    try:
        leave(import_module(module).main())
    except KeyboardInterrupt:
        sys.stderr.write(f"{name}: interrupted\n")
        sys.exit(130)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left unsaid is not tried again
        sys.stderr.write(f"{name}: cannot be written: {os.strerror(error.errno).lower()}\n")
        sys.exit(1)
