"""Time, in one place: wall time for records, monotonic time for durations."""

from __future__ import annotations

import time
from _collections_abc import Callable  # as in `collections.abc`, which imports all of collections

#: Seconds on a clock that never goes backwards.
Monotonic = Callable[[], float]
monotonic: Monotonic = time.monotonic


def utc_now() -> str:
    """Now as ISO 8601 in UTC with milliseconds and a final `Z`, e.g. `2026-03-01T09:00:01.250Z`.

    Such strings sort as they happened, so the ledger compares them as text.
    """
    seconds, ms = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03d}Z"
