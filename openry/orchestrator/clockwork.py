"""Begins what is due by a schedule: each due time once, however many engines look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from openry.errors import NotFoundError, OpenRYError, UsageError
from openry.ledger.instances import add_instance, move_instance, request_cancel
from openry.ledger.journal import Transaction, ledger_now, seconds_between
from openry.ledger.schedules import (
    Firing,
    Schedule,
    add_firing,
    add_schedule,
    firings_of,
    list_schedules,
    live_of_schedule,
    move_on,
    remove_schedule,
)
from openry.models import InstanceState
from openry.orchestrator.intake import Row, folder_of, plan_of, row_of
from openry.orchestrator.loader import load
from openry.orchestrator.lookup import find_file, is_path
from openry.orchestrator.references import refer
from openry.orchestrator.room import Room
from openry.orchestrator.schedules import due_times, local_zone, next_at, wanted
from openry.texts import bracketed, did_you_mean

_IDLE_S = 3600.0


class Clockwork:
    """The schedules of one engine's ledger."""

    def __init__(self, room: Room) -> None:
        self._room = room

    # --- what a person may do -----------------------------------------------------------------

    def add(
        self,
        workflow: str,
        cron: str,
        *,
        name: str = "",
        zone: str = "",
        catch_up: str = "none",
        overlap: str = "skip",
        inputs: Mapping[str, Any] | None = None,
        workspace: Path | None = None,
    ) -> Schedule:
        """Have a workflow begin by the clock, wherever an engine serves.

        It is looked up anew each time; what is wrong with it, its inputs or the cron line is
        said now.
        """
        config = self._room.config
        plan, _ = plan_of(load(find_file(workflow, config)), config, {})
        row_of(plan, config, inputs=inputs, workspace=workspace)
        with self._room.write() as connection:
            at = ledger_now(connection)
            made = Schedule(
                name or plan.name,
                str(Path(workflow).resolve()) if is_path(workflow) else workflow,
                cron,
                zone or local_zone(),
                catch_up,
                overlap,
                dict(inputs or {}),
                str(folder_of(plan, workspace) or ""),
                created_at=at,
            )
            made = replace(made, next_at=next_at(made, at))
            add_schedule(connection, made)
        return made

    def all(self) -> tuple[Schedule, ...]:
        with self._room.ledger.read() as connection:
            return list_schedules(connection)

    def firings(self, name: str) -> tuple[Firing, ...]:
        """What came of a schedule's latest due times, the newest first."""
        with self._room.ledger.read() as connection:
            return firings_of(connection, name)

    def remove(self, name: str) -> None:
        """Take a schedule away; what it began goes on.

        Raises:
            NotFoundError: There is none of that name.
        """
        with self._room.write() as connection:
            known = [each.name for each in list_schedules(connection)]
            if not remove_schedule(connection, name):
                hint = bracketed(did_you_mean(name, known))
                raise NotFoundError(f"there is no schedule `{name}`{hint}")

    # --- by the clock -------------------------------------------------------------------------

    def tick(self) -> float:
        """Begin what is due. Seconds until something is due again."""
        with self._room.ledger.read() as connection:
            now, all_ = ledger_now(connection), list_schedules(connection)
        soonest = _IDLE_S
        for schedule in all_:
            if schedule.paused or schedule.next_at is None:
                continue
            left_s = seconds_between(now, schedule.next_at)
            if left_s <= 0:
                self._fire(schedule, now)
                left_s = 0.0
            soonest = min(soonest, left_s)
        return soonest

    def _fire(self, schedule: Schedule, now: str) -> None:
        due = due_times(schedule, now)
        start = wanted(schedule, due, now)
        rows: dict[str, Row] = {}
        trouble = ""
        try:
            rows = {at: self._row(schedule) for at in start}
        except OpenRYError as error:
            trouble = "; ".join(str(error).splitlines())
        with self._room.write() as connection:
            if not move_on(connection, schedule, next_at(schedule, now)):
                return
            for at in due:
                self._begin(connection, now, schedule, at, rows.get(at), trouble)

    def _begin(
        self,
        connection: Transaction,
        now: str,
        schedule: Schedule,
        due_at: str,
        row: Row | None,
        trouble: str,
    ) -> None:
        """What comes of one due time, and the note of it."""

        def note(outcome: str, reason: str = "", instance_id: str = "") -> None:
            firing = Firing(schedule.name, due_at, instance_id, outcome, reason)
            add_firing(connection, now, firing)

        if row is None:
            note("failed", trouble) if trouble else note("missed", "nobody was there to see it")
            return
        live = live_of_schedule(connection, schedule.name)
        if live and schedule.overlap == "skip":
            note("skipped", f"`{live[0]}` has not ended")
            return
        if schedule.overlap == "cancel":
            for instance_id in live:
                self._cancel(connection, now, instance_id)
        try:
            row = refer(connection, row)
        except UsageError as error:
            note("failed", str(error))
            return
        add_instance(connection, now, row)
        note("started", instance_id=str(row["instance_id"]))

    def _cancel(self, connection: Transaction, now: str, instance_id: str) -> None:
        if request_cancel(connection, now, instance_id, "schedule"):
            old, new = InstanceState.QUEUED, InstanceState.CANCELLED
            about = {"reason": "its schedule began another", "actor": "schedule"}
            move_instance(connection, now, instance_id, old, new, **about)

    def _row(self, schedule: Schedule) -> Row:
        """An instance of what it names, as that is now."""
        config = self._room.config
        plan, file = plan_of(load(find_file(schedule.workflow, config)), config, {})
        return row_of(
            plan,
            config,
            file=file,
            inputs=schedule.inputs,
            workspace=Path(schedule.workspace) if schedule.workspace else None,
            data={"schedule": schedule.name} if schedule.overlap == "queue" else {},
        )
