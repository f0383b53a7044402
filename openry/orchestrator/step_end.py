"""How the work of one run ended, as whoever did it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How the work of one run ended, before anybody validated it.

    Attributes:
        reason: Why it failed; empty when it did not.
        result: What is kept beside the payload, e.g. a capability's ToolResult.
        interrupted: It was ended from outside: brake, cancel or shutdown; the ledger knows which.
        items: Those of a `for_each`, whose own runs do the work.
    """

    ok: bool
    payload: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    result: Mapping[str, Any] | None = None
    interrupted: bool = False
    items: Sequence[Any] | None = None
    tokens: int = 0
    cost_usd: float = 0.0


def failed(reason: str, **more: Any) -> StepEnd:
    shown = " ".join(reason.split())
    cut = shown if len(shown) <= _REASON_CHARS else shown[:_REASON_CHARS] + " …"
    return StepEnd(False, reason=cut, **more)
