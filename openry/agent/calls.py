"""A call of a tool through a hand, from arguments to what its caller reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from openry.agent.giving import Secrets, no_secrets, variables
from openry.capability import Confirm, ToolDefinition, ToolResult, dry_run, invoke, prepare
from openry.errors import BadArgumentsError, UsageError
from openry.forwarder import Hand
from openry.forwarder.forms import without_duplicates
from openry.models import Command, CommandResult, Ending

_NOT_STARTED = (Ending.BRAKED, Ending.REFUSED)


@dataclass(frozen=True, slots=True)
class Called:
    """What came of a call.

    Attributes:
        answer: The four keys; `stdout` holds the ToolResult as one line of JSON, unless the hand
            did not let the call through.
        result: The ToolResult; None when the hand did not let the call through.
    """

    answer: CommandResult
    result: ToolResult | None = None


def call_tool(
    hand: Hand,
    tool: ToolDefinition,
    given: Mapping[str, Any],
    workspace: Path,
    *,
    timeout_s: float | None = None,
    confirm: Confirm | None = None,
    secrets: Secrets = no_secrets,
) -> Called:
    """Call a tool.

    Args:
        confirm: Asks the person who sits there; without it the hand asks in the ledger.
        secrets: Gives the secrets that the tool declares.

    Raises:
        BadArgumentsError: The arguments do not fit; nothing was run.
        StorageError: The ledger could not be written; nothing was started.
    """
    asked: list[CommandResult] = []
    env = variables(tool, given, secrets)

    def run(command: Command) -> CommandResult:
        limited = replace(command, env={**command.env, **env}) if env else command
        limited = limited if timeout_s is None else replace(limited, timeout_s=timeout_s)
        asked.append(hand.forward(limited))
        return asked[-1]

    result = invoke(tool, given, run, workspace, confirm=confirm, hand_asks=True)
    if taken := tuple(_taken_for_text(tool, given)):
        result = result.model_copy(update={"notes": (*taken, *result.notes)})
    last = asked[-1] if asked else None
    if last is not None and last.ending in _NOT_STARTED:
        return Called(last)
    code = 0 if result.success else (last.exit_code if last else 126) or 1
    took = last.duration_s if last else 0.0
    stderr = last.stderr if last else ""
    return Called(CommandResult(code, result.to_json() + "\n", stderr, took), result)


def _taken_for_text(tool: ToolDefinition, given: Mapping[str, Any]) -> Iterator[str]:
    """What is said of values that are no text where one is wanted, and were taken for it."""
    for name, value in given.items():
        types = tool.parameters[name].types if name in tool.parameters else ()
        if "string" in types and isinstance(value, int | float) and not _fits(value, types):
            text = json.dumps(value)
            schema = json.dumps(tool.json_schema()["properties"][name], ensure_ascii=False)
            yield f'`{name}` is a string: {text} was taken for "{text}"; its schema: {schema}'


def _fits(value: float, types: Sequence[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in types
    return "number" in types or (isinstance(value, int) and "integer" in types)


@contextmanager
def told_with_schema(tool: ToolDefinition) -> Iterator[None]:
    """Bad arguments are said together with the schema that they must fit.

    Raises:
        BadArgumentsError: As within, and one line more.
    """
    try:
        yield
    except BadArgumentsError as error:
        schema = json.dumps(tool.json_schema(), ensure_ascii=False)
        told = f"the arguments must fit {schema}"
        raise BadArgumentsError((*error.problems, told)) from error


def preview_call(
    hand: Hand,
    tool: ToolDefinition,
    given: Mapping[str, Any],
    workspace: Path,
    *,
    timeout_s: float | None = None,
) -> CommandResult:
    """What a call would do and what the hand would say of it, as JSON in `stdout`.

    Nothing is started or recorded.

    Raises:
        BadArgumentsError: The arguments do not fit.
    """
    command = prepare(tool, given, workspace)
    said = hand.preview(command if timeout_s is None else replace(command, timeout_s=timeout_s))
    if said.exit_code:
        return said
    plan = asdict(dry_run(tool, given, workspace))
    del plan["stages"]  # the hand shows them as `argv`, as they would be started
    shown = {"dry_run": True, **hand.clean(plan), **json.loads(said.stdout)}
    if tool.requires_confirmation and shown["verdict"] == "allow":
        shown |= {"verdict": "confirm", "reason": "the capability asks a person first"}
    return replace(said, stdout=json.dumps(shown, ensure_ascii=False) + "\n")


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call, from JSON.

    Raises:
        UsageError: They are no JSON object.
    """
    try:
        given = json.loads(text, object_pairs_hook=without_duplicates)
    except ValueError as error:
        raise UsageError(f"the arguments are not JSON: {error}") from error
    except RecursionError:
        raise UsageError("the arguments are nested too deep") from None
    if not isinstance(given, dict):
        raise UsageError('the arguments must be a JSON object, e.g. {"path": "app.log"}')
    return given
