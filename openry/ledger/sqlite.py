"""SQLite by the part of `sqlite3` that is written in C.

Its other part imports `collections` and `datetime`, a tenth of a forwarded command's time. The C
part wants one thing of `functools`, which imports as much again: it is given just that.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def _load() -> ModuleType:
    """`_sqlite3`, loaded with a `functools` that has `lru_cache` and nothing else.

    Whoever imports `functools` afterwards gets the real one; if it is there already, it is used.
    """
    if "functools" in sys.modules or "_sqlite3" in sys.modules:
        import _sqlite3

        return _sqlite3
    from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]

    def lru_cache(size: int) -> Callable[[Callable[..., object]], object]:
        return lambda function: _lru_cache_wrapper(function, size, False, tuple)

    stand_in = type(sys)("functools")
    stand_in.lru_cache = lru_cache  # type: ignore[attr-defined]
    sys.modules["functools"] = stand_in
    try:
        import _sqlite3
    finally:
        del sys.modules["functools"]
    return _sqlite3


try:
    _load()
    from _sqlite3 import Connection, Error, OperationalError, connect
except ImportError:
    from sqlite3 import Connection, Error, OperationalError, connect

__all__ = ["Connection", "Error", "OperationalError", "connect"]
