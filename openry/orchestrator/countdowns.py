"""How long until a moment of the ledger, by a clock that nobody sets."""

from __future__ import annotations

import threading

from openry.clock import monotonic
from openry.ledger.journal import seconds_between


class Countdowns:
    """A moment is measured once: when it was set, or else when it is first asked for.

    Then it comes nearer as time passes, whatever is done to the machine's clock meanwhile. Safe
    to use from the threads of an engine.
    """

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, now: str, moment: str | None) -> None:
        """Measure from `now`, the ledger's time this very moment, how long it is to `moment`."""
        if moment is not None:
            self.left_s(now, moment)

    def left_s(self, now: str, moment: str) -> float:
        """Seconds until `moment`; negative when it has passed."""
        with self._lock:
            self._seen.add(moment)
            if moment not in self._ends:
                self._ends[moment] = monotonic() + seconds_between(now, moment)
            return self._ends[moment] - monotonic()

    def forget_unseen(self) -> None:
        """Forget what nobody has asked for since the last time."""
        with self._lock:
            self._ends = {moment: end for moment, end in self._ends.items() if moment in self._seen}
            self._seen.clear()
