"""Actions at the same time, as far as none needs what another one does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

T = TypeVar("T")


def carry_out(
    deeds: Sequence[Callable[[], T]], waits: Sequence[frozenset[int]], at_once: int
) -> list[T]:
    """What each deed came to, in their order.

    Args:
        waits: For each the earlier ones that must have ended before it begins.
        at_once: How many may be under way at a time.

    Raises:
        BaseException: What a deed raised, after those that were under way have ended; the rest is
            not begun.
    """
    # Only who has several at once waits for this to be imported.
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    done: dict[int, T] = {}
    waiting = list(range(len(deeds)))
    running: dict[Future[T], int] = {}
    with ThreadPoolExecutor(at_once, thread_name_prefix="action") as pool:
        while waiting or running:
            ready = [place for place in waiting if waits[place] <= done.keys()]
            for place in ready[: at_once - len(running)]:
                waiting.remove(place)
                running[pool.submit(deeds[place])] = place
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                done[running.pop(future)] = future.result()
    return [done[place] for place in range(len(deeds))]


class Together:
    """Calls `after` once for each action that ended: at once, or when none is under way any more.

    It is entered while several actions may be.
    """

    def __init__(self, after: Callable[[], object] | None) -> None:
        self._after = after
        self._lock = Lock()
        self._within = False
        self._owed = 0

    def __call__(self) -> None:
        with self._lock:
            self._owed += 1
        if not self._within:
            self._settle()

    def __enter__(self) -> None:
        self._within = True

    def __exit__(self, *_: object) -> None:
        self._within = False
        self._settle()

    def _settle(self) -> None:
        with self._lock:
            owed, self._owed = self._owed, 0
        if self._after is not None:
            for _ in range(owed):
                self._after()
