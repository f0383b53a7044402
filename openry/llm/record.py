"""Every call of a model becomes a row in the ledger, before it is made and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openry.clock import Monotonic, monotonic
from openry.errors import OpenRYError
from openry.llm.base import ChatReply, ChatRequest, Model, Redact
from openry.llm.cassette import redacted
from openry.llm.wrapper import Wrapper

if TYPE_CHECKING:
    from openry.ledger.db import Ledger


class Recorded(Wrapper):
    """Writes to `llm_calls`, redacted. A call that died with its process stays `reserved`."""

    def __init__(
        self, inner: Model, ledger: Ledger, redact: Redact, *, now: Monotonic = monotonic
    ) -> None:
        super().__init__(inner)
        self._ledger = ledger
        self._redact = redact
        self._now = now

    def complete(self, request: ChatRequest) -> ChatReply:
        from openry.ledger import llm_calls

        call_id = llm_calls.reserve(self._ledger, self._asked(request))
        start = self._now()
        state = "failed"
        values: dict[str, Any] = {"error_code": "interrupted"}
        try:
            reply = self.inner.complete(request)
            state, values = "settled", self._answered(reply)
        except OpenRYError as error:
            values = {"error_code": error.code, "error": self._redact(str(error))}
            raise
        finally:
            values["duration_ms"] = round((self._now() - start) * 1000)
            llm_calls.end(self._ledger, call_id, state, values)
        return reply

    def _asked(self, request: ChatRequest) -> dict[str, Any]:
        of = request.purpose
        return {
            "session_id": of.session_id,
            "instance_id": of.instance_id,
            "run_id": of.run_id,
            "step_id": of.step_id,
            "round": of.round,
            "purpose": of.purpose,
            "model": self.name,
            "key": request.key(self.name),
            "attempt": request.attempt + 1,
            "request": redacted(request.to_record(), self._redact),
        }

    def _answered(self, reply: ChatReply) -> dict[str, Any]:
        calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls]
        return {
            "reply": self._redact(reply.text),
            "tool_calls": redacted(calls, self._redact),
            "finish_reason": reply.finish_reason,
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "cost_usd": 0.0 if reply.recorded else reply.cost_usd or 0.0,
            "cached": reply.recorded,
            "data": {"unpriced": reply.cost_usd is None},
        }
