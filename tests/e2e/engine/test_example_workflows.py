"""Every workflow shipped in `workflows/` loads without a warning, and does what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from openry.config import load_config
from openry.data import data_root
from openry.ledger.change import change
from openry.ledger.journal import ledger_now
from openry.ledger.schema import schedules
from openry.orchestrator.engine import Engine
from openry.orchestrator.lint import lint
from openry.orchestrator.loader import load
from openry.orchestrator.lookup import find_file
from openry.orchestrator.selftest import read_tests, run_tests

SHIPPED = sorted((data_root() / "workflows").glob("*.yaml"))
TESTED = sorted((data_root() / "workflows" / "tests").glob("*.yaml"))
LOG = "INFO start\nERROR disk full\nINFO ok\nERROR no route\n"


@pytest.fixture
def run(tmp_path):
    """Runs a shipped workflow by its name in `tmp_path`, inside the sandbox."""
    home = tmp_path / "home"
    home.mkdir()
    config = replace(load_config(home, env={}), sandbox="auto")
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def start(name, **inputs):
        with Engine(config) as engine:
            loaded = load(find_file(name, config))
            return engine.run(engine.submit(loaded, inputs=inputs, workspace=workspace))

    start.workspace, start.config = workspace, config
    return start


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_every_shipped_workflow_is_clean(file):
    """Examples are read to learn from: not even a warning."""
    loaded = load(file)
    assert [*map(str, loaded.problems), *map(str, lint(loaded))] == []


@pytest.mark.sandbox
def test_a_shell_chain_hands_values_on(run):
    """`shell_chain` counts the file it is given."""
    (run.workspace / "list of things.txt").write_text("a\nb\n")
    outcome = run("shell_chain", file="list of things.txt")
    assert outcome.ok, outcome.reason
    assert (run.workspace / "report.txt").read_text() == "list of things.txt has 2 lines\n"


@pytest.mark.sandbox
def test_the_third_try_is_lucky(run):
    """`third_time_lucky` is retried twice, then takes the route of its payload."""
    outcome = run("third_time_lucky")
    assert outcome.ok, outcome.reason
    assert outcome.step("knock").attempts == 3
    assert (run.workspace / "door.txt").read_text() == "opened after 3 knocks\n"
    assert not any(step.id == "too_loud" for step in outcome.steps)


@pytest.mark.sandbox
def test_capabilities_make_a_report(run):
    """`error_report` collects and counts without a shell line."""
    (run.workspace / "app.log").write_text(LOG)
    outcome = run("error_report")
    assert outcome.ok, outcome.reason
    assert (run.workspace / "errors.txt").read_text() == "ERROR disk full\nERROR no route\n"
    assert (run.workspace / "summary.txt").read_text() == "2 lines with ERROR in app.log\n"


@pytest.mark.sandbox
def test_a_composition_takes_its_way_out(run):
    """`nightly` succeeds, and the second time, when the door stays shut, leaves an alarm."""
    assert run("nightly").ok
    assert not (run.workspace / "ALARM.txt").exists()
    outcome = run("nightly")
    assert outcome.ok, outcome.reason
    assert [step.big_step for step in outcome.steps][-1] == "alarm"
    assert (run.workspace / "ALARM.txt").exists()


@pytest.mark.sandbox
def test_every_file_is_an_item(run):
    """`each_file` counts each file, in the order of their names."""
    for name, lines in (("b.txt", 2), ("a b.txt", 1), ("c.txt", 3)):
        (run.workspace / name).write_text("x\n" * lines)
    outcome = run("each_file")
    assert outcome.ok, outcome.reason
    assert (run.workspace / "table.csv").read_text().split() == ["lines", "1", "2", "3"]
    assert [each.item for each in outcome.step("count").items] == ["a b.txt", "b.txt", "c.txt"]


@pytest.mark.sandbox
@pytest.mark.parametrize("approve", [True, False])
def test_a_person_is_asked_first(run, approve):
    """`ask_first` deletes after a yes, and leaves a note after a no."""
    (run.workspace / "old.tmp").write_text("")
    outcome = run("ask_first")
    assert outcome.state == "suspended"
    with Engine(run.config) as engine:
        (asked,) = engine.approvals(outcome.instance_id)
        assert asked.question == "Delete 1 temporary files?"
        engine.answer(outcome.instance_id, approve=approve)
        outcome = engine.run(outcome.instance_id)
    assert outcome.ok, outcome.reason
    assert (run.workspace / "old.tmp").exists() is not approve
    assert (run.workspace / "left.txt").exists() is not approve


@pytest.mark.sandbox
def test_a_gate_refuses_and_the_workflow_goes_on(run):
    """`permission_gate` never deletes, and writes down what was refused."""
    (run.workspace / "important").mkdir()
    outcome = run("permission_gate")
    assert outcome.ok, outcome.reason
    assert (run.workspace / "important").is_dir()
    assert "rm" in (run.workspace / "refused.txt").read_text()
    assert [step.id for step in outcome.steps] == ["look", "wipe", "report"]


@pytest.mark.sandbox
def test_a_schedule_begins_a_report(run):
    """`morning_report` is begun by its schedule, once for what is due."""
    with Engine(run.config) as engine:
        about = {"zone": "Europe/Berlin", "workspace": run.workspace}
        made = engine.clockwork.add("morning_report", "0 8 * * 1-5", **about)
        with engine.room.write() as connection:
            values = {"next_at": ledger_now(connection)}
            change(connection, schedules, {"name": made.name}, values)
        engine.serve(once=True)
        (firing,) = engine.clockwork.firings(made.name)
        assert engine.outcome(firing.instance_id).ok
    assert len(list((run.workspace / "reports").iterdir())) == 1


@pytest.mark.parametrize("file", TESTED, ids=lambda file: file.stem)
def test_the_tests_shipped_with_a_workflow_pass(tmp_path, file):
    """They are examples of how to write one."""
    config = load_config(tmp_path, env={})
    loaded = load(find_file(file.stem, config))
    for result in run_tests(loaded, read_tests(file), config):
        assert result.problems == ()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_an_instance_that_goes_on(tmp_path, number):
    """Exit 130 with a sentence, no traceback, nothing lost; `run --once` finishes it."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "w.yaml").write_text(
        "name: w\nsandbox: none\nsub_steps:\n"
        "  - {id: a, kind: shell, command: 'echo a >> log'}\n"
        "  - {id: b, kind: shell, command: 'echo b >> log; test -e go || sleep 60'}\n"
    )
    env = {**os.environ, "OPENRY_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "openry.orchestrator", "start", str(tmp_path / "w.yaml")]
    started = subprocess.Popen(
        [*command, "--wait", "--dir", str(workspace)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = workspace / "log"
    until = time.monotonic() + 60
    while not log.exists() or "b" not in log.read_text():
        assert time.monotonic() < until and started.poll() is None
        time.sleep(0.05)
    started.send_signal(number)
    out, err = started.communicate(timeout=250)
    assert (started.returncode, err) == (130, "")
    assert "goes on with" in out

    (workspace / "go").touch()
    again = [sys.executable, "-m", "openry.orchestrator", "run", "--once"]
    assert subprocess.run(again, env=env, timeout=250, check=False).returncode == 0
    assert log.read_text().split() == ["a", "b", "b"]


@pytest.mark.sandbox
def test_a_large_output_is_handled_and_the_attempt_goes_on(run):
    """`large_output`: one attempt, interrupted once, ends with the line of the batch."""
    outcome = run("large_output", lines=9000)
    assert outcome.ok, outcome.reason
    assert "batch K7 was rejected" in (run.workspace / "found.txt").read_text()
    assert outcome.step("find").attempts == 2  # runs: the interrupted one and the one that went on


HANDLERS = sorted((data_root() / "overflow_workflows").glob("*.yaml"))


@pytest.mark.parametrize("file", HANDLERS, ids=lambda file: file.stem)
def test_every_shipped_handler_is_clean(file):
    """They are copied and changed, so they are examples as well."""
    loaded = load(file)
    assert [*map(str, loaded.problems), *map(str, lint(loaded))] == []
