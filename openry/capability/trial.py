"""Runs a definition's examples for real, in a folder of its own with small files."""

from __future__ import annotations

import base64
import fnmatch
import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openry.capability.arguments import complete, paths_in
from openry.capability.definition import Example
from openry.capability.execution import invoke
from openry.capability.parsers import parse
from openry.capability.pretend import answering, is_address
from openry.capability.registry import Registered
from openry.capability.rendering import ensures_for, output_of, prepare
from openry.capability.result import ToolResult
from openry.errors import BadArgumentsError
from openry.models import RunCommand

#: Evaluates post-conditions in a folder; says what is wrong, one sentence each.
CheckRules = Callable[[list[dict[str, Any]], Path], tuple[str, ...]]
#: A fixture that is no text: `gzip:` and the compressed bytes in base64.
_BINARY = "gzip:"


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one example; `problems` is empty when all is well."""

    request: str
    problems: tuple[str, ...]


def try_example(
    entry: Registered,
    example: Example,
    folder: Path,
    run: RunCommand,
    check_rules: CheckRules | None = None,
) -> Trial:
    """Call the tool with the example's arguments in `folder`, which is empty before.

    Args:
        check_rules: For the post-conditions; without it only success and result are looked at.
    """
    try:
        lay_out(entry, example, folder)
        problems = tuple(_problems(entry, example, folder, run, check_rules))
    except BadArgumentsError as error:
        problems = error.problems
    return Trial(example.request, problems)


def _problems(
    entry: Registered,
    example: Example,
    folder: Path,
    run: RunCommand,
    check_rules: CheckRules | None,
) -> Iterator[str]:
    tool = entry.tool
    answers = {name: text for name, text in entry.fixtures.items() if is_address(name)}
    if tool.network and not answers:  # nobody answers here, and nothing is sent for a trial
        prepare(tool, example.arguments, folder)
        return
    with answering(run, answers) as run:
        result = invoke(tool, example.arguments, run, folder, confirm=lambda _: True)
    if not result.success:
        error = result.error
        yield f"it failed: {error.error_class}: {error.message}" if error else "it failed"
        return
    values = complete(tool, example.arguments)
    answer = _answer(result, folder / output_of(tool, values))
    if example.result is not None and answer != example.result:
        yield f"the result is {answer!r}, not {example.result!r}"
    for path in paths_in(tool, values, "output"):
        if not (folder / path).exists():
            yield f"`{path}` was not written"
    if check_rules is not None:
        yield from check_rules(ensures_for(tool, example.arguments), folder)


def _answer(result: ToolResult, output: Path) -> Any:
    """What the tool answered, also when it went to a file."""
    if not output.is_file() or result.raw_output:
        return result.data
    return parse(output.read_text("utf-8"), "auto")


def lay_out(entry: Registered, example: Example, folder: Path) -> None:
    """Write the files an example needs: its own, the tool's, the pack's for missing inputs.

    Raises:
        BadArgumentsError: The example's arguments do not fit the tool's parameters.
    """
    named = {name: text for name, text in entry.tool.fixtures.items() if not _is_glob(name)}
    for name, text in {**named, **example.files}.items():
        _write(folder / name, text)
    values = complete(entry.tool, example.arguments)
    fixtures = {**entry.fixtures, **entry.tool.fixtures}
    for path in paths_in(entry.tool, values, "input"):
        for name in _below(path, fixtures):
            _write(folder / name, fixtures[name])
        fixture = _fixture_for(path, fixtures)
        if fixture is not None and not (folder / path).exists():
            _write(folder / path, fixture)


def _below(folder: str, fixtures: Mapping[str, str]) -> list[str]:
    """The fixtures that lie in a folder that an example names."""
    start = "" if folder == "." else f"{folder.rstrip('/')}/"
    return [
        name
        for name in fixtures
        if name.startswith(start) and not _is_glob(name) and not is_address(name)
    ]


def _is_glob(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def _fixture_for(path: str, fixtures: Mapping[str, str]) -> str | None:
    """The fixture of exactly that name, else the one of the longest glob."""
    if path in fixtures:
        return fixtures[path]
    globs = [name for name in fixtures if _is_glob(name) and fnmatch.fnmatchcase(path, name)]
    return fixtures[max(globs, key=len)] if globs else None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if text.startswith(_BINARY):
        path.write_bytes(gzip.decompress(base64.b64decode(text.removeprefix(_BINARY))))
    else:
        path.write_bytes(text.encode())
