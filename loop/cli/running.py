"""`new`, `resume`: a session from its order to its end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.terminal import AsJson, Id, Quiet, given, sentences, stopping


def new(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What is to be done, in a sentence.")],
    dir_: Annotated[Path, typer.Option("--dir", help="The folder to work on.")] = Path(),
    model: Annotated[str, typer.Option(help="Model of agent steps.", callback=given)] = "",
    planner: Annotated[
        str,
        typer.Option(
            help="Model that drafts and mends; `a,b` asks b where a did not help.", callback=given
        ),
    ] = "",
    rounds: Annotated[int, typer.Option(help="At most so many rounds of mending.")] = 8,
    budget_usd: Annotated[float | None, typer.Option(help="At most so much money.")] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="At most so many tokens.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="At most so much time.")] = None,
    name: Annotated[str, typer.Option(help="Name of the saved workflow.", callback=given)] = "",
    accept: Annotated[
        list[str] | None,
        typer.Option(help="What must hold: a file of rules, or `file_exists path=out.txt`."),
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", help="Start from this workflow instead of a draft.")
    ] = None,
    instances: Annotated[
        int, typer.Option(help="Whole runs that certify a workflow whose steps ask a model.")
    ] = 1,
    require_strong: Annotated[
        bool, typer.Option("--require-strong", help="Refuse a result that a rival would pass too.")
    ] = False,
    allow_unpriced: Annotated[
        bool, typer.Option("--allow-unpriced", help="Use models whose price is not known.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the run.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Plan, draft, run and mend a workflow until its results are accepted."""
    from loop import start

    with sentences(as_json=as_json), stopping() as should_stop:
        order = start.order(
            task,
            dir_,
            model=model,
            planner=planner,
            rounds=rounds,
            budget_usd=budget_usd,
            budget_tokens=budget_tokens,
            max_minutes=max_minutes,
            name=name,
            accept=accept or [],
            source=from_,
            require_strong=require_strong,
            instances=instances,
            allow_unpriced=allow_unpriced,
        )
        with start.kit() as kit:
            view = _view(as_json=as_json, quiet=quiet)
            ask = None if yes or as_json or not sys.stdin.isatty() else _ask
            session = start.new(kit, order, emit=view, ask=ask, should_stop=should_stop)
            finished = session.run()
            view.finished(finished)
    raise typer.Exit(finished.exit_status)


def resume(session_id: Id, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Go on with a session that was interrupted or killed."""
    from loop import start

    with sentences(as_json=as_json), stopping() as should_stop, start.kit() as kit:
        view = _view(as_json=as_json, quiet=quiet)
        session = start.resume(kit, session_id, emit=view, should_stop=should_stop)
        finished = session.run()
        view.finished(finished)
    raise typer.Exit(finished.exit_status)


def _view(*, as_json: bool, quiet: bool) -> Any:
    from loop.view import open_view

    return open_view(as_json=as_json, quiet=quiet)


def _ask(question: str) -> bool:
    try:
        return bool(typer.confirm(question, default=True))
    except typer.Abort:
        return False
