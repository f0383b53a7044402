"""What the parts of one engine share: ledger, settings, times, and where instances stand."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from openry.config import Config
from openry.errors import StaleError, StorageError
from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.ledger.instances import Instance, get_instance
from openry.ledger.journal import Transaction
from openry.ledger.process import ProcessId, this_process
from openry.ledger.runs import Run, runs_of
from openry.ledger.tokens import token_of
from openry.orchestrator.course import Standing, standing_of
from openry.orchestrator.plan import Plan, read_plan, sha256_of

if TYPE_CHECKING:  # what only some need is loaded when it is asked for
    from openry.capability import Registry
    from openry.llm import Model
    from openry.session.snapshot import SnapshotStore

#: Gives the model of that name, e.g. `openry.llm.open_model` with its settings filled in.
OpenModel = Callable[[str], "Model"]
_KEPT_PLANS = 256


@dataclass(frozen=True, slots=True)
class Times:
    """The engine's clocks, in seconds.

    Attributes:
        interval_s: Between two scans when nothing wakes the patrol.
        watch_s: Between two looks whether another process wrote to the ledger.
        beat_s: Between two prolongations of a lease.
        self_kill_s: Without ledger for that long, a worker brakes its own steps.
        lease_s: After that long without a beat, another engine takes over.
        grace_s: Between the soft brake and the hard one, for an agent.
    """

    interval_s: float = 5.0
    watch_s: float = 0.1
    beat_s: float = 2.0
    self_kill_s: float = 6.0
    lease_s: float = 15.0
    grace_s: float = 30.0


class Stop:
    """Tells a running step to end at once: a flag, and a descriptor that becomes readable."""

    def __init__(self) -> None:
        self.fd, self._write = os.pipe()
        self._lock = threading.Lock()
        self._set = False

    def set(self) -> None:
        with self._lock:
            if not self._set and self._write >= 0:
                os.write(self._write, b"\0")
            self._set = True

    def is_set(self) -> bool:
        return self._set

    def close(self) -> None:
        with self._lock:
            for fd in (self.fd, self._write):
                if fd >= 0:
                    os.close(fd)
            self.fd = self._write = -1


@dataclass(slots=True)
class Job:
    """A run that this engine has claimed and is carrying out.

    Attributes:
        let_go: It is to be put back into the queue, not failed: the engine shuts down.
        hard_braked_at: Monotonic time of the hard brake; None before it.
    """

    run: Run
    epoch: int
    standing: Standing
    stop: Stop = field(default_factory=Stop)
    let_go: bool = False
    hard_braked_at: float | None = None

    @property
    def run_id(self) -> str:
        return self.run.run_id


class Room:
    """One engine's shared things. Safe to use from its threads."""

    def __init__(
        self,
        config: Config,
        *,
        ledger: Ledger | None = None,
        registry: Registry | None = None,
        open_model: OpenModel | None = None,
        times: Times | None = None,
    ) -> None:
        self.config = config
        self.times = times or Times(grace_s=config.brake_grace_s)
        self.owner = f"engine-{os.urandom(4).hex()}"
        self.secret = os.urandom(32)
        self._ledger = ledger
        self._registry = registry
        self._open_model = open_model
        self._plans: dict[str, Plan] = {}
        self._standings: dict[str, Standing] = {}
        self._models: dict[str, Model] = {}
        self._lock = threading.RLock()
        self._writing = threading.RLock()
        self.jobs: dict[str, Job] = {}

    @cached_property
    def ledger(self) -> Ledger:
        return self._ledger or Ledger(self.config.ledger)

    @cached_property
    def fast(self) -> FastLedger:
        return FastLedger(self.ledger.where, lock=self._writing)

    @cached_property
    def registry(self) -> Registry:
        """All capabilities. Reading them takes a moment, so only a step that needs one asks."""
        from openry.capability import own_registry

        return self._registry or own_registry(self.config.home)

    @cached_property
    def snapshots(self) -> SnapshotStore:
        from openry.session.keeper import store_of

        return store_of(self.config)

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Transaction]:
        """A transaction of the ledger. One at a time: waiting here is fair, SQLite's is not."""
        hand = None if self.ledger.path is None else self.fast
        with self._writing, self.ledger.write(durable=durable, hand=hand) as connection:
            yield connection

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other thread of ours writes, or is at what belongs to its transaction."""
        with self._writing:
            yield

    @property
    def process(self) -> ProcessId:
        return this_process()

    def model(self, name: str) -> Model:
        """A model, opened once."""
        with self._lock:
            if name not in self._models:
                self._models[name] = self._open(name)
            return self._models[name]

    def _open(self, name: str) -> Model:
        if name.startswith("recorded/"):
            from openry.llm.record import Recorded
            from openry.orchestrator.recorded import RecordedModel

            return Recorded(RecordedModel(self.ledger, name), self.ledger, str)
        if self._open_model is not None:
            return self._open_model(name)
        from openry.llm import open_model

        return open_model(name, config=self.config, ledger=self.ledger)

    # --- where instances stand --------------------------------------------------------------

    def plan(self, instance: Instance) -> Plan:
        """The instance's frozen plan, read once."""
        with self._lock:
            found = self._plans.get(instance.plan_hash)
            if found is None:
                if len(self._plans) >= _KEPT_PLANS:
                    self._plans.clear()
                if sha256_of(instance.plan) != instance.plan_hash:
                    raise StorageError(
                        f"the plan of instance `{instance.instance_id}` is not the one it was"
                        " started with: somebody changed the ledger"
                    )
                found = self._plans[instance.plan_hash] = read_plan(instance.plan)
            return found

    def standing(self, run: Run) -> Standing:
        """Where the instance of `run` stands, with every outcome before this run folded in.

        What is remembered from the run before is used when it is of exactly this turn; else, as
        after a restart, it is rebuilt from the ledger.

        Raises:
            StaleError: The instance has gone on; `run` is history.
        """
        with self._lock:
            known = self._standings.get(run.workflow_instance_id)
        turn = (run.data["visit"], run.data["folded"])
        if known is not None and (known.visit, known.folded) == turn:
            return known
        standing = self._rebuilt(run)
        if (standing.visit, standing.folded) != turn:
            raise StaleError(f"run `{run.run_id}` has been followed by others")
        self.remember(standing)
        return standing

    def start_of(self, instance: Instance) -> Standing:
        """Where a queued instance stands: before its first step."""
        return standing_of(instance, (), self.plan(instance))

    def remember(self, standing: Standing) -> None:
        with self._lock:
            self._standings[standing.instance_id] = standing

    def token(self, job: Job) -> str:
        """What whoever acts in the run of `job` shows to be let in."""
        return token_of(self.secret, job.run_id, job.epoch)

    def forget(self, instance_id: str) -> None:
        with self._lock:
            self._standings.pop(instance_id, None)

    def _rebuilt(self, run: Run) -> Standing:
        with self.ledger.read() as connection:
            instance = get_instance(connection, run.workflow_instance_id)
            assert instance is not None, "a run's instance is there by foreign key"
            runs = runs_of(connection, run.workflow_instance_id)
        return standing_of(instance, runs, self.plan(instance), folded=run.data["folded"])

    def close(self) -> None:
        self.fast.close()
        if self._ledger is None:
            self.ledger.close()
