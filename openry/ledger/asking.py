"""A command that needs a person's yes: asked for in the ledger, and used once.

Loaded only for a command that a `confirm` rule speaks of. What a person says holds for the same
command of the same run, or of a later run of the same step: a retry is that run's next attempt.
"""

from __future__ import annotations

from openry.ledger.gates import MAY_START, Gate
from openry.ledger.jsontext import clean, to_json
from openry.models.command import Ending
from openry.models.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import openry.ledger.sqlite as sqlite3
    from openry.ledger.gates import RunRow
    from openry.models.command import RunContext

_FIND = """
SELECT id, state, comment FROM approvals
WHERE kind = 'command' AND command_id IS NULL AND json_extract(data, '$.fingerprint') = ?
  AND (run_id = ? OR (instance_id <> '' AND instance_id = ? AND step_id = ?))
ORDER BY id DESC LIMIT 1
"""
_ASK = """
INSERT INTO approvals (
    asked_at, kind, instance_id, run_id, step_id, question, data, state, answered_by, comment
) VALUES (?, 'command', ?, ?, ?, ?, ?, 'pending', '', '')
"""
_USE = "UPDATE approvals SET command_id = ? WHERE id = ? AND command_id IS NULL"


@value
class Asking:
    """What a person is asked about a command.

    Attributes:
        question: The whole plan, with control characters made visible and secrets replaced.
        reason: Why a person is asked; the agent reads it.
        fingerprint: The same for the same command, whatever it looks like.
    """

    question: str
    reason: str
    fingerprint: str


def settle(
    db: sqlite3.Connection, now: str, asked: Asking, whose: RunRow | RunContext
) -> tuple[Gate, int]:
    """Whether the command may start, and by which approval; the question is stored if need be."""
    mine = (clean(whose.run_id), clean(whose.instance_id), clean(whose.step_id))
    found = db.execute(_FIND, (asked.fingerprint, *mine)).fetchone()
    request, state, comment = found or (0, "", "")
    if state == "approved":
        return MAY_START, request
    if state == "rejected":
        said = f" ({' '.join(comment.split())})" if comment else ""
        return _refused(f"openry: not allowed: a person said no{said}: {asked.reason}"), 0
    if state != "pending":
        about = {"fingerprint": asked.fingerprint, "reason": asked.reason}
        run_id, instance_id, step_id = mine
        row = (now, instance_id, run_id, step_id, clean(asked.question), to_json(about))
        request = db.execute(_ASK, row).lastrowid or 0
    told = f"request {request} waits for a person; call it again when it is approved"
    return _refused(f"openry: needs approval: {asked.reason}; {told}"), 0


def use(db: sqlite3.Connection, request: int, command_id: int | None) -> None:
    """Note which command an approval was for; another needs another one."""
    db.execute(_USE, (command_id, request))


def _refused(text: str) -> Gate:
    return Gate(Ending.REFUSED, text, 126)
