"""One hand for many callers at once; each call can be called off by itself."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, Self

from openry.agent.calls import Called, call_tool, preview_call
from openry.agent.giving import secrets_of_server
from openry.capability import Registry, ToolDefinition
from openry.config import Config, make_home
from openry.errors import OpenRYError, SandboxError, StorageError
from openry.forwarder import Hand
from openry.forwarder.bounds import bounded
from openry.ledger.fast import FastLedger
from openry.ledger.gates import StatusOutcome
from openry.models import Command, CommandResult, RunContext, SandboxSpec

#: Of a line that a running command wrote, as it is shown.
_LINE_CHARS = 200
_LINE_ENDS = re.compile(rb"[\r\n]+")


class Recall:
    """One call: ended early by `now()`, from any thread, before or while it runs; and heard, by its
    last line. It is entered while it runs: the calls that wait, which may be many, need no `fd`.
    """

    def __init__(self) -> None:
        self.fd = self._end = -1
        self._called = False
        self._closing = Lock()
        self._heard = b""

    def __enter__(self) -> Self:
        with self._closing:
            self.fd, self._end = os.pipe()
            if self._called:
                os.write(self._end, b"x")
        return self

    def hear(self, written: bytes) -> None:
        """Take in what the command wrote."""
        self._heard = (self._heard + written)[-4 * _LINE_CHARS :]

    @property
    def last_line(self) -> str:
        """The last line that it wrote, whole or not; empty before the first one."""
        lines = [line for line in _LINE_ENDS.split(self._heard) if line.strip()]
        text = lines[-1].decode("utf-8", "replace").strip() if lines else ""
        return "".join(sign for sign in text if sign.isprintable())[:_LINE_CHARS]

    def now(self) -> None:
        """End it, unless it is over."""
        with self._closing:
            self._called = True
            if self._end >= 0:
                os.write(self._end, b"x")

    def __exit__(self, *_: object) -> None:
        with self._closing:
            for fd in (self.fd, self._end):
                if fd >= 0:
                    os.close(fd)
            self.fd = self._end = -1


@dataclass(frozen=True, slots=True)
class Heard:
    """A call that runs.

    Attributes:
        call: Its number in this server, from 1.
        what: The tool or the command line.
        seconds: For how long.
        line: The last line that it wrote, at most 200 characters.
    """

    call: int
    what: str
    seconds: float
    line: str


class Desk:
    """What MCP and HTTP offer: the tools, command lines, dry runs. Safe from several threads.

    Args:
        tools: The tools that are offered.
        folder: Where commands run; paths in arguments are relative to it.
        policy: Names of command policies that hold for every call.
        backend: The sandbox round every command; its workspace is `folder`.

    Raises:
        SandboxError: That sandbox cannot be built here.
    """

    def __init__(
        self,
        config: Config,
        tools: Registry,
        folder: Path,
        *,
        policy: Sequence[str] = (),
        backend: str = "none",
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self.config = config
        self._env = env
        self._numbers = count(1)
        self._calls: dict[int, tuple[str, float, Recall]] = {}
        self.tools = tools
        self.folder = folder.resolve()
        here = str(self.folder)
        spec = SandboxSpec() if backend == "none" else SandboxSpec(backend, write=(here,))
        context = RunContext(workspace=here, sandbox=spec, policy=tuple(policy))
        self.ledger = FastLedger(config.ledger)
        make_home(config)
        self._hand = Hand(self.ledger, bounded(context, config.home_dir), config, env=env)
        ready = self._hand.preview(Command(text=":"))  # policy and sandbox: once, not per call
        if ready.exit_code:
            raise SandboxError(ready.stderr.strip().removeprefix("openry: "))
        with suppress(StorageError):  # then each call says what is wrong
            self.ledger.make_room()

    def tool(self, name: str) -> ToolDefinition:
        """One of the tools offered.

        Raises:
            NotFoundError: None has that name; the message offers the nearest.
        """
        return self.tools.get(name)

    def schema(self, name: str) -> dict[str, Any] | None:
        """What the arguments of a tool must be; None when there is no such tool."""
        return self.tools.get(name).json_schema() if name in self.tools else None

    def invoke(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        timeout_s: float | None = None,
        recall: Recall | None = None,
    ) -> Called:
        """Call a tool.

        Raises:
            NotFoundError: There is no such tool.
            BadArgumentsError: The arguments do not fit; nothing was run.
            StorageError: The ledger could not be written; nothing was started.
        """
        hand, tool = self._for(recall), self.tool(name)
        secrets = secrets_of_server(tool, self._env)
        with self._running(name, recall):
            return call_tool(
                hand, tool, arguments, self.folder, timeout_s=timeout_s, secrets=secrets
            )

    def preview(self, name: str, arguments: Mapping[str, Any]) -> CommandResult:
        """What `invoke` would do, as JSON in `stdout`."""
        return preview_call(self._hand, self.tool(name), arguments, self.folder)

    def run(
        self, command: Command, *, dry_run: bool = False, recall: Recall | None = None
    ) -> CommandResult:
        """Run a command line in the folder."""
        placed = replace(command, cwd=str(self.folder / command.cwd))
        hand = self._for(recall)
        if dry_run:
            return hand.preview(placed)
        with self._running(self.clean(command.text), recall):
            return hand.forward(placed)

    def heard(self) -> tuple[Heard, ...]:
        """The calls that run and what each wrote last, those that wrote nothing left out."""
        now = time.monotonic()
        return tuple(
            Heard(number, what, round(now - since, 1), call.last_line)
            for number, (what, since, call) in sorted(self._calls.copy().items())
            if call.last_line
        )

    @contextmanager
    def _running(self, what: str, call: Recall | None) -> Iterator[None]:
        """While in it, the call is among those that are heard."""
        if call is None:
            yield
            return
        number = next(self._numbers)
        self._calls[number] = (what, time.monotonic(), call)
        try:
            yield
        finally:
            del self._calls[number]

    def report(
        self, run_id: str, token: str, status: str, payload: Mapping[str, Any]
    ) -> StatusOutcome:
        """Record what an agent says of its run; secrets in `payload` are replaced first.

        Raises:
            UsageError: `status` is none that may be reported.
            StorageError: The ledger could not be written.
        """
        return self.ledger.report(RunContext(run_id, token=token), status, self.clean(payload))

    def clean(self, item: Any) -> Any:
        """`item`, made of JSON values, without secrets."""
        return self._hand.clean(item)

    def _for(self, recall: Recall | None) -> Hand:
        if recall is None:
            return self._hand
        return self._hand.woken_by(recall.fd).watched_by(recall.hear)


def explain(error: OpenRYError, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A refused call as its caller reads it: every problem, and the schema to go by."""
    problems = getattr(error, "problems", ()) or (str(error),)
    told: dict[str, Any] = {"error": error.code, "message": str(error), "problems": [*problems]}
    return {**told, "schema": schema} if schema else told
