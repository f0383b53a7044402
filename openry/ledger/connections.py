"""Connections that commands asked for through the proxy: one event each, made or refused.

A part of `FastLedger` that few calls need, so it is loaded by those alone.
"""

from __future__ import annotations

from openry.ledger.chain import last_event, link
from openry.ledger.jsontext import clean, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    import openry.ledger.sqlite as sqlite3
    from openry.ledger.fast import FastLedger
    from openry.models.command import RunContext

_INSERT = """
INSERT INTO events (at, instance_id, run_id, step_id, kind, old, new, reason, actor, data, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def keep_connections(
    ledger: FastLedger,
    context: RunContext,
    command_id: int,
    decisions: Iterable[tuple[str, str, int, str]],
) -> None:
    """Write down what was decided.

    Args:
        decisions: When, which host, which port, and why it was refused, or empty.

    Raises:
        StorageError: The ledger could not be written.
    """
    whose = (clean(context.instance_id), clean(context.run_id), clean(context.step_id))

    def write(db: sqlite3.Connection) -> None:
        for at, host, port, refused in decisions:
            about = to_json({"command_id": command_id, "host": clean(host), "port": port})
            new = "refused" if refused else "made"
            said = (at, *whose, "connection", "", new, clean(refused), "proxy", about)
            db.execute(_INSERT, (*said, link(last_event(db, whose[0]), *said)))

    ledger._write(write)
