"""What is asked of a model and what comes back: values, and the one Protocol behind them all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant", "tool"]
#: A JSON Schema, or a function-calling tool as OpenAI writes it.
Json = Mapping[str, Any]
#: Replaces secrets in a text; `openry.output.redact` has one.
Redact = Callable[[str], str]


#: A command's duration in an answer that was given to a model, as it stands in JSON in JSON.
_DURATION = re.compile(r'(\\"duration_ms\\": )\d+')


def keep(text: str) -> str:
    """The redactor that replaces nothing."""
    return text


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool. `arguments` is JSON text as it came: it may be malformed."""

    id: str
    name: str
    arguments: str

    def parsed(self) -> dict[str, Any] | None:
        """The arguments as an object, or None when they are not one."""
        try:
            value = json.loads(self.arguments)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `tool_call_id` names the call that a `tool` message answers."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""

    def to_openai(self) -> dict[str, Any]:
        """The message in the shape chat endpoints take; keys without a value are left out."""
        text = encodable(self.text)
        message: dict[str, Any] = {"role": self.role, "content": text}
        if self.tool_calls:
            message["content"] = text or None
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.tool_calls
            ]
        if self.tool_call_id:
            message["tool_call_id"] = self.tool_call_id
        return message


def system(text: str) -> Message:
    return Message("system", text)


def user(text: str) -> Message:
    return Message("user", text)


def assistant(text: str, tool_calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message("assistant", text, tool_calls)


@dataclass(frozen=True, slots=True)
class Purpose:
    """Whom a call is for, as the ledger's `llm_calls` keeps it. Says nothing to the model."""

    purpose: str = ""
    session_id: str = ""
    instance_id: str = ""
    run_id: str = ""
    step_id: str = ""
    round: int = 0


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model.

    Attributes:
        schema: JSON Schema the answer must fit: a grammar where the model can be held to one,
            otherwise a wish in the prompt. `ask_structured` checks either way.
        tools: Functions offered, in OpenAI's shape.
        max_tokens: Longest answer; also what a budget reserves.
        attempt: Raised by whoever wants a *new* answer to a question already asked: a cassette
            gives the same question with the same attempt the same answer.
        purpose: For the record only; not part of the question.
        should_stop: Asked now and then while the model works; a yes ends the call with the
            ModelError `stopped`. Not part of the question.
    """

    messages: tuple[Message, ...]
    schema: Json | None = None
    tools: tuple[Json, ...] = ()
    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    attempt: int = 0
    purpose: Purpose = field(default=Purpose(), compare=False)
    should_stop: Callable[[], bool] = field(default=_never, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Everything that shapes the answer, in canonical form: equal questions, equal values."""
        return {
            "messages": [message.to_openai() for message in self.messages],
            "schema": self.schema,
            "tools": list(self.tools),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "stop": list(self.stop),
            "attempt": self.attempt,
        }

    def key(self, model: str) -> str:
        """The name under which an answer of `model` to this question is remembered.

        How long an earlier command took is no part of a question: it differs from run to run.
        """
        text = json.dumps([model, self.to_json()], sort_keys=True, ensure_ascii=False)
        text = _DURATION.sub(r"\1", text)
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def to_record(self) -> dict[str, Any]:
        """`to_json` with only the turns after the model's last one: a record that grows with the
        conversation, not with its square. `earlier` says how many the rows before it hold.
        """
        roles = [message.role for message in self.messages]
        earlier = len(roles) - roles[::-1].index("assistant") if "assistant" in roles else 0
        question = self.to_json()
        return {**question, "messages": question["messages"][earlier:], "earlier": earlier}

    def prompt_text(self) -> str:
        """All that is sent, as one text: what a token estimate is made of."""
        parts = [message.text for message in self.messages]
        parts += [call.arguments for message in self.messages for call in message.tool_calls]
        parts += [json.dumps(tool) for tool in self.tools]
        return "\n".join(parts if self.schema is None else [*parts, json.dumps(self.schema)])

    def followed_by(self, *messages: Message) -> ChatRequest:
        """The same question with more turns after it."""
        return replace(self, messages=(*self.messages, *messages))


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One whole answer. A half one is never returned: it is a ModelError with code `cut`.

    Attributes:
        finish_reason: `stop`, `length` (cut at `max_tokens`), `tool_calls` or `content_filter`.
        cost_usd: None when the model's price is not known.
        recorded: It came from a cassette: nothing was paid for it this time.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    recorded: bool = False

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@runtime_checkable
class Model(Protocol):
    """Whoever answers a ChatRequest."""

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int:
        """Prompt and answer together must fit into this many tokens."""
        ...

    @property
    def tool_calling(self) -> bool:
        """Whether it takes `tools`. Those that do not can be held to a schema instead."""
        ...

    def complete(self, request: ChatRequest) -> ChatReply:
        """Answer `request`.

        Raises:
            ModelError: It could not be asked, or said nothing whole; `code` tells which.
            BudgetError: The call would exceed a budget, and was not made.
        """
        ...


def estimate_tokens(text: str) -> int:
    """A guess on the high side, for reserving: three bytes of UTF-8 a token, at least one a text.

    >>> estimate_tokens("count the lines"), estimate_tokens("")
    (6, 1)
    """
    return len(text.encode("utf-8", "surrogatepass")) // 3 + 1


def encodable(text: str) -> str:
    """`text` with lone surrogates, which no request can carry, as U+FFFD."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def as_messages(messages: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Turns in OpenAI's shape, as values."""
    return tuple(
        Message(
            turn["role"],
            turn.get("content") or "",
            tuple(
                ToolCall(
                    call.get("id", ""), call["function"]["name"], call["function"]["arguments"]
                )
                for call in turn.get("tool_calls") or ()
            ),
            turn.get("tool_call_id", ""),
        )
        for turn in messages
    )
