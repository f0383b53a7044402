"""The values of a conversation, and the double that plays a model."""

from dataclasses import replace

import pytest

from openry.errors import ModelError
from openry.llm import (
    ChatReply,
    ChatRequest,
    Message,
    Model,
    ScriptedModel,
    ToolCall,
    assistant,
    estimate_tokens,
    system,
    user,
)
from openry.llm.base import as_messages

CALL = ToolCall("1", "openry", '{"command": "ls"}')


def test_messages_take_openais_shape_and_come_back():
    """Every kind of turn survives the way there and back."""
    turns = (system("be"), user("do"), assistant("", (CALL,)), Message("tool", "out", (), "1"))

    assert as_messages([turn.to_openai() for turn in turns]) == turns


@pytest.mark.parametrize(
    ("arguments", "meant"), [('{"a": 1}', {"a": 1}), ('{"a"', None), ("[1]", None), ("", None)]
)
def test_malformed_arguments_are_no_arguments(arguments, meant):
    """Only a whole JSON object is a set of arguments."""
    assert ToolCall("1", "f", arguments).parsed() == meant


def test_a_record_holds_only_the_turns_since_the_models_last():
    """Rows of a long conversation grow with it, not with its square."""
    ask = ChatRequest((system("be"), user("do")))
    later = ask.followed_by(assistant("done"), user("more"))

    assert (ask.to_record()["earlier"], len(ask.to_record()["messages"])) == (0, 2)
    assert later.to_record()["earlier"] == 3
    assert [m["content"] for m in later.to_record()["messages"]] == ["more"]


def test_equal_questions_have_equal_keys():
    """The order of a schema's keys says nothing; lone surrogates do no harm."""
    one = ChatRequest((user("x\udcff"),), schema={"a": 1, "b": 2})

    assert one.key("m") == replace(one, schema={"b": 2, "a": 1}).key("m")


def test_estimates_are_on_the_high_side():
    """Chinese counts a token a character, English one for three letters."""
    assert estimate_tokens("统计行数") == 5
    assert estimate_tokens("count the lines") >= 3


def test_a_script_answers_in_order_raises_and_computes():
    """Texts, replies, errors and functions are all lines of a script."""
    script = ["a", ChatReply("b"), lambda ask: ask.messages[0].text, ModelError("cut", "half")]
    model = ScriptedModel(script)

    assert [model.complete(ChatRequest((user("c"),))).text for _ in range(3)] == ["a", "b", "c"]
    with pytest.raises(ModelError, match="half"):
        model.complete(ChatRequest((user("d"),)))
    assert (model.left, len(model.requests)) == (0, 4)


def test_a_script_complains_when_asked_for_more():
    """A test that asks too often fails loudly, with what was asked."""
    with pytest.raises(AssertionError, match=r"asked a 1th time.*has 0 lines.*why me"):
        ScriptedModel([]).complete(ChatRequest((user("why me"),)))


def test_the_double_is_a_model():
    """Whatever holds a Model can hold the double."""
    assert isinstance(ScriptedModel([]), Model)
