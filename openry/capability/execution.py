"""A call from arguments to `ToolResult`; only the `RunCommand` it is given starts processes."""

from __future__ import annotations

import difflib
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from openry.capability.arguments import complete, paths_in, written
from openry.capability.definition import RetryPolicy, ToolDefinition
from openry.capability.parsers import ParseError, parse_noting
from openry.capability.rendering import label_of, output_of, prepare
from openry.capability.result import (
    ToolError,
    ToolResult,
    classify,
    error_classes,
    explained,
    notes_in,
    says_error,
)
from openry.models import Command, CommandResult, Ending, RunCommand

#: Asks a person; the text is what would be done.
Confirm = Callable[[str], bool]
_SIGNED_IN: set[str] = set()
#: The line in the place of what is left out of an answer.
_CUT = re.compile(
    r"^\[openry\] (?:[\d,]+ of [\d,]+ bytes left out here|output of [\d,]+ bytes in )", re.M
)
#: Where half a character may be named in JSON.
_HALVES = re.compile(r"\\u[dD]")


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a call would do."""

    label: str
    stages: tuple[tuple[str, ...], ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    side_effects: str
    network: bool
    requires_confirmation: bool


def dry_run(tool: ToolDefinition, args: Mapping[str, Any], workspace: Path) -> DryRun:
    """What a call would do, without doing it.

    Raises:
        BadArgumentsError: Every problem of the arguments at once.
    """
    command = prepare(tool, args, workspace)
    values = complete(tool, args)
    secrets = [str(values[name]) for name in tool.secrets if values.get(name)]
    return DryRun(
        command.label,
        tuple(tuple(_hidden(word, secrets) for word in stage) for stage in command.stages),
        paths_in(tool, values, "input"),
        written(tool, values),
        tool.side_effects,
        tool.network,
        tool.requires_confirmation,
    )


def _hidden(word: str, secrets: list[str]) -> str:
    for secret in secrets:
        word = word.replace(secret, "***")
    return word


def invoke(
    tool: ToolDefinition,
    args: Mapping[str, Any],
    run: RunCommand,
    workspace: Path,
    *,
    confirm: Confirm | None = None,
    hand_asks: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> ToolResult:
    """Call a tool.

    Args:
        confirm: Asked before a tool that requires it; without one such a tool is refused.
        hand_asks: `run` is a hand, which asks a person itself before a command that says so.

    Raises:
        BadArgumentsError: The arguments do not fit; nothing was run.
    """
    values = complete(tool, args)
    command = prepare(tool, args, workspace)
    if not tool.may_repeat(values):
        command = replace(command, once=True)
    if tool.requires_confirmation and confirm is None and hand_asks:
        command = replace(command, ask=f"`{tool.name}` is done only when a person agrees")
    elif tool.requires_confirmation and not (confirm and confirm(plan_text(tool, args))):
        return ToolResult(
            success=False, error=explained("refused", f"needs approval: {command.label}")
        )
    signed_out = _auth_failure(tool, run, workspace)
    if signed_out is not None:
        return ToolResult(success=False, error=signed_out)
    began, attempt = time.monotonic(), 0
    while True:
        attempt += 1
        result = run(command)
        error = _error_of(tool, result)
        policy = _retry_policy(tool, values, error)
        if error is None or attempt >= policy.attempts:
            break
        sleep(policy.backoff_s * 2 ** (attempt - 1))
    if error is not None and error.error_class == "not_found":
        hint = _near_file(tool, values, workspace) or error.hint
        error = error.model_copy(update={"hint": hint})
    made = _result(tool, values, result, error)
    took = round(time.monotonic() - began, 3)
    return made.model_copy(update={"execution_time": took, "attempts": attempt})


def plan_text(tool: ToolDefinition, args: Mapping[str, Any]) -> str:
    """What a person is asked to approve: the call, control characters made visible.

    Raises:
        BadArgumentsError: Every problem of the arguments at once.
    """
    text = label_of(tool, complete(tool, args), args)
    return "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)


def _auth_failure(tool: ToolDefinition, run: RunCommand, workspace: Path) -> ToolError | None:
    """The error of the tool's `auth_check`, which is run once before its first use."""
    check = tool.auth_check
    if check is None or tool.name in _SIGNED_IN:
        return None
    label = f"{tool.name}: auth check"
    stages = (tuple(check.command),)
    result = run(Command(stages=stages, cwd=str(workspace), label=label, capability=tool.name))
    if result.ok:
        _SIGNED_IN.add(tool.name)
        return None
    signed_out = explained("auth", f"`{tool.name}` is not logged in")
    return signed_out.model_copy(update={"hint": check.hint})


def _error_of(tool: ToolDefinition, result: CommandResult) -> ToolError | None:
    if result.ending is not Ending.EXITED or result.exit_code not in tool.ok_exits:
        return classify(result)
    said = says_error(tool.error_patterns, result)
    return classify(result).model_copy(update={"message": said}) if said else None


def _retry_policy(
    tool: ToolDefinition, values: Mapping[str, Any], error: ToolError | None
) -> RetryPolicy:
    if error is None:
        return RetryPolicy()
    own = tool.retry.get(error.error_class)
    if own is not None:
        return own
    row = error_classes()[error.error_class]
    attempts = row.attempts if tool.may_repeat(values) else 1
    return RetryPolicy(attempts=attempts, backoff_s=row.backoff_s)


def _result(
    tool: ToolDefinition,
    values: Mapping[str, Any],
    result: CommandResult,
    error: ToolError | None,
) -> ToolResult:
    raw, notes = result.stdout, notes_in(result.stderr)
    if "\ufffd" in raw:
        notes = (*notes, "bytes that are no UTF-8 text stand as `\ufffd`")
    if error is not None:
        return ToolResult(success=False, error=error, raw_output=raw, notes=notes)
    output = output_of(tool, values)
    if output and not raw:
        return ToolResult(success=True, data={"output": output}, notes=notes)
    if _is_cut(result):
        said = f"the output has {result.stdout_bytes:,} bytes and stands cut in raw_output"
        where = f", whole in {result.spill}" if result.spill else ""
        instead = "name a file with `output`, or ask" if "output" in tool.parameters else "ask"
        cut = f"{said}{where}: no data is made of a part; {instead} for less"
        return ToolResult(success=True, raw_output=raw, notes=(*notes, cut))
    if tool.returns.format == "number":
        return ToolResult(success=True, data=_number(raw), raw_output=raw, notes=notes)
    try:
        data, left_out = parse_noting(raw, tool.output_parser)
        notes = (*notes, *left_out)
        if _HALVES.search(raw) and (sound := _without_halves(data)) != data:
            data, notes = sound, (*notes, "halves of characters stand as `\ufffd` in the data")
    except ParseError as trouble:
        notes = (*notes, f"the output is no {tool.output_parser} ({trouble}); see raw_output")
        data = None
    return ToolResult(success=True, data=data, raw_output=raw, notes=notes)


def _without_halves(item: Any) -> Any:
    """`item` without lone surrogates, which JSON can name and nobody can write."""
    if isinstance(item, str):
        return item.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(item, dict):
        return {_without_halves(key): _without_halves(one) for key, one in item.items()}
    return [_without_halves(one) for one in item] if isinstance(item, list) else item


def _is_cut(result: CommandResult) -> bool:
    """Whether parts of the output are left out of what we were given."""
    size = len(result.stdout.encode("utf-8", "surrogatepass"))
    return result.stdout_bytes != size and _CUT.search(result.stdout) is not None


def _number(text: str) -> int | float | str:
    bare = text.strip()
    if re.fullmatch(r"-?\d+", bare):
        return int(bare)
    return float(bare) if re.fullmatch(r"-?\d+\.\d+", bare) else bare


def _near_file(tool: ToolDefinition, values: Mapping[str, Any], workspace: Path) -> str:
    """`did you mean …?` for an input that is not there."""
    for path in paths_in(tool, values, "input"):
        place = workspace / path
        if os.path.exists(place) or not os.path.isdir(place.parent):  # noqa: PTH110, PTH112
            continue  # unlike those of `Path` they take any name
        near = difflib.get_close_matches(place.name, os.listdir(place.parent), n=1, cutoff=0.5)  # noqa: PTH208
        if near:
            return f"did you mean `{Path(path).with_name(near[0]).as_posix()}`?"
    return ""
