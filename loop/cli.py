"""`openry-loop`: parse, call, show. The rules of the domain live below."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo

from openry import __version__
from openry.complaint import complaint
from openry.errors import OpenRYError, UsageError

_NAME = "openry-loop"
#: How long a wish to stop may go unnoticed, in seconds.
_PATIENCE_S = 1.0


@contextmanager
def _interruptible() -> Iterator[None]:
    """A Ctrl-C is one sentence; typer itself would end without a word."""
    try:
        yield
    except KeyboardInterrupt as error:
        print(f"{_NAME}: interrupted", file=sys.stderr)
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
    name=_NAME,
    cls=_Group,
    help="Say a task in plain language; get its results and a stable workflow.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _given(ctx: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """What an option says; an empty word is no value, and not the default either."""
    if _is_typed(ctx, str(param.name)) and not value.strip():
        raise typer.BadParameter("it is empty: leave the option out, or give a value")
    return value


Json = Annotated[bool, typer.Option("--json", help="One JSON object a line, the outcome last.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show the outcome only.")]


@app.command()
def new(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What is to be done, in a sentence.")],
    dir_: Annotated[Path, typer.Option("--dir", help="The folder to work on.")] = Path(),
    model: Annotated[str, typer.Option(help="Model of agent steps.", callback=_given)] = "",
    planner: Annotated[
        str,
        typer.Option(
            help="Model that drafts and mends; `a,b` asks b where a did not help.", callback=_given
        ),
    ] = "",
    rounds: Annotated[int, typer.Option(help="At most so many rounds of mending.")] = 8,
    budget_usd: Annotated[float | None, typer.Option(help="At most so much money.")] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="At most so many tokens.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="At most so much time.")] = None,
    name: Annotated[str, typer.Option(help="Name of the saved workflow.", callback=_given)] = "",
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
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Plan, draft, run and mend a workflow until its results are accepted."""
    from loop import start

    with _sentences(as_json=as_json), _stopping() as should_stop:
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


@app.command()
def resume(
    session_id: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a session that was interrupted or killed."""
    from loop import start

    with _sentences(as_json=as_json), _stopping() as should_stop, start.kit() as kit:
        view = _view(as_json=as_json, quiet=quiet)
        session = start.resume(kit, session_id, emit=view, should_stop=should_stop)
        finished = session.run()
        view.finished(finished)
    raise typer.Exit(finished.exit_status)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """The latest sessions, newest first."""
    from loop import start

    with _sentences(as_json=as_json), start.kit() as kit:
        rows = start.sessions(kit)
        if as_json:
            print(json.dumps({"sessions": rows, "schema_version": 1}, ensure_ascii=False))
            return
        _table(rows, ("session", "state", "outcome", "rounds", "task"))


@app.command()
def show(
    session_id: Annotated[str, typer.Argument(metavar="ID")],
    as_json: Json = False,
) -> None:
    """One session: plan, rounds with failure, edits and verdicts, and the workflow."""
    from loop import start

    with _sentences(as_json=as_json), start.kit() as kit:
        history = start.history(kit, session_id)
        if as_json:
            print(json.dumps(start.as_data(history), ensure_ascii=False, default=str))
        else:
            print(start.as_text(history))


@app.command()
def diff(
    session_id: Annotated[str, typer.Argument(metavar="ID")],
    first: Annotated[int, typer.Argument(metavar="R1", help="A round, 0 is the draft.")],
    second: Annotated[int, typer.Argument(metavar="R2")],
) -> None:
    """What changed in the workflow between two rounds."""
    from loop import start

    with _sentences(), start.kit() as kit:
        print(start.diff(start.history(kit, session_id), first, second))


@app.command()
def report(
    session_id: Annotated[str, typer.Argument(metavar="ID")],
    html: Annotated[Path, typer.Option("--html", help="Where the page is written.")],
) -> None:
    """One session as one page that opens without a network."""
    from loop import start

    with _sentences(), start.kit() as kit:
        start.write_report(start.history(kit, session_id), html)
        print(html)


@app.command()
def review(
    session_id: Annotated[str, typer.Argument(metavar="ID")],
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
    reviewer: Annotated[str, typer.Option("--as", help="Who decides.", callback=_given)] = "",
    as_json: Json = False,
) -> None:
    """Look at a session's edits one by one: accept, reject, edit or skip; then certify again."""
    from loop import start
    from loop.review import hunks, waiting

    with _sentences(as_json=as_json), start.kit() as kit:
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
            open_ = waiting(found)
            if as_json:
                _print_json(
                    session=found.session["session_id"],
                    hunks=[hunk.to_data() for hunk in listed],
                    waiting=[hunk.name for hunk in open_],
                )
            else:
                for hunk in open_:
                    print(f"{hunk.name} waits for a person: {hunk.summary}")
                print(f"{len(open_)} of {len(listed)} edits wait for a person")
            raise typer.Exit(4 if check and open_ else 0)
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


@app.command()
def export(
    session_id: Annotated[str, typer.Argument(metavar="ID")],
    pr: Annotated[Path, typer.Option("--pr", help="A Git repository that gets a branch.")],
    branch: Annotated[
        str, typer.Option(help="The branch; `openry/NAME` if not given.", callback=_given)
    ] = "",
    path: Annotated[
        str,
        typer.Option(
            help="The file in the repository; `workflows/NAME.yaml` if not given.", callback=_given
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """A session as a branch with one commit for each edit, and a text for the pull request."""
    from loop import start
    from loop.export import export as export_to

    with _sentences(as_json=as_json), start.kit() as kit:
        done = export_to(start.history(kit, session_id), pr, branch=branch, path=path)
        if as_json:
            print(json.dumps(done.to_json(), ensure_ascii=False))
        else:
            print(f"branch {done.branch}: {len(done.commits)} commits, {done.path}\n")
            print(f"{done.title}\n\n{done.body}", end="")


@app.command()
def blame(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A workflow that the loop saved.")],
    as_json: Json = False,
) -> None:
    """For each line of a workflow the edit, the failure and the run that put it there."""
    from loop.provenance import blame as blame_file
    from loop.provenance import blame_text

    with _sentences(as_json=as_json):
        lines = blame_file(file)
        if as_json:
            _print_json(lines=[asdict(line) for line in lines])
        else:
            print(blame_text(lines))


templates_app = typer.Typer(
    help="Solved tasks that are drafted at once when they come again.", no_args_is_help=True
)
app.add_typer(templates_app, name="templates")


@templates_app.command("add")
def templates_add(
    source: Annotated[str, typer.Argument(metavar="SESSION|FILE")],
    task: Annotated[
        str, typer.Option(help="The sentence, where it is not the session's.", callback=_given)
    ] = "",
    name: Annotated[
        str, typer.Option(help="Its name; else the first words of the task.", callback=_given)
    ] = "",
) -> None:
    """Keep a solved session, or a workflow file with its task, as a template."""
    from loop import start

    with _sentences(), start.kit() as kit:
        print(start.add_template(kit, source, task=task, name=name))


@templates_app.command("list")
def templates_list(as_json: Json = False) -> None:
    """Every template with its task."""
    from loop import start
    from loop.templates import load_all

    with _sentences(as_json=as_json), start.kit() as kit:
        found = [each.to_data() for each in load_all(kit.config.home / "templates")]
        if as_json:
            _print_json(templates=found)
        else:
            _table(found, ("name", "task", "session"))


@templates_app.command("remove")
def templates_remove(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Forget a template."""
    from loop import start
    from loop.templates import remove

    with _sentences(), start.kit() as kit:
        remove(kit.config.home / "templates", name)


@app.command()
def memory(
    words: Annotated[str, typer.Argument(metavar="WORDS", help="Words of a failure.")],
    as_json: Json = False,
) -> None:
    """What was tried, in all sessions, for failures like these words, and how it went."""
    from loop import start
    from loop.memory import search

    with _sentences(as_json=as_json), start.kit() as kit:
        if not words.strip():
            raise UsageError("the words are empty: give some of a failure, e.g. `no such file`")
        found = search(kit.ledger, words)
        if as_json:
            _print_json(edits=found)
        elif not found:
            print(f"nothing was tried yet for a failure like `{words}`")
        else:
            _table(found, ("verdict", "operation", "failure_class", "cause", "session"))


@app.command()
def models(as_json: Json = False) -> None:
    """The models in force, where each setting came from, and whether they can be used."""
    from loop import start

    with _sentences(as_json=as_json), start.kit() as kit:
        rows = start.models(kit)
        if as_json:
            print(json.dumps({"models": rows, "schema_version": 1}, ensure_ascii=False))
            return
        _table(rows, ("role", "model", "origin", "usable", "note"))


#: What each kind of benchmark takes beside `--json` and `--quiet`, and how it is called.
_BENCHES = {
    "gates": ("`--gates`", {"gates"}),
    "planners": ("`--planners`", {"planners", "sessions", "html"}),
    "bash": ("a suite that is a folder", {"suite", "recorded", "turns", "limit", "html"}),
    "tasks": ("a suite of tasks", {"suite", "seeds", "arm", "limit", "html"}),
}


@app.command()
def bench(
    ctx: typer.Context,
    suite: Annotated[
        str,
        typer.Option(
            "--suite",
            help="JSONL of tasks, our own `everyday` or `mending`, or a folder for bash.",
        ),
    ] = "everyday",
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Instances of each kind of our own tasks.")
    ] = 1,
    arm: Annotated[
        list[str] | None,
        typer.Option(help="full, draft, single_shot, best_of_12 … or all; may be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N tasks.")] = None,
    gates: Annotated[
        bool, typer.Option("--gates", help="Try the gates: chance, cheating and injected edits.")
    ] = False,
    planners: Annotated[
        bool,
        typer.Option("--planners", help="What planners of four strengths reach, in a simulator."),
    ] = False,
    sessions: Annotated[
        int, typer.Option(min=2, help="Sessions of each planner, with `--planners`.")
    ] = 200,
    recorded: Annotated[
        Path | None,
        typer.Option(help="A folder of transcripts: play those instead of asking the model."),
    ] = None,
    turns: Annotated[
        int, typer.Option(min=1, max=10, help="Commands a request for bash may take.")
    ] = 10,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with curves.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a suite of tasks whose right results are hidden from the loop; print the figures."""
    from loop import bench as suite_runner
    from loop import start
    from loop.order import kind_of

    tell = None if as_json or quiet else _say
    with _sentences(as_json=as_json):
        folder = kind_of(suite) == "folder"
        kind = "gates" if gates else "planners" if planners else "bash" if folder else "tasks"
        _fits(kind, _typed(ctx))
        if html is not None:
            start.refuse_if_no_page(html)
        if kind == "planners":
            _planners(sessions, html, tell, as_json=as_json)
            return
        with start.kit(scratch=True) as kit:
            if kind == "gates":
                raise typer.Exit(_self_test(kit, as_json=as_json))
            outcome: Any
            if kind == "bash":
                from loop import bench_nl2bash

                outcome = bench_nl2bash.run(
                    kit, Path(suite), recorded, limit=limit, turns=turns, tell=tell
                )
            else:
                arms = tuple(arm or ["full"])
                outcome = suite_runner.run(kit, suite, arms, limit=limit, seeds=seeds, tell=tell)
        if html is not None:
            start.write_page(outcome.to_html(), html)
        if as_json:
            print(json.dumps(outcome.to_json(), ensure_ascii=False))
        else:
            print(outcome.to_text())


def _typed(ctx: typer.Context) -> set[str]:
    """The parameters that were typed."""
    return {name for name in ctx.params if _is_typed(ctx, name)}


def _is_typed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _fits(kind: str, typed: set[str]) -> None:
    """Raises UsageError where something that was typed would not be looked at."""
    called, takes = _BENCHES[kind]
    strange = sorted(typed - takes - {"as_json", "quiet"})
    if strange:
        raise UsageError(f"`--{strange[0]}` has no part in {called}: leave one of them out")


def _planners(sessions: int, html: Path | None, tell: Any, *, as_json: bool) -> None:
    from loop import bench_planners, start

    curves = bench_planners.study(sessions, tell=tell)
    if html is not None:
        start.write_page(bench_planners.to_html(curves), html)
    print(json.dumps(bench_planners.to_json(curves)) if as_json else bench_planners.to_text(curves))


def _self_test(kit: Any, *, as_json: bool) -> int:
    from loop import selftest

    figures = (*selftest.statistics(), *selftest.blamed(), *selftest.attacks(kit))
    text = selftest.to_text(figures)
    print(json.dumps(selftest.to_json(figures)) if as_json else text)
    return 0 if all(figure.right for figure in figures) else 1


def _version(asked: bool) -> None:
    if asked:
        print(f"openry-loop {__version__}")
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
        refuse_inside_a_run("openry-loop")
    except UsageError as error:
        print(f"openry-loop: {error}", file=sys.stderr)
        raise typer.Exit(2) from error


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


def _print_json(**data: Any) -> None:
    print(json.dumps({**data, "schema_version": 1}, ensure_ascii=False, default=str))


def _view(*, as_json: bool, quiet: bool) -> Any:
    from loop.view import open_view

    return open_view(as_json=as_json, quiet=quiet)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _ask(question: str) -> bool:
    try:
        return bool(typer.confirm(question, default=True))
    except typer.Abort:
        return False


def _table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    Console(highlight=False, markup=False).print(table)


@contextmanager
def _sentences(*, as_json: bool = False) -> Iterator[None]:
    """Show what went wrong as one sentence, never as a traceback of ours."""
    try:
        yield
    except OpenRYError as error:
        if as_json:
            unusable = {
                "outcome": "unusable",
                "stop": error.code,
                "sentence": str(error),
                "schema_version": 1,
            }
            print(json.dumps(unusable, ensure_ascii=False), flush=True)
        else:
            print(f"openry-loop: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        if as_json:
            stopped = {"outcome": "interrupted", "stop": "interrupted", "schema_version": 1}
            print(json.dumps(stopped), flush=True)
        raise
    except BrokenPipeError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # nobody reads on: say nothing more
        raise typer.Exit(1) from error


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
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
        print("openry-loop: stopping (once more to stop at once)", file=sys.stderr, flush=True)

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


def main(argv: Sequence[str] | None = None) -> int:
    """The console script: run the command line and return its exit status."""
    from openry.llm.leaving import leave

    try:
        status = app(argv, prog_name=_NAME, standalone_mode=False)
    except Exception as error:
        said = complaint(error, _NAME, map(_name_of, app.registered_commands))
        if said is None:
            raise
        sys.stderr.write(said)
        return 2
    return leave(status if isinstance(status, int) else 0)


def _name_of(command: CommandInfo) -> str:
    return str(command.name or getattr(command.callback, "__name__", ""))
