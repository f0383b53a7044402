"""What is declared not to be done twice is done once, or a person is asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from openry.capability import own_registry
from openry.ledger.commands import of_step
from openry.ledger.records import snapshots_of

RUNNER = """
import os, sys
from dataclasses import replace
from openry.config import load_config
from openry.ledger.fast import FastLedger
from openry.orchestrator.engine import Engine
home, instance, when = sys.argv[1:]
real = FastLedger.finish
def finish(self, *given, **more):
    if when == "before":
        os._exit(9)
    real(self, *given, **more)
    os._exit(9)
FastLedger.finish = finish
with Engine(replace(load_config(home, env={}), sandbox="none")) as engine:
    engine.run(instance)
"""
APPEND = """
name: append
sub_steps:
  - {id: add, kind: shell, irreversible: true, command: 'echo x >> log'}
"""


def killed(bench, instance_id: str, when: str) -> None:
    """An engine takes the instance up and dies before, or after, its command's end is recorded."""
    argv = (sys.executable, "-c", RUNNER, bench.engine.config.home_dir, instance_id, when)
    assert subprocess.run(argv, check=False).returncode == 9
    assert bench.read("log") == "x\n"


def commands(bench, instance_id: str, step: str):
    with bench.engine.ledger.read() as connection:
        return of_step(connection, instance_id, step)


def test_killed_after_its_end_was_recorded_it_is_not_done_again(bench):
    """The next attempt gets the recorded result, and says so in its row."""
    instance_id = bench.submit(APPEND)
    killed(bench, instance_id, "after")

    outcome = bench.engine.run(instance_id)

    assert outcome.state == "completed"
    assert bench.read("log") == "x\n"
    notes = [one.note for one in commands(bench, instance_id, "add")]
    assert notes == ["", "openry: done before by command 1: its result; it was not run again"]


def test_killed_before_its_end_was_recorded_a_person_decides(bench):
    """Never twice silently: the instance waits, with `unknown outcome`; a yes runs it again."""
    instance_id = bench.submit(APPEND)
    killed(bench, instance_id, "before")

    outcome = bench.engine.run(instance_id)
    assert (outcome.state, outcome.reason) == ("suspended", "unknown outcome")
    assert bench.read("log") == "x\n"

    bench.engine.answer(instance_id, approve=True)
    assert bench.engine.run(instance_id).state == "completed"
    assert bench.read("log") == "x\nx\n"


def test_a_retry_after_a_failed_check_does_not_repeat_it(bench):
    """What ended well in the first attempt is answered from its record in the second."""
    outcome = bench.run(
        """
        name: checked
        sub_steps:
          - id: add
            kind: shell
            irreversible: true
            max_sub_step_retries: 1
            command: 'echo x >> log; echo said'
            validation: [{type: file_exists, path: missing}]
        """
    )

    assert outcome.state == "failed"
    assert bench.read("log") == "x\n"
    first, second = commands(bench, outcome.instance_id, "add")
    assert (first.fingerprint, second.stdout) == (second.fingerprint, "said\n")
    assert len(first.fingerprint) == 64


def test_a_plain_command_runs_again(bench):
    """Nobody declared it, so a retry does it again."""
    outcome = bench.run(
        """
        name: plain
        sub_steps:
          - id: add
            kind: shell
            max_sub_step_retries: 1
            command: 'echo x >> log'
            validation: [{type: file_exists, path: missing}]
        """
    )

    assert outcome.state == "failed"
    assert bench.read("log") == "x\nx\n"


def test_a_restored_workspace_has_not_got_it(bench):
    """A big step's retry begins on the files from before, so it is done anew."""
    outcome = bench.run(
        """
        name: again
        max_retries: 1
        sub_steps:
          - {id: add, kind: shell, irreversible: true, command: 'echo x >> log'}
          - {id: fail, kind: shell, command: 'false'}
        """
    )

    assert outcome.state == "failed"
    assert bench.read("log") == "x\n"
    notes = [one.note for one in commands(bench, outcome.instance_id, "add")]
    assert notes == ["", ""]


def test_a_tool_that_may_not_be_repeated_is_answered_from_its_record(bench):
    """`idempotent: false` of a capability counts like `irreversible` of a step."""
    tool = own_registry(bench.engine.config.home).get("append_text")
    assert not tool.may_repeat({})
    outcome = bench.run(
        """
        name: tool
        sub_steps:
          - id: add
            kind: capability
            capability: append_text
            args: {path: log, text: x}
            max_sub_step_retries: 1
            validation: [{type: file_exists, path: missing}]
        """
    )

    assert outcome.state == "failed"
    assert bench.read("log").strip() == "x"


def test_an_agent_that_goes_in_circles_is_told_then_braked(bench):
    """A warning in the answer to the third turn; the brake when it goes on as before."""
    turns = [f'{{"action": "run", "command": "echo {n % 2}"}}' for n in range(16)]
    model = bench.script(*turns)
    outcome = bench.run(
        """
        name: circles
        sub_steps:
          - {id: act, kind: agent, description: do something, max_tool_calls: 30}
        """
    )

    assert outcome.state == "failed"
    assert outcome.reason.startswith("looped: you ran the same 2 commands 3 times in turn")
    events = [(e.kind, e.new) for e in bench.events(outcome.instance_id)]
    assert [one for one in events if one[0] in ("loop", "brake")] == [
        ("loop", "warned"), ("brake", "loop"),
    ]  # fmt: skip
    heard = [m.text for m in model.requests[-1].messages if "openry: you ran" in m.text]
    assert "try something else or call --status failed" in heard[0]


@pytest.fixture(autouse=True)
def _no_log(bench):
    """Every test here begins with an empty log."""
    (bench.workspace / "log").touch()


def test_an_agent_s_workspace_is_kept_now_and_then(bench):
    """After every fifth action, with the payload so far; what cannot be kept stops nobody."""
    turns = [f'{{"action": "run", "command": "echo {n} > f{n}"}}' for n in range(7)]
    bench.script(*turns, '{"action": "report", "status": "completed"}')
    outcome = bench.run(
        "{name: x, sub_steps: [{id: act, kind: agent, description: do it, max_tool_calls: 30}]}"
    )

    assert outcome.state == "completed", outcome.reason
    with bench.engine.ledger.read() as connection:
        kept = snapshots_of(connection, outcome.instance_id)
    assert [(one.reason, one.step_id) for one in kept] == [("after action 5", "act")]
    files = bench.engine.room.snapshots.tree(kept[0].snapshot_id)
    assert {path for path in files if path.startswith("f")} == {"f0", "f1", "f2", "f3", "f4"}
