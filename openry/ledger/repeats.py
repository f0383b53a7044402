"""What an earlier attempt at a step has done already, and what a run does over and over.

A part of `FastLedger` that only runs need, so it is loaded by those alone.
"""

from __future__ import annotations

from openry.ledger.chain import last_event, link
from openry.ledger.jsontext import clean
from openry.models.command import CommandResult, Ending
from openry.models.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import openry.ledger.sqlite as sqlite3
    from openry.ledger.fast import FastLedger
    from openry.models.command import RunContext

#: How the note of a row begins that was not run but answered from an earlier one.
RECORDED = "openry: done before"
#: Attempts at the same work on the same files: a big step's retry begins on restored ones.
_SAME_WORK = """
FROM commands_log AS c JOIN task_state AS r ON r.run_id = c.run_id, task_state AS me
WHERE me.run_id = ? AND r.workflow_instance_id = me.workflow_instance_id
  AND r.step_id = me.step_id AND r.item = me.item
  AND r.big_step_retry_count = me.big_step_retry_count
  AND json_extract(r.data, '$.visit') IS json_extract(me.data, '$.visit')
  AND c.fingerprint >= ? AND c.fingerprint < ?
"""
_EARLIER = f"""
SELECT c.id, c.ending, c.exit_code, c.stdout, c.stderr, c.duration_ms
{_SAME_WORK} AND r.run_id <> me.run_id AND c.note NOT LIKE '{RECORDED}%'
  AND ((c.ending = 'exited' AND c.exit_code = 0) OR c.ending IN ('started', 'lost'))
ORDER BY c.id
"""
_MINE = f"SELECT count(*) {_SAME_WORK} AND r.run_id = me.run_id"
_BRAKE = """
UPDATE task_state SET brake = 'loop', brake_reason = ?, braked_at = ?, updated_at = ?
WHERE run_id = ? AND status = 'in_progress' AND brake = ''
"""
_INSERT_EVENT = """
INSERT INTO events (at, instance_id, run_id, step_id, kind, old, new, reason, actor, data, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


@value
class Earlier:
    """An action of an earlier attempt. `result` is None when nobody knows how it ended."""

    command_id: int
    result: CommandResult | None


def earlier(ledger: FastLedger, run_id: str, action: str) -> Earlier | None:
    """What an earlier attempt has to say of the action that a run wants next; None: nothing.

    An attempt that did it twice answers twice.

    Args:
        action: The part of a fingerprint that says what is done.
    """
    which = (run_id, action, action + "g")

    def look(db: sqlite3.Connection) -> Earlier | None:
        known = db.execute(_EARLIER, which).fetchall()
        mine = db.execute(_MINE, which).fetchone()[0] if known else 0
        if mine >= len(known):
            return None
        number, ending, code, stdout, stderr, duration_ms = known[mine]
        if ending != Ending.EXITED:
            return Earlier(number, None)
        return Earlier(number, CommandResult(code, stdout, stderr, (duration_ms or 0) / 1000))

    return ledger._read(look)


def note_loop(ledger: FastLedger, context: RunContext, why: str, *, brake: bool) -> None:
    """Write down that a run goes round in circles; with `brake`, stop it.

    Raises:
        StorageError: The ledger could not be written.
    """

    def write(db: sqlite3.Connection) -> None:
        now, run_id = ledger._now(), clean(context.run_id)
        if brake:
            db.execute(_BRAKE, (clean(why), now, now, run_id))
        whose = (clean(context.instance_id), run_id, clean(context.step_id))
        kind, new = ("brake", "loop") if brake else ("loop", "warned")
        said = (now, *whose, kind, "", new, clean(why), "hand", "{}")
        db.execute(_INSERT_EVENT, (*said, link(last_event(db, whose[0]), *said)))

    ledger._write(write)
