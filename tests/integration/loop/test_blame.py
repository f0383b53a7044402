"""On the real engine: the rest of a run is drawn anew from the files before a step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loop.blame import DRAWS, located
from loop.diagnose import FailureClass, diagnose
from loop.kit import Kit
from loop.order import Order
from loop.runner import EngineRunner
from loop.values import Acceptance
from openry.config import load_config
from openry.llm import ScriptedModel

pytestmark = pytest.mark.sandbox

#: `gather` is wrong in the run itself and right when it is drawn anew; `report` only copies.
FLOW = """\
name: report
sub_steps:
  - id: start
    kind: agent
    description: STEP-START
  - id: gather
    kind: agent
    description: STEP-GATHER
  - id: report
    kind: agent
    description: STEP-REPORT
"""
RULES = ({"type": "file_contains", "path": "report.txt", "regex": r"\A2\s*\Z"},)
COMMANDS = {
    "STEP-START": "cp app.log copy.log",
    "STEP-GATHER": "pwd; grep -c {word} copy.log > n.txt; true",
    "STEP-REPORT": "cp n.txt report.txt",
}


def play(request):
    """The agent: its step's command, then that it is done. Only the first draw is wrong."""
    if any(message.role == "assistant" for message in request.messages):
        return json.dumps({"action": "report", "status": "completed"})
    text = "\n".join(str(message.text) for message in request.messages)
    step = next(name for name in COMMANDS if name in text)
    word = "ERROR" if request.seed >= 1000 else "EROR"
    return json.dumps({"action": "run", "command": COMMANDS[step].format(word=word)})


@pytest.fixture
def runner(tmp_path):
    """A runner over a folder with a log, whose model is the dice."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "app.log").write_text("1 ERROR\n2 INFO\n3 ERROR\n")
    dice = ScriptedModel([play] * 99, name="openai/dice")
    config = load_config(tmp_path / "home", env={})
    with Kit(config, open_model=lambda name, **rest: dice) as kit:
        order = Order("report", str(folder), planner="openai/dice", model="openai/dice")
        made = EngineRunner(
            kit,
            "s",
            kit.store.create(folder).id,
            Acceptance(RULES, "given"),
            tmp_path / "work",
            kit.models(order, "s"),
            wanted={},
            on_step=lambda event: None,
            should_stop=lambda: False,
        )
        try:
            yield made
        finally:
            made.close()


def test_the_rest_begins_with_the_files_before_its_step(runner):
    """From before `report` the wrong number is still there, from before `gather` it is not."""
    trial = runner.run(FLOW)
    assert [step.state for step in trial.steps] == ["done"] * 3, trial.steps
    assert not trial.acceptable

    late = runner.rest(trial, "report", 1)
    early = runner.rest(trial, "gather", 1)

    assert [step.id for step in late.steps] == ["report"]
    assert [step.id for step in early.steps] == ["gather", "report"]
    assert (late.acceptable, early.acceptable) == (False, True)
    assert not list(Path(runner.kit.config.home).glob("instances/*/*"))


def test_drawn_twice_the_rest_asks_the_same(runner):
    """A session that was killed while it looked finds each answer again: nothing is paid twice.

    Answers are kept by the question, and a question holds the folder as the commands print it.
    """
    trial = runner.run(FLOW)
    dice = runner.models.open("openai/dice")
    asked = []
    for _ in range(2):
        before = len(dice.requests)
        runner.rest(trial, "gather", 1)
        asked.append(dice.requests[before:])

    first, second = ([request.key("m") for request in each] for each in asked)
    assert first == second
    assert any(str(runner.work) in request.prompt_text() for request in asked[0]), "it is printed"


def test_the_step_that_passed_and_was_wrong_is_found(runner):
    """The diagnosis blames who wrote the wrong file; the draws, who made it wrong."""
    trial = runner.run(FLOW)
    before = diagnose(trial, RULES)

    found = located(before, trial, runner.rest, DRAWS)

    assert before.step == "report"
    assert (found.step, found.failure_class) == ("gather", FailureClass.UPSTREAM_DAMAGE)
