"""What was said between the agent and its model, what it cost, and how it stays short enough."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from openry.agent import summary
from openry.agent.brief import brief, digest
from openry.agent.prompt import Redact
from openry.errors import BudgetError, ModelError
from openry.llm import ChatReply, ChatRequest, Message, Model, Purpose, estimate_tokens, user

#: Part of the model's window that turns may fill before the oldest answers are folded.
_FULL = 0.7
#: The newest messages, which stay whole.
_KEPT_WHOLE = 4
#: What an older answer may have, in characters: as much as fits.
_CHARS = (1200, 600, 300, 150)
#: Of plain text, on the low side: see `estimate_tokens`.
_CHARS_A_TOKEN = 2
#: Room left for the answer's own overhead: role marks and the like.
_MARGIN_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Spent:
    """What the conversation cost so far."""

    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def plus(self, reply: ChatReply, turns: int = 1) -> Spent:
        return Spent(
            self.turns + turns,
            self.prompt_tokens + reply.prompt_tokens,
            self.completion_tokens + reply.completion_tokens,
            self.cost_usd + (reply.cost_usd or 0.0),
        )


class Conversation:
    """The turns so far. Every text passes `redact` before it is kept, so no model sees a secret.

    `messages` holds all of them, whole; what is sent is as short as the model's window wants it.

    Args:
        words: Of the task: lines that have one are more telling than others.
        summarizer: Tells what older turns came to, where there is no room for them; once it fails
            they are folded, as without it.
        purpose: Of the summarizer's calls.
    """

    def __init__(
        self,
        model: Model,
        redact: Redact,
        words: tuple[str, ...] = (),
        *,
        summarizer: Model | None = None,
        purpose: Purpose = Purpose(),  # noqa: B008  # a frozen value
    ) -> None:
        self.spent = Spent()
        self.messages: list[Message] = []
        self._model = model
        self._summarizer = summarizer
        self._purpose = purpose
        self._summarized: tuple[Message, ...] = ()  #: in the place of `messages[2:_newest]`
        self._newest = 2
        self._redact = redact
        self._words = words

    def say(self, message: Message) -> None:
        self.messages.append(replace(message, text=self._redact(message.text)))

    def ask(self, question: ChatRequest) -> ChatReply:
        """The model's answer to everything said so far, shaped as `question` wants it."""
        budget = int(self._model.context_tokens * _FULL) - question.max_tokens - _MARGIN_TOKENS
        if self._summarizer is not None and _size(self._turns()) > budget:
            self._summarize(self._summarizer, budget)
        sent = fold(self._turns(), budget, self._words)
        reply = self._model.complete(replace(question, messages=tuple(sent)))
        self.spent = self.spent.plus(reply)
        return reply

    def _turns(self) -> list[Message]:
        return [*self.messages[:2], *self._summarized, *self.messages[self._newest :]]

    def _summarize(self, summarizer: Model, budget_tokens: int) -> None:
        """Put what `summarizer` tells of older turns in their place; it is asked no more once it
        fails.
        """
        turns = self._turns()
        border = _border(turns)
        old, newest = turns[2:border], turns[border:]
        if len(old) <= len(self._summarized):
            return
        room = budget_tokens - _size(turns[:2]) - _size(newest)
        asked = summary.question(
            old,
            summarizer,
            task=turns[1].text,
            room_tokens=room,
            words=self._words,
            purpose=self._purpose,
        )
        if asked is None:
            return
        told = None
        with suppress(ModelError, BudgetError):
            reply = summarizer.complete(asked)
            self.spent = self.spent.plus(reply, turns=0)
            told = summary.told(reply, old, room, self._redact)
        if told is None:
            self._summarizer = None
        else:
            self._summarized, self._newest = (told,), len(self.messages) - len(newest)


def fold(messages: list[Message], budget_tokens: int, words: tuple[str, ...] = ()) -> list[Message]:
    """`messages`, the oldest answers cut to their telling lines as far as the budget needs it.

    The contract and the task (the first two) and the newest turns stay whole. Where even short
    answers are too many, all older turns become one message that says what was done.
    """
    folded = list(messages)
    total = _size(folded)
    border = _border(folded)
    for chars in _CHARS:
        for place in range(2, border):
            if total <= budget_tokens:
                return folded
            old = folded[place]
            if old.role != "assistant":
                folded[place] = replace(old, text=brief(messages[place].text, chars, words))
                total += _tokens(folded[place]) - _tokens(old)
    if total <= budget_tokens or border <= 2:
        return folded
    head, old_turns, newest = messages[:2], messages[2:border], messages[border:]
    room = budget_tokens - _size(head) - _size(newest)
    return [*head, user(digest(old_turns, max(0, room) * _CHARS_A_TOKEN, words)), *newest]


def _border(messages: list[Message]) -> int:
    """Where the newest turns begin: never between a call and its answer."""
    border = max(2, len(messages) - _KEPT_WHOLE)
    while 2 < border < len(messages) and messages[border].role == "tool":
        border -= 1
    return border


def _size(messages: list[Message]) -> int:
    return sum(map(_tokens, messages))


def _tokens(message: Message) -> int:
    return estimate_tokens(message.text) + sum(
        estimate_tokens(call.arguments) for call in message.tool_calls
    )
