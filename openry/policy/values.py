"""What a policy says of a command line, as values."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from openry.models.value import value


class Decision(IntEnum):
    """What a policy says of a command, ordered so that the strictest is `max()`."""

    ALLOW = 0
    CONFIRM = 1  #: ask a person; DENY where nobody can be asked
    DENY = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Part(NamedTuple):
    """The verdict on one simple command of a line.

    Attributes:
        argv: Its words as far as they are known; `…` stands for what only the run will tell.
        rule: The rule that decided, e.g. `allow git`; `default` or `opaque` when none did.
        instead: What would be allowed instead; else empty.
    """

    argv: tuple[str, ...]
    decision: Decision
    rule: str
    reason: str
    instead: str = ""


@value
class Verdict:
    """What may become of a command line: its strictest part, and what it touches.

    Attributes:
        reads: Paths that the line names to be read; absolute, with `*` where a pattern stands.
        hosts: `host:port` of every URL it names.
    """

    decision: Decision
    reason: str
    rule: str = ""
    parts: tuple[Part, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    instead: str = ""

    @property
    def allowed(self) -> bool:
        return self.decision is Decision.ALLOW
