"""What a rule may ask outside the workspace: a command, the ledger, the network, a snapshot.

Everything goes through the hand in the step's own sandbox, where the workspace can only be read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from openry.errors import UsageError
from openry.forwarder.hand import Hand
from openry.ledger.ask import rows_of
from openry.ledger.runs import Run
from openry.models import Command, CommandResult, RunContext, SandboxSpec
from openry.models.command import MANUAL_RUN
from openry.orchestrator.course import Standing
from openry.orchestrator.room import Room
from openry.orchestrator.rules_scene import CannotEvaluate
from openry.orchestrator.settings import blackboard_of, policies_of, sandbox_of
from openry.orchestrator.spec import SubStep
from openry.sandbox.hosts import canonical, is_allowed

_PORTS = {"http": 80, "https": 443}
_SLACK_S = 5.0


class Outside:
    """For the rules about one run, or about an instance between two big steps."""

    def __init__(
        self, room: Room, standing: Standing, run: Run | None, step: SubStep | None
    ) -> None:
        self._room, self._standing, self._run, self._step = room, standing, run, step

    def run(self, command: Command) -> CommandResult:
        """A rule's command. It belongs to no run: the one that is judged is over."""
        return self._forward(command, policies_of(self._standing, self._step))

    def query(self, text: str) -> bool:
        """Whether a SELECT over what is about this instance gives a row."""
        path = self._room.ledger.path
        if path is None:
            raise CannotEvaluate("only a ledger in a file can be asked")
        about = {
            "instance_id": self._standing.instance_id,
            "run_id": self._run.run_id if self._run else "",
        }
        try:
            return rows_of(str(path), text, **about) > 0
        except UsageError as error:
            raise CannotEvaluate(str(error)) from None

    def fetch(self, method: str, url: str, timeout_s: float) -> int:
        """The status of a web address, asked from inside the sandbox."""
        return self._ask(method, url, timeout_s)

    def _ask(self, method: str, url: str, timeout_s: float, body: str = "") -> int:
        self._refuse_closed(url)
        argv = (
            sys.executable, "-I", "-m", "openry.orchestrator.fetch", method, url, str(timeout_s),
        )  # fmt: skip
        env = {"REQUEST_BODY": body} if body else {}
        limits: dict[str, Any] = {"timeout_s": timeout_s + _SLACK_S, "env": env}
        command = Command(stages=(argv,), label=f"{method} {url}", **limits)
        result = self._forward(command, ())
        if not result.ok:
            raise CannotEvaluate(f"`{url}`: {_why(result)}")
        return int(result.stdout)

    def tell(self, text: str, env: Mapping[str, str], timeout_s: float) -> str:
        """Run a notice's command; why it failed, or nothing."""
        command = Command(text=text, env=env, timeout_s=timeout_s)
        result = self._forward(command, policies_of(self._standing, self._step))
        return "" if result.ok else _why(result)

    def post(self, url: str, body: str, timeout_s: float) -> str:
        """Send a notice to a web address; why that failed, or nothing."""
        try:
            status = self._ask("POST", url, timeout_s, body)
        except CannotEvaluate as error:
            return str(error)
        return "" if status < 400 else f"`{url}` answered {status}"

    def changed(self) -> Iterable[str]:
        """What differs from the snapshot before the step."""
        if self._run is None or not self._run.snapshot_id:
            raise CannotEvaluate("there is no snapshot from before the step")
        store = self._room.snapshots
        now = store.create(Path(self._standing.workspace))
        return (change.path for change in store.diff(self._run.snapshot_id, now.id))

    def _refuse_closed(self, url: str) -> None:
        """Say what is not let out before anything is started."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError as error:
            raise CannotEvaluate(f"`{url}` is no address: {error}") from None
        if parts.scheme not in _PORTS or not host:
            raise CannotEvaluate(f"`{url}` is no web address")
        sandbox = self._sandbox
        if sandbox.network or sandbox.backend == "none":
            return
        if not is_allowed(canonical(host), port, sandbox.hosts):
            allowed = ", ".join(sandbox.hosts) or "none"
            raise CannotEvaluate(
                f"`{host}` is not among the hosts that the sandbox allows ({allowed});"
                f" name it: `sandbox: {{network: [{host}]}}`"
            )

    @property
    def is_confined(self) -> bool:
        """Whether what is run stands in a sandbox."""
        return self._sandbox.backend != "none"

    @property
    def _sandbox(self) -> SandboxSpec:
        return sandbox_of(self._standing, self._step, self._room.config, writable=False)

    def _forward(
        self, command: Command, policy: Sequence[str | Mapping[str, Any]]
    ) -> CommandResult:
        context = RunContext(
            run_id=MANUAL_RUN,
            workflow=self._standing.spec.name,
            step_id=self._step.id if self._step else "",
            instance_id=self._standing.instance_id,
            workspace=self._standing.workspace,
            sandbox=self._sandbox,
            policy=tuple(policy),
            **blackboard_of(self._standing, self._step, self._room.config),
        )
        return Hand(self._room.fast, context, self._room.config).forward(command)


def _why(result: CommandResult) -> str:
    said = result.stderr.strip() or result.note or str(result.ending)
    return said.splitlines()[-1]
