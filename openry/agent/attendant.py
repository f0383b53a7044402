"""Answers what the agent of a run asks for over the run's socket.

The agent's own `openry` is a thin client: gates, policy, sandbox and ledger are on this side, and
every file it names is judged by the rules of its step and opened here.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from openry.agent.calls import arguments_of, call_tool, preview_call, told_with_schema
from openry.capability import (
    Registry,
    ToolDefinition,
    as_json,
    as_mcp,
    as_openai,
    as_prompt,
)
from openry.errors import NotAllowedError, NotFoundError, OpenRYError, UsageError
from openry.forwarder.forms import (
    Given,
    exit_status,
    parse,
    report,
    run_command,
    wait_for_verdict,
)
from openry.forwarder.frames import Asked, Reply
from openry.forwarder.hand import Hand
from openry.forwarder.reading import read_regular
from openry.ledger.gates import wrong_token
from openry.ledger.tokens import fits
from openry.models import Answer, CommandResult, Ending

#: `passed` or `failed`, and why.
Judge = Callable[[Mapping[str, Any]], tuple[str, str]]
_OPEN = "-c, --call, --status, --capabilities and output"


class Attendant:
    """One run's.

    Args:
        hand: The run's.
        registry: All tools; read when one is asked for.
        offered: Names or patterns of those the step offers.
        judge: Says of a payload whether validation would pass it, and why not.

    `on_final` is called when the agent has reported how its task stands.
    """

    def __init__(
        self,
        hand: Hand,
        registry: Callable[[], Registry],
        offered: Sequence[str] = (),
        judge: Judge | None = None,
    ) -> None:
        self.hand = hand
        self.registry = registry
        self.offered = tuple(offered)
        self.judge = judge
        self.on_final: Callable[[], None] = lambda: None

    def answer(self, asked: Asked, wake_fd: int, stdin_fd: int) -> Reply:
        """Do what is asked; see `openry.forwarder.door.Answer`."""
        return Call(self, asked, wake_fd, stdin_fd).reply()

    def tools(self) -> tuple[ToolDefinition, ...]:
        return self.registry().scope(self.offered) if self.offered else ()


class Call:
    """One request of an agent."""

    def __init__(self, attendant: Attendant, asked: Asked, wake_fd: int, stdin_fd: int) -> None:
        self.asked = asked
        self.hand = attendant.hand.woken_by(wake_fd)
        self.hand.context = replace(attendant.hand.context, token=asked.token)
        self._attendant = attendant
        self._wake_fd, self._stdin_fd = wake_fd, stdin_fd

    def reply(self) -> Reply:
        first = self.asked.words[0] if self.asked.words else ""
        try:
            stranger = self._stranger()
            if stranger:
                return self._turned_away(stranger)
            if first == "output":
                looked = self.hand.look(self.asked.words[1:], self.asked.cwd)
                return Reply(looked.stdout, looked.exit_code, looked.stderr)
            if not first.startswith("-"):
                what = f"`openry {first}` is not available inside a run; there are {_OPEN}"
                return Reply("", 2, f"openry: {what}\n")
            given = parse(self.asked.words, self.read, self.asked.cwd)
            return _FORMS[given.form](self, given)
        except NotAllowedError as error:
            return self._not_allowed(error)
        except OpenRYError as error:
            return self._trouble(error)

    def read(self, name: str, limit: int, what: str) -> bytes:
        """A file that the agent names, by the rules of its step; `-` is what it sent along.

        Raises:
            NotAllowedError: The run may not read it.
            UsageError: It is no regular file.
        """
        if name == "-":
            return self.asked.body
        return read_regular(self.hand.check_reading(self._full(name)), limit, what)

    # --- who asks ---------------------------------------------------------------------------

    def _stranger(self) -> str:
        """Why nothing is done for the caller, before anything is read for it."""
        run_id, token = self.hand.context.run_id, self.asked.token
        row = self.hand.ledger.run(run_id)
        known = row is not None and fits(token, row.token_hash)
        return "" if known else f"not allowed: {wrong_token(run_id, token)}"

    def _turned_away(self, why: str) -> Reply:
        words = self.asked.words
        if "--status" in words:
            return Reply(_unacknowledged(self._status_word(), why))
        text = " ".join(words[1:2] if words[:1] == ("-c",) else words)
        return self._refused(f"openry: {why}", text)

    def _refused(self, sentence: str, text: str, rule: str = "") -> Reply:
        """Recorded; the gate has the first word, as for every other call."""
        hand, sentence = self.hand, self.hand.redactor.text(sentence)
        shown = hand.redactor.text(text)
        begun = hand.ledger.refuse(hand.context, shown, reason=sentence, rule=rule)
        if begun.braked is not None:
            return _four_keys(CommandResult(0, begun.braked, "", 0.0, Ending.BRAKED))
        return _four_keys(CommandResult(126, "", f"{begun.refused or sentence}\n", 0.0))

    def _not_allowed(self, error: NotAllowedError) -> Reply:
        if "--status" in self.asked.words:
            return Reply(_unacknowledged(self._status_word(), self.hand.redactor.text(str(error))))
        return self._refused(f"openry: {error}", " ".join(self.asked.words), error.rule)

    def _trouble(self, error: OpenRYError) -> Reply:
        sentence = f"openry: {self.hand.redactor.text(str(error))}\n"
        status = error.exit_status
        if not self.asked.words[0].startswith("-"):
            return Reply("", status, sentence)
        return Reply(Answer(status, "", sentence, 0).to_json() + "\n", status)

    def _status_word(self) -> str:
        words = self.asked.words
        return dict(zip(words, (*words[1:], ""), strict=True)).get("--status", "")

    # --- forms ------------------------------------------------------------------------------

    def _command(self, given: Given) -> Reply:
        if given.has("--stdin") and self._stdin_fd < 0:
            raise UsageError("--stdin: no standard input came along")
        result = run_command(self.hand, given, stdin_fd=self._stdin_fd)
        return _four_keys(result, exit_status(result, given))

    def _status(self, given: Given) -> Reply:
        said = report(self.hand, given, self._verdict)
        row = self.hand.ledger.run(self.hand.context.run_id)
        if row is not None and row.status != "in_progress":
            self._attendant.on_final()
        return Reply(said)

    def _verdict(self) -> tuple[str, str]:
        """What validation says of the run that was just reported."""
        judge = self._attendant.judge
        if judge is None:
            return wait_for_verdict(self.hand, self._wait)
        row = self.hand.ledger.run(self.hand.context.run_id)
        return judge(row.payload if row else {})

    def _wait(self, seconds: float) -> bool:
        """Let time pass; False once the caller is gone."""
        readable, _, _ = select.select([self._wake_fd], [], [], seconds)
        return not readable

    def _call(self, given: Given) -> Reply:
        name, arguments = given.text("--call"), given.content("--args", "the arguments", "{}")
        tool, folder = self._tool(name), given.cwd
        if folder:
            self.hand.check_reading(folder)
        workspace = Path(folder or self.hand.context.workspace)
        call = preview_call if given.has("--dry-run") else _called
        values = arguments_of(arguments)
        with told_with_schema(tool):
            result = call(self.hand, tool, values, workspace, timeout_s=given.seconds)
        return _four_keys(result, exit_status(result, given))

    def _tool(self, name: str) -> ToolDefinition:
        tools = self._attendant.tools()
        for tool in tools:
            if tool.name == name:
                return tool
        names = ", ".join(tool.name for tool in tools) or "none"
        raise NotFoundError(f"`{name}` is not offered here; offered: {names}")

    def _capabilities(self, given: Given) -> Reply:
        form, tools = given.text("--format", "json"), self._attendant.tools()
        if form == "prompt":
            return Reply(as_prompt(tools).rstrip() + "\n")
        made: dict[str, Callable[..., Any]] = {
            "json": as_json,
            "openai": as_openai,
            "mcp": as_mcp,
        }
        if form not in made:
            raise UsageError(f"--format must be json, prompt, openai or mcp; got `{form}`")
        return Reply(json.dumps(made[form](tools), ensure_ascii=False) + "\n")

    def _full(self, name: str) -> str:
        folder = self.asked.cwd or self.hand.context.workspace
        return os.path.normpath(os.path.join(folder, name))  # noqa: PTH118  # text, not a file


_FORMS: dict[str, Callable[[Call, Given], Reply]] = {
    "-c": Call._command,
    "--status": Call._status,
    "--call": Call._call,
    "--capabilities": Call._capabilities,
}


def _called(hand: Hand, *call: Any, timeout_s: float | None) -> CommandResult:
    return call_tool(hand, *call, timeout_s=timeout_s).answer


def _four_keys(result: CommandResult, status: int = 0) -> Reply:
    return Reply(result.answer().to_json() + "\n", status)


def _unacknowledged(status: str, message: str) -> str:
    said = {"status": status, "payload": {}, "acknowledged": False, "message": message}
    return json.dumps(said, ensure_ascii=False) + "\n"
