"""Ask again after errors that pass, and wait as long as the provider says."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from openry.errors import BudgetError, ModelError
from openry.llm.base import ChatReply, ChatRequest, Model
from openry.llm.wrapper import Wrapper

#: How often a call is made at most, by what went wrong. What is not here is not tried again.
TRIES = {"rate_limited": 5, "overloaded": 4, "cut": 3, "no_network": 3}
#: A longer wait is not slept through: the caller is told instead.
LONGEST_WAIT_S = 120.0

Sleep = Callable[[float], None]
#: Picks a number between two; `random.uniform` outside tests.
Pick = Callable[[float, float], float]


def wait_s(failures: int, retry_after_s: float | None, pick: Pick = random.uniform) -> float:
    """Seconds to wait after the `failures`-th failure in a row.

    What the provider asked for and up to a tenth (at least up to half a second) more, so that
    those it turned away together do not come back together; else exponential growth, jittered
    over its upper half.

    >>> longest = lambda low, high: high
    >>> [wait_s(n, None, longest) for n in (1, 2, 3, 9)], wait_s(1, 4.0, longest)
    ([1.0, 2.0, 4.0, 30.0], 4.5)
    """
    if retry_after_s is not None:
        return retry_after_s + pick(0.0, max(0.5, 0.1 * retry_after_s))
    ceiling = min(30.0, 2.0 ** (failures - 1))
    return pick(ceiling / 2, ceiling)


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds that `Retry-After` (seconds or an HTTP date) or `retry-after-ms` ask for.

    >>> retry_after_s({"Retry-After": "4"}), retry_after_s({"retry-after-ms": "250"})
    (4.0, 0.25)
    >>> noon = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    >>> retry_after_s({"Retry-After": "Sun, 01 Mar 2026 12:00:09 GMT"}, noon)
    9.0
    """
    from email.utils import parsedate_to_datetime

    found = {name.lower(): text.strip() for name, text in headers.items()}
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(found[name]) * unit_s)
        except (KeyError, ValueError):
            continue
    try:
        until = parsedate_to_datetime(found["retry-after"])
    except (KeyError, ValueError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())


class Retrying(Wrapper):
    """Makes a call up to TRIES times.

    Args:
        seconds_left: Of the time budget; a wait that does not fit is not begun.
    """

    def __init__(
        self,
        inner: Model,
        *,
        sleep: Sleep = time.sleep,
        pick: Pick = random.uniform,
        seconds_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        super().__init__(inner)
        self._sleep = sleep
        self._pick = pick
        self._seconds_left = seconds_left

    def complete(self, request: ChatRequest) -> ChatReply:
        failures = 0
        while True:
            try:
                return self.inner.complete(request)
            except ModelError as error:
                failures += 1
                if failures >= TRIES.get(error.code, 1):
                    raise
                delay_s = wait_s(failures, error.retry_after_s, self._pick)
                if delay_s > LONGEST_WAIT_S:
                    raise
                self._wait(delay_s, error)

    def _wait(self, delay_s: float, error: ModelError) -> None:
        left_s = self._seconds_left()
        if left_s is not None and delay_s >= left_s:
            raise BudgetError(
                f"budget: waiting {delay_s:.0f} s for `{self.name}` does not fit into the "
                f"{left_s:.0f} s left ({error})",
                limit="seconds",
            ) from error
        self._sleep(delay_s)
