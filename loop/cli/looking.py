"""What became of sessions, what they left, and the models in force."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.terminal import AsJson, Id, print_json, print_rows, sentences
from openry.errors import UsageError


def list_(as_json: AsJson = False) -> None:
    """The latest sessions, newest first."""
    from loop import start

    with sentences(as_json=as_json), start.kit() as kit:
        columns = ("session", "state", "outcome", "rounds", "task")
        print_rows("sessions", start.sessions(kit), columns, as_json=as_json)


def show(session_id: Id, as_json: AsJson = False) -> None:
    """One session: plan, rounds with failure, edits and verdicts, and the workflow."""
    from loop import start

    with sentences(as_json=as_json), start.kit() as kit:
        history = start.history(kit, session_id)
        if as_json:
            print(json.dumps(start.as_data(history), ensure_ascii=False, default=str))
        else:
            print(start.as_text(history))


def diff(
    session_id: Id,
    first: Annotated[int, typer.Argument(metavar="R1", help="A round, 0 is the draft.")],
    second: Annotated[int, typer.Argument(metavar="R2")],
) -> None:
    """What changed in the workflow between two rounds."""
    from loop import start

    with sentences(), start.kit() as kit:
        print(start.diff(start.history(kit, session_id), first, second))


def report(
    session_id: Id,
    html: Annotated[Path, typer.Option("--html", help="Where the page is written.")],
) -> None:
    """One session as one page that opens without a network."""
    from loop import start

    with sentences(), start.kit() as kit:
        start.write_report(start.history(kit, session_id), html)
        print(html)


def blame(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A workflow that the loop saved.")],
    as_json: AsJson = False,
) -> None:
    """For each line of a workflow the edit, the failure and the run that put it there."""
    from loop.provenance import blame as blame_file
    from loop.provenance import blame_text

    with sentences(as_json=as_json):
        lines = blame_file(file)
        if as_json:
            print_json(lines=[asdict(line) for line in lines])
        else:
            print(blame_text(lines))


def memory(
    words: Annotated[str, typer.Argument(metavar="WORDS", help="Words of a failure.")],
    as_json: AsJson = False,
) -> None:
    """What was tried, in all sessions, for failures like these words, and how it went."""
    from loop import start
    from loop.memory import search

    with sentences(as_json=as_json), start.kit() as kit:
        if not words.strip():
            raise UsageError("the words are empty: give some of a failure, e.g. `no such file`")
        found = search(kit.ledger, words)
        if not found and not as_json:
            print(f"nothing was tried yet for a failure like `{words}`")
            return
        columns = ("verdict", "operation", "failure_class", "cause", "session")
        print_rows("edits", found, columns, as_json=as_json)


def models(as_json: AsJson = False) -> None:
    """The models in force, where each setting came from, and whether they can be used."""
    from loop import start

    with sentences(as_json=as_json), start.kit() as kit:
        columns = ("role", "model", "origin", "usable", "note")
        print_rows("models", start.models(kit), columns, as_json=as_json)
