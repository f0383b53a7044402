"""Cassettes: what was answered once is not asked again, also after a crash."""

import json
from dataclasses import replace

import pytest

from openry.errors import ModelError, StorageError
from openry.llm import (
    Cassette,
    ChatReply,
    ChatRequest,
    Purpose,
    ScriptedModel,
    Spent,
    ToolCall,
    user,
)
from openry.llm.cassette import Cassetted

ASK = ChatRequest((user("what?"),))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "answers.jsonl"


def hide(text):
    return text.replace("s3cret", "***")


def test_a_second_process_reads_what_the_first_paid_for(path):
    """The same question costs one call over two lives, and the reply says it is recorded."""
    reply = ChatReply("that", (ToolCall("1", "f", "{}"),), "tool_calls", 5, 2, 0.5)
    first = ScriptedModel([reply])
    assert Cassetted(first, Cassette(path)).complete(ASK) == reply

    again = Cassetted(ScriptedModel([]), Cassette(path)).complete(ASK)

    assert again == replace(reply, recorded=True)


def test_an_answer_is_on_disk_before_it_is_returned(path):
    """At the moment the caller sees a reply, another process could read it."""
    Cassetted(ScriptedModel(["that"]), Cassette(path)).complete(ASK)

    assert json.loads(path.read_text())["reply"]["text"] == "that"
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "other",
    [
        replace(ASK, messages=(user("what else?"),)),
        replace(ASK, schema={"type": "object"}),
        replace(ASK, seed=1),
        replace(ASK, attempt=1),
        replace(ASK, temperature=0.5),
        replace(ASK, max_tokens=9),
    ],
)
def test_whatever_shapes_the_answer_is_part_of_the_key(path, other):
    """Another prompt, schema, seed or attempt is another question."""
    model = Cassetted(ScriptedModel(["one", "two"]), Cassette(path))

    assert [model.complete(ASK).text, model.complete(other).text] == ["one", "two"]


def test_models_and_purposes():
    """Another model is another question; another purpose is not."""
    assert ASK.key("a") != ASK.key("b")
    assert replace(ASK, purpose=Purpose("draft")).key("a") == ASK.key("a")


def test_replay_never_asks(path):
    """What is not in the file is an error, whatever the model could say."""
    model = ScriptedModel(["never"])

    with pytest.raises(ModelError) as caught:
        Cassetted(model, Cassette(path, "replay")).complete(ASK)

    assert (caught.value.code, model.left) == ("not_recorded", 1)


def test_record_always_asks_and_keeps_the_latest(path):
    """A new answer replaces the old one for whoever reads the file next."""
    model = Cassetted(ScriptedModel(["old", "new"]), Cassette(path, "record"))
    model.complete(ASK)
    model.complete(ASK)

    assert Cassetted(ScriptedModel([]), Cassette(path)).complete(ASK).text == "new"


def test_errors_are_not_remembered(path):
    """A call that failed is asked again."""
    model = Cassetted(ScriptedModel([ModelError("cut", "half"), "whole"]), Cassette(path))
    with pytest.raises(ModelError):
        model.complete(ASK)

    assert model.complete(ASK).text == "whole"


def test_a_line_cut_anywhere_by_a_crash_costs_that_answer_only(path):
    """However much of the last line was written, the first answer stays and new ones follow."""
    Cassetted(ScriptedModel(["one"]), Cassette(path)).complete(ASK)
    whole = path.read_bytes()
    other = replace(ASK, seed=1)
    for cut in range(1, len(whole)):
        path.write_bytes(whole + whole[:cut])

        model = Cassetted(ScriptedModel(["two"]), Cassette(path))

        assert (model.complete(ASK).text, model.complete(other).text) == ("one", "two")
        reread = Cassetted(ScriptedModel([]), Cassette(path))
        assert (reread.complete(ASK).text, reread.complete(other).text) == ("one", "two")


def test_secrets_are_neither_kept_nor_given_back(path):
    """What is redacted in the file is redacted in the live reply too: resume reads the same."""
    ask = ChatRequest((user("my key is s3cret"),))
    reply = ChatReply("s3cret it is", (ToolCall("1", "f", '{"k": "s3cret"}'),))
    live = Cassetted(ScriptedModel([reply]), Cassette(path, redact=hide)).complete(ask)

    assert (live.text, live.tool_calls[0].arguments) == ("*** it is", '{"k": "***"}')
    assert "s3cret" not in path.read_text()
    assert Cassetted(ScriptedModel([]), Cassette(path)).complete(ask).text == live.text


def test_a_resumed_budget_can_begin_with_what_was_spent(path):
    """The file knows what all its answers have cost."""
    reply = ChatReply("that", prompt_tokens=5, completion_tokens=2, cost_usd=0.5)
    model = Cassetted(ScriptedModel([reply, reply]), Cassette(path))
    model.complete(ASK)
    model.complete(ASK)
    model.complete(replace(ASK, seed=1))

    assert Cassette(path).spent == Spent(calls=2, tokens=14, usd=1.0)


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path):
    """The path is named; nothing of the system's own error class comes through."""
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match=r"cannot be (written|read): Not a directory"):
        Cassetted(ScriptedModel(["x"]), Cassette(tmp_path / "file" / "answers.jsonl")).complete(ASK)
