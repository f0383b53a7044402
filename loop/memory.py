"""What earlier sessions tried for a failure like this one, and how it went.

It ranks proposals and tells a planner what helped; it never applies anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loop.diagnose import Diagnosis, normalised
from loop.edits import Proposal
from openry.ledger.db import Ledger
from openry.ledger.loop_memory import like

#: Like failures that are looked at.
LIKE = 20


@dataclass(frozen=True, slots=True)
class Memory:
    """Per operation how often it was accepted, and tried, for failures like one."""

    accepted: Counter[str]
    tried: Counter[str]

    def rank(self, proposal: Proposal) -> float:
        """Smaller is more promising: the share of failures of its first operation.

        What was never tried lies between what mostly worked and what mostly did not. One success
        or failure more than there was keeps a single case from deciding.
        """
        operation = proposal.edits[0].op if proposal.edits else "redraft"
        return 1 - (self.accepted[operation] + 1) / (self.tried[operation] + 2)

    def lines(self) -> tuple[str, ...]:
        """What a planner is told: operations and figures, nothing of other tasks."""
        return tuple(
            f"`{operation}` was accepted {self.accepted[operation]} of {tried} times"
            for operation, tried in self.tried.most_common(5)
        )


#: From a diagnosis to what is remembered of its like.
Remember = Callable[[Diagnosis], Memory]


def nothing(diagnosis: Diagnosis) -> Memory:
    """The memory of whoever has none."""
    return Memory(Counter(), Counter())


def recall(ledger: Ledger, session_id: str, began: str) -> Remember:
    """The memory of a session: what was known when it began, so that it decides the same again."""

    def remember(diagnosis: Diagnosis) -> Memory:
        return counted(like(ledger, words(diagnosis), before=began, but=session_id, limit=LIKE))

    return remember


def words(diagnosis: Diagnosis) -> str:
    """A failure in the words it is looked for by."""
    verb = diagnosis.command.command.partition(" ")[0] if diagnosis.command else ""
    parts = (str(diagnosis.failure_class), diagnosis.rule, normalised(diagnosis.cause), verb)
    return " ".join(parts)


def counted(found: Sequence[dict[str, Any]]) -> Memory:
    """The figures of what was found."""
    tried = Counter(each["operation"] for each in found)
    accepted = Counter(each["operation"] for each in found if each["verdict"] == "accepted")
    return Memory(accepted, tried)


def search(ledger: Ledger, text: str, limit: int = LIKE) -> list[dict[str, Any]]:
    """Edits for failures whose words are like `text`, for a person."""
    return like(ledger, text, limit=limit, whole=True)
