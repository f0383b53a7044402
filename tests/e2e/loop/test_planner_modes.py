"""A planner behind a real endpoint, in every way it can answer badly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from loop.cli import app
from openry.orchestrator.loader import load

TASK = "Save the number of lines of app.log to n.txt"
WORKFLOW = """\
name: drafted
sub_steps:
  - id: count
    kind: shell
    command: wc -l < app.log > n.txt
    on_success: done
    on_failure: abort
"""
ASK = ("new", TASK, "--planner", "openai/stub", "--accept", "file_contains path=n.txt contains=2")


def plan(folder, *more):
    done = CliRunner().invoke(app, [*ASK, "--dir", str(folder), "--json", *more])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "text",
    [
        f"```yaml\n{WORKFLOW}```",
        f"Sure! Here is the workflow:\n\n{WORKFLOW}\nLet me know if you want changes.",
        WORKFLOW.replace("    kind", "   kind"),
    ],
    ids=["fence", "prose", "bad_indent"],
)
def test_a_wrong_wrapping_costs_no_second_call(home, folder, endpoint, text):
    """What rules can mend is mended: one call, a valid workflow, the result."""
    endpoint.text = text

    status, last = plan(folder)

    assert (status, last["outcome"]) == (0, "converged")
    assert endpoint.calls == 1
    assert (folder / "n.txt").read_text().strip() == "2"
    assert load((home / "workflows/save-the-number-of-lines-of.yaml").read_text()).ok


@pytest.mark.parametrize(
    "text",
    [
        '{"summary": "ok", "errors": ["e1", "e2",], }',
        "<modification>\n  change step a to run twice\n</modification>",
        "",
        None,
        "name: x\nsub_steps:\n  - {id: a, kind: shell, command: ls, on_success: nowhere}\n",
        "name: x\nsub_steps:\n  - {id: a, kind: shell, command: ls || true}\n",
    ],
    ids=["trailing_comma", "fragment", "empty", "null", "route_to_nowhere", "hides_failure"],
)
def test_what_is_no_workflow_is_never_saved(home, folder, endpoint, text):
    """Two calls, one sentence with the ways out, nothing on the shelf, the folder as it was."""
    endpoint.text = text

    status, last = plan(folder)

    assert (status, last["outcome"], last["stop"]) == (2, "unusable", "planner_unusable")
    assert "--planner local/smollm2" in last["sentence"]
    assert "\n" not in last["sentence"]
    assert endpoint.calls == 2
    assert not (home / "workflows").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["app.log", "names.txt"]


@pytest.mark.sandbox
def test_a_rate_limit_is_waited_for(home, folder, endpoint):
    """Two refusals and one answer are three requests, and one paid call."""
    endpoint.text, endpoint.refusals = WORKFLOW, 2

    status, last = plan(folder)

    assert (status, last["outcome"]) == (0, "converged")
    assert endpoint.calls == 3


def test_a_budget_stops_before_the_call(home, folder, endpoint):
    """A call that might not fit is not made; exit 3 says so."""
    endpoint.text = WORKFLOW

    status, last = plan(folder, "--budget-tokens", "100")

    assert (status, last["outcome"], last["stop"]) == (3, "budget", "budget_tokens")
    assert endpoint.calls == 0


@pytest.mark.sandbox
def test_a_killed_process_pays_its_planner_once(home, folder, endpoint):
    """kill -9 while the drafted step runs: the resumed session reads the draft it paid for."""
    endpoint.text = WORKFLOW.replace("command: ", "command: sleep 2 && ")
    child = [sys.executable, "-c", "from loop.cli import main; main()"]
    process = subprocess.Popen(
        [*child, *ASK, "--dir", str(folder), "--json"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    session = ""
    for line in process.stdout:
        event = json.loads(line)
        session = event.get("session", session)
        if event.get("event") == "step":
            os.killpg(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    assert endpoint.calls == 1

    done = subprocess.run([*child, "resume", session, "--json"], capture_output=True, text=True)

    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["outcome"] == "converged"
    assert (folder / "n.txt").read_text().strip() == "2"
    assert endpoint.calls == 1


def test_a_dead_endpoint_is_one_sentence(home, folder, monkeypatch):
    """Nobody answers: the ways out, no traceback, nothing left behind."""
    monkeypatch.setenv("OPENRY_API_BASE", "http://127.0.0.1:9/v1")

    status, last = plan(folder)

    assert (status, last["outcome"]) == (2, "unusable")
    assert "--planner" in last["sentence"]
