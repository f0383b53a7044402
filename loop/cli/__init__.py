"""`openry-loop`: parse, call, show. The rules of the domain live below."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from loop.cli import bench, looking, reviewing, running, templates
from loop.cli.terminal import NAME
from openry import __version__
from openry.complaint import complaint
from openry.errors import UsageError
from openry.leaving import leave

#: In the order of the help.
_COMMANDS: dict[str, Callable[..., None]] = {
    "new": running.new,
    "resume": running.resume,
    "list": looking.list_,
    "show": looking.show,
    "diff": looking.diff,
    "report": looking.report,
    "review": reviewing.review,
    "export": reviewing.export,
    "blame": looking.blame,
    "memory": looking.memory,
    "models": looking.models,
    "bench": bench.bench,
}


@contextmanager
def _interruptible() -> Iterator[None]:
    """A Ctrl-C is one sentence; typer itself would end without a word."""
    try:
        yield
    except KeyboardInterrupt as error:
        print(f"{NAME}: interrupted", file=sys.stderr)
        raise typer.Exit(130) from error


class _Group(TyperGroup):
    """Our commands; a Ctrl-C is said wherever it comes, also while words are read or code loads."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        with _interruptible():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        with _interruptible():
            return super().invoke(ctx)


app = typer.Typer(
    name=NAME,
    cls=_Group,
    help="Say a task in plain language; get its results and a stable workflow.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)
app.add_typer(templates.templates_app, name="templates")


def _version(asked: bool) -> None:
    if asked:
        print(f"{NAME} {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Refuse to work inside a run: an agent has only `openry`."""
    from openry.ledger.inside import refuse_inside_a_run

    try:
        refuse_inside_a_run(NAME)
    except UsageError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        raise typer.Exit(2) from error


def main(argv: Sequence[str] | None = None) -> int:
    """The console script: run the command line and return its exit status."""
    try:
        status = app(argv, prog_name=NAME, standalone_mode=False)
    except Exception as error:
        said = complaint(error, NAME, _COMMANDS)
        if said is None:
            raise
        sys.stderr.write(said)
        return 2
    return leave(NAME, status if isinstance(status, int) else 0)
