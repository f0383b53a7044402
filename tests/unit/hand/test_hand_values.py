"""Values without `dataclasses` behave as if made by it."""

from __future__ import annotations

import json
import pickle
from copy import copy, deepcopy
from dataclasses import FrozenInstanceError, asdict, fields, is_dataclass, replace

import pytest

from openry.models import Answer, Command, Ending, RunContext, SandboxSpec


def test_a_value_is_frozen_compared_and_hashed_by_its_fields():
    """As with `@dataclass(frozen=True, slots=True)`."""
    one, same, other = Answer(0, "", "", 1), Answer(0, "", "", duration_ms=1), Answer(1, "", "", 1)

    assert (one == same, one == other, hash(one) == hash(same)) == (True, False, True)
    assert repr(one) == "Answer(exit_code=0, stdout='', stderr='', duration_ms=1)"
    for change in (lambda: setattr(one, "stdout", "x"), lambda: delattr(one, "stdout")):
        with pytest.raises(AttributeError):
            change()
    with pytest.raises(AttributeError):
        one.more = 1
    assert not hasattr(one, "__dict__")
    assert issubclass(FrozenInstanceError, AttributeError)


def test_the_tools_for_dataclasses_work():
    """replace, fields, asdict, is_dataclass, copy, pickle."""
    command = Command("echo", env={"A": "1"})

    assert is_dataclass(command)
    assert replace(command, text="ls").env == {"A": "1"}
    assert [field.name for field in fields(SandboxSpec)][:3] == ["backend", "write", "read"]
    assert asdict(RunContext(env={"A": "1"}))["sandbox"]["backend"] == "none"
    assert copy(command) == deepcopy(command) == pickle.loads(pickle.dumps(command)) == command


@pytest.mark.parametrize(
    "make",
    [
        lambda: Answer(0, "", ""),
        lambda: Answer(0, "", "", 0, 0),
        lambda: Answer(0, "", "", 0, stdout=""),
        lambda: Command(txt="x"),
    ],
)
def test_wrong_fields_are_a_type_error(make):
    """Missing, too many, twice, unknown."""
    with pytest.raises(TypeError):
        make()


def test_endings_are_texts_with_names():
    """Known ones only, each one object."""
    assert Ending("timeout") is Ending.TIMEOUT
    assert Ending.TIMEOUT == "timeout" == Ending.TIMEOUT.value
    assert len(list(Ending)) == 7
    assert pickle.loads(pickle.dumps(Ending.LOST)) is Ending.LOST
    with pytest.raises(ValueError, match="not how a command ends"):
        Ending("bored")


@pytest.mark.parametrize("text", ["", 'a"\\\n\t\x00\x1f\x7f', "é😀\u2028", "\ud83d alone"])
def test_an_answer_is_one_line_of_json(text: str):
    """Whatever is in it, it parses and encodes."""
    line = Answer(0, text, text, 3).to_json()

    assert "\n" not in line
    line.encode("utf-8")
    assert json.loads(line)["stdout"] == text.replace("\ud83d", "\ufffd")
