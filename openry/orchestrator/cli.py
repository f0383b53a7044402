"""`openry-orchestrator`: parses, calls the engine, renders. No rule of the domain is in here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from openry.complaint import complaint
from openry.errors import OpenRYError, UsageError
from openry.ledger.inside import refuse_inside_a_run
from openry.orchestrator.terminal import INTERRUPTED, NAME, OK, USAGE

#: Where each command is, in the order of the help. Only what is asked for is loaded: to read all
#: of them takes longer than most of them do.
_COMMANDS = {
    **dict.fromkeys(("start", "run"), "cli_running"),
    **dict.fromkeys(("status", "list", "logs", "inspect"), "cli_looking"),
    **dict.fromkeys(("cancel", "retry", "approve", "reject"), "cli_running"),
    **dict.fromkeys(("validate", "lint", "schema", "graph", "test"), "cli_files"),
    **dict.fromkeys(("workers", "prune", "replay"), "cli_keeping"),
}
_GROUPS = {"snapshot": "cli_keeping", "schedule": "cli_schedules", "service": "cli_schedules"}
#: Options whose value is a path.
_PATHS = ("--dir", "--to", "--with", "--input-file", "--token-file", "--tests")
#: Names of commands that Python has a meaning for.
_FUNCTIONS = {"list": "list_"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; a person's mistake is one sentence."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        _refuse_empty_paths(words)
        refuse_inside_a_run(NAME, notice_token=os.environ.get("NOTICE_TOKEN", ""))
        status = _app(words)(words, prog_name=NAME, standalone_mode=False)
    except OpenRYError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        said = complaint(error, NAME, (*_COMMANDS, *_GROUPS))
        if said is None:
            raise
        sys.stderr.write(said)
        return USAGE
    return status if isinstance(status, int) else OK


def _refuse_empty_paths(words: Sequence[str]) -> None:
    """A path of no characters would be the current folder: some variable was not set."""
    for before, word in zip(["", *words], words, strict=False):
        option = before if word == "" else word.removesuffix("=")
        if option in _PATHS and option != word:
            raise UsageError(f"{option} is empty; name a file or folder")


def _complain(sentence: str) -> int:
    sys.stderr.write(f"{NAME}: {sentence}\n")
    return USAGE


def _app(words: Sequence[str]) -> typer.Typer:
    """What can read these words: all commands, or the one that they begin with."""
    app = typer.Typer(
        name=NAME,
        help="Run workflows, and see what became of them.",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_nothing)
    asked = words[0] if words and words[0] in (*_COMMANDS, *_GROUPS) else ""
    for name, where in _COMMANDS.items():
        if asked in ("", name):
            app.command(name)(getattr(_module(where), _FUNCTIONS.get(name, name)))
    for name, where in _GROUPS.items():
        if asked in ("", name):
            app.add_typer(getattr(_module(where), f"{name}_app"))
    return app


def _nothing() -> None:
    """Run workflows, and see what became of them."""


def _module(name: str) -> object:
    return import_module(f"openry.orchestrator.{name}")
