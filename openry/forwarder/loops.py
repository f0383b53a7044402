"""Does whoever acts go round in circles? Judged by what was done and what came of it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock

from openry.config import Config

#: Who waits between two looks is polling, and not going in circles.
_WAITING = re.compile(r"(?:^|[\s;|&(])(?:sleep|wait|inotifywait|watch)(?:$|[\s;|&)])")
Step = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Limits:
    """When it is a loop; see `loops` in the settings.

    Attributes:
        same: The same action with the same result, so often in a row.
        cycle_length: Longest cycle that is looked for; `cycle_repeats`: how often it comes.
        share: Part of the last `window` actions that were there before among these.
    """

    same: int = 3
    cycle_length: int = 4
    cycle_repeats: int = 3
    share: float = 0.7
    window: int = 20

    @classmethod
    def of(cls, config: Config) -> Limits:
        return cls(
            config.loop_same,
            config.loop_cycle_length,
            config.loop_cycle_repeats,
            config.loop_share,
            config.loop_window,
        )


def find_loop(steps: Sequence[Step], limits: Limits) -> str:
    """Why the last of these steps (action, result) are a loop, in words; empty when not.

    >>> find_loop([("ls", "a")] * 3, Limits())
    'you ran this 3 times with the same result'
    >>> find_loop([("ls", "a"), ("ls", "b"), ("ls", "a")], Limits())
    ''
    """
    if len(steps) >= limits.same and len(set(steps[-limits.same :])) == 1:
        return f"you ran this {limits.same} times with the same result"
    for length in range(2, limits.cycle_length + 1):
        last = list(steps[-length * limits.cycle_repeats :])
        cycle = last[:length]
        if len(last) == length * limits.cycle_repeats and last == cycle * limits.cycle_repeats:
            return f"you ran the same {length} commands {limits.cycle_repeats} times in turn"
    last = list(steps[-limits.window :])
    again = len(last) - len(set(last))
    if len(last) == limits.window and again >= limits.share * limits.window:
        return f"you ran {again} of your last {len(last)} commands before, with the same result"
    return ""


class Circles:
    """What one run did, and whether it was told already that it goes in circles."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        longest = max(limits.window, limits.same, limits.cycle_length * limits.cycle_repeats)
        self._steps: deque[Step] = deque(maxlen=longest)
        self._warned = False
        self._lock = Lock()

    def note(self, action: str, text: str, result: str) -> tuple[str, bool]:
        """Take in what was done. Returns why that is a loop, and whether it is one too many.

        After a warning the count begins anew: who goes on as before is braked at the next one.
        """
        if _WAITING.search(text):
            with self._lock:
                self._steps.clear()
            return "", False
        digest = blake2b(result.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        with self._lock:  # actions of one agent may end at the same time
            self._steps.append((action, digest))
            why = find_loop(tuple(self._steps), self._limits)
            if not why:
                return "", False
            self._steps.clear()
            warned, self._warned = self._warned, True
            return why, warned
