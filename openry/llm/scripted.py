"""The double of a model: answers as its script says, and complains when asked for more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

from openry.llm.base import ChatReply, ChatRequest, estimate_tokens

Line = str | ChatReply | BaseException | Callable[[ChatRequest], str | ChatReply]


class ScriptedModel:
    """Plays `replies` one by one, to one caller or to many threads.

    A text or a ChatReply is answered, an exception raised, a function called with the request.
    `requests` keeps what it was asked, for a test to read.
    """

    def __init__(
        self,
        replies: Iterable[Line] = (),
        *,
        name: str = "scripted",
        context_tokens: int = 8192,
        tool_calling: bool = False,
    ) -> None:
        self.name = name
        self.tool_calling = tool_calling
        self.context_tokens = context_tokens
        self.requests: list[ChatRequest] = []
        self._script = list(replies)
        self._lock = Lock()

    @property
    def left(self) -> int:
        """Lines of the script not played yet; 0 at the end of a test that meant them all."""
        return len(self._script) - len(self.requests)

    def complete(self, request: ChatRequest) -> ChatReply:
        with self._lock:
            if not self.left:
                said = request.messages[-1].text if request.messages else ""
                raise AssertionError(
                    f"`{self.name}` was asked a {len(self.requests) + 1}th time, but its script "
                    f"has {len(self._script)} lines: {said[:200]!r}"
                )
            line = self._script[len(self.requests)]
            self.requests.append(request)
        if callable(line):
            line = line(request)
        if isinstance(line, BaseException):
            raise line
        if isinstance(line, ChatReply):
            return line
        return ChatReply(
            line,
            prompt_tokens=estimate_tokens(request.prompt_text()),
            completion_tokens=estimate_tokens(line),
        )
