"""What the loop reads out of a task and what it proposes: frozen values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: A validation rule as a workflow file holds it, e.g. `{"type": "file_exists", "path": "a.txt"}`.
RuleData = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of the workspace, as the survey saw it.

    Attributes:
        name: Path relative to the workspace, with `/`.
        kind: `text`, `csv`, `json`, `binary` or `empty`.
        head: First lines, redacted, at most 2,000 characters.
        columns: CSV header names or keys of the first JSON object; empty when there are none.
        lines: Number of lines of a text file read whole; -1 when it was not.
    """

    name: str
    bytes: int
    kind: str
    head: str = ""
    columns: tuple[str, ...] = ()
    lines: int = -1


@dataclass(frozen=True, slots=True)
class Survey:
    """The workspace as the loop sees it: relative, sorted, bounded (`cut` says it was)."""

    root: str
    files: tuple[FileInfo, ...]
    folders: tuple[str, ...] = ()
    cut: bool = False

    def get(self, name: str) -> FileInfo | None:
        return next((file for file in self.files if file.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(file.name for file in self.files)


@dataclass(frozen=True, slots=True)
class Goal:
    """One operation: a capability with its arguments, and why it was chosen.

    Attributes:
        text: The fragment of the task that it came from.
        inputs: Files it reads, relative to the workspace.
        outputs: Files it writes.
        score: How well the capability fits the fragment, less what its arguments leave unused.
        fit: How well the capability alone fits the fragment, about 0 to 1.
        why: Evidence in words, for the trace that `show` prints.
    """

    text: str
    tool: str
    args: Mapping[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    score: float = 0.0
    fit: float = 0.0
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One reading of the whole task: goals in order. Two with equal `key` do the same."""

    goals: tuple[Goal, ...]
    score: float
    why: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple(
            (g.tool, tuple(sorted((k, repr(v)) for k, v in g.args.items()))) for g in self.goals
        )

    @property
    def results(self) -> tuple[str, ...]:
        """The files the task asked for, without the intermediate ones."""
        return tuple(
            name for goal in self.goals for name in goal.outputs if not name.startswith(".work/")
        )


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What must hold at the end. Frozen once the first run begins.

    Attributes:
        hard: Reject a result: the person's own, a capability's contract, the artefact's format.
        origin: `given` or `derived`.
    """

    hard: tuple[RuleData, ...]
    origin: str = "derived"


@dataclass(frozen=True, slots=True)
class Strength:
    """Whether the acceptance would reject every different result; else what survived, in words.

    `disputed` says how the result differs from that of a second reading; empty when it does not.
    """

    strong: bool
    weak_because: tuple[str, ...] = ()
    disputed: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """All that plain code and embeddings make of a task.

    Attributes:
        candidates: Feasible readings, best first, no two with the same key.
        plan: The best candidate as short sentences, one a goal.
        artefacts: New files that the task names.
        problems: Why nothing is feasible, or what had to be assumed.
        missing: What to say of a file that the task reads and that is not there; else "".
        vague: What to say when nothing tells which file is to be read; else "".
        unclear: The part of the task that the best candidate only guesses at; "" when none.
    """

    task: str
    candidates: tuple[Candidate, ...]
    plan: tuple[str, ...]
    artefacts: tuple[str, ...] = ()
    problems: tuple[str, ...] = field(default=())
    missing: str = ""
    vague: str = ""
    unclear: str = ""
