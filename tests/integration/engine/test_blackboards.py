"""`blackboard` of a step: what sessions of one ledger leave for each other."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from openry import cli
from openry.ledger.commands import of_run
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.policy import load_policy
from openry.session.blackboard import Blackboard, folder_of

WRITE = """
name: write
sub_steps:
  - id: put
    kind: shell
    blackboard: true
    command: 'echo 3 | blackboard put errors - && blackboard add seen 2'
"""
READ = """
name: read
sub_steps:
  - id: get
    kind: shell
    blackboard: true
    command: 'echo "$(blackboard get errors) $(blackboard add seen)" > out'
    validation: [{type: command, run: test "$(blackboard get errors)" = 3}]
"""


@pytest.fixture
def board(config):
    return Blackboard(folder_of(config, "common"))


def test_what_one_session_puts_there_another_finds(bench, board):
    """In steps and in their `command` rules; it lies beside the ledger."""
    for text in (WRITE, READ):
        outcome = bench.run(text)
        assert outcome.ok, (outcome.reason, outcome.steps)
    assert bench.read("out") == "3 3\n"
    assert (board.names(), board.get("seen")) == (["errors", "seen"], "3")


@pytest.mark.sandbox
@pytest.mark.parametrize("named", ["true", "of_mine"])
def test_in_the_sandbox_it_is_all_that_is_seen_of_the_home(bench, config, workspace, named):
    """Writable for steps, only readable for rules; other blackboards and the ledger are hidden."""
    Blackboard(folder_of(config, "other")).put("x", "secret")
    name = "common" if named == "true" else named
    check = "{type: command, run: '! blackboard put errors 4'}"
    write = WRITE.replace("blackboard: true", f"blackboard: {named}\n    validation: [{check}]")
    write = write.replace("add seen 2'", 'add seen 2 && ls "$BLACKBOARD/.." "$BLACKBOARD/../.."\'')
    write = f"command_policy: permissive{write}"
    with Engine(replace(config, sandbox="bubblewrap")) as engine:
        outcome = engine.run(engine.submit(load(write), workspace=workspace))
        assert outcome.ok, outcome.reason
        with engine.ledger.read() as connection:
            (row,) = of_run(connection, outcome.step("put").run_id)
    assert name in row.stdout and "other" not in row.stdout and "openry.db" not in row.stdout
    assert Blackboard(folder_of(config, name)).get("errors") == "3\n"


def test_a_step_that_does_not_ask_has_none(bench):
    """Neither program nor folder."""
    command = "blackboard list; echo _$BLACKBOARD"
    outcome = bench.run(f"sub_steps: [{{id: a, kind: shell, command: '{command}'}}]")
    assert outcome.ok and outcome.payload["_stdout"] == "_\n"


def test_an_agent_is_told_of_it_and_uses_it(bench, board):
    """A free agent by commands; another step's agent hears nothing of it."""
    board.put("errors", "5")
    run = json.dumps({"action": "run", "command": "blackboard get errors"})
    done = json.dumps({"action": "report", "status": "completed"})
    model = bench.script(run, done, done)
    outcome = bench.run(
        "{name: x, sub_steps: [{id: a, description: look, blackboard: true},"
        " {id: b, description: rest}]}"
    )
    assert outcome.ok, outcome.reason
    first, second, third = model.requests
    assert "`blackboard get NAME`" in first.messages[0].text
    assert json.loads(second.messages[-1].text)["stdout"] == "5\n"
    assert "blackboard" not in third.messages[0].text


def test_a_drafted_workflow_has_none(bench, config):
    """What the loop drafts stays in its workspace: nothing is run."""
    outcome = bench.engine.run(bench.submit(WRITE, drafted=True))
    assert outcome.state == "failed" and "a drafted workflow has no blackboard" in outcome.reason
    assert not folder_of(config, "common").exists(), "nothing is made for it"


def test_what_the_lock_runs_is_judged_like_any_command():
    """It is no way round a policy."""
    policy = load_policy("moderate")

    def said(text):
        return policy.decide(text, cwd="/w", workspace="/w").decision.word

    assert said("blackboard-lock sh -c 'sort a > b'") == "allow"
    assert said("blackboard-lock curl http://example.com") == "deny"
    assert said("blackboard-lock sh -c 'curl http://example.com'") == "deny"


@pytest.mark.parametrize("name", ["'../x'", "'a/b'", "'.x'", "'[]'", "1.5e3x!", "1", "[a]", "{}"])
def test_a_wrong_name_is_said_with_its_line(name):
    """Also a slip of the key, and what is no text."""
    loaded = load(f"sub_steps:\n  - {{id: a, description: x, blackboard: {name}}}\n", file="w.yaml")
    (said,) = map(str, loaded.errors)
    assert said.startswith("w.yaml:2: `blackboard` must be `true` or a name"), said
    loaded = load("sub_steps:\n  - {id: a, description: x, blackbord: true}\n", file="w.yaml")
    assert "did you mean `blackboard`?" in str(loaded.errors[0])


@pytest.mark.parametrize("word", ["no", "Off", "'true'", "'FALSE'", "yes"])
def test_yes_and_no_are_no_names(word):
    """Whoever writes `blackboard: no` does not want one of that name."""
    loaded = load(f"sub_steps:\n  - {{id: a, description: x, blackboard: {word}}}\n", file="w.yaml")
    (said,) = map(str, loaded.errors)
    assert said == "w.yaml:2: `blackboard` must be `true`, `false` or another name"


def test_by_hand_it_is_the_same(here, capsys):
    """`openry blackboard`, with the board by name; a mistake is one sentence."""

    def call(*words):
        status = cli.main(["blackboard", *words])
        return status, capsys.readouterr()

    assert call("put", "a", "x")[0] == 0
    assert call("add", "n", "-2", "--board", "mine")[0] == 0
    assert call("get", "nothing", "--board", "mine")[0] == 2
    status, told = call("put", "a")
    assert status == 2
    assert told.err == "openry: `put` takes other words; see openry blackboard --help\n"
    assert call("list", "--board", "../x")[0] == 2
    assert sorted(p.name for p in (here.parent / "home/blackboards").iterdir()) == [
        "common",
        "mine",
    ]
