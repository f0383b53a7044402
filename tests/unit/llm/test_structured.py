"""Asking for data: how often the model is asked, and what it is told the second time."""

import pytest

from openry.errors import ModelError
from openry.llm import ChatReply, ChatRequest, ScriptedModel, user
from openry.llm.structured import ask_document, ask_structured, conform

SCHEMA = {
    "type": "object",
    "properties": {"tool": {"enum": ["count", "sort"]}, "n": {"type": "integer"}},
    "required": ["tool"],
    "additionalProperties": False,
}
ASK = ChatRequest((user("which tool?"),), max_tokens=100)


def test_an_answer_that_rules_can_mend_costs_one_call():
    """Fence, prose, trailing comma, null and a number as text need no second call."""
    model = ScriptedModel(['Sure!\n```json\n{"tool": "sort", "n": "3",}\n```'])

    assert ask_structured(model, ASK, SCHEMA) == {"tool": "sort", "n": 3}
    assert model.requests[0].schema == SCHEMA


def test_the_second_try_is_told_what_was_wrong():
    """A misfit is asked again once, with the old answer and the problem in view."""
    model = ScriptedModel(['{"tool": "count lines"}', '{"tool": "count"}'])

    document = ask_document(model, ASK, SCHEMA)

    assert document.value == {"tool": "count"}
    assert len(document.replies) == 2
    said, told = model.requests[1].messages[-2:]
    assert said.text == '{"tool": "count lines"}'
    assert "`$.tool`: 'count lines' is not one of ['count', 'sort']" in told.text


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("", "empty_answer"),
        ("I would rather not", "bad_answer"),
        ('{"tool": 5}', "bad_answer"),
        ('{"tool": "sort"', "bad_answer"),
    ],
)
@pytest.mark.parametrize("repairs", [0, 1, 2])
def test_calls_are_bounded_and_the_text_is_kept(reply, code, repairs):
    """`repairs` more calls and no others, then a typed error that keeps the last text."""
    model = ScriptedModel([reply] * (repairs + 1))

    with pytest.raises(ModelError, match="`scripted` gave no usable answer") as caught:
        ask_structured(model, ASK, SCHEMA, repairs=repairs)

    assert model.left == 0
    assert (caught.value.code, caught.value.text) == (code, reply)


def test_after_nothing_the_same_is_asked_with_another_seed():
    """An empty answer has nothing to correct: the question stays, the dice are thrown again."""
    model = ScriptedModel(["", '{"tool": "sort"}'])

    ask_structured(model, ASK, SCHEMA)

    first, second = model.requests
    assert second.messages == first.messages
    assert (second.seed, second.attempt) == (first.seed + 1, first.attempt + 1)


def test_a_cut_answer_is_given_more_room():
    """An answer that ran into `max_tokens` is asked again with twice as many."""
    model = ScriptedModel([ChatReply('{"tool": "so', finish_reason="length"), '{"tool": "sort"}'])

    assert ask_structured(model, ASK, SCHEMA) == {"tool": "sort"}
    assert model.requests[1].max_tokens == 200


def test_half_a_yaml_document_is_not_a_shorter_one():
    """YAML cut by the length limit still parses; it is refused all the same."""
    cut = ChatReply("name: demo\nsub_steps:\n  - id: a\n", finish_reason="length")
    model = ScriptedModel([cut, "name: demo\nsub_steps: []\n"])

    document = ask_document(model, ASK, want="yaml")

    assert document.value == {"name": "demo", "sub_steps": []}


def test_a_callers_check_counts_as_a_misfit():
    """What the schema cannot say, a function can; its words reach the model."""
    model = ScriptedModel(['{"tool": "sort"}', '{"tool": "count"}'])

    value = ask_structured(
        model, ASK, SCHEMA, check=lambda v: "" if v["tool"] == "count" else "sort was tried"
    )

    assert value == {"tool": "count"}
    assert "sort was tried" in model.requests[1].messages[-1].text


def test_what_the_model_itself_raises_is_passed_on():
    """Errors of the call are not answers: no repair is tried."""
    model = ScriptedModel([ModelError("rate_limited", "busy"), "{}"])

    with pytest.raises(ModelError, match="busy"):
        ask_structured(model, ASK, SCHEMA)

    assert model.left == 1


@pytest.mark.parametrize(
    ("value", "schema", "meant"),
    [
        ({"x": None}, {"properties": {"x": {"type": "string"}}}, {}),
        ({"x": None}, {"properties": {"x": {"type": ["string", "null"]}}}, {"x": None}),
        ({"x": None}, {"properties": {"x": {"type": "string"}}, "required": ["x"]}, {"x": None}),
        ("a", {"type": "array", "items": {"type": "string"}}, ["a"]),
        ({"k": 1}, {"type": "array", "items": {"type": "object"}}, [{"k": 1}]),
        (["1", "2.5"], {"type": "array", "items": {"type": "number"}}, [1.0, 2.5]),
        ("True", {"type": "boolean"}, True),
        (7, {"type": "string"}, "7"),
        (True, {"type": "string"}, True),
        ("many", {"type": "integer"}, "many"),
        ("3", {"type": ["integer", "string"]}, "3"),
        ({"other": "3"}, {"properties": {}}, {"other": "3"}),
    ],
)
def test_only_slips_without_doubt_are_turned(value, schema, meant):
    """A value takes the wanted type when it can mean nothing else, and stays otherwise."""
    assert conform(value, schema) == meant
