"""The live view of `start --wait`: a tree in a terminal, one line per change elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from openry.clock import Monotonic, monotonic
from openry.ledger.instances import get_instance
from openry.ledger.journal import Event, events_after
from openry.ledger.watch import Watch
from openry.orchestrator.engine import Engine
from openry.orchestrator.outcomes import FINAL, InstanceOutcome
from openry.orchestrator.show import instance_tree

#: States worth a line where nothing can be redrawn.
_TOLD = frozenset({"in_progress", "done", "failed", "dropped", "cancelled", "lost", "skipped"})
_REDRAW_S = 0.1
#: Between two looks where nobody can say that something changed.
_LOOK_S = 2.0


@contextmanager
def watching(
    console: Console, look: Callable[[], InstanceOutcome], *, now: Monotonic = monotonic
) -> Iterator[Callable[[Event], None]]:
    """Gives what to call with each event; `look` says how the instance stands."""
    if not console.is_terminal:
        yield lambda event: _tell(console, event)
        return
    drawn_at = now()
    with Live(instance_tree(look()), console=console, auto_refresh=False) as live:

        def draw(event: Event) -> None:
            nonlocal drawn_at
            if event.kind == "instance" or now() - drawn_at >= _REDRAW_S:
                live.update(instance_tree(look()), refresh=True)
                drawn_at = now()

        yield draw
        live.update(instance_tree(look()), refresh=True)


def follow(engine: Engine, instance_id: str) -> Iterator[Event]:
    """What happens to an instance, as it happens, until it has ended or waits for a person.

    Whoever runs it is somebody else; here is only looked.
    """
    watch, last = Watch(engine.ledger), 0
    try:
        while True:
            with engine.ledger.read() as connection:
                found = events_after(connection, last, instance_id)
                instance = get_instance(connection, instance_id)
            for event in found:
                last = event.id
                yield event
            still = instance is None or instance.state in FINAL or instance.state == "suspended"
            if still and not found:
                return
            until = monotonic() + _LOOK_S
            while not found and not watch.changed() and monotonic() < until:
                time.sleep(_REDRAW_S)
    finally:
        watch.close()


def _tell(console: Console, event: Event) -> None:
    if event.step_id and event.new in _TOLD:
        reason = f": {' '.join(event.reason.split())}" if event.reason else ""
        line = f"{event.step_id}: {event.new}{reason}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
