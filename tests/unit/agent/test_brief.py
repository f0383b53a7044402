"""What survives when a conversation is larger than the model's window."""

from __future__ import annotations

import json

import pytest

from openry.agent.brief import brief, deeds
from openry.agent.conversation import _border, fold
from openry.llm import Message, ToolCall, assistant, estimate_tokens, system, user

TURNS = 60
FACTS = {
    "rare": "invoice INV-2041 is over 318.40 EUR",
    "trouble": "ERROR: disk sdb7 is full",
    "kept": "keep: the passphrase of the vault is correct horse",
    "task": "the harbour master is called Okonkwo",
}
WORDS = ("harbour", "master")


def answer(turn: int, fact: str = "") -> str:
    lines = [
        f"2026-03-01 09:{turn:02}:{n:02} worker {n % 4} took job {turn * 40 + n}" for n in range(30)
    ]
    if fact:
        lines.insert(17, fact)
    said = {"exit_code": 0, "stdout": "\n".join(lines), "stderr": "", "duration_ms": 3}
    return json.dumps(said)


def talk(fact: str, at: int, *, tools: bool = False) -> list[Message]:
    """Contract, task, then turns; one answer holds the fact."""
    messages = [system("contract " * 40), user("task " * 20)]
    for turn in range(TURNS):
        text = answer(turn, fact if turn == at else "")
        if tools:
            call = ToolCall(f"c{turn}", "run", json.dumps({"command": f"cat log.{turn}"}))
            messages += [assistant("", (call,)), Message("tool", text, tool_call_id=call.id)]
        else:
            messages += [assistant(json.dumps({"command": f"cat log.{turn}"})), user(text)]
    return messages


def size(messages: list[Message]) -> int:
    texts = (m.text + "".join(call.arguments for call in m.tool_calls) for m in messages)
    return sum(map(estimate_tokens, texts))


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("window", [4000, 8000, 16000])
@pytest.mark.parametrize("kind", FACTS)
def test_a_fact_survives_wherever_it_was_said(kind, window, tools):
    """Needles at four of sixty turns: every one is still there, and all fits the window."""
    for at in (0, 23, 47, 59):
        whole = talk(FACTS[kind], at, tools=tools)
        assert size(whole) > 16000
        short = fold(whole, window, WORDS)

        assert size(short) <= window
        assert any(FACTS[kind] in json.dumps(m.text) for m in short), (kind, at)
        assert short[:2] == whole[:2]
        assert short[-4:] == whole[-4:]


def test_what_fits_is_left_alone():
    """Nothing is shortened that need not be."""
    messages = talk("", -1)[:10]

    assert fold(messages, 100_000) == messages


def test_a_call_and_its_answer_stay_together():
    """No `tool` message stands without the call it answers, however little fits."""
    messages = talk("", -1, tools=True)
    messages.append(Message("tool", "more", tool_call_id="c59"))
    short = fold(messages, 3000)

    called = {call.id for m in short for call in m.tool_calls}
    assert {m.tool_call_id for m in short if m.role == "tool"} <= called
    assert messages[_border(messages)].role != "tool"


def test_marked_facts_stay_even_when_nothing_else_does():
    """`keep:` in what the agent wrote or read outlives every cut."""
    messages = talk(FACTS["kept"], 3)
    messages[20] = assistant("keep: table orders has 17 columns")
    text = " ".join(m.text for m in fold(messages, 500))

    assert "table orders has 17 columns" in text
    assert "correct horse" in text


def test_telling_lines_stand_in_their_order():
    """The odd one out and both ends; what is left out is marked."""
    said = "\n".join(["begin", *["row 1"] * 50, "odd one", *["row 2"] * 50, "end"])

    assert brief(said, 20) == "begin\n…\nodd one\n…\nend"


@pytest.mark.parametrize("text", ["", "\n\n", "{", "[]", '{"exit_code": 1}', "x" * 10_000])
def test_any_answer_has_one(text):
    """Whatever an answer is, its short form is short."""
    assert len(brief(text, 100)) < 300


@pytest.mark.parametrize(
    "text",
    [
        '{"actions": 5}',
        '{"actions": true}',
        '{"actions": {"action": "run"}}',
        '{"actions": [5, null]}',
        '{"actions": []}',
        "7",
        "[1]",
        "null",
        '{"command": 5}',
        "[" * 20_000,
    ],
)
def test_a_reply_of_any_shape_has_its_deeds(text):
    """A small model writes anything; it is told on as it is, and ends nothing."""
    messages = [*(assistant(text) for _ in range(40)), user("x" * 9000)]

    assert all(isinstance(one, str) for one in deeds(messages[0]))
    assert fold(messages, 2000)
