"""The comparison: a small model writes shell commands freely, and the hand runs them.

Nothing of the loop helps it: no capabilities, no diagnosis, no edits.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from loop.kit import Kit
from loop.values import RuleData
from openry.clock import monotonic
from openry.forwarder import Hand
from openry.llm import ChatRequest, Message, assistant, open_model, system, user
from openry.models import Command, RunContext, SandboxSpec
from openry.orchestrator.validation import check_rules, parse_rules

_SYSTEM = (
    "You write one POSIX shell command that does the task in the current folder. "
    "Answer with the command only, no explanation."
)
#: Shown first, so that the model knows the form; their tasks are of other kinds than a suite's.
_SHOTS = (
    ("Make the script run.sh executable", "chmod +x run.sh"),
    ("Put the size in bytes of photo.bin into size.txt", "stat -c %s photo.bin > size.txt"),
    ("Split list.txt into fields at colons and keep the third in third.txt",
     "cut -d: -f3 list.txt > third.txt"),
)  # fmt: skip
_FENCE = re.compile(r"```[a-z]*\n(.*?)```", re.DOTALL)
_MAX_TOKENS = 96
_TIMEOUT_S = 10.0
_HEAD_CHARS = 200


@dataclass(frozen=True, slots=True)
class Try:
    """One command that the model wrote, and what came of it.

    Attributes:
        ran: It ended with status 0.
        accepted: The checker accepts what it left.
        wrong: How that differs from the right result, which only the benchmark knows.
        cpu_s: Processor seconds of model and command.
    """

    ran: bool
    accepted: bool
    wrong: str
    tokens: int
    seconds: float
    cpu_s: float


class Tries:
    """The tries of one task, each made when first asked for, so that arms can share them.

    The first answer is greedy, the others are drawn at temperature 0.8; each try begins in the
    folder as it was.

    Args:
        rules: What the checker asks for.
        judge: Says how the folder differs from the right result.
    """

    def __init__(
        self,
        kit: Kit,
        task: str,
        rules: Sequence[RuleData],
        folder: Path,
        judge: Callable[[Path], str],
    ) -> None:
        self._kit = kit
        self._model = open_model(kit.config.model, config=kit.config)
        self._rules, _ = parse_rules(list(rules))
        self._judge = judge
        self._folder = folder
        self._question = _question(task, folder)
        self._made: list[Try] = []

    def up_to(self, most: int) -> Iterator[Try]:
        """The tries from the first on."""
        for number in range(most):
            if number == len(self._made):
                self._made.append(self._make(number))
            yield self._made[number]

    def _make(self, number: int) -> Try:
        began, cpu = monotonic(), cpu_s()
        reply = self._model.complete(
            ChatRequest(
                (system(_SYSTEM), *_shots(), user(self._question)),
                max_tokens=_MAX_TOKENS,
                temperature=0.8 if number else 0.0,
                seed=number,
                attempt=number,
            )
        )
        with tempfile.TemporaryDirectory(prefix="openry-free-") as place:
            folder = Path(place) / "copy"
            shutil.copytree(self._folder, folder, symlinks=True)
            hand = Hand(self._kit.fast, _context(folder), self._kit.config)
            done = hand.forward(Command(text=command_in(reply.text), timeout_s=_TIMEOUT_S))
            verdicts = check_rules(self._rules, workspace=folder, payload={}, run=hand.forward)
            return Try(
                done.ok,
                all(verdict.passed for verdict in verdicts),
                self._judge(folder),
                reply.tokens,
                monotonic() - began,
                cpu_s() - cpu,
            )


def cpu_s() -> float:
    """Processor seconds of this process and of those that it waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def command_in(text: str) -> str:
    """The command in an answer: its first line, inside a fence if there is one, that says one.

    >>> command_in("Sure!\\n```sh\\nsort a.txt > b.txt\\n```")
    'sort a.txt > b.txt'
    >>> command_in("$ wc -l a.txt")
    'wc -l a.txt'
    """
    fence = _FENCE.search(text)
    text = fence[1] if fence else text
    lines = [line.strip() for line in text.splitlines() if line.strip(" \t#")]
    lines = [line for line in lines if not line.startswith("#")]
    return lines[0].removeprefix("$ ").strip("`") if lines else "false"


def _shots() -> tuple[Message, ...]:
    return tuple(
        turn
        for task, command in _SHOTS
        for turn in (user(f"Task: {task}\nCommand:"), assistant(command))
    )


def _question(task: str, folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    heads = [
        f"{path.relative_to(folder)}:\n{path.read_text('utf-8', 'replace')[:_HEAD_CHARS]}"
        for path in files[:10]
    ]
    return "\n\n".join([*heads, f"Task: {task}\nCommand:"])


def _context(folder: Path) -> RunContext:
    sandbox = SandboxSpec(backend="auto", write=(str(folder),))
    return RunContext(workspace=str(folder), sandbox=sandbox)
