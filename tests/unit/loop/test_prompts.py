"""G2: prompts render, stay short, and hold no piece of one case's data."""

from __future__ import annotations

import pytest

from loop import prompts
from loop.evidence import StepRun, Trial

TASK = "Say for each mail in mails.txt whether it is urgent"
CASE = "From: ada@example.org\nPlease send the figures for March until Friday, thanks"


def workflow(text: str, *blocks: str) -> dict:
    found = [{"type": "text", "content": each} for each in blocks]
    return {"sub_steps": [{"id": "a", "description": text, "prompt_blocks": found}]}


PARENT = workflow("Read the mail and say urgent or not")


def check(child, trials=()):
    return prompts.check(PARENT, child, task=TASK, data=[CASE], trials=trials)


def test_no_prompt_no_gate():
    """Where no prompt changes there is nothing to say."""
    assert check(PARENT) is None


def test_a_prompt_holds_nothing_of_the_case():
    """Five words in a row out of the data are copied; the task's own words are not."""
    copied = check(workflow("If it says send the figures for March it is urgent"))
    own = check(workflow(f"{TASK}: answer urgent or not"))

    assert not copied.passed
    assert "send the figures for march" in copied.note
    assert own.passed


@pytest.mark.parametrize(("more", "passed"), [(500, True), (3000, False)])
def test_growth_is_bounded(more, passed):
    """A prompt may become longer, but not by thousands of characters at once."""
    assert check(workflow("Read the mail and say urgent or not", "x" * more)).passed is passed


def test_it_must_render_with_every_payload_that_is_known():
    """A value that one run did not hand over is found before anything runs."""
    steps = (
        StepRun("before", "shell", "done", attempts=1, payload={"n": 3}),
        StepRun("a", "agent", "failed", attempts=1),
    )
    trial = Trial("", "failed", steps)

    assert check(workflow("There are {{ payload.n }} mails"), [trial]).passed
    assert not check(workflow("There are {{ payload.m }} mails"), [trial]).passed
