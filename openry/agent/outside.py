"""An agent program that is not ours: started in a sandbox, with a door to its run and no more.

What it may do is what the hand at the other end of the door lets it; that `openry` is the only
program on its PATH steers it there, and the sandbox round it holds.
"""

from __future__ import annotations

import os
import select
import shlex
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from openry.agent import prompt
from openry.agent.adapters import Adapter, expanded, places_of
from openry.agent.attendant import Attendant
from openry.agent.task import AgentTask
from openry.capability import ToolDefinition, as_prompt
from openry.errors import UsageError
from openry.forwarder.door import NAME, Door
from openry.forwarder.hand import Hand
from openry.forwarder.run import carry_out
from openry.ledger.above import SANDBOX_MARK
from openry.models import Command, Ending, SandboxSpec

_LONGEST_ARGUMENT = 120 * 1024
_KEPT_CHARS = 4000
_NEVER_S = 1e8
_PROMPT_FILE = "prompt.md"
#: Of what a person's environment says, all that an agent's program gets beside what is named.
_PASSED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")


@dataclass(frozen=True, slots=True)
class Outside:
    """One attempt of one step by such a program.

    Attributes:
        hand: The run's: what the agent asks for is done by it.
        around: The sandbox round the agent itself.
        env: What tells it which run this is.
        stop_fd: Becomes readable when it must end at once.
    """

    adapter: Adapter
    task: AgentTask
    hand: Hand
    attendant: Attendant
    around: SandboxSpec
    model: str = ""
    max_turns: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    stop_fd: int = -1


@dataclass(frozen=True, slots=True)
class Ended:
    """How the program ended.

    Attributes:
        recalled: We ended it; else it went by itself.
        trouble: Why it was not started at all; empty when it was.
    """

    exit_code: int
    stdout: str
    stderr: str
    recalled: bool = False
    trouble: str = ""

    @property
    def last_line(self) -> str:
        lines = [line for line in (self.stderr or self.stdout).splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


def run_outside(outside: Outside) -> Ended:
    """Start the program, serve its door, and end it when it must; nothing of it is alive then.

    Raises:
        UsageError: It is not installed, or cannot be given its prompt.
        SandboxError: The sandbox round it cannot be built here.
        StorageError: There is no place for its socket.
    """
    program = outside.adapter.find()
    text = prompt_text(outside.task, outside.attendant.tools())
    door = Door(outside.attendant.answer)
    recall = Recall(outside.stop_fd, outside.adapter.linger_s)
    outside.attendant.on_final = recall.reported
    try:
        return _Start(outside, program, text, door.folder).run(recall)
    finally:
        recall.close()
        door.close()


def prompt_text(task: AgentTask, tools: tuple[ToolDefinition, ...]) -> str:
    """All that the agent is told: the hand's contract, then the task."""
    contract = prompt.render(
        "agent_outside.j2",
        workspace=task.workspace,
        capabilities=as_prompt(tools) if tools else "",
        wants_payload=task.expect_payload or bool(task.payload_keys),
        payload_keys=task.payload_keys,
        max_tool_calls=task.max_tool_calls,
        blackboard=task.blackboard,
        system=task.system,
    )
    return f"{contract}\n\n{prompt.task_prompt(task, ())}\n"


class Recall:
    """Says when the program must end: at once when the step does, a while after its report.

    Attributes:
        fd: Becomes readable then.
    """

    def __init__(self, stop_fd: int, linger_s: float) -> None:
        self.fd, self._write = os.pipe()
        self._told, self._tell = os.pipe()
        self._stop_fd, self._linger_s = stop_fd, linger_s
        self._reported = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="openry-recall", daemon=True)
        self._thread.start()

    def reported(self) -> None:
        """The agent has said how its task stands; it may tidy up now."""
        with self._lock:
            if not self._reported:
                self._reported = True
                os.write(self._tell, b"\0")

    def close(self) -> None:
        with self._lock:
            self._reported = True
            os.close(self._tell)
        self._thread.join()
        for fd in (self.fd, self._write, self._told):
            os.close(fd)

    def _watch(self) -> None:
        watched = [fd for fd in (self._stop_fd, self._told) if fd >= 0]
        ready, _, _ = select.select(watched, [], [])
        if self._stop_fd not in ready:
            if not os.read(self._told, 1):
                return  # it is over
            ready, _, _ = select.select(watched, [], [], self._linger_s)
            if self._told in ready and self._stop_fd not in ready:
                return
        os.write(self._write, b"\0")


class _Start:
    """Everything the program is started with."""

    def __init__(self, outside: Outside, program: str, text: str, folder: str) -> None:
        self.outside, self.program, self.text, self.folder = outside, program, text, folder
        confined = outside.around.backend != "none"
        self.inside = SANDBOX_MARK if confined else folder
        Path(folder, _PROMPT_FILE).write_text(text, "utf-8")
        bin_folder = Path(folder, "bin")
        bin_folder.mkdir(mode=0o700)
        fill_path(bin_folder, outside)

    def run(self, recall: Recall) -> Ended:
        outside, adapter = self.outside, self.outside.adapter
        hand = self._hand()
        command = Command(
            stages=(adapter.argv(self.program, self._values()),),
            stdin=self.text.encode() if adapter.prompt == "stdin" else None,
        )
        plan = hand.plan(command)
        plan = replace(
            plan,
            env={**plan.env, **self.environment(hand)},
            timeout_s=_NEVER_S,
            config=replace(plan.config, background="kill"),
            wake_fd=recall.fd,
        )
        done = carry_out(plan, 0, outside.hand.redactor)
        result = done.result
        if result.ending is Ending.REFUSED:
            trouble = result.note.removeprefix("openry: ") or "it could not be started"
            return Ended(result.exit_code, "", result.stderr, trouble=trouble)
        return Ended(
            result.exit_code,
            result.stdout[-_KEPT_CHARS:],
            result.stderr[-_KEPT_CHARS:],
            result.ending is Ending.INTERRUPTED,
        )

    def _values(self) -> dict[str, str]:
        outside = self.outside
        if outside.adapter.prompt == "argument" and len(self.text.encode()) > _LONGEST_ARGUMENT:
            raise UsageError(
                f"agent `{outside.adapter.name}`: the prompt is longer than an argument may be"
                " (120 KiB); put what is long into a file of the workspace"
            )
        return {
            "prompt": self.text,
            "prompt_file": f"{self.inside}/{_PROMPT_FILE}",
            "model": outside.model,
            "workspace": str(outside.task.workspace),
            "max_turns": str(outside.max_turns or ""),
            "run_id": outside.hand.context.run_id,
        }

    def environment(self, hand: Hand) -> dict[str, str]:
        """What is set over the environment of a command: our names reach the agent, no others."""
        outside, adapter = self.outside, self.outside.adapter
        passed = {name: os.environ[name] for name in adapter.pass_env if name in os.environ}
        return {
            **passed,
            **adapter.env,
            **outside.env,
            "PATH": f"{self.inside}/bin",
            "OPENRY_SOCKET": f"{self.inside}/{NAME}",
            "OPENRY_RUN_ID": outside.hand.context.run_id,
            "OPENRY_RUN_TOKEN": outside.hand.context.token,
        }

    def _hand(self) -> Hand:
        """A hand that starts the agent itself: no policy and no limit of the step is about that."""
        outside, around = self.outside, self.outside.around
        own = {name: os.environ[name] for name in (*_PASSED, "PATH") if name in os.environ}
        if around.backend == "none" and "HOME" in os.environ:
            own["HOME"] = os.environ["HOME"]
        if around.backend != "none":
            around = sandbox_around(around, outside.adapter, self.program, self.folder)
        context = replace(
            outside.hand.context, env={}, policy=(), sandbox=around, max_output_tokens=0
        )
        return Hand(outside.hand.ledger, context, outside.hand.config, env=own)


def sandbox_around(around: SandboxSpec, adapter: Adapter, program: str, folder: str) -> SandboxSpec:
    """The step's sandbox, and what the agent's own runtime needs beside it."""
    needs = adapter.needs
    programs = [program, *filter(None, map(shutil.which, needs.programs))]
    seen = {place for one in programs for place in places_of(one)}
    return replace(
        around,
        read=(*around.read, *sorted(seen), *expanded(needs.read)),
        write=(*around.write, *expanded(needs.write)),
        network=around.network or needs.network,
        hosts=(*around.hosts, *needs.hosts),
        door=folder,
    )


def fill_path(folder: Path, outside: Outside) -> None:
    """The folder that is the agent's PATH: the hand, the step's tools, what its runtime needs."""
    _script(folder / "openry", f"exec {shlex.quote(sys.executable)} -I -c {shlex.quote(_OPENRY)}")
    for tool in outside.attendant.tools():
        line = f'[ $# -gt 0 ] || set -- "{{}}"\nexec openry --call {tool.name} --args'
        _script(folder / tool.name, line)
    for name in outside.adapter.needs.programs:
        found = shutil.which(name)
        if found and not (folder / name).exists():
            (folder / name).symlink_to(os.path.abspath(found))  # noqa: PTH100  # links are kept


_OPENRY = "from openry.cli import program; program()"


def _script(path: Path, line: str) -> None:
    path.write_text(f'#!/bin/sh\n{line} "$@"\n', "utf-8")
    path.chmod(0o700)
