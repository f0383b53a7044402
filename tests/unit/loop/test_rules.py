"""Tier-0 rules: known failures get their repair without a model."""

from __future__ import annotations

from typing import Any

import pytest

from loop.contract import call_contract
from loop.diagnose import diagnose
from loop.edits import SetOutput, SetPrompt, SetTimeout, ToCapability, ToShell
from loop.evidence import CommandSeen, StepRun, Trial
from loop.rules import Scene, propose
from loop.values import FileInfo, Survey
from openry.capability.registry import load_registry
from openry.models import RuleResult

REGISTRY = load_registry()
TABLE = FileInfo("people.csv", 40, "csv", "name,age\nann,3\n", ("name", "age"), 2)
LOG = FileInfo("app.log", 40, "text", "ERROR x\n", (), 1)
SURVEY = Survey("", (LOG, TABLE))


def scene(
    step: dict[str, Any],
    run: StepRun,
    *,
    task: str = "Count the ERROR lines of app.log into count.txt",
    hard: tuple[tuple[dict[str, Any], bool], ...] = (),
) -> Scene:
    """One step that ran as `run` says; `hard` pairs rules with whether they held."""
    rules = tuple(rule for rule, _ in hard)
    verdicts = tuple(RuleResult(rule["type"], held) for rule, held in hard)
    state = "completed" if run.passed else "failed"
    trial = Trial("", state, (run,), hard=verdicts)
    diagnosis = diagnose(trial, rules)
    workflow = {"name": "w", "sub_steps": [step]}
    return Scene(task, workflow, trial, diagnosis, SURVEY, rules, (), REGISTRY)


def failed(stderr: str, code: int = 1, kind: str = "shell", **more: Any) -> StepRun:
    command = CommandSeen("x", code, stderr=stderr)
    return StepRun("a", kind, "failed", attempts=1, commands=(command,), **more)


def first(where: Scene) -> Any:
    proposal = next(propose(where))
    assert len(proposal.edits) == 1
    return proposal.edits[0]


def test_a_misspelt_file_in_a_call():
    """The one argument that names it is corrected; the others stay."""
    step = {
        "id": "a",
        "kind": "capability",
        "capability": "count_matching_lines",
        "args": {"path": "ap.log", "needle": "ERROR", "output": "count.txt"},
    }
    error = "`ap.log`: no such file"

    edit = first(scene(step, failed(f"error[not_found]: {error}", kind="capability", error=error)))

    assert isinstance(edit, ToCapability)
    assert edit.args == {"path": "app.log", "needle": "ERROR", "output": "count.txt"}


def test_a_misspelt_file_in_a_command():
    """Only the word changes, wherever it stands as a word of its own."""
    step = {"id": "a", "kind": "shell", "command": "grep -c ERROR ./ap.log > ap.log.txt"}

    edit = first(scene(step, failed("grep: ap.log: No such file or directory", 2)))

    assert edit == ToShell(step="a", command="grep -c ERROR ./app.log > ap.log.txt", why=edit.why)


def test_a_misspelt_file_in_a_prompt():
    """An agent's task is worded anew with the file that exists."""
    step = {"id": "a", "kind": "agent", "description": "Count the errors in ap.log"}

    edit = first(scene(step, failed("cat: ap.log: No such file or directory", kind="agent")))

    assert edit == SetPrompt(step="a", text="Count the errors in app.log", why=edit.why)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ("nmae", "`people.csv` has no column `nmae`"),
        (7, "`people.csv` has 2 columns, counted from 1; there is no 7"),
    ],
)
def test_a_wrong_column(asked, error):
    """A column that the header lacks becomes the one it resembles or the task names."""
    step = {
        "id": "a",
        "kind": "capability",
        "capability": "csv_column",
        "args": {"path": "people.csv", "column": asked, "output": "out.txt"},
    }
    run = failed(f"error[bad_arguments]: {error}", kind="capability", error=error)

    edit = first(scene(step, run, task="The name column of people.csv into out.txt"))

    assert isinstance(edit, ToCapability)
    assert edit.args["column"] == "name"


def test_the_checks_of_the_old_call_follow_the_new_one():
    """A contract that names the wrong column would refuse the right one; a person's rule stays."""
    own = {"type": "file_contains", "path": "out.txt", "contains": "ann"}
    args = {"path": "people.csv", "column": "nmae", "output": "out.txt"}
    _, contract = call_contract("csv_column", args, REGISTRY)
    _, right = call_contract("csv_column", {**args, "column": "name"}, REGISTRY)
    step = {
        "id": "a",
        "kind": "capability",
        "capability": "csv_column",
        "args": args,
        "validation": [own, contract],
    }
    error = "`people.csv` has no column `nmae`"
    run = failed(f"error[bad_arguments]: {error}", kind="capability", error=error)

    edit = first(scene(step, run, task="The name column of people.csv into out.txt"))

    assert contract != right
    assert edit.validation == (own, right)


def test_a_misspelt_program():
    """A command that does not exist becomes the common one it resembles."""
    step = {"id": "a", "kind": "shell", "command": "grpe -c ERROR app.log > count.txt"}

    edit = first(scene(step, failed("sh: 1: grpe: not found", 127)))

    assert isinstance(edit, ToShell)
    assert edit.command == "grep -c ERROR app.log > count.txt"


def test_a_misnamed_result():
    """The file nobody asked for becomes the one that was asked for and that nobody wrote."""
    step = {"id": "a", "kind": "shell", "command": "grep -c ERROR app.log > cuont.txt"}
    run = StepRun("a", "shell", "done", attempts=1, changed=("cuont.txt",))
    rule = {"type": "file_exists", "path": "count.txt"}

    edit = first(scene(step, run, hard=((rule, False),)))

    assert isinstance(edit, ToShell)
    assert edit.command == "grep -c ERROR app.log > count.txt"


def test_a_time_limit_that_is_too_short():
    """Four times as long, and never without a limit."""
    step = {"id": "a", "kind": "shell", "command": "sleep 5", "timeout_seconds": 3}
    run = StepRun(
        "a", "shell", "failed", attempts=1, commands=(CommandSeen("x", 124, ending="timeout"),)
    )

    assert first(scene(step, run)) == SetTimeout(step="a", seconds=12, why="3 s were not enough")


def test_a_payload_that_was_never_asked_for():
    """A rule that reads a key makes the step report it."""
    step = {
        "id": "a",
        "description": "count",
        "validation": [{"type": "payload_has_key", "key": "n"}],
    }
    run = StepRun(
        "a", "agent", "failed", attempts=1, rules=(RuleResult("payload_has_key key=n", False),)
    )

    edit = first(scene(step, run))

    assert isinstance(edit, SetOutput)
    assert edit.key == "n"


def test_an_unknown_failure_gets_no_guess():
    """Where no rule fits, none proposes."""
    step = {"id": "a", "kind": "shell", "command": "false"}

    assert list(propose(scene(step, failed("", 1)))) == []
