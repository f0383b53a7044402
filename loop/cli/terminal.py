"""What every command of `openry-loop` shares: its words, its output, its ways to stop."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from openry.errors import OpenRYError

NAME = "openry-loop"
#: How long a wish to stop may go unnoticed, in seconds.
_PATIENCE_S = 1.0

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line, the outcome last.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show the outcome only.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")]


def given(ctx: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """What an option says; an empty word is no value, and not the default either."""
    if is_typed(ctx, str(param.name)) and not value.strip():
        raise typer.BadParameter("it is empty: leave the option out, or give a value")
    return value


def is_typed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def print_json(**data: Any) -> None:
    """One JSON object with the version of its shape."""
    said = json.dumps({**data, "schema_version": 1}, ensure_ascii=False, default=str)
    print(said, flush=True)


def print_rows(
    name: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool
) -> None:
    """All of `rows` under their name as JSON, or these columns of them as a table."""
    if as_json:
        print_json(**{name: rows})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    Console(highlight=False, markup=False).print(table)


@contextmanager
def sentences(*, as_json: bool = False) -> Iterator[None]:
    """Show what went wrong as one sentence, never as a traceback of ours."""
    try:
        yield
    except OpenRYError as error:
        if as_json:
            print_json(outcome="unusable", stop=error.code, sentence=str(error))
        else:
            print(f"{NAME}: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        if as_json:
            print_json(outcome="interrupted", stop="interrupted")
        raise
    except BrokenPipeError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # nobody reads on: say nothing more
        raise typer.Exit(1) from error


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C or SIGTERM asks to stop, the second one stops at once.

    Where nobody looks whether to stop, the first one is taken for the second after a moment.
    """
    wanted: list[int] = []
    seen: list[bool] = []

    def stop(number: int, frame: object) -> None:
        if wanted:
            raise KeyboardInterrupt
        wanted.append(number)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
        print(f"{NAME}: stopping (once more to stop at once)", file=sys.stderr, flush=True)

    def insist(number: int, frame: object) -> None:
        if not seen:
            raise KeyboardInterrupt

    def should_stop() -> bool:
        seen.extend([True] * bool(wanted))
        return bool(wanted)

    wishes = {signal.SIGINT: stop, signal.SIGTERM: stop, signal.SIGALRM: insist}
    before = {number: signal.signal(number, handler) for number, handler in wishes.items()}
    try:
        yield should_stop
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
