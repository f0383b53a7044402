"""Each row's hash is made of the row and of the hash before it, so an edit shows afterwards.

The events of an instance are one chain; the commands of a run are another, by their numbers, each
with a second hash over how it ended. Whoever owns the file can make all hashes anew: only a head
that was kept elsewhere (`ledger.anchor_command`) shows that.

On the forwarder's path: a few microseconds for each row, and nothing imported but C.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import openry.ledger.sqlite as sqlite3

try:
    from _blake2 import blake2b
    from _json import encode_basestring as _quoted
except ImportError:
    from hashlib import blake2b
    from json.encoder import encode_basestring as _quoted

#: What a command's two hashes are made of, in this order, after the hash before.
STARTED_COLUMNS = (
    "run_id", "workflow", "step_id", "instance_id", "command", "fingerprint", "shell", "cwd",
    "verdict", "rule", "started_at", "pid", "pid_started_at", "host", "seq",
)  # fmt: skip
ENDED_COLUMNS = (
    "ending", "exit_code", "stdout", "stderr", "note", "stdout_bytes", "stderr_bytes",
    "stdout_digest", "stderr_digest", "spill_path", "duration_ms", "ended_at",
)  # fmt: skip
EVENT_COLUMNS = (
    "at", "instance_id", "run_id", "step_id", "kind", "old", "new", "reason", "actor", "data",
)  # fmt: skip

#: Endings that the truth may still correct.
OPEN_ENDINGS = ("started", "lost")
#: Copied for each hash: that is cheaper than a new one.
_EMPTY = blake2b(digest_size=32)
_LAST_COMMAND = """
SELECT seq, started_hash FROM commands_log WHERE run_id = ? ORDER BY seq DESC LIMIT 1
"""
_LAST_EVENT = "SELECT hash FROM events WHERE instance_id = ? ORDER BY id DESC LIMIT 1"
_ENDED = f"SELECT started_hash, {', '.join(ENDED_COLUMNS)} FROM commands_log WHERE id = ?"  # noqa: S608
_STARTED = "SELECT started_hash FROM commands_log WHERE id = ?"
_SEAL = "UPDATE commands_log SET ended_hash = ? WHERE id = ?"


def link(before: str, *columns: str | int | None) -> str:
    """The hash of a row: of the hash before it, then of the row's columns as an array of JSON.

    SQLite's `json_array` writes the same, so `openry log verify` need not make it of each column.

    >>> link("", "a", "b") == link("", "ab", "")
    False
    """
    said = [_quoted(c) if isinstance(c, str) else "null" if c is None else str(c) for c in columns]
    digest = _EMPTY.copy()
    digest.update(f"{before}[{','.join(said)}]".encode())
    found: str = digest.hexdigest()
    return found


def last_command(db: sqlite3.Connection, run_id: str) -> tuple[int, str]:
    """Number and hash of the newest command of a run."""
    found: tuple[int, str] = db.execute(_LAST_COMMAND, (run_id,)).fetchone() or (0, "")
    return found


def last_event(db: sqlite3.Connection, instance_id: str) -> str:
    """The hash of the newest event of an instance."""
    row = db.execute(_LAST_EVENT, (instance_id,)).fetchone()
    return row[0] if row else ""


def started_hash(db: sqlite3.Connection, command_id: int) -> str:
    row = db.execute(_STARTED, (command_id,)).fetchone()
    return row[0] if row else ""


def seal(db: sqlite3.Connection, command_id: int) -> None:
    """Hash how a command ended, as its row says it now."""
    db.execute(_SEAL, (link(*db.execute(_ENDED, (command_id,)).fetchone()), command_id))
