"""`templates`: tasks that were solved, kept for the next time."""

from __future__ import annotations

from typing import Annotated

import typer

from loop.cli.terminal import AsJson, given, print_rows, sentences

templates_app = typer.Typer(
    help="Solved tasks that are drafted at once when they come again.", no_args_is_help=True
)


@templates_app.command("add")
def templates_add(
    source: Annotated[str, typer.Argument(metavar="SESSION|FILE")],
    task: Annotated[
        str, typer.Option(help="The sentence, where it is not the session's.", callback=given)
    ] = "",
    name: Annotated[
        str, typer.Option(help="Its name; else the first words of the task.", callback=given)
    ] = "",
) -> None:
    """Keep a solved session, or a workflow file with its task, as a template."""
    from loop import start

    with sentences(), start.kit() as kit:
        print(start.add_template(kit, source, task=task, name=name))


@templates_app.command("list")
def templates_list(as_json: AsJson = False) -> None:
    """Every template with its task."""
    from loop import start
    from loop.templates import load_all

    with sentences(as_json=as_json), start.kit() as kit:
        found = [each.to_data() for each in load_all(kit.config.home / "templates")]
        print_rows("templates", found, ("name", "task", "session"), as_json=as_json)


@templates_app.command("remove")
def templates_remove(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Forget a template."""
    from loop import start
    from loop.templates import remove

    with sentences(), start.kit() as kit:
        remove(kit.config.home / "templates", name)
