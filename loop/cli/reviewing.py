"""`review`, `export`: a session's edits before people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.terminal import AsJson, Id, given, print_json, sentences
from openry.errors import UsageError


def review(
    session_id: Id,
    check: Annotated[
        bool, typer.Option("--check", help="Fail (exit 4) where an edit waits for a person.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page to decide on, and do nothing else.")
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option("--decisions", help="Decide by this JSON file, as the page saves."),
    ] = None,
    reviewer: Annotated[str, typer.Option("--as", help="Who decides.", callback=given)] = "",
    as_json: AsJson = False,
) -> None:
    """Look at a session's edits one by one: accept, reject, edit or skip; then certify again."""
    from loop import start
    from loop.review import hunks

    with sentences(as_json=as_json), start.kit() as kit:
        ways = {"--check": check, "--html": html is not None, "--decisions": decisions is not None}
        chosen = [way for way, is_chosen in ways.items() if is_chosen]
        if len(chosen) > 1:
            raise UsageError(f"give one of `{chosen[0]}` and `{chosen[1]}`")
        found = start.history(kit, session_id)
        listed = hunks(found)
        if html is not None:
            start.write_review(found, html)
            print(html)
            return
        if check or (as_json and decisions is None):
            still_open = _show_waiting(found, listed, as_json=as_json)
            raise typer.Exit(4 if check and still_open else 0)
        if decisions is not None:
            decided = start.read_decisions_file(found, decisions)
        else:
            decided = _decide(listed)
        reviewed = start.review(kit, found, decided, reviewer or _user())
        if as_json:
            print(json.dumps(reviewed.to_json(), ensure_ascii=False))
        else:
            from rich.console import Console

            from loop.reviewview import show_outcome

            show_outcome(Console(highlight=False), reviewed)
    raise typer.Exit(reviewed.exit_status)


def export(
    session_id: Id,
    pr: Annotated[Path, typer.Option("--pr", help="A Git repository that gets a branch.")],
    branch: Annotated[
        str, typer.Option(help="The branch; `openry/NAME` if not given.", callback=given)
    ] = "",
    path: Annotated[
        str,
        typer.Option(
            help="The file in the repository; `workflows/NAME.yaml` if not given.", callback=given
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """A session as a branch with one commit for each edit, and a text for the pull request."""
    from loop import start
    from loop.export import export as export_to

    with sentences(as_json=as_json), start.kit() as kit:
        done = export_to(start.history(kit, session_id), pr, branch=branch, path=path)
        if as_json:
            print(json.dumps(done.to_json(), ensure_ascii=False))
        else:
            print(f"branch {done.branch}: {len(done.commits)} commits, {done.path}\n")
            print(f"{done.title}\n\n{done.body}", end="")


def _show_waiting(found: Any, listed: Sequence[Any], *, as_json: bool) -> bool:
    """Show the edits that wait for a person; whether there are any."""
    from loop.review import waiting

    still_open = waiting(found)
    if as_json:
        print_json(
            session=found.session["session_id"],
            hunks=[hunk.to_data() for hunk in listed],
            waiting=[hunk.name for hunk in still_open],
        )
    else:
        for hunk in still_open:
            print(f"{hunk.name} waits for a person: {hunk.summary}")
        print(f"{len(still_open)} of {len(listed)} edits wait for a person")
    return bool(still_open)


def _decide(listed: Sequence[Any]) -> Any:
    """The decisions of whoever types."""
    from rich.console import Console

    from loop.reviewview import ask_all

    if not listed:
        raise UsageError("there is nothing to review: no edit stands or waits")
    decided = ask_all(Console(highlight=False), listed, _line, _editor)
    if decided is None:
        print("left without writing anything")
        raise typer.Exit
    return decided


def _line(prompt: str) -> str:
    try:
        return input(prompt)
    except EOFError:
        return ""


def _editor(text: str) -> str | None:
    import click

    try:
        return click.edit(text, extension=".json")
    except click.ClickException as error:
        raise UsageError(f"no editor could be opened: {error.message}; set EDITOR") from error


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
