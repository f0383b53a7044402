"""Outputs that were too large to be answered whole: one row for each that is kept in a file.

A part of `FastLedger` that few calls need, so it is loaded by those alone.
"""

from __future__ import annotations

from openry.ledger.jsontext import clean
from openry.models.command import MANUAL_RUN
from openry.models.output import Kept, StoredOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    import openry.ledger.sqlite as sqlite3
    from openry.ledger.fast import FastLedger
    from openry.models.command import RunContext

_INSERT = """
INSERT INTO outputs (
    at, instance_id, run_id, step_id, command_id, stream, path, bytes, lines, tokens, digest,
    compressed
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COUNT = "UPDATE task_state SET output_tokens = output_tokens + ? WHERE run_id = ?"
_SAID = "SELECT output_tokens FROM task_state WHERE run_id = ?"
_COLUMNS = """
SELECT o.command_id, o.stream, o.path, o.bytes, o.lines, o.tokens, o.digest, o.at, o.instance_id,
       o.run_id, o.step_id, coalesce(c.command, '')
FROM outputs AS o LEFT JOIN commands_log AS c ON c.id = o.command_id
WHERE o.deleted_at IS NULL
"""


def keep_outputs(
    ledger: FastLedger, context: RunContext, command_id: int, kept: Iterable[Kept], tokens: int
) -> None:
    """Write down what a command left in files, and count what its answer took.

    Raises:
        StorageError: The ledger could not be written.
    """

    def write(db: sqlite3.Connection) -> None:
        if tokens and context.run_id != MANUAL_RUN:
            db.execute(_COUNT, (tokens, context.run_id))
        whose = (clean(context.instance_id), clean(context.run_id), clean(context.step_id))
        for one in kept:
            about = (one.stream, clean(one.path), one.bytes, one.lines, one.tokens, one.digest)
            packed = one.path.endswith(".gz")
            db.execute(_INSERT, (ledger._now(), *whose, command_id, *about, packed))

    ledger._write(write)


def said_tokens(ledger: FastLedger, run_id: str) -> int:
    """Estimated tokens of what the commands of a run answered so far."""
    row = ledger._read(lambda db: db.execute(_SAID, (run_id,)).fetchone())
    return row[0] if row else 0


def outputs_of(
    ledger: FastLedger, *, instance_id: str | None = None, run_id: str = "", limit: int = 100
) -> tuple[StoredOutput, ...]:
    """The newest kept outputs, oldest of these first.

    Args:
        instance_id: Only those of this instance; None for all.
        run_id: Only those of this run.
    """
    query, given = _COLUMNS, []  # type: tuple[str, list[str | int]]
    for column, text in (("instance_id", instance_id), ("run_id", run_id or None)):
        if text is not None:
            query += f" AND o.{column} = ?"
            given.append(text)
    query += " ORDER BY o.id DESC LIMIT ?"
    rows = ledger._read(lambda db: db.execute(query, (*given, limit)).fetchall())
    return tuple(StoredOutput(*row) for row in rows[::-1])


def find_output(
    ledger: FastLedger, name: str, *, instance_id: str | None = None
) -> StoredOutput | None:
    """The output called `out-17` or `out-17.stderr`; None for one of another instance as well."""
    number, _, stream = name.removeprefix("out-").partition(".")
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        return None
    query, given = f"{_COLUMNS} AND o.command_id = ?", [int(number)]  # type: tuple[str, list[str | int]]
    if instance_id is not None:
        query += " AND o.instance_id = ?"
        given.append(instance_id)
    rows = ledger._read(lambda db: db.execute(f"{query} ORDER BY o.id", given).fetchall())
    found = [StoredOutput(*row) for row in rows]
    if not stream:
        found.sort(key=lambda one: one.stream != "stdout")
    else:
        found = [one for one in found if one.stream == stream]
    return found[0] if found else None
