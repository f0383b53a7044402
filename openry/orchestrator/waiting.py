"""Why a queued instance may have to wait: others of its name, or of its schedule, are under way."""

from __future__ import annotations

from dataclasses import dataclass

from openry.ledger.instances import Instance, get_instance, running_count
from openry.ledger.journal import Transaction
from openry.ledger.schedules import live_of_schedule
from openry.orchestrator.room import Room


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold before an instance begins.

    Attributes:
        limit: Most instances of its name at once; 0 for no limit.
        schedule: The schedule whose instances go one after the other; empty for none.
    """

    workflow: str
    limit: int = 0
    schedule: str = ""

    def holds(self, connection: Transaction, instance_id: str) -> bool:
        if self.limit and running_count(connection, self.workflow) >= self.limit:
            return False
        if not self.schedule:
            return True
        live = live_of_schedule(connection, self.schedule)
        return not live or live[0] == instance_id


def condition_of(room: Room, instance: Instance) -> Condition:
    limit = room.plan(instance).as_composition.concurrency.max_parallel_instances
    return Condition(instance.workflow, limit or 0, instance.data.get("schedule", ""))


class Waiting:
    """The conditions of the queued instances, each read once."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._known: dict[str, Condition] = {}

    def may_begin(self, connection: Transaction, instance_id: str) -> bool:
        """Whether it is worth while to let it begin now; who does so looks again."""
        if instance_id not in self._known:
            instance = get_instance(connection, instance_id)
            if instance is None:
                return False
            self._known[instance_id] = condition_of(self._room, instance)
        return self._known[instance_id].holds(connection, instance_id)

    def forget_all_but(self, queued: frozenset[str]) -> None:
        for instance_id in self._known.keys() - queued:
            del self._known[instance_id]
