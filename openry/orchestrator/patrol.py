"""The patrol: one scan over what is open, in eleven steps and always in this order.

A scan looks, brakes and hands out work. Commands run in the workers' threads, never in here, so a
slow or broken step cannot delay the others. Its cost grows with what is open, not with history.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from openry.clock import monotonic
from openry.ledger.instances import (
    SUSPENDED_BY_HAND,
    Glance,
    get_instance,
    glance_at,
    live_children,
    move_instance,
    queued_instances,
    set_uncancelled,
)
from openry.ledger.journal import later, ledger_now
from openry.ledger.process import is_alive
from openry.ledger.records import ask_no_longer, ask_person
from openry.ledger.runs import (
    ASK,
    CLAIM,
    FAIL,
    LOSE,
    RECALL,
    REJECT,
    WITHDRAW,
    Run,
    move_run,
    open_runs,
    put_brake,
)
from openry.models import InstanceState, RunState
from openry.orchestrator.countdowns import Countdowns
from openry.orchestrator.course import note_state
from openry.orchestrator.crew import Crew
from openry.orchestrator.outcomes import FINAL
from openry.orchestrator.overflow import handling_of
from openry.orchestrator.room import Room
from openry.orchestrator.spec import Kind
from openry.orchestrator.templates import render_text
from openry.orchestrator.waiting import Waiting
from openry.orchestrator.worker import BIG_STEP_TIMEOUT

_R = RunState
#: A hard brake that has not ended a step this long after SIGKILL: it is called failed without it.
FORCE_S = 5.0
#: A command's own clock stops it; the patrol's comes later, in case that did not.
_SLACK_S = 15.0


@dataclass(slots=True)
class View:
    """What one scan sees: the open runs and their instances, at one moment.

    Attributes:
        done: Things done so far in this scan.
        due_s: Seconds until the next thing is due by the clock.
    """

    at: str
    runs: tuple[Run, ...]
    instances: Mapping[str, Glance]
    queued: tuple[tuple[str, str], ...]
    countdowns: Countdowns = field(default_factory=Countdowns)
    done: int = 0
    due_s: float = 3600.0

    def of(self, *states: RunState) -> list[Run]:
        return [run for run in self.runs if run.status in states]

    def due(self, moment: str | None, *, after_s: float = 0.0) -> bool:
        """Whether `after_s` have passed since `moment`; if not, the next scan is wanted then."""
        if moment is None:
            return False
        left_s = self.countdowns.left_s(self.at, moment) + after_s
        if left_s > 0:
            self.due_s = min(self.due_s, left_s)
        return left_s <= 0


class Patrol:
    """Scans for one engine; `crew` gets what is to be done."""

    def __init__(self, room: Room, crew: Crew) -> None:
        self.room = room
        self.crew = crew
        self._waiting = Waiting(room)
        self._countdowns = crew.worker.countdowns

    def scan(self, only: Collection[str] | None = None) -> View:
        """One scan; with `only`, over these instances."""
        with self.room.ledger.read() as connection:
            if only is not None:
                only = {*only, *live_children(connection, only)}
            runs = open_runs(connection, only)
            view = View(
                ledger_now(connection),
                runs,
                glance_at(connection, {run.workflow_instance_id for run in runs}),
                queued_instances(connection, only),
                self._countdowns,
            )
        for step in self._steps():
            step(view)
        self._countdowns.forget_unseen()
        if only is None:
            self._tell()
        return view

    def _tell(self) -> None:
        """Have those told who are to be told of something."""
        for notice in self.crew.teller.pending():
            self.crew.tell(notice)

    def _steps(self) -> tuple[Callable[[View], None], ...]:
        return (
            self._reap,
            self._time_out,
            self._brake_hard,
            self._limit,
            self._dispatch,
            self._find_lost,
            self._validate,
            self._route,
            self._cancel,
            self._resume,
            self._retry,
        )

    # --- 1 to 4: what runs --------------------------------------------------------------------

    def _reap(self, view: View) -> None:
        view.done += self.crew.reap()

    def _time_out(self, view: View) -> None:
        for run in view.of(_R.IN_PROGRESS):
            slack_s = 0.0 if run.kind == Kind.AGENT else _SLACK_S
            if view.due(view.instances[run.workflow_instance_id].deadline_at):
                self._brake(view, run, "timeout", BIG_STEP_TIMEOUT)
            elif view.due(run.deadline_at, after_s=slack_s):
                self._brake(view, run, "timeout", "the step's time is up")

    def _brake(self, view: View, run: Run, brake: str, reason: str) -> None:
        if run.brake or run.cancel_requested:
            return
        with self.room.write() as connection:
            view.done += put_brake(connection, ledger_now(connection), run, brake, reason)

    def _brake_hard(self, view: View) -> None:
        """A command cannot hear the soft brake, so it gets the hard one at once."""
        for run in view.of(_R.IN_PROGRESS):
            job = self.room.jobs.get(run.run_id)
            if job is None or not (run.brake or run.cancel_requested):
                continue
            grace_s = self.room.times.grace_s if run.kind == Kind.AGENT else 0.0
            if job.hard_braked_at is None and view.due(later(run.braked_at or view.at, grace_s)):
                job.hard_braked_at = monotonic()
                job.stop.set()
            elif job.hard_braked_at is not None:
                self._force(view, run, monotonic() - job.hard_braked_at)

    def _force(self, view: View, run: Run, since_s: float) -> None:
        """Call a step failed that even the hard brake did not end; its late result is dropped."""
        force_s = self.room.config.kill_after_s + FORCE_S
        if since_s < force_s:
            view.due_s = min(view.due_s, force_s - since_s)
            return
        with self.room.write() as connection:
            at, reason = ledger_now(connection), f"{run.brake or 'cancelled'}: it did not stop"
            ended = move_run(connection, at, run, FAIL, reason=reason)
        self._follow(view, ended)

    def _limit(self, view: View) -> None:
        """Nothing to do here: calls are counted, and braked, at the hand's gate in the ledger,
        and a model's budget is reserved before each of its calls.
        """

    # --- 5: dispatch --------------------------------------------------------------------------

    def _dispatch(self, view: View) -> None:
        for run in view.of(_R.QUEUED):
            instance = view.instances[run.workflow_instance_id]
            if instance.cancel_requested or instance.state != InstanceState.RUNNING:
                continue
            if run.not_before and not view.due(run.not_before):
                continue
            if run.kind == Kind.APPROVAL:
                self._ask(view, run)
            else:
                view.done += self.crew.begin(run)
        for instance_id in self._ready(view):
            view.done += self.crew.start(instance_id)

    def _ready(self, view: View) -> list[str]:
        """Queued instances that need not wait for others."""
        queued = [instance_id for instance_id, _ in view.queued]
        self._waiting.forget_all_but(frozenset(queued))
        if not queued:
            return []
        with self.room.ledger.read() as connection:
            return [each for each in queued if self._waiting.may_begin(connection, each)]

    def _ask(self, view: View, run: Run) -> None:
        """An approval needs no worker: it waits for a person."""
        standing = self.room.standing(run)
        step = standing.step(run.step_id)
        scope = {"payload": dict(standing.payload), "inputs": dict(standing.inputs)}
        question = render_text(step.prompt or f"approve step `{step.id}`?", scope)
        with self.room.write() as connection:
            at = ledger_now(connection)
            minutes = step.expires_minutes
            deadline_at = later(at, minutes * 60) if minutes else None
            if not set_uncancelled(connection, at, run.workflow_instance_id):
                return  # suspended or cancelled since we looked
            asked = move_run(
                connection, at, run, CLAIM, ASK, deadline_at=deadline_at, started_at=at
            )
            if asked is None:
                return
            data = {"approvers": list(step.approvers)}
            ask_person(connection, at, run, question, kind="step", data=data)
            about = {"reason": f"waiting for approval: {question}"}
            old, new = InstanceState.RUNNING, InstanceState.SUSPENDED
            if move_instance(connection, at, run.workflow_instance_id, old, new, **about):
                note_state(connection, at, standing, new)
        view.done += 1

    # --- 6: lost and zombie runs --------------------------------------------------------------

    def _find_lost(self, view: View) -> None:
        """A run whose process is gone, by number *and* start time, or whose lease ran out."""
        for run in view.of(_R.IN_PROGRESS):
            reason = "" if run.is_spread else self._gone(view, run)
            if not reason:
                continue
            with self.room.write() as connection:
                at = ledger_now(connection)
                lost = move_run(connection, at, run, LOSE, reason=reason)
            if lost is not None:
                self.room.fast.recover_lost()
                self._follow(view, lost)

    def _gone(self, view: View, run: Run) -> str:
        """Why nobody is carrying out `run` any more; empty while somebody is."""
        if run.owner == self.room.owner:
            mine = run.run_id in self.room.jobs or self.crew.has(run.run_id)
            return "" if mine else "its worker ended without a result"
        if run.owner and is_alive(run.process) is False:
            return "its process is gone"
        if run.lease_until is None or view.due(run.lease_until):
            return "its lease ran out"
        return ""

    # --- 7 to 11: consequences ----------------------------------------------------------------

    def _validate(self, view: View) -> None:
        self._follow_all(view, _R.COMPLETED)

    def _route(self, view: View) -> None:
        self._follow_all(view, _R.VALIDATED)

    def _cancel(self, view: View) -> None:
        for run in view.of(_R.QUEUED, _R.WAITING_APPROVAL):
            if not view.instances[run.workflow_instance_id].cancel_requested:
                continue
            move = WITHDRAW if run.status == _R.QUEUED else RECALL
            with self.room.write() as connection:
                at = ledger_now(connection)
                ended = move_run(connection, at, run, move, reason="cancelled")
                if ended is not None:
                    ask_no_longer(connection, at, run.run_id)
            self._follow(view, ended)
        self._follow_all(view, _R.CANCELLED, _R.SKIPPED)

    def _resume(self, view: View) -> None:
        self._follow_all(view, _R.OVERFLOW)
        for run in view.of(_R.OVERFLOW_PROCESSING):
            if self._is_handled(view, run) and self._gone(view, run):
                self._follow(view, run)

    def _is_handled(self, view: View, run: Run) -> bool:
        """Whether the handler of an overflow has ended, or is not waited for any more."""
        instance = view.instances[run.workflow_instance_id]
        if instance.cancel_requested or view.due(instance.deadline_at):
            return True
        if instance.state == InstanceState.SUSPENDED:
            return False
        handling = handling_of(run)
        if handling is None or view.due(handling.until):
            return True
        with self.room.ledger.read() as connection:
            handler = glance_at(connection, (handling.instance,)).get(handling.instance)
        return handler is None or handler.state in FINAL

    def _retry(self, view: View) -> None:
        self._expire(view)
        self._follow_all(view, _R.FAILED, _R.LOST)

    def _expire(self, view: View) -> None:
        for run in view.of(_R.WAITING_APPROVAL):
            if not view.due(run.deadline_at):
                continue
            with self.room.write() as connection:
                instance = get_instance(connection, run.workflow_instance_id)
                if instance is None or instance.reason.startswith(SUSPENDED_BY_HAND):
                    continue  # time alone does not resume what went on elsewhere, or may not yet
                at, reason = ledger_now(connection), "nobody answered in time"
                ended = move_run(connection, at, run, REJECT, reason=reason)
                if ended is None:
                    continue
                ask_no_longer(connection, at, run.run_id)
                old, new = InstanceState.SUSPENDED, InstanceState.RUNNING
                move_instance(connection, at, run.workflow_instance_id, old, new)
            self._follow(view, ended)

    def _follow_all(self, view: View, *states: RunState) -> None:
        """Draw consequences that whoever ended the run has not drawn, and will not."""
        for run in view.of(*states):
            suspended = view.instances[run.workflow_instance_id].state == InstanceState.SUSPENDED
            cancelled = view.instances[run.workflow_instance_id].cancel_requested
            if (not suspended or cancelled) and self._gone(view, run):
                self._follow(view, run)

    def _follow(self, view: View, run: Run | None) -> None:
        view.done += run is not None and self.crew.follow(run)
