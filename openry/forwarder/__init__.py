"""The only way from a request to a process. On the forwarder's path: nothing heavy here.

The thin client is here too, and must not load the hand.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.forwarder.hand import Hand

__all__ = ["Hand"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(name)
    from openry.forwarder.hand import Hand

    return Hand
