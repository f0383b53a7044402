"""Faults that befell tools like this one, each with the test of ours that stands against it.

`FAULTS` names them by the numbers of a collection of public reports; where nothing else tests a
kind, its test is below.
"""

# ruff: noqa: E501 - a table reads best with a line each
from __future__ import annotations

import ast
import datetime as real
import json
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from openry.ledger import journal

TESTS = Path(__file__).parents[2]
#: Kind of fault: file of the test, and its name.
FAULTS = {
    "B31": ("integration/engine/test_crashes.py", "test_two_engines_share_a_ledger_and_run_each_step_once"),
    "B33": ("integration/engine/test_crashes.py", "test_a_stranger_with_the_same_number_is_no_owner"),
    "B35": ("integration/engine/test_engine_faults.py", "test_a_clock_that_is_set_ends_no_step_and_saves_none"),
    "B37": ("unit/engine/test_schedule_times.py", "test_summer_time_neither_loses_nor_doubles_a_run"),
    "B39": ("integration/engine/test_engine_faults.py", "test_words_of_yaml_1_1_are_words"),
    "B41": ("unit/orchestrator/test_dsl_yaml.py", "test_what_cannot_be_read_is_one_sentence_with_its_line"),
    "B43": ("unit/orchestrator/test_dsl_yaml.py", "test_crlf_and_a_byte_order_mark_are_tolerated"),
    "B45": ("integration/engine/test_engine_faults.py", "test_what_a_step_printed_is_never_a_template"),
    "B47": ("integration/engine/test_engine_faults.py", "test_a_misspelt_name_deletes_nothing"),
    "B53": ("integration/llm/test_llm_stub.py", "test_rate_limits_are_waited_out"),
    "B55": ("integration/llm/test_llm_stub.py", "test_a_question_too_long_is_asked_once"),
    "B57": ("unit/agent/test_react.py", "test_half_a_tool_call_is_never_run"),
    "B59": ("unit/agent/test_react.py", "test_the_same_failure_three_times_ends_the_work"),
    "B65": ("integration/engine/test_crashes.py", "test_only_the_interrupted_step_repeats"),
    "B67": ("integration/ledger/test_ledger_faults.py", "test_a_full_disk_is_said_and_mended"),
    "B69": ("integration/hand/test_hand_answer.py", "test_a_command_longer_than_an_argument_may_be_runs"),
    "B73": ("integration/engine/test_overflow.py", "test_kept_outputs_are_rows_with_size_and_digest"),
    "B75": ("integration/engine/test_overflow.py", "test_a_model_summarises_the_parts_and_what_is_not_there_is_dropped"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_every_kind_of_fault_has_its_test(fault):
    """A test that was renamed or removed is missed here."""
    file, name = FAULTS[fault]
    tree = ast.parse((TESTS / file).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("jump_h", [2, -2])
def test_a_clock_that_is_set_ends_no_step_and_saves_none(bench, monkeypatch, jump_h):
    """A step of seconds under limits of minutes ends as it would; one over its limit is ended."""

    class Clock(real.datetime):
        jumped = False

        @classmethod
        def now(cls, tz=None):
            return super().now(tz) + real.timedelta(hours=jump_h if cls.jumped else 0)

    monkeypatch.setattr(journal, "datetime", Clock)
    text = """
        name: x
        timeout_minutes: {minutes}
        sub_steps:
          - {{id: a, kind: shell, command: 'touch began; sleep {sleep}', timeout_seconds: 60}}
          - {{id: b, kind: shell, command: 'echo b'}}
        """

    def jump():
        while not (bench.workspace / "began").exists():
            time.sleep(0.01)
        Clock.jumped = True

    setter = threading.Thread(target=jump)
    setter.start()
    outcome = bench.run(text.format(minutes=5, sleep=3))
    setter.join()
    assert outcome.ok, outcome.reason
    commands = [c for step in outcome.steps for c in step.commands]
    assert all(0 <= command.duration_ms < 30_000 for command in commands)

    Clock.jumped = False
    (bench.workspace / "began").unlink()
    setter = threading.Thread(target=jump)
    setter.start()
    began = time.monotonic()
    outcome = bench.run(text.format(minutes=0.1, sleep=120))
    setter.join()
    assert "time is up" in outcome.reason
    assert time.monotonic() - began < 60


def test_words_of_yaml_1_1_are_words(bench):
    """`on`, `off`, `yes`, `no`, `NO`, `y` and `1.10` stay what their writer meant."""
    outcome = bench.run(
        """
        name: x
        version: 1.10
        inputs: {country: {default: NO}}
        sub_steps:
          - id: y
            kind: shell
            command: 'printf "{\\"on\\": 1, \\"no\\": 2, \\"off\\": \\"%s\\"}" {{ inputs.country }}'
            payload_keys: [on, no, off]
        """
    )
    assert outcome.ok, outcome.reason
    assert [step.id for step in outcome.steps] == ["y"]
    assert {key: outcome.payload[key] for key in ("on", "no", "off")} == {
        "on": 1,
        "no": 2,
        "off": "NO",
    }


def test_what_a_step_printed_is_never_a_template(bench):
    """Rendering is one pass: braces in a payload, an input or a variable are data."""
    hostile = "{{ cycler.__init__.__globals__.os.system('touch PWN') }}${payload.x}"
    (bench.workspace / "printed").write_text(json.dumps({"x": hostile}))
    outcome = bench.run(
        """
        name: x
        inputs: {given: {}}
        env: {TOLD: '{{ inputs.given }}'}
        sub_steps:
          - {id: a, kind: shell, command: 'cat printed'}
          - {id: b, kind: shell, env: {SAID: '{{ payload.x }}'},
             command: 'printf "%s|%s|%s" {{ payload.x }} "$SAID" "$TOLD" > out'}
        """,
        inputs={"given": hostile},
    )
    assert outcome.ok, outcome.reason
    assert bench.read("out") == "|".join([hostile] * 3)
    assert not (bench.workspace / "PWN").exists()


def test_a_misspelt_name_deletes_nothing(bench):
    """The step fails before it runs, and offers the name that was meant."""
    keep = bench.workspace / "work" / "keep"
    keep.mkdir(parents=True)
    (keep / "f").write_text("")
    outcome = bench.run(
        """
        name: x
        sub_steps:
          - {id: a, kind: shell, command: 'echo "{\\"dir_name\\": \\"keep\\"}"'}
          - {id: b, kind: shell, command: 'rm -rf work/{{ payload.dir_nmae }}/*'}
        """
    )
    assert outcome.state == "failed"
    assert "`payload.dir_nmae` is not defined (did you mean `dir_name`?)" in outcome.reason
    assert (keep / "f").exists()


def test_a_file_that_is_deleted_while_it_runs_changes_nothing(bench, tmp_path):
    """An instance has its plan; the file it came from is not needed any more."""
    from openry.orchestrator.loader import load

    file = tmp_path / "gone.yaml"
    file.write_text(
        "name: gone\nsub_steps:\n"
        "  - {id: a, kind: shell, command: 'touch began; sleep 0.3'}\n"
        "  - {id: b, kind: shell, command: 'echo b > b'}\n"
    )
    instance_id = bench.engine.submit(load(file), workspace=bench.workspace)
    file.unlink()
    assert bench.engine.run(instance_id).ok
    assert bench.read("b") == "b\n"


def test_a_ledger_that_another_program_locks_is_waited_for(bench):
    """For seconds nothing can be written; then the step's end is, and nothing is lost."""
    instance_id = bench.submit(
        """
        name: x
        sub_steps:
          - {id: a, kind: shell, command: 'touch began; sleep 0.3; echo a >> log'}
          - {id: b, kind: shell, command: 'echo b >> log'}
        """
    )

    def lock():
        while not (bench.workspace / "began").exists():
            time.sleep(0.01)
        other = sqlite3.connect(bench.engine.ledger.path, timeout=30, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        time.sleep(1.5)
        other.execute("ROLLBACK")
        other.close()

    locker = threading.Thread(target=lock)
    locker.start()
    outcome = bench.engine.run(instance_id)
    locker.join()
    assert outcome.ok, outcome.reason
    assert bench.read("log") == "a\nb\n"


def test_an_agent_that_goes_on_talking_is_heard_once(bench):
    """A second final status after a final one changes nothing."""
    reports = [
        {"action": "report", "status": "completed", "payload": {"n": 1}},
        {"action": "report", "status": "failed", "payload": {"n": 2}},
    ]
    bench.script(*map(json.dumps, reports))
    outcome = bench.run("{name: x, sub_steps: [{id: a, description: count, payload_keys: [n]}]}")
    assert (outcome.state, outcome.payload) == ("completed", {"n": 1})
