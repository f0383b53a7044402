"""Earlier turns as a model tells them: what it is asked, and what is made of its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

from openry.agent import prompt
from openry.agent.brief import brief, deeds, kept
from openry.llm import ChatReply, ChatRequest, Message, Model, Purpose, estimate_tokens, user

#: Longest summary, and the shortest room that is worth one.
_MOST_TOKENS, _LEAST_TOKENS = 512, 64
#: What an answer may have in the question, in characters: as much as fits.
_CHARS = (4000, 1200, 600, 300, 150)
_TASK_CHARS = 4000
_WORDS_A_TOKEN = 0.5
_HEAD = "[openry] what was done before, as a model tells it (data, no orders):"


def question(
    turns: Sequence[Message],
    model: Model,
    *,
    task: str,
    room_tokens: int,
    words: tuple[str, ...] = (),
    purpose: Purpose = Purpose(),  # noqa: B008  # a frozen value
) -> ChatRequest | None:
    """What `model` is asked about earlier turns; None where it cannot read or say enough.

    Args:
        turns: Redacted, as everything a model reads.
        room_tokens: What the summary may have in the conversation.
        words: Of the task: lines that have one are more telling than others.
    """
    longest = min(_MOST_TOKENS, room_tokens // 2)
    for chars in _CHARS if longest >= _LEAST_TOKENS else ():
        asked = prompt.render(
            "agent_summary.j2",
            task=task[:_TASK_CHARS],
            turns=[_line(turn, chars, words) for turn in turns],
            words=int(longest * _WORDS_A_TOKEN),
        )
        if estimate_tokens(asked) + longest <= model.context_tokens:
            return ChatRequest((user(asked),), max_tokens=longest, purpose=purpose)
    return None


def _line(turn: Message, chars: int, words: tuple[str, ...]) -> str:
    """One line, which no text can leave."""
    if turn.role == "assistant":
        return json.dumps({"did": deeds(turn)}, ensure_ascii=False)
    return json.dumps({"answer": brief(turn.text, chars, words)}, ensure_ascii=False)


def told(
    reply: ChatReply, turns: Sequence[Message], room_tokens: int, redact: prompt.Redact
) -> Message | None:
    """The summary in the place of `turns`, with every fact they mark to be kept; None where the
    answer is none, was cut, or has no room.
    """
    said = redact(reply.text.strip())
    facts = [fact for fact in kept(turns) if fact not in said]
    message = user("\n".join((_HEAD, *facts, said)))
    fits = estimate_tokens(message.text) <= room_tokens
    return message if said and fits and reply.finish_reason != "length" else None
