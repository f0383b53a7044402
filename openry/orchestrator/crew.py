"""The workers of one engine: a few threads, each following an instance from step to step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from openry.clock import monotonic
from openry.errors import StaleError, StorageError
from openry.ledger.journal import ledger_now
from openry.ledger.runs import Run, beat
from openry.ledger.schedules import Notice
from openry.orchestrator.room import Job, Room
from openry.orchestrator.spec import Kind
from openry.orchestrator.telling import Teller
from openry.orchestrator.worker import More, Worker

#: Gives the first job, if there is one; asks whether more may be taken on after it.
Begin = Callable[[More], Job | None]
_LOOK_S = 0.01


class Crew:
    """At most `slots` threads at work.

    Args:
        wake: Called when a thread has ended, so that a scan may find something to do.

    `troubles` holds, by instance, the exceptions that were mistakes of ours; such an instance is
    not touched again by this engine.
    """

    def __init__(self, room: Room, slots: int, wake: Callable[[], None]) -> None:
        self.room = room
        self.slots = slots
        self.worker = Worker(room)
        self.teller = Teller(room)
        self._wake = wake
        self._lock = threading.Lock()
        self._busy: dict[str, threading.Thread] = {}
        self._stopped: list[Collection[str] | None] = []
        self._closed = threading.Event()
        self._closing = False
        self.troubles: dict[str, BaseException] = {}
        self._keeper: threading.Thread | None = None

    def begin(self, run: Run) -> bool:
        """Have a queued run claimed and carried out; False when no slot is free for it."""
        return self._put_to_work(
            run.run_id, run.workflow_instance_id, lambda more: self.worker.begin(run, more)
        )

    def start(self, instance_id: str) -> bool:
        """The same for a queued instance."""
        return self._put_to_work(
            instance_id, instance_id, lambda more: self.worker.start(instance_id, more)
        )

    def follow(self, run: Run) -> bool:
        """Have the consequences of an ended run drawn."""
        return self._put_to_work(
            run.run_id, run.workflow_instance_id, lambda more: self.worker.follow(run, more)
        )

    def tell(self, notice: Notice) -> bool:
        """Have a notice sent."""

        def send(more: More) -> Job | None:
            self.teller.send(notice)
            return None

        return self._put_to_work(f"notice-{notice.id}", notice.instance_id, send)

    def has(self, key: str) -> bool:
        """Whether a thread is at this run or instance."""
        return key in self._busy

    def reap(self) -> int:
        """Forget threads that ended without saying so; how many."""
        with self._lock:
            ended = [key for key, thread in self._busy.items() if not thread.is_alive()]
            for key in ended:
                del self._busy[key]
        return len(ended)

    @property
    def is_idle(self) -> bool:
        return not self._busy

    def let_go(self, grace_s: float, only: Collection[str] | None = None) -> None:
        """End the steps under way and put their runs back into the queue; with `only`, of these.

        What does not end within `grace_s` is left to its lease.
        """
        self._stopped.append(only)
        with self.room.alone():  # what is claimed is in `jobs`, and nothing is claimed any more
            jobs = [
                job
                for job in list(self.room.jobs.values())
                if only is None or job.run.workflow_instance_id in only
            ]
        for job in jobs:
            job.let_go = True
            job.stop.set()
        until = monotonic() + grace_s
        while monotonic() < until and any(job.run_id in self.room.jobs for job in jobs):
            self._closed.wait(_LOOK_S)
        self._stopped.remove(only)

    def close(self, grace_s: float) -> None:
        """Let everything go, and take no more."""
        with self._lock:
            self._closing = True
        self.let_go(grace_s)
        self._closed.set()
        for thread in (*self._busy.values(), *filter(None, (self._keeper,))):
            thread.join(grace_s)

    # --- threads ------------------------------------------------------------------------------

    def _put_to_work(self, key: str, instance_id: str, begin: Begin) -> bool:
        def more() -> bool:
            stopped = any(only is None or instance_id in only for only in self._stopped)
            return not self._closing and not stopped and instance_id not in self.troubles

        with self._lock:
            full = len(self._busy) >= self.slots
            if full or key in self._busy or not more():
                return False
            thread = threading.Thread(
                target=self._work,
                args=(key, instance_id, begin, more),
                name=f"openry-{key}",
                daemon=True,
            )
            self._busy[key] = thread
            self._keep_leases()
        thread.start()
        return True

    def _work(self, key: str, instance_id: str, begin: Begin, more: More) -> None:
        """Begin, then follow the instance from step to step until it needs something else."""
        try:
            job = begin(more)
            while job is not None:
                if _needs_patrol(job):
                    self._wake()
                job = self.worker.work(job, more)
        except (StorageError, StaleError):
            pass  # nothing can, or need, be written down: the next scan finds things as they are
        except BaseException as error:
            self.troubles[instance_id] = error  # a mistake of ours: left alone, and told
        finally:
            with self._lock:
                self._busy.pop(key, None)
            self._wake()

    # --- leases -------------------------------------------------------------------------------

    def _keep_leases(self) -> None:
        if self._keeper is None or not self._keeper.is_alive():
            self._keeper = threading.Thread(target=self._keep, name="openry-beat", daemon=True)
            self._keeper.start()

    def _keep(self) -> None:
        """Prolong the leases while there are any. Without ledger for too long, end the steps."""
        times, kept_at = self.room.times, monotonic()
        while not self._closed.wait(times.beat_s):
            held = [(job.run_id, job.epoch) for job in list(self.room.jobs.values())]
            if not held:
                kept_at = monotonic()
                continue
            try:
                with self.room.write() as connection:
                    at = ledger_now(connection)
                    gone = beat(connection, at, self.room.owner, held, lease_s=times.lease_s)
                kept_at = monotonic()
            except StorageError:
                late = monotonic() - kept_at > times.self_kill_s
                gone = tuple(run_id for run_id, _ in held) if late else ()
            for run_id in gone:
                job = self.room.jobs.get(run_id)
                if job is not None:
                    job.stop.set()


def _needs_patrol(job: Job) -> bool:
    """Whether a scan is wanted now that `job` has begun.

    Beside an item others may be waiting for a thread of their own; a limit that only the patrol
    holds may be due before its next scan.
    """
    run = job.run
    has_clock = bool(run.data["enters"] and job.standing.spec.timeout_minutes)
    return bool(run.item) or has_clock or (run.kind == Kind.AGENT and bool(run.deadline_at))
