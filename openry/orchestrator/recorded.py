"""A model that says again what the agents of an earlier instance said. Nobody is asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from openry.errors import ModelError
from openry.ledger.db import Ledger
from openry.ledger.llm_calls import calls
from openry.ledger.runs import Run, runs_of
from openry.llm.base import ChatReply, ChatRequest, ToolCall

#: How such a model is called in a plan: `recorded/INSTANCE/RUN`, the run at which it begins.
RECORDED = "recorded/"


def recorded_name(instance_id: str, first_run_id: str) -> str:
    """The model that says what was said in an instance from one of its runs on."""
    return f"{RECORDED}{instance_id}/{first_run_id}"


class RecordedModel:
    """Answers by place, not by question: the third turn of a step's second run is as it was.

    Paths and times differ from one instance to the next, so no question is ever the same again.
    Safe to use from several threads.
    """

    context_tokens = 1 << 30  # whatever was said then did fit

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.name = name
        self._ledger = ledger
        self._turns: dict[str, list[ChatReply]] = {}
        self._lock = threading.Lock()
        instance_id, _, first = name.removeprefix(RECORDED).partition("/")
        with ledger.read() as connection:
            runs = runs_of(connection, instance_id)
        places = [place for place, run in enumerate(runs) if run.run_id == first]
        self._runs = runs[places[0] :] if places else ()
        self.tool_calling = any(
            reply.tool_calls for run in self._runs for reply in replies_of(ledger, run)
        )

    def complete(self, request: ChatRequest) -> ChatReply:
        """The next answer of the run that `request` is for.

        Raises:
            ModelError: `not_recorded` when no more was said then.
        """
        of = request.purpose
        with self._lock:
            if of.run_id not in self._turns:
                self._turns[of.run_id] = self._counterpart(of.instance_id, of.run_id)
            left = self._turns[of.run_id]
            if not left:
                raise ModelError(
                    "not_recorded",
                    f"step `{of.step_id}` asks for more than was said when it was recorded:"
                    " something before it went another way",
                )
            return left.pop(0)

    def _counterpart(self, instance_id: str, run_id: str) -> list[ChatReply]:
        """What was said in the run that had the same place among those of its step."""
        with self._ledger.read() as connection:
            now = runs_of(connection, instance_id)
        mine = next(run for run in now if run.run_id == run_id)
        place = _alike(now, mine).index(run_id)
        then = _alike(self._runs, mine)
        if place >= len(then):
            return []
        return replies_of(self._ledger, next(r for r in self._runs if r.run_id == then[place]))


def _alike(runs: Sequence[Run], like: Run) -> list[str]:
    """Runs of the same step and item, but those that were cut off and begun again."""
    same = (like.big_step, like.step_id, like.item)
    return [
        run.run_id
        for run in runs
        if (run.big_step, run.step_id, run.item) == same and run.status != "lost"
    ]


def replies_of(ledger: Ledger, run: Run) -> list[ChatReply]:
    """What a model answered in a run, in order."""
    return [
        ChatReply(
            row["reply"],
            tuple(ToolCall(**call) for call in row["tool_calls"] or ()),
            row["finish_reason"] or "stop",
            recorded=True,
        )
        for row in calls(ledger, run_id=run.run_id)
        if row["state"] == "settled" and row["purpose"] == "agent"
    ]
