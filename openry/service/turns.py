"""Calls in threads of their own, so many at once; the others wait for their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from openry.service.desk import Recall

_T = TypeVar("_T")


class Turns:
    """At most `at_once` calls run; the others wait in the order in which they came."""

    def __init__(self, at_once: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="call")

    async def take(self, work: Callable[[Recall], _T], stop: Recall) -> _T:
        """Do `work`, which `stop` ends early; so does being cancelled.

        Work that has not begun by then is not done.
        """

        def do() -> _T:
            with stop:
                return work(stop)

        done = self._threads.submit(do)
        try:
            return await asyncio.wrap_future(done)
        except asyncio.CancelledError:
            if not done.cancel():
                stop.now()
            raise
