"""Below a running step nobody acts by hand, whatever the environment says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hand_helpers import PROGRAM, OpenRY
from run_helpers import add_run, sql

from openry.ledger.process import this_process

BIN = Path(sys.executable).parent
OTHERS = (
    (f"{BIN}/openry", "config"),
    (f"{BIN}/openry", "log"),
    (f"{BIN}/openry-orchestrator", "list"),
    (f"{BIN}/openry-loop", "list"),
)
TEXT = """\
name: nested
workspace: shared
sandbox: none
command_policy: permissive
sub_steps:
  - id: a
    kind: shell
    command: |
      env -u OPENRY_IDEMPOTENCY_KEY OPENRY_HOME={home} {program} -c 'touch by_hand' > said.json
      env -i PATH="$PATH" OPENRY_HOME={home} {program} -c 'touch by_hand' >> said.json
      export OPENRY_HOME={home}
      env -u OPENRY_IDEMPOTENCY_KEY {orchestrator} list > list.txt 2>&1 || echo $? >> list.txt
      true
"""


def _say(*argv: str, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, env=env, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_hand_below_a_run_is_refused(openry: OpenRY):
    """The run's process is above ours, by number and start time: 126, and a row that says so."""
    me = this_process()
    add_run(openry, pid=me.pid, pid_started_at=me.started_at, host=me.host)

    answer = openry("-c", "touch made")

    assert answer["exit_code"] == 126
    assert "this is below run `run-1`" in answer["stderr"]
    assert not (openry.cwd / "made").exists()
    assert [row["ending"] for row in openry.rows()] == ["refused"]
    for argv in OTHERS:
        done = _say(*argv, env=openry.env, cwd=openry.cwd)
        assert (done.returncode, done.stdout) == (2, ""), argv
        assert "is not available inside a run: this is below run `run-1`" in done.stderr


@pytest.mark.parametrize("columns", [{"pid_started_at": "another"}, {"status": "done"}, {"pid": 1}])
def test_who_is_not_below_is_let_be(openry: OpenRY, columns: dict[str, object]):
    """A number given again, a run that is over, a process that is not above us."""
    me = this_process()
    add_run(openry, pid=me.pid, pid_started_at=me.started_at, host=me.host)
    for name, value in columns.items():
        sql(openry, f"UPDATE task_state SET {name} = ?", value)
    if "status" in columns:
        sql(openry, "UPDATE task_state SET settled = 1, ended_at = created_at")

    assert openry("-c", "echo fine")["stdout"] == "fine\n"


@pytest.mark.parametrize("mark", ["OPENRY_IDEMPOTENCY_KEY=i-1", "OPENRY_RUN_TOKEN=x"])
def test_unsetting_a_variable_does_not_lead_out(openry: OpenRY, mark: str):
    """Who started us still shows what it was started with, with or without a ledger."""
    inner = f"env -u {mark.partition('=')[0]} OPENRY_HOME={openry.home}"
    for argv, status, said in (
        ((PROGRAM, "-c", "'touch made'"), 0, "below a running step"),
        *((argv, 2, "is not available inside a run") for argv in OTHERS),
    ):
        line = f"{inner} {' '.join(argv)}; exit $?"
        done = _say("env", mark, "sh", "-c", line, env=openry.env, cwd=openry.cwd)
        assert done.returncode == status, (argv, done)
        assert said in done.stdout + done.stderr
    assert not (openry.cwd / "made").exists()
    assert not openry.home.exists()


def test_a_sandbox_cannot_be_talked_away(make_hand, sandbox: str):
    """Inside, without a door, nothing of openry's does anything."""
    from openry.models import Command

    hand = make_hand(sandbox)
    for argv in ((PROGRAM, "-c", "'touch made'"), (PROGRAM, "--status", "completed"), *OTHERS[:3]):
        said = hand.forward(Command(text=f"env -i HOME=/tmp {' '.join(argv)} 2>&1"))
        assert "this is inside a run's sandbox" in said.stdout, argv
    assert not (Path(hand.context.workspace) / "made").exists()


def test_a_run_without_its_socket_has_no_hand(openry: OpenRY):
    """Its id and even its token are not enough: policy and sandbox are its worker's."""
    from run_helpers import TOKEN

    add_run(openry)
    env = {"OPENRY_RUN_ID": "run-1", "OPENRY_RUN_TOKEN": TOKEN}

    with_token = openry("-c", "touch made", env=env)
    without = openry("-c", "touch made", env={"OPENRY_RUN_ID": "run-1"})
    call = openry("--call", "count_lines", "--args", '{"path": "x"}', env=env)
    said = json.loads(openry.raw("--status", "completed", env=env).stdout)

    assert with_token["exit_code"] == without["exit_code"] == call["exit_code"] == 126
    assert "OPENRY_SOCKET does not name that" in with_token["stderr"]
    assert "OPENRY_RUN_TOKEN is missing" in without["stderr"]
    assert said["acknowledged"] is False
    assert not (openry.cwd / "made").exists()
    assert sql(openry, "SELECT status, tool_calls FROM task_state") == [("in_progress", 2)]


def test_commands_by_hand_may_start_everything(openry: OpenRY):
    """A manual command is below no run: it may call openry, and start the loop and workflows."""
    for line in (
        f"{PROGRAM} -c true",
        f"{BIN}/openry-loop list",
        f"{BIN}/openry-orchestrator list",
    ):
        answer = openry("-c", f"OPENRY_HOME={openry.home} {line}")
        assert answer["exit_code"] == 0, answer
    nested = json.loads(openry("-c", f"OPENRY_HOME={openry.home} {PROGRAM} -c 'echo x'")["stdout"])
    assert nested["stdout"] == "x\n"


def test_a_step_started_by_hand_is_a_run_like_any_other(openry: OpenRY):
    """Manual command, engine in it, step in that: the step's own calls by hand are refused."""
    orchestrator = f"{BIN}/openry-orchestrator"
    text = TEXT.format(home=openry.home, program=PROGRAM, orchestrator=orchestrator)
    (openry.cwd / "nested.yaml").write_text(text)

    start = f"OPENRY_HOME={openry.home} {orchestrator} start nested.yaml --wait"
    answer = openry("-c", start)

    assert answer["exit_code"] == 0, answer
    said = [json.loads(line) for line in (openry.cwd / "said.json").read_text().splitlines()]
    assert [one["exit_code"] for one in said] == [126, 126]
    assert "this is below run `" in said[1]["stderr"] or "below a running" in said[1]["stderr"]
    assert (openry.cwd / "list.txt").read_text().endswith("\n2\n")
    assert not (openry.cwd / "by_hand").exists()


@pytest.mark.sandbox
def test_in_a_sandbox_each_program_says_that_it_is_not_for_there(openry: OpenRY):
    """One sentence and exit status 2, for the loop and the orchestrator too."""
    lines = [f"{' '.join(argv)} >> said.txt 2>&1; echo $? >> codes.txt" for argv in OTHERS]
    steps = {"name": "inside", "workspace": "shared", "command_policy": "permissive"}
    step = {"id": "a", "kind": "shell", "command": "\n".join(lines)}
    (openry.cwd / "inside.yaml").write_text(json.dumps({**steps, "sub_steps": [step]}))

    start = (f"{BIN}/openry-orchestrator", "start", "inside.yaml", "--wait")
    done = _say(*start, env=openry.env, cwd=openry.cwd)

    assert done.returncode == 0, done.stdout + done.stderr
    assert (openry.cwd / "codes.txt").read_text().split() == ["2"] * len(OTHERS)
    said = (openry.cwd / "said.txt").read_text()
    assert said.count("is not available inside a run") == len(OTHERS)
    assert "Traceback" not in said
