"""Telling somebody: `notify` of a workflow or composition, by a command or a web address.

What is to be told is put down with the change it is about, in one transaction; whoever takes it up
marks it first, so that nobody is told twice. Commands and requests go through the hand, in the
workflow's own sandbox.
"""

from __future__ import annotations

import json
from typing import Any

from openry.errors import OpenRYError
from openry.ledger.instances import get_instance
from openry.ledger.journal import add_event, ledger_now
from openry.ledger.runs import runs_of
from openry.ledger.schedules import Notice, end_notice, pending_notices, take_notice
from openry.ledger.tokens import token_of
from openry.orchestrator.course import standing_of
from openry.orchestrator.outside import Outside
from openry.orchestrator.room import Room
from openry.orchestrator.spec import NotifySpec

_TIMEOUT_S = 30.0


class Teller:
    """Sends what one engine finds."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.token = token_of(room.secret, "notices", 0)

    def pending(self) -> tuple[Notice, ...]:
        with self._room.ledger.read() as connection:
            return pending_notices(connection)

    def send(self, notice: Notice) -> None:
        """Send one notice, unless another engine was first."""
        with self._room.write() as connection:
            if not take_notice(connection, ledger_now(connection), notice):
                return
        try:
            trouble = self._send(notice)
        except OpenRYError as error:
            trouble = str(error)
        with self._room.write() as connection:
            at = ledger_now(connection)
            about: dict[str, Any] = {"kind": "notice", "new": notice.about, "reason": trouble}
            add_event(connection, at, instance_id=notice.instance_id, **about)
            if trouble:
                end_notice(connection, at, notice, "failed", trouble)

    def _send(self, notice: Notice) -> str:
        """Why nobody could be told; empty when somebody was."""
        with self._room.ledger.read() as connection:
            instance = get_instance(connection, notice.instance_id)
            if instance is None:
                return "the instance is gone"
            runs = runs_of(connection, notice.instance_id)
        standing = standing_of(instance, runs, self._room.plan(instance))
        wanted = standing.plan.notify
        assert wanted is not None, "only who wants it has notices"
        said = {
            "instance": instance.instance_id,
            "workflow": instance.workflow,
            "about": notice.about,
            "state": instance.state,
            "step": instance.current_step,
            "reason": instance.reason,
        }
        return self._by(wanted, Outside(self._room, standing, None, None), said)

    def _by(self, wanted: NotifySpec, outside: Outside, said: dict[str, Any]) -> str:
        text = json.dumps(said, ensure_ascii=False)
        env = {f"NOTICE_{key.upper()}": str(value) for key, value in said.items()}
        if wanted.webhook:
            return outside.post(wanted.webhook, text, _TIMEOUT_S)
        if not outside.is_confined:  # it may call `openry-orchestrator`, whatever else runs
            env["NOTICE_TOKEN"] = self.token
        return outside.tell(wanted.command, {**env, "NOTICE": text}, _TIMEOUT_S)
