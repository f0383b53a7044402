"""A model around a model: what budgets, retries, records and cassettes have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from openry.llm.base import ChatReply, ChatRequest, Model


class Wrapper:
    """Passes everything on; a subclass adds one thing to `complete`."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def context_tokens(self) -> int:
        return self.inner.context_tokens

    @property
    def tool_calling(self) -> bool:
        return self.inner.tool_calling

    def complete(self, request: ChatRequest) -> ChatReply:
        return self.inner.complete(request)


class Stoppable(Wrapper):
    """Ends a call that is under way once somebody wants it to stop."""

    def __init__(self, inner: Model, should_stop: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._should_stop = should_stop

    def complete(self, request: ChatRequest) -> ChatReply:
        return self.inner.complete(replace(request, should_stop=self._should_stop))


def innermost(model: Model) -> Model:
    """The model itself, without whatever is wrapped around it."""
    while isinstance(model, Wrapper):
        model = model.inner
    return model
