"""What an agent is asked to do, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Mode(StrEnum):
    """How an agent may act: by commands, or only by named capabilities."""

    FREE = "free"
    CAPABILITIES = "capabilities"


@dataclass(frozen=True, slots=True)
class Block:
    """A text that stands before the task in the prompt."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One attempt of one agent step, everything rendered.

    Attributes:
        text: The task itself, in the words of the workflow's author.
        workspace: Folder the commands work in; the enumerations of arguments come from it.
        offered: Names of the capabilities the step may use; in mode `capabilities` nothing else.
        payload: What the step before handed over.
        payload_keys: Keys the step must report.
        last_failure: What failed in the attempt before, for the prompt; empty in the first one.
        resume: What it is told of its work so far, when it goes on after a large output.
        max_turns: Replies of the model; 0 means no limit of its own.
        max_tool_calls: Commands and calls; 0 means no limit. The ledger holds the same limit.
        deadline_s: Monotonic seconds after which no further turn begins; None means never.
        parallel_actions: Actions of one reply that may be under way at a time.
        blackboard: Its commands have one, see `openry.session.blackboard`.
    """

    text: str
    workspace: Path
    mode: Mode = Mode.CAPABILITIES
    offered: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    expect_payload: bool = False
    payload_keys: tuple[str, ...] = ()
    last_failure: str = ""
    resume: str = ""
    system: str = ""
    max_turns: int = 20
    max_tool_calls: int = 10
    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    deadline_s: float | None = None
    parallel_actions: int = 1
    blackboard: bool = False


class AgentEnding(StrEnum):
    """How an agent's work ended; only the first three are statuses it reported itself."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    OVERFLOW = "overflow"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class AgentOutcome:
    """What an agent did.

    Attributes:
        reason: For `stopped` and `failed`, one word or sentence: `no_status`, `no_action`,
            `looped`, `max_turns`, `max_tool_calls`, `budget`, `timeout`, `braked`, `cut`, …
        payload: What it reported, already redacted by the ledger; empty when nothing was.
    """

    ending: AgentEnding
    reason: str = ""
    payload: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    turns: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
