"""`validate`, `lint`, `schema`, `graph`, `test`: looking at workflow files, not starting them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from openry.config import Config
from openry.errors import OpenRYError, UsageError
from openry.models import Problem
from openry.orchestrator import show, terminal
from openry.orchestrator.graph import as_mermaid, as_svg, as_text, graph_of
from openry.orchestrator.lint import lint as lint_file
from openry.orchestrator.loader import Loaded, load
from openry.orchestrator.lookup import find_file
from openry.orchestrator.missing import missing_handlers, missing_secrets, missing_workflows
from openry.orchestrator.terminal import FAILED, OK, USAGE, AsJson

_DRAW = {"mermaid": as_mermaid, "svg": as_svg, "text": as_text}


def validate(
    files: Annotated[list[str], typer.Argument(metavar="FILE...")],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    as_json: AsJson = False,
) -> int:
    """Every problem of workflow files at once."""
    problems = _of_each(files, terminal.settings(), _missing)
    return _report(problems, strict=strict, as_json=as_json)


def lint(
    files: Annotated[list[str], typer.Argument(metavar="FILE...")],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    as_json: AsJson = False,
) -> int:
    """What is allowed but looks wrong: steps never reached, loops without exit, no checks."""
    problems = _of_each(files, terminal.settings(), _lint)
    return _report(problems, strict=strict, as_json=as_json)


def _of_each(
    files: Sequence[str], config: Config, more: Callable[[Loaded, Config], Iterable[Problem]]
) -> tuple[Problem, ...]:
    """Every problem of every file; one that is not there hides nothing of the others."""
    found: dict[Problem, None] = {}
    for name in files:
        try:
            loaded = load(find_file(name, config))
        except OpenRYError as error:
            found[Problem(name, 0, str(error).removeprefix(f"`{name}` "))] = None
        else:
            found |= dict.fromkeys((*loaded.problems, *more(loaded, config)))
    return tuple(found)


def _missing(loaded: Loaded, config: Config) -> Iterator[Problem]:
    """What the file names and nobody has."""
    yield from missing_secrets(loaded, config, os.environ)
    yield from missing_workflows(loaded, config)
    yield from missing_handlers(loaded, config)


def _lint(loaded: Loaded, config: Config) -> Iterator[Problem]:
    yield from lint_file(loaded)
    yield from missing_handlers(loaded, config)


def _report(problems: tuple[Problem, ...], *, strict: bool, as_json: bool) -> int:
    ok = not any(strict or problem.level == "error" for problem in problems)
    if as_json:
        terminal.out(show.problems_json(problems, ok=ok), as_json)
    else:
        for problem in problems:
            terminal.out(str(problem), False)
        if not problems:
            terminal.out("ok", False)
    return OK if ok else USAGE


def schema() -> int:
    """The JSON Schema of workflow files, for editors."""
    from openry.orchestrator.spec import json_schema

    terminal.out(json_schema(), True)
    return OK


def graph(
    file: Annotated[str, typer.Argument(metavar="NAME|FILE")],
    form: Annotated[str, typer.Option("--format", help="mermaid, svg or text.")] = "mermaid",
    as_json: AsJson = False,
) -> int:
    """Draw the steps of a workflow and the ways between them."""
    if form not in _DRAW:
        raise UsageError(f"`--format` must be one of {', '.join(_DRAW)}, got `{form}`")
    found = graph_of(load(find_file(file, terminal.settings())).required())
    drawn = _DRAW[form](found)
    if as_json:
        terminal.answer(
            {
                "name": found.name,
                "nodes": [{"id": box.name, "kind": box.kind} for box in found.boxes],
                "edges": [
                    {"from": each.start, "to": each.end, "why": each.why} for each in found.arrows
                ],
                "drawing": drawn,
            }
        )
    else:
        typer.echo(drawn)
    return OK


def test(
    file: Annotated[str, typer.Argument(metavar="NAME|FILE")],
    tests: Annotated[
        Path | None,
        typer.Option(help="File of the tests; default NAME.test.yaml beside it.", metavar="FILE"),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run a workflow's own tests: recorded outputs, a scripted agent, real routes and rules."""
    from openry.orchestrator.selftest import read_tests, run_tests, test_file_of

    config = terminal.settings()
    path = find_file(file, config)
    cases = read_tests(tests or test_file_of(path))
    results = list(run_tests(load(path), cases, config))
    if as_json:
        rows = [
            {"name": r.name, "passed": r.passed, "problems": [*r.problems], "steps": [*r.steps]}
            for r in results
        ]
        terminal.answer({"ok": all(r.passed for r in results), "tests": rows})
    else:
        for result in results:
            terminal.out(f"{'passed' if result.passed else 'FAILED'}  {result.name}")
            for problem in result.problems:
                terminal.out(f"        {problem}")
    return OK if all(result.passed for result in results) else FAILED
