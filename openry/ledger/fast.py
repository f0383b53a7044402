"""The ledger on the forwarder's path: `sqlite3` and nothing heavier.

Every promise the hand makes is kept here. A command's row is on disk before its process is. The
gates and the row are one transaction, so ten calls at once cannot pass a limit of three. What
SQLite cannot do is a `StorageError`; then a row is whole or absent, and nothing may be started.
"""

from __future__ import annotations

import os
from _thread import RLock

import openry.ledger.sqlite as sqlite3
from openry.clock import utc_now
from openry.errors import DamagedLedgerError, StorageError, UsageError
from openry.ledger.chain import last_command, last_event, link, seal, started_hash
from openry.ledger.gates import (
    MAY_START,
    Begun,
    Gate,
    RunRow,
    StatusOutcome,
    gate,
    gate_by_hand,
    judge_report,
)
from openry.ledger.jsontext import clean, from_json, to_json
from openry.ledger.opening import connect, open_current
from openry.ledger.place import Where, shown, sqlite_path
from openry.ledger.process import ProcessId, is_alive, this_process
from openry.models.command import MANUAL_RUN, CommandResult, Ending, RunContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self, TypeVar

    from openry.ledger.asking import Asking

    T = TypeVar("T")

_DAY_S = 86_400.0
#: As large as it gets before SQLite begins to write it anew.
_JOURNAL_BYTES = 4_100_000

_FIND_RUN = """
SELECT r.run_id, r.workflow, r.big_step, r.step_id, coalesce(r.workflow_instance_id, ''),
       r.attempt, r.status, r.reported_status, r.validation_status, r.reason, r.payload,
       r.cancel_requested, r.brake, r.brake_reason, r.max_tool_calls, r.tool_calls,
       r.max_output_tokens, r.deadline_at, r.data, coalesce(i.workspace, ''), r.token_hash
FROM task_state AS r LEFT JOIN workflow_instances AS i ON i.instance_id = r.workflow_instance_id
WHERE r.run_id = ?
"""
_FIND_RUNNING = """
SELECT run_id, pid, pid_started_at FROM task_state
WHERE settled = 0 AND status = 'in_progress' AND pid IS NOT NULL
"""
_COUNT_CALL = "UPDATE task_state SET tool_calls = tool_calls + 1 WHERE run_id = ?"
_BRAKE = """
UPDATE task_state SET brake = ?, brake_reason = ?, braked_at = ?, updated_at = ? WHERE run_id = ?
"""
_INSERT_COMMAND = """
INSERT INTO commands_log (
    run_id, workflow, step_id, instance_id, command, fingerprint, shell, cwd, verdict, rule,
    started_at, pid, pid_started_at, host, seq, started_hash, timestamp,
    ending, exit_code, stdout, stderr, duration_ms, ended_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# A row that recovery took for lost too early is put right by the truth.
_FINISH_COMMAND = """
UPDATE commands_log SET
    ending = ?, exit_code = ?, stdout = ?, stderr = ?, note = ?, stdout_bytes = ?,
    stderr_bytes = ?, stdout_digest = ?, stderr_digest = ?, spill_path = ?, duration_ms = ?,
    ended_at = ?, ended_hash = ?
WHERE id = ? AND ending IN ('started', 'lost')
"""
_FIND_STARTED = """
SELECT id, coalesce(pid, 0), pid_started_at, host,
       (julianday(?) - julianday(started_at)) * 86400
FROM commands_log WHERE ending = 'started'
"""
_LOSE = """
UPDATE commands_log SET ending = 'lost', note = ?, ended_at = ? WHERE id = ? AND ending = 'started'
"""
_REPORT = """
UPDATE task_state SET
    status = ?, reported_status = ?, reason = ?, payload = ?,
    output_overflow = output_overflow OR ?, validation_status = ?,
    ended_at = coalesce(?, ended_at), updated_at = ?
WHERE run_id = ? AND status = 'in_progress'
"""
_PROGRESS = """
UPDATE task_state SET payload = ?, heartbeat_at = ?, updated_at = ?
WHERE run_id = ? AND status = 'in_progress'
"""
_INSERT_PAYLOAD = """
INSERT INTO payloads (at, instance_id, run_id, workflow, step_id, status, payload, accepted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_LAST_PAYLOAD = """
SELECT status, payload FROM payloads WHERE run_id = ? ORDER BY id DESC LIMIT 1
"""
_INSERT_EVENT = """
INSERT INTO events (at, instance_id, run_id, step_id, kind, old, new, reason, actor, data, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '{}', ?)
"""


class FastLedger:
    """The ledger at `where`, for the hand. Safe to share between threads; survives `fork`.

    It is opened at the first use, and made or upgraded then if need be.

    Args:
        where: A path; a `sqlite:` URL will do.
        now: Says the time as `utc_now` does.
        lock: Held by who uses it; that of whoever else in this process writes to the same ledger.
            To wait for it costs nothing, and SQLite's own waiting is a sleep that grows.
    """

    def __init__(
        self, where: Where, *, now: Callable[[], str] = utc_now, lock: RLock | None = None
    ) -> None:
        path = sqlite_path(where)
        if path is None:
            raise UsageError(
                f"the hand writes to a SQLite ledger only, not to `{shown(where)}`;"
                " set OPENRY_DB to a file"
            )
        self.path = path
        self._now = now
        self.lock = lock or RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = this_process()
        self._durable = True  #: whether `self._connection` waits for the disk; so it is opened

    # --- commands ---------------------------------------------------------------------------

    def begin(
        self,
        context: RunContext,
        command_text: str,
        *,
        cwd: str = "",
        shell: str = "",
        verdict: str = "allow",
        rule: str = "",
        fingerprint: str = "",
        asking: Asking | None = None,
    ) -> Begun:
        """Pass the gates and put the row `started` on disk: then, and only then, start a process.

        Every call is recorded, also one that is braked or refused here.

        Args:
            command_text: The command as it may be shown: redacted.
            verdict: `allow`, or `confirm` when a person said yes. For a denied one: `refuse`.
            rule: The policy's rule that decided.
            asking: What a person must have said yes to; without it the command is refused, and
                the question is stored for them.

        Raises:
            StorageError: The ledger could not be written; nothing may be started.
        """
        row = _Asked(context, command_text, cwd, shell, verdict, rule, fingerprint, asking)
        return self._write(lambda db: self._open(db, row, MAY_START))

    def refuse(
        self,
        context: RunContext,
        command_text: str,
        *,
        reason: str,
        exit_code: int = 126,
        cwd: str = "",
        shell: str = "",
        verdict: str = "deny",
        rule: str = "",
        fingerprint: str = "",
    ) -> Begun:
        """Record a command that is not started, and why. It counts as a call like any other.

        A brake goes before a refusal: look at `braked` first.

        Args:
            reason: The whole text the agent reads on its standard error.
        """
        row = _Asked(context, command_text, cwd, shell, verdict, rule, fingerprint)
        refusal = Gate(Ending.REFUSED, reason, exit_code)
        return self._write(lambda db: self._open(db, row, refusal))

    def finish(
        self,
        command_id: int,
        result: CommandResult,
        *,
        stdout_digest: str = "",
        stderr_digest: str = "",
    ) -> bool:
        """Record how a started command ended. False when that was recorded before."""
        values = (
            str(result.ending),
            None if result.ending == Ending.LOST else result.exit_code,
            clean(result.stdout),
            clean(result.stderr),
            clean(result.note),
            result.stdout_bytes,
            result.stderr_bytes,
            stdout_digest,
            stderr_digest,
            clean(result.spill),
            round(result.duration_s * 1000),
            self._now(),
        )
        return self._write(lambda db: _finish(db, command_id, values), durable=False)

    def recover_lost(self, *, doubt_s: float = _DAY_S) -> int:
        """Mark as `lost` what was started by a process that is gone. Returns how many.

        Args:
            doubt_s: A row whose process cannot be judged from here (another host, another
                container) is lost when it is older than this.
        """
        return self._write(lambda db: sum(self._lose(db, doubt_s)))

    # --- runs -------------------------------------------------------------------------------

    def run(self, run_id: str) -> RunRow | None:
        """What the ledger knows of a run; None for one it does not know."""
        return self._read(lambda db: _find_run(db, run_id))

    def report(
        self, context: RunContext, status: str, payload: Mapping[str, Any] | None = None
    ) -> StatusOutcome:
        """Record what an agent says of its run. A claim, not a verdict: the patrol validates.

        The same status again is acknowledged again. Another final one after a final one is not.

        Raises:
            UsageError: `status` is none that may be reported.
            StorageError: The ledger could not be written.
        """
        return self._write(lambda db: self._report(db, context, status, payload or {}))

    # --- the connection ---------------------------------------------------------------------

    def close(self) -> None:
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def make_room(self) -> None:
        """Let the journal have at once the size that it grows to: for who will write often.

        Where it grows the disk has to find room at each commit, which takes longer than the rest of
        it. What is written for that is taken back; it changes nothing else.

        Raises:
            StorageError: The ledger could not be written.
        """
        with self.lock:
            try:
                connection = self.connected()
                (pages,) = connection.execute("PRAGMA cache_size").fetchone()
                connection.execute("PRAGMA cache_size = 16")  # the rest goes into the journal
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("CREATE TABLE room (data BLOB)")
                    connection.execute("INSERT INTO room VALUES (zeroblob(?))", (_JOURNAL_BYTES,))
                finally:
                    self._roll_back()
                    connection.execute(f"PRAGMA cache_size = {int(pages)}")
            except sqlite3.Error as error:
                raise self._storage_error(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        """Do `work` in one transaction: kept whole, or absent.

        Args:
            durable: Wait until the disk has it. Else a power cut (nothing less) may undo it, until
                the next durable one: how a command ended, for instance, which is `lost` then.
        """
        with self.lock:
            try:
                connection = self.connected()
                self.sync(connection, durable)
                connection.execute("BEGIN IMMEDIATE")
                outcome = work(connection)
                connection.execute("COMMIT")
            except BaseException as error:
                # SQLite may have rolled back by itself; a second try would hide the first error.
                self._roll_back()
                if isinstance(error, sqlite3.Error):
                    raise self._storage_error(error) from error
                raise
            return outcome

    def sync(self, connection: sqlite3.Connection, durable: bool) -> None:
        """Have `connection`, which is ours, wait for the disk at each commit, or not."""
        if self._durable is not durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self.lock:
            try:
                return work(self.connected())
            except sqlite3.Error as error:
                raise self._storage_error(error) from error

    def _roll_back(self) -> None:
        connection = self._connection
        if connection is None or not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._connection = None  # closing it rolls back, and the next call opens anew
            connection.close()

    def connected(self) -> sqlite3.Connection:
        """Our connection, opened if need be. Who uses it holds `lock`."""
        if self._process.pid != os.getpid():
            # A child of `fork` must neither use nor close its parent's connection.
            _inherited.append(self._connection)
            self._connection, self._process = None, this_process()
        if self._connection is None:
            self._connection = connect(self.path)
            self._durable = True
        return self._connection

    def _storage_error(self, error: sqlite3.Error) -> StorageError:
        from openry.ledger.damage import told
        from openry.ledger.trouble import storage_error

        found = storage_error(error, self.path)
        if isinstance(found, DamagedLedgerError) and self._connection is not None:
            self._connection.close()  # the next call opens what is there then
            self._connection = None
        return told(found, self.path)

    # --- inside a transaction ---------------------------------------------------------------

    def _open(self, db: sqlite3.Connection, row: _Asked, wanted: Gate) -> Begun:
        """Insert the row that the gates allow: the `wanted` one, or a braked or refused one."""
        run_id, now = row.context.run_id, self._now()
        by_hand = run_id == MANUAL_RUN
        run = None if by_hand else _find_run(db, run_id)
        found = gate_by_hand(_running_above(db)) if by_hand else gate(row.context, run)
        if run is not None and found.brake:
            db.execute(_BRAKE, (found.brake, found.reason, now, now, run_id))
            _event(db, now, run, "brake", new=found.brake, reason=found.reason, actor="hand")
        elif run is not None and found is MAY_START:
            db.execute(_COUNT_CALL, (run_id,))
        chosen, request = wanted if found is MAY_START else found, 0
        if row.asking is not None and chosen is MAY_START:
            from openry.ledger.asking import settle

            chosen, request = settle(db, now, row.asking, run or row.context)
        last = last_command(db, clean(run_id))
        values = self._values(row, run, chosen, now, last)
        command_id = db.execute(_INSERT_COMMAND, values).lastrowid
        if chosen is not MAY_START and command_id:
            seal(db, command_id)
        if request:
            from openry.ledger.asking import use

            use(db, request, command_id)
        return chosen.begun(command_id)

    def _values(
        self, row: _Asked, run: RunRow | None, chosen: Gate, now: str, last: tuple[int, str]
    ) -> tuple[Any, ...]:
        whose = run or row.context
        started = chosen is MAY_START
        seq, before = last
        begun = (
            clean(row.context.run_id),
            clean(whose.workflow),
            clean(whose.step_id),
            clean(whose.instance_id),
            clean(row.text),
            row.fingerprint,
            clean(row.shell),
            clean(row.cwd),
            row.verdict,
            clean(row.rule),
            now,
            self._process.pid,
            self._process.started_at,
            self._process.host,
            seq + 1,
        )
        return (
            *begun,
            link(before, *begun),
            now,
            str(chosen.ending),
            None if started else chosen.exit_code,
            clean(chosen.stdout),
            clean(chosen.stderr),
            None if started else 0,
            None if started else now,
        )

    def _lose(self, db: sqlite3.Connection, doubt_s: float) -> list[int]:
        now = self._now()
        lost = []
        for command_id, pid, started_at, host, age_s in db.execute(
            _FIND_STARTED, (now,)
        ).fetchall():
            alive = is_alive(ProcessId(pid, started_at, host))
            if alive is False or (alive is None and age_s > doubt_s):
                note = "the process that ran this command ended without recording how"
                lost.append(db.execute(_LOSE, (note, now, command_id)).rowcount)
                seal(db, command_id)
        return lost

    def _report(
        self, db: sqlite3.Connection, context: RunContext, status: str, payload: Mapping[str, Any]
    ) -> StatusOutcome:
        run_id = context.run_id
        run = _find_run(db, run_id)
        verdict = judge_report(run_id, run, status, payload, context.token)
        if run is None or verdict.unknown:
            return verdict.outcome
        now, text = self._now(), to_json(payload)
        if verdict.accepted or db.execute(_LAST_PAYLOAD, (run_id,)).fetchone() != (status, text):
            submission = (run.instance_id, run_id, run.workflow, run.step_id, status, text)
            db.execute(_INSERT_PAYLOAD, (now, *submission, verdict.accepted))
        if verdict.accepted and not verdict.becomes:
            db.execute(_PROGRESS, (text, now, now, run_id))
        elif verdict.accepted:
            overflow = verdict.becomes == "overflow"
            pending = "pending" if verdict.becomes == "completed" else ""
            ended_at = None if overflow else now
            told = (verdict.becomes, status, verdict.reason, text)
            db.execute(_REPORT, (*told, overflow, pending, ended_at, now, run_id))
            change = {"old": run.status, "new": verdict.becomes, "reason": verdict.reason}
            _event(db, now, run, "transition", actor="agent", **change)
        return verdict.outcome


class _Asked:
    """What is asked of the hand, as its row will say it."""

    __slots__ = ("asking", "context", "cwd", "fingerprint", "rule", "shell", "text", "verdict")

    def __init__(
        self,
        context: RunContext,
        text: str,
        cwd: str,
        shell: str,
        verdict: str,
        rule: str,
        fingerprint: str,
        asking: Asking | None = None,
    ) -> None:
        self.asking = asking
        self.context, self.text, self.cwd, self.shell = context, text, cwd, shell
        self.verdict, self.rule, self.fingerprint = verdict, rule, fingerprint


def _finish(db: sqlite3.Connection, command_id: int, values: tuple[Any, ...]) -> bool:
    """`values` are those of `chain.ENDED_COLUMNS`."""
    found = link(started_hash(db, command_id), *values)
    return db.execute(_FINISH_COMMAND, (*values, found, command_id)).rowcount == 1


#: Connections of a parent process, kept from the garbage collector, which would close them.
_inherited: list[sqlite3.Connection | None] = []


def running_above(where: Where) -> str:
    """Why whoever asks is inside a run of that ledger, as far as it can be read; else empty."""
    path = sqlite_path(where) if where else None
    try:
        connection = open_current(path) if path else None
        if connection is None:
            return ""
        try:
            return _running_above(connection)
        finally:
            connection.close()
    except (sqlite3.Error, StorageError):
        return ""  # whoever needs that ledger says what is wrong with it


def _running_above(db: sqlite3.Connection) -> str:
    """Why we are inside a run: one that is in progress belongs to a process above ours."""
    running = db.execute(_FIND_RUNNING).fetchall()
    if not running:
        return ""
    from openry.ledger.above import inside_one_of

    return inside_one_of(running)


def _find_run(db: sqlite3.Connection, run_id: str) -> RunRow | None:
    row = db.execute(_FIND_RUN, (clean(run_id),)).fetchone()
    if row is None:
        return None
    columns = list(row)
    columns[10], columns[-3] = from_json(columns[10]), from_json(columns[-3])
    columns[11] = bool(columns[11])
    return RunRow(*columns)


def _event(
    db: sqlite3.Connection,
    now: str,
    run: RunRow,
    kind: str,
    *,
    old: str = "",
    new: str = "",
    reason: str = "",
    actor: str,
) -> None:
    who = (run.instance_id, run.run_id, run.step_id)
    said = (now, *who, str(kind), str(old), str(new), clean(reason), actor)
    before = last_event(db, run.instance_id)
    db.execute(_INSERT_EVENT, (*said, link(before, *said, "{}")))
