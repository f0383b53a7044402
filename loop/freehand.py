"""The comparison: a small model writes shell commands freely, and the hand runs them.

Nothing of the loop helps it: no capabilities, no diagnosis, no edits. Each try begins in a fresh
copy of the folder; the first whose result the person's rules accept is kept.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loop.kit import Kit
from loop.values import RuleData
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
class Done:
    """What came of it: whether the rules accepted a try, and what all tries cost."""

    accepted: bool
    calls: int
    tokens: int


def attempt(kit: Kit, task: str, accept: Sequence[RuleData], folder: Path, tries: int) -> Done:
    """Let the configured model try up to `tries` times; `folder` is left as the kept try made it.

    The first answer is greedy, the others are drawn at temperature 0.8. Without an accepted try
    the last one stands.
    """
    model = open_model(kit.config.model, config=kit.config)
    rules, _ = parse_rules(list(accept))
    tokens = 0
    with tempfile.TemporaryDirectory(prefix="openry-free-") as place:
        before = Path(place) / "before"
        shutil.copytree(folder, before, symlinks=True)
        for number in range(tries):
            reply = model.complete(
                ChatRequest(
                    (system(_SYSTEM), *_shots(), user(_question(task, before))),
                    max_tokens=_MAX_TOKENS,
                    temperature=0.8 if number else 0.0,
                    seed=number,
                    attempt=number,
                )
            )
            tokens += reply.tokens
            _put_back(before, folder)
            hand = Hand(kit.fast, _context(folder), kit.config)
            hand.forward(Command(text=command_in(reply.text), timeout_s=_TIMEOUT_S))
            verdicts = check_rules(rules, workspace=folder, payload={}, run=hand.forward)
            if all(verdict.passed for verdict in verdicts):
                return Done(accepted=True, calls=number + 1, tokens=tokens)
    return Done(accepted=False, calls=tries, tokens=tokens)


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


def _put_back(before: Path, folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    shutil.copytree(before, folder, symlinks=True, dirs_exist_ok=True)
