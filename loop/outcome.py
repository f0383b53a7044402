"""How a session ends: the outcome, what it cost, and where everything is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

SCHEMA_VERSION = 1
EXIT = {
    "converged": 0,
    "not_converged": 1,
    "unusable": 2,
    "budget": 3,
    "needs_human": 4,
    "interrupted": 130,
}


@dataclass(frozen=True, slots=True)
class Finished:
    """How a session ended; the last line of `--json`.

    Attributes:
        outcome: A key of `EXIT`.
        stop: Why the loop stopped, e.g. `target_met`.
        sentence: What a person should know or do; may be empty.
        results: The files that the task was about, those that were so already among them.
        removed: The files that it took away.
        confidence: What the runs show, and no more; empty unless converged.
    """

    outcome: str
    stop: str
    workflow: str = ""
    rounds: int = 0
    edits: int = 0
    acceptance: str = ""
    acceptance_strength: str = "weak"
    weak_because: tuple[str, ...] = ()
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    results: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    session: str = ""
    sentence: str = ""
    confidence: str = ""

    @property
    def exit_status(self) -> int:
        return EXIT[self.outcome]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "schema_version": SCHEMA_VERSION}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], confidence: str) -> Self:
        """The outcome that the journal has of an ended (or interrupted) session."""
        data = row["data"] or {}
        return cls(
            outcome=row["outcome"],
            stop=row["stop"],
            workflow=row["workflow_path"],
            rounds=row["rounds"],
            edits=row["edits"],
            acceptance=row["acceptance_origin"],
            acceptance_strength=row["acceptance_strength"] or "weak",
            weak_because=tuple(row["weak_because"]),
            tokens=row["tokens"],
            cost_usd=row["cost_usd"],
            seconds=row["seconds"],
            results=tuple(row["results"]),
            removed=tuple(data.get("removed", ())),
            session=row["session_id"],
            sentence=data.get("sentence", ""),
            confidence=confidence if row["outcome"] == "converged" else "",
        )
