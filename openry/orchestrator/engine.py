"""The engine: takes plans in, runs them to their end, says how they stand.

It keeps nothing that the ledger does not have: another engine on the same ledger, now or after a
crash, goes on where this one stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from openry.clock import monotonic
from openry.config import Config
from openry.errors import NotFoundError, StorageError, UsageError
from openry.ledger.db import Ledger
from openry.ledger.instances import (
    Instance,
    add_instance,
    find_instance,
    get_instance,
    glance_at,
    list_instances,
    move_instance,
    queued_instances,
    request_cancel,
)
from openry.ledger.journal import Event, Transaction, events_after, ledger_now
from openry.ledger.process import is_alive
from openry.ledger.records import Approval, answer_approval, pending_approvals
from openry.ledger.runs import (
    APPROVE,
    REJECT,
    get_run,
    move_run,
    moving_runs,
    runs_of,
    set_run,
)
from openry.ledger.tokens import hashed
from openry.ledger.watch import Watch
from openry.ledger.workers import add_worker, beat_worker, end_worker, live_workers
from openry.models import InstanceState
from openry.orchestrator.course import chart_again, queue_next, standing_of
from openry.orchestrator.intake import Row, plan_of, row_of
from openry.orchestrator.loader import Loaded
from openry.orchestrator.outcomes import FINAL, InstanceOutcome, StepOutcome, outcome_of
from openry.orchestrator.plan import Plan
from openry.orchestrator.protocol import Signal
from openry.orchestrator.references import refer
from openry.orchestrator.room import OpenModel, Room, Times
from openry.orchestrator.spec import ABORT, DONE, WorkflowSpec

if TYPE_CHECKING:  # what works is loaded where something is to be done
    from openry.capability import Registry
    from openry.orchestrator.anchor import Anchor
    from openry.orchestrator.clockwork import Clockwork
    from openry.orchestrator.crew import Crew
    from openry.orchestrator.patrol import Patrol
    from openry.orchestrator.replaying import Replay

OnEvent = Callable[[Event], None]
ShouldStop = Callable[[], bool]
#: How long steps may take to end when they are let go.
LET_GO_S = 15.0
#: How often an engine says that it is there, and for how long that holds.
WORKER_BEAT_S, WORKER_LEASE_S = 15.0, 60.0
_NEVER = float("-inf")
_I = InstanceState


class Engine:
    """One engine on a ledger. Close it, or use it as a context manager.

    Args:
        open_model: Gives the model of a name; default `openry.llm.open_model`.
        slots: Steps that may run at the same time.
    """

    def __init__(
        self,
        config: Config,
        *,
        ledger: Ledger | None = None,
        registry: Registry | None = None,
        open_model: OpenModel | None = None,
        times: Times | None = None,
        slots: int = 8,
    ) -> None:
        self.room = Room(
            config, ledger=ledger, registry=registry, open_model=open_model, times=times
        )
        self.config = config
        self._woken = threading.Condition()
        self._wakes = 0
        self._shown_at = _NEVER
        self._scanning = threading.Lock()
        self._slots = slots

    @cached_property
    def crew(self) -> Crew:
        """The workers."""
        from openry.orchestrator.crew import Crew

        return Crew(self.room, self._slots, self._wake)

    @cached_property
    def patrol(self) -> Patrol:
        from openry.orchestrator.patrol import Patrol

        return Patrol(self.room, self.crew)

    @cached_property
    def clockwork(self) -> Clockwork:
        """The schedules."""
        from openry.orchestrator.clockwork import Clockwork

        return Clockwork(self.room)

    @cached_property
    def anchor(self) -> Anchor:
        """Whoever is given the ledger's newest head."""
        from openry.orchestrator.anchor import Anchor

        return Anchor(self.config, self.ledger)

    @property
    def ledger(self) -> Ledger:
        return self.room.ledger

    # --- taking in ----------------------------------------------------------------------------

    def submit(
        self,
        loaded: Loaded | WorkflowSpec,
        *,
        inputs: Mapping[str, Any] | None = None,
        workspace: Path | None = None,
        drafted: bool = False,
        payload: Mapping[str, Any] | None = None,
        session_id: str = "",
        instance_id: str = "",
    ) -> str:
        """Freeze the plan and queue an instance of it. Returns its id.

        Args:
            instance_id: Its id, for whoever may have to ask twice: the same id with the same plan
                and inputs is the same instance, taken on once.
            workspace: Folder the steps work in; by default one of the instance's own under
                OPENRY_HOME, or where we are for a workflow with `workspace: shared`.
            drafted: Drafted by the loop: its commands never leave the sandbox. A workflow that a
                project's `.openry` supplies is treated likewise.
            payload: What the first step inherits.

        Raises:
            BadFileError: With every problem of the file and of those it refers to.
            UsageError: With every problem of the inputs.
        """
        plan, file = plan_of(loaded, self.config, payload or {})
        about: dict[str, Any] = {"drafted": drafted, "session_id": session_id, "file": file}
        about |= {"inputs": inputs, "workspace": workspace, "instance_id": instance_id}
        return self._submit(row_of(plan, self.config, **about))

    def _submit(self, row: Row) -> str:
        instance_id = str(row["instance_id"])
        with self.room.write() as connection:
            row = refer(connection, row)
            known = get_instance(connection, instance_id)
            if known is None:
                add_instance(connection, ledger_now(connection), row)
            elif (known.plan_hash, known.inputs) != (row["plan_hash"], row["inputs"]):
                raise UsageError(f"there is an instance `{instance_id}` of another plan already")
        self._wake()
        return instance_id

    def replay(
        self,
        instance_id: str,
        from_step: str = "",
        *,
        model: str = "",
        recorded: bool = False,
        mended: Loaded | WorkflowSpec | None = None,
        workspace: Path | None = None,
        dry_run: bool = False,
    ) -> Replay:
        """Queue an instance once more from one of its steps, on the files as they were before.

        Args:
            model: Acts in every agent step instead of those that did.
            recorded: Agents say again what they said then; no model is asked.
            mended: The workflow as it is to be followed from there on, instead of as it was.
            workspace: A folder that is not there yet, to work in; by default one of its own under
                OPENRY_HOME, whose name is never the same.

        Raises:
            UsageError: It has no such step, nobody kept those files, or what an agent said is not
                in the ledger.
        """
        from openry.orchestrator.replaying import plan_replay, refuse_other

        about: dict[str, Any] = {"model": model, "recorded": recorded}
        instance = self._instance(instance_id)
        if mended is not None:
            plan, file = plan_of(mended, self.config, {})
            refuse_other(plan, instance)
            about["mended"] = row_of(plan, self.config, file=file, inputs=instance.inputs)
        with self.ledger.read() as connection:
            replay = plan_replay(self.room, connection, instance, from_step, **about)
        if workspace is not None:
            replay.row["workspace"] = str(workspace)
        if not dry_run:
            folder = Path(replay.row["workspace"])
            folder.mkdir(parents=True)
            if replay.snapshot_id:
                self.room.snapshots.restore(replay.snapshot_id, folder)
            self._submit(replay.row)
        return replay

    # --- running ------------------------------------------------------------------------------

    def run(
        self,
        instance_id: str,
        on_event: OnEvent | None = None,
        should_stop: ShouldStop | None = None,
    ) -> InstanceOutcome:
        """Patrol in here until the instance has ended or waits for a person.

        `on_event` hears what happened a tenth of a second later at most (`Times.watch_s`).

        With `should_stop` it ends early when that says so: the step under way is ended and queued
        again, and any engine may go on from there.
        """
        listener = self._listener(instance_id, on_event)
        self._serve((instance_id,), lambda: self._is_still(instance_id), listener, should_stop)
        for notice in self.crew.teller.pending():
            if notice.instance_id == instance_id:
                self.crew.teller.send(notice)
        return self.outcome(instance_id)

    def serve(self, *, once: bool = False, should_stop: ShouldStop | None = None) -> None:
        """Patrol over every instance; with `once` until none can go on by itself."""
        from openry.orchestrator.housekeeping import Housekeeper
        from openry.policy import load_policy

        load_policy("moderate")  # most steps are under it; read now, not on a step's time
        with Housekeeper(self.config, self.ledger):
            self._serve(None, self._all_still if once else _never, _nobody, should_stop)

    def run_worker(self, *, once: bool = False, should_stop: ShouldStop | None = None) -> None:
        """The engine's word for `serve`."""
        self.serve(once=once, should_stop=should_stop)

    def _serve(
        self,
        only: Collection[str] | None,
        ended: Callable[[], bool],
        listener: Callable[[], None],
        should_stop: ShouldStop | None,
    ) -> None:
        times = self.room.times
        self._show_up()
        self.anchor.look()
        watch = Watch(self.ledger)
        scan_at = monotonic()
        try:
            while True:
                wakes = self._wakes
                if monotonic() - self._shown_at > WORKER_BEAT_S:
                    self._show_up()
                if monotonic() >= scan_at or watch.changed():
                    scan_at = monotonic() + min(times.interval_s, self._scan(only))
                    if ended():
                        listener()
                        return
                listener()
                if should_stop is not None and should_stop():
                    self.crew.let_go(LET_GO_S, only)
                    return
                longest_s = min(times.watch_s, scan_at - monotonic())
                if self._wait(wakes, longest_s):
                    scan_at = monotonic()
        finally:
            watch.close()

    def _show_up(self) -> None:
        """Say in the ledger that this engine is at work."""
        with self.room.write() as connection:
            at = ledger_now(connection)
            if self._shown_at == _NEVER:
                for other in live_workers(connection):
                    if is_alive(other.process) is False:
                        end_worker(connection, at, other.worker_id, "lost")
                about: dict[str, Any] = {"slots": self.crew.slots, "lease_s": WORKER_LEASE_S}
                about["notices"] = hashed(self.crew.teller.token)
                add_worker(connection, at, self.room.owner, self.room.process, **about)
            beat_worker(connection, at, self.room.owner, lease_s=WORKER_LEASE_S)
        self._shown_at = monotonic()

    def _scan(self, only: Collection[str] | None) -> float:
        """Scan until there is nothing to do at once; seconds until something is due.

        Who serves all instances begins what is due by a schedule as well.
        """
        with self._scanning:
            due_s = self.clockwork.tick() if only is None else self.room.times.interval_s
            while True:
                view = self.patrol.scan(only)
                if not view.done:
                    self.anchor.look()
                    return min(view.due_s, due_s)

    def _wake(self) -> None:
        """Something may be found by a scan."""
        with self._woken:
            self._wakes += 1
            self._woken.notify_all()

    def _wait(self, wakes: int, longest_s: float) -> bool:
        """Wait until a scan is wanted; whether it is."""
        with self._woken:
            self._woken.wait_for(lambda: self._wakes != wakes, max(0.0, longest_s))
            return self._wakes != wakes

    def _listener(self, instance_id: str, on_event: OnEvent | None) -> Callable[[], None]:
        if on_event is None:
            return _nobody
        last = 0

        def listen() -> None:
            nonlocal last
            with self.ledger.read() as connection:
                found = events_after(connection, last, instance_id)
            for event in found:
                last = event.id
                on_event(event)

        return listen

    def _is_still(self, instance_id: str) -> bool:
        """Whether an instance can only go on by a person, or not at all."""
        if instance_id in self.crew.troubles:
            raise self.crew.troubles[instance_id]
        with self.ledger.read() as connection:
            instance = glance_at(connection, (instance_id,)).get(instance_id)
        if instance is None:
            raise NotFoundError(f"there is no instance `{instance_id}`")
        return instance.state in FINAL or (
            instance.state == _I.SUSPENDED and not instance.cancel_requested
        )

    def _all_still(self) -> bool:
        if not self.crew.is_idle:
            return False
        with self.ledger.read() as connection:
            return not queued_instances(connection) and not moving_runs(connection)

    # --- how things stand ---------------------------------------------------------------------

    def describe(self, instance_id: str) -> InstanceOutcome:
        """The engine's word for `outcome`."""
        return self.outcome(instance_id)

    def outcome(self, instance_id: str) -> InstanceOutcome:
        """How an instance stands, with every step, rule and command.

        Raises:
            NotFoundError: There is none of that id.
        """
        with self.ledger.read() as connection:
            return outcome_of(connection, instance_id)

    def find(self, prefix: str) -> str:
        """The id of the one instance whose id begins with `prefix`.

        Raises:
            NotFoundError: None does, or several do.
        """
        with self.ledger.read() as connection:
            return find_instance(connection, prefix)

    def instances(self, *, state: str = "", limit: int = 100) -> tuple[Instance, ...]:
        """The newest instances first."""
        with self.ledger.read() as connection:
            return list_instances(connection, state=state, limit=limit)

    def _instance(self, instance_id: str) -> Instance:
        with self.ledger.read() as connection:
            instance = get_instance(connection, instance_id)
        if instance is None:
            raise NotFoundError(f"there is no instance `{instance_id}`")
        return instance

    # --- what a person may do -----------------------------------------------------------------

    def cancel(self, instance_id: str, *, by: str = "person") -> bool:
        """Ask an instance to end; False when it has ended already."""
        with self.room.write() as connection:
            at = ledger_now(connection)
            if not request_cancel(connection, at, instance_id, by):
                return False
            about = {"reason": "cancelled", "actor": by}
            move_instance(connection, at, instance_id, _I.QUEUED, _I.CANCELLED, **about)
        self._wake()
        return True

    def retry(self, instance_id: str, *, from_step: str = "", by: str = "person") -> None:
        """Take up an instance that failed or was cancelled, at the step it ended at or another.

        Raises:
            UsageError: It has not ended badly, or has no such step.
        """
        with self.room.write() as connection:
            at = ledger_now(connection)
            instance = get_instance(connection, instance_id)
            if instance is None:
                raise NotFoundError(f"there is no instance `{instance_id}`")
            if instance.state not in (_I.FAILED, _I.CANCELLED):
                raise UsageError(
                    f"instance `{instance_id}` is {instance.state}; only a failed or cancelled one "
                    "can be retried"
                )
            plan = self.room.plan(instance)
            runs = runs_of(connection, instance_id)
            course = chart_again(standing_of(instance, runs, plan), from_step, instance)
            old = InstanceState(instance.state)
            values: dict[str, Any] = {"cancel_requested": False, "deadline_at": None}
            move_instance(connection, at, instance_id, old, _I.RUNNING, actor=by, **values)
            queue_next(connection, at, course, None)
        self.room.forget(instance_id)
        self._wake()

    def signal(
        self, instance_id: str, signal: Signal, *, by: str = "person", comment: str = ""
    ) -> int:
        """The engine's word for `answer`."""
        return self.answer(instance_id, approve=signal == "approve", by=by, comment=comment)

    def approvals(self, instance_id: str = "") -> tuple[Approval, ...]:
        """What waits for a person."""
        with self.ledger.read() as connection:
            return pending_approvals(connection, instance_id)

    def answer(
        self, instance_id: str, *, approve: bool, by: str = "person", comment: str = ""
    ) -> int:
        """Answer everything that waits in an instance. Returns how many questions that were.

        Commands by hand, outside every instance, wait under the name `manual`.

        Raises:
            UsageError: The step names who may answer, and `by` is not among them.
        """
        answered = 0
        with self.room.write() as connection:
            at = ledger_now(connection)
            for asked in pending_approvals(connection, instance_id):
                asked.refuse_strangers(by)
                state = "approved" if approve else "rejected"
                said = {"by": by, "comment": comment}
                if answer_approval(connection, at, asked.id, state, **said):
                    answered += 1
                    self._take_answer(connection, at, asked, approve, said)
            if answered:
                move_instance(connection, at, instance_id, _I.SUSPENDED, _I.RUNNING, actor=by)
        self._wake()
        return answered

    def _take_answer(
        self,
        connection: Transaction,
        at: str,
        asked: Approval,
        approve: bool,
        said: Mapping[str, str],
    ) -> None:
        run = get_run(connection, asked.run_id)
        if run is None or asked.kind == "command":  # the hand looks for the answer itself
            return
        if asked.kind == "unknown_outcome":
            reason = "" if approve else "rejected"
            values = {"data": {**run.data, "answered": approve}, "reason": reason or run.reason}
            set_run(connection, at, run.run_id, **values)
            return
        payload = {"approved": approve, "by": said["by"], "comment": said["comment"]}
        reason = "" if approve else f"rejected by {said['by']}: {said['comment']}".rstrip(": ")
        move = APPROVE if approve else REJECT
        about: dict[str, Any] = {"payload": payload, "reason": reason, "actor": said["by"]}
        move_run(connection, at, run, move, **about)

    # --- one step alone -----------------------------------------------------------------------

    def run_step(
        self,
        workflow: WorkflowSpec | Loaded,
        step_id: str,
        *,
        workspace: Path,
        payload: Mapping[str, Any] | None = None,
        steps: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        drafted: bool = False,
        on_event: OnEvent | None = None,
        should_stop: ShouldStop | None = None,
    ) -> StepOutcome:
        """Run one step once, validated, with the payload it would have inherited.

        Args:
            steps: Payloads of the steps before, for templates: `{"count": {"n": 2}}`.

        Raises:
            KeyError: The workflow has no such step.
        """
        spec = workflow if isinstance(workflow, WorkflowSpec) else workflow.required().workflow
        if spec is None:
            raise UsageError("a composition has no steps of its own")
        alone = {"on_success": DONE, "on_failure": ABORT, "on_validation_fail": ABORT}
        more = {"on_payload_missing": ABORT, "on_dropped": ABORT, "validation_routing": ()}
        step = spec.step(step_id).model_copy(update={**alone, **more})
        one = spec.model_copy(update={"sub_steps": (step,), "max_retries": 0})
        before = {name: {"payload": dict(each)} for name, each in (steps or {}).items()}
        plan = Plan(None, {one.name: one}, payload or {}, before)
        about: dict[str, Any] = {"workspace": workspace, "drafted": drafted}
        instance_id = self._submit(row_of(plan, self.config, inputs=inputs, **about))
        return self.run(instance_id, on_event, should_stop).step(step_id)

    # --- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """End what is under way, queued again for whoever comes next, and close the ledger."""
        if "crew" in vars(self):
            self.crew.close(LET_GO_S)
        if "anchor" in vars(self):
            self.anchor.close()
        if self._shown_at != _NEVER:
            with suppress(StorageError), self.room.write() as connection:
                end_worker(connection, ledger_now(connection), self.room.owner)
        self.room.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _never() -> bool:
    return False


def _nobody() -> None:
    """The listener where nobody listens."""
