"""`bench`: suites of tasks, and the trials of the loop itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.terminal import AsJson, Quiet, is_typed, sentences
from openry.errors import UsageError

#: What each kind of benchmark takes beside `--json` and `--quiet`, and how it is called.
_BENCHES = {
    "gates": ("`--gates`", {"gates"}),
    "planners": ("`--planners`", {"planners", "sessions", "html"}),
    "bash": ("a suite that is a folder", {"suite", "recorded", "turns", "limit", "html"}),
    "tasks": ("a suite of tasks", {"suite", "seeds", "arm", "limit", "html"}),
}


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
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run a suite of tasks whose right results are hidden from the loop; print the figures."""
    from loop import bench as suite_runner
    from loop import start
    from loop.order import kind_of

    tell = None if as_json or quiet else _say
    with sentences(as_json=as_json):
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
    return {name for name in ctx.params if is_typed(ctx, name)}


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


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
