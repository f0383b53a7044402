"""Being there until an instance has ended: `--wait` of `start` and `retry`, `status --watch`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from openry.orchestrator import show
from openry.orchestrator.engine import Engine
from openry.orchestrator.outcomes import InstanceOutcome
from openry.orchestrator.terminal import FAILED, INTERRUPTED, NAME, OK, WAITING, answer, out

if TYPE_CHECKING:  # who reads JSON does not wait for it
    from rich.console import Console


def wait(engine: Engine, instance_id: str, *, as_json: bool) -> int:
    """Patrol in here until the instance has ended, a person is needed, or somebody says stop."""
    with stop_signals() as stopped:
        if as_json:
            outcome = engine.run(instance_id, should_stop=stopped)
            out(show.status_json(outcome), as_json)
        else:
            outcome = _shown(engine, instance_id, stopped)
    return exit_status(outcome)


def _shown(engine: Engine, instance_id: str, stopped: Callable[[], bool]) -> InstanceOutcome:
    from rich.console import Console

    from openry.orchestrator.tree import watching

    console = Console()
    with watching(console, lambda: engine.outcome(instance_id)) as draw:
        outcome = engine.run(instance_id, draw, stopped)
    _tell_end(console, engine, outcome)
    return outcome


def exit_status(outcome: InstanceOutcome) -> int:
    if outcome.state == "suspended":
        return WAITING
    return INTERRUPTED if not outcome.final else OK if outcome.ok else FAILED


def _tell_end(console: Console, engine: Engine, outcome: InstanceOutcome) -> None:
    def tell(line: str, style: str = "") -> None:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    if outcome.state == "suspended":
        for asked in engine.approvals(outcome.instance_id):
            tell(f"waiting for a person: {asked.question}")
        tell(f"{NAME} approve {outcome.instance_id}   (or reject)")
    elif not outcome.final:
        tell(f"interrupted; `{NAME} run` goes on with {outcome.instance_id}")
    elif not console.is_terminal:
        tell(f"{outcome.instance_id}: {outcome.state}")
    if outcome.head:
        tell(f"head {outcome.head}", "dim")
    if outcome.final and not outcome.ok:
        tell(outcome.reason, "red")


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Says whether somebody asked to stop; a second Ctrl-C does not wait."""
    asked = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(engine: Engine, instance: str, *, as_json: bool) -> int:
    """Follow an instance, and exit as `start --wait` would; with JSON a line for each change."""
    from rich.console import Console

    from openry.orchestrator.tree import follow, watching

    instance_id = engine.find(instance)
    look = partial(engine.outcome, instance_id)
    console = Console(quiet=as_json)
    with watching(console, look) as draw:
        for event in follow(engine, instance_id):
            draw(event)
            if as_json:
                answer(show.event_json(event))
    outcome = look()
    if not as_json:
        _tell_end(console, engine, outcome)
    return exit_status(outcome)
