"""Agent programs that are not ours: started, held, listened to, and ended, for real."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from openry.ledger.fast import FastLedger
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.outcomes import InstanceOutcome
from openry.orchestrator.room import Times

QUICK = Times(interval_s=0.2, watch_s=0.02, beat_s=0.2, self_kill_s=2.0, lease_s=2.0, grace_s=1.0)
SANDBOXES = ["none", pytest.param("auto", marks=pytest.mark.sandbox)]


@pytest.fixture(params=SANDBOXES)
def agents(request, config, workspace):
    """An engine whose agents are in a sandbox, or by a person's word are not."""
    yield from _engine(replace(config, agent_sandbox=request.param), workspace)


@pytest.fixture
def free(config, workspace):
    """The same without sandbox: quicker, and its processes can be seen from here."""
    yield from _engine(replace(config, agent_sandbox="none"), workspace)


def _engine(config, workspace):
    with Engine(config, times=QUICK) as engine:

        def run(task: str, should_stop=None, **more) -> InstanceOutcome:
            step = {"id": "a", "kind": "agent", "description": task, **more}
            data = {"name": "t", "agent": {"adapter": "echo-agent"}, "sub_steps": [step]}
            loaded = load(json.dumps(data))
            assert not loaded.errors, loaded.errors
            return engine.run(engine.submit(loaded, workspace=workspace), should_stop=should_stop)

        def commands() -> tuple:
            steps = engine.outcome(engine.instances()[0].instance_id).steps
            return tuple(each for step in steps for each in step.commands)

        run.commands = commands
        run.engine, run.config, run.workspace = engine, config, workspace
        yield run


def _adapter(config, name: str, script: str) -> None:
    """An adapter of the person's own, whose program is a shell with that script."""
    folder = config.home / "agents"
    folder.mkdir()
    made = {"name": name, "description": "d", "program": "/bin/sh", "install": "none"}
    made |= {"command": ["-c", script], "needs": {"programs": ["sleep", "cat"]}, "linger_s": 0.2}
    (folder / f"{name}.yaml").write_text(json.dumps(made))


def _lines(*lines: str) -> str:
    return "\n".join(lines)


def _said(run, outcome: InstanceOutcome) -> list[str]:
    """What the agent printed."""
    run_id = outcome.step("a").run_id
    return (run.config.home / "runs" / run_id / "agent.stdout").read_text().splitlines()


# --- a step from end to end ---------------------------------------------------------------------


def test_a_step_is_done_through_the_door(agents):
    """Commands, a tool, a report with a payload: all by the thin client, all in the ledger."""
    outcome = agents(
        _lines(
            "run printf 'b\\na\\n' > names.txt",
            'call sort_lines {"path": "names.txt", "output": "sorted.txt"}',
            'report completed {"n": 2}',
        ),
        capabilities=["sort_lines"],
        payload_keys=["n"],
        validation=[{"type": "file_contains", "path": "sorted.txt", "regex": "a"}],
    )

    step = outcome.step("a")
    assert (outcome.state, step.state, dict(step.payload)) == ("completed", "done", {"n": 2})
    assert [each.ending for each in step.commands] == ["exited", "exited"]
    assert (agents.workspace / "sorted.txt").read_text() == "a\nb\n"


def test_an_agent_that_ends_without_a_word_has_failed(agents):
    """`no_status`, with its exit code and its last words."""
    outcome = agents(_lines("run true", "self echo 'out of credit' >&2", "exit 7"))

    assert outcome.step("a").reason == "no_status: the agent ended with exit 7: out of credit"


def test_a_report_is_validated_not_believed(agents):
    """It said completed; the rule says otherwise, and the next attempt is told so."""
    outcome = agents(
        _lines("run echo try >> tries.txt", "report completed"),
        max_sub_step_retries=1,
        validation=[{"type": "file_exists", "path": "made.txt"}],
    )

    assert outcome.state == "failed"
    assert (agents.workspace / "tries.txt").read_text() == "try\ntry\n"


def test_the_second_attempt_knows_what_failed(config, workspace):
    """What was not accepted and the last commands stand in its prompt, before the task."""
    _adapter(
        config, "asking", "cat > prompt-$$.txt; openry -c 'cat none'; openry --status completed"
    )
    for run in _engine(replace(config, agent_sandbox="none"), workspace):
        outcome = run(
            "make made.txt",
            agent={"adapter": "asking"},
            max_sub_step_retries=1,
            validation=[{"type": "file_exists", "path": "made.txt"}],
        )

    prompts = [place.read_text() for place in workspace.glob("prompt-*.txt")]
    second = max(prompts, key=len)
    assert (outcome.step("a").attempts, len(prompts)) == (2, 2)
    assert "What was done before was not accepted" in second and "cat none" in second
    assert second.rstrip().endswith("Task: make made.txt")


def test_who_waits_hears_the_verdict(agents):
    """`--wait` says what validation says, while the agent is still there to hear it."""
    outcome = agents(
        _lines("self openry --status completed --wait"),
        validation=[{"type": "file_exists", "path": "made.txt"}],
    )

    said = json.loads(_said(agents, outcome)[-1])
    assert (said["acknowledged"], said["verdict"]) == (True, "failed")
    assert "made.txt" in said["message"]
    assert outcome.state == "failed"


def test_a_second_final_status_changes_nothing(agents):
    """The first holds."""
    outcome = agents(_lines('report completed {"n": 1}', 'report failed {"n": 2}'))

    assert outcome.state == "completed"
    assert dict(outcome.step("a").payload) == {"n": 1}
    assert json.loads(_said(agents, outcome)[-1])["acknowledged"] is False


def test_a_flood_is_kept_within_bounds(free):
    """What it prints is no answer of ours: the end is kept, and no more."""
    outcome = free(_lines("self head -c 5000000 /dev/zero | tr '\\0' x", "report completed"))

    assert outcome.state == "completed"
    assert sum(map(len, _said(free, outcome))) < 5000


# --- what it is told and given --------------------------------------------------------------------


def test_nothing_of_ours_is_in_its_environment_but_its_run(agents, monkeypatch):
    """No ledger, no home, no key that its adapter does not name."""
    monkeypatch.setenv("SOME_API_KEY", "secret-value-1")
    monkeypatch.setenv("OPENRY_DB", "/nowhere/openry.db")
    outcome = agents(_lines("self export -p", "report completed"))

    said = "\n".join(_said(agents, outcome))
    names = {line.split("=")[0].split()[-1] for line in said.splitlines() if "export " in line}
    assert {name for name in names if name.startswith("OPENRY_")} == {
        "OPENRY_IDEMPOTENCY_KEY", "OPENRY_RUN_ID", "OPENRY_RUN_TOKEN", "OPENRY_SOCKET",
        "OPENRY_STEP_ID", "OPENRY_WORKFLOW", "OPENRY_WORKSPACE",
    }  # fmt: skip
    assert "secret-value-1" not in said and str(agents.config.home) not in said
    assert "***OPENRY_RUN_TOKEN***" in said


def test_its_path_has_the_hand_the_tools_and_what_it_needs(agents):
    """Nothing else is found by its name; a tool is a command of its own."""
    (agents.workspace / "a.txt").write_text("1\n2\n")
    outcome = agents(
        _lines(
            "self for f in ${PATH}/*; do echo ${f##*/}; done",
            """self count_lines '{"path": "a.txt"}'""",
            "self grep x a.txt",
            "report completed",
        ),
        capabilities=["count_lines"],
    )

    said = _said(agents, outcome)
    assert said[:5] == ["cat", "count_lines", "openry", "sh", "sleep"]
    assert json.loads(json.loads(said[5])["stdout"])["data"] == 2
    assert outcome.state == "completed"


@pytest.mark.sandbox
def test_the_sandbox_holds_what_the_path_only_steers(config, workspace):
    """Past the hand: no ledger, no home, no network, nothing outside of the workspace."""
    secret = config.home.parent / "secret.txt"
    secret.write_text("not for agents")
    for run in _engine(replace(config, agent_sandbox="auto"), workspace):
        outcome = run(
            _lines(
                f"self /bin/cat {secret} {config.home}/openry.db {config.home}/operator.token",
                f"self /bin/ls {config.home}",
                f"self echo x > {config.home.parent}/written",
                "self /usr/bin/env -u OPENRY_SOCKET -u OPENRY_RUN_TOKEN -u OPENRY_RUN_ID"
                f" OPENRY_HOME={config.home} openry -c 'touch by_hand'",
                "self /bin/sh -c 'echo x > /dev/tcp/127.0.0.1/22' || echo closed",
                "report completed",
            )
        )
        said = "\n".join(_said(run, outcome))

    assert outcome.state == "completed"
    assert "not for agents" not in said and "SQLite" not in said
    assert not (config.home.parent / "written").exists()
    assert not (workspace / "by_hand").exists()
    assert "this is inside a run's sandbox" in said
    assert [each.ending for each in outcome.step("a").commands] == []


@pytest.mark.sandbox
def test_where_no_sandbox_can_be_built_no_agent_is_started(config, workspace, monkeypatch):
    """125 and what to install; unless a person set `agent_sandbox: none`."""
    monkeypatch.setenv("PATH", "/nonexistent")
    for run in _engine(replace(config, agent_sandbox="bubblewrap"), workspace):
        outcome = run(_lines("self echo x > /dev/null", "report completed"))

    reason = outcome.step("a").reason
    assert reason.startswith("125: sandbox unavailable: bubblewrap is not installed")


def test_an_adapter_that_is_not_there_is_said(free, tmp_path):
    """Its name with the nearest one; its program with how to get it."""
    unknown = free(_lines("report completed"), agent={"adapter": "echo-agnet"})
    folder = free.config.home / "agents"
    folder.mkdir()
    (folder / "mine.yaml").write_text(
        "{name: mine, description: d, program: no-such-program, install: 'get it there'}"
    )
    missing = free(_lines("report completed"), agent={"adapter": "mine"})

    assert "did you mean `echo-agent`?" in unknown.step("a").reason
    assert missing.step("a").reason == (
        "agent `mine`: `no-such-program` is not installed; get it there"
    )


def test_a_name_alone_may_be_an_adapters(free):
    """`agent: echo-agent`, as older files say it."""
    assert free(_lines("report completed"), agent="echo-agent").state == "completed"


def test_a_drafted_workflow_cannot_bring_an_agent(free):
    """Only a person names a program that reaches out."""
    loaded = load(
        "{name: t, agent: {adapter: echo-agent},"
        " sub_steps: [{id: a, kind: agent, description: report completed}]}"
    )
    instance = free.engine.submit(loaded, workspace=free.workspace, drafted=True)

    reason = free.engine.run(instance).step("a").reason
    assert reason == "a drafted workflow cannot start `echo-agent`; a person has to name it"


# --- brakes and ends ----------------------------------------------------------------------------


def _alive(mark: str) -> bool:
    return any(
        mark.encode() in _read(f"/proc/{pid}/cmdline")
        for pid in (place.name for place in Path("/proc").glob("[0-9]*"))
    )


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _until(true, seconds: float = 30.0) -> bool:
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_the_limit_brakes_softly_and_the_agent_may_say_so(agents):
    """The call after the last reads the brake; the step fails with that reason."""
    outcome = agents(
        _lines("run true", "run true", "run true", "run true", "report completed"),
        max_tool_calls=2,
    )

    step = outcome.step("a")
    assert (outcome.state, step.reason.split(":")[0]) == ("failed", "max_tool_calls")
    assert [each.ending for each in step.commands] == ["exited", "exited", "braked"]


def test_an_agent_that_ignores_the_brake_is_ended_with_all_it_started(free):
    """Soft brake, grace, SIGTERM, then SIGKILL, also to grandchildren that ignore it."""
    room = free.engine.room
    room.times = replace(QUICK, grace_s=3000.0)

    def told() -> bool:
        """Its grace is over once it was told to stop."""
        if any(each.ending == "braked" for each in free.commands()):
            room.times = QUICK
        return False

    outcome = free(
        _lines(
            "ignore",
            "self trap '' TERM INT",
            "self (trap '' TERM; sleep 300.61) & sleep 0.3",
            "run echo started",
            'self while :; do n=$((n+1)); openry -c "echo still here $n" > last; sleep 0.1; done',
        ),
        should_stop=told,
        timeout_seconds=1,
    )

    assert (outcome.state, outcome.step("a").reason.split(":")[0]) == ("failed", "timeout")
    assert not _alive("sleep\x00300.61")
    braked = [each.ending for each in outcome.step("a").commands].count("braked")
    assert braked >= 1, "it was never told to stop before it was ended"


def test_a_cancelled_agent_has_its_grace(free):
    """It hears the brake, reports `cancelled` and goes by itself."""
    free.engine.room.times = replace(QUICK, grace_s=3000.0)
    loaded = load(
        json.dumps(
            {
                "name": "t",
                "agent": {"adapter": "echo-agent"},
                "sub_steps": [
                    {
                        "id": "a",
                        "kind": "agent",
                        "max_tool_calls": 0,
                        "description": "\n".join(["run touch begun", *["run sleep 0.1"] * 300]),
                    }
                ],
            }
        )
    )
    engine, workspace = free.engine, free.workspace
    instance = engine.submit(loaded, workspace=workspace)

    def stop() -> bool:
        if (workspace / "begun").exists():
            engine.cancel(instance)
        return False

    outcome = engine.run(instance, should_stop=stop)

    assert outcome.state == "cancelled"
    assert outcome.step("a").commands[-1].ending == "braked"


def test_an_agent_that_does_not_go_after_its_report_is_ended(config, workspace):
    """So long it may tidy up; what it reported holds."""
    _adapter(config, "lingering", "openry --status completed; sleep 300.62")
    for run in _engine(replace(config, agent_sandbox="none"), workspace):
        outcome = run("anything", agent={"adapter": "lingering"})

    assert outcome.state == "completed"
    assert not _alive("sleep\x00300.62")


ENGINE = """
import sys
from pathlib import Path
from openry.config import load_config
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
config = load_config(Path(sys.argv[1]), env={})
with Engine(config) as engine:
    engine.run(engine.submit(load(Path(sys.argv[2])), workspace=Path(sys.argv[3])))
"""


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_killed_engine_leaves_no_agent_behind(config, workspace, tmp_path, sandbox):
    """kill -9: agent and command are gone, and the next engine does the step again."""
    (config.home / "config.yaml").write_text(f"sandbox: none\nagent_sandbox: {sandbox}\n")
    flow = tmp_path / "t.yaml"
    task = "self test -e begun || sleep 300.63\nrun touch begun; sleep 300.64\nreport completed"
    flow.write_text(
        json.dumps(
            {
                "name": "t",
                "agent": {"adapter": "echo-agent"},
                "sub_steps": [{"id": "a", "kind": "agent", "description": task}],
            }
        )
    )
    argv = [sys.executable, "-c", ENGINE, str(config.home), str(flow), str(workspace)]
    first = subprocess.Popen(argv)
    assert _until(lambda: _alive("sleep\x00300.63"))

    first.kill()
    first.wait()

    assert _until(lambda: not _alive("sleep\x00300.63")), "the agent outlived its engine"
    (workspace / "begun").touch()
    with FastLedger(config.ledger) as ledger:
        ledger.run("nobody")
    later = replace(config, agent_sandbox=sandbox, timeout_default_s=1.0)
    with Engine(later, times=QUICK) as engine:
        instance = engine.instances()[0].instance_id
        outcome = engine.run(instance)
    assert outcome.state == "completed"
    assert not _alive("sleep\x00300.64")


def test_an_engine_that_shuts_down_takes_its_agent_along(free):
    """The step is queued again, nothing of it runs on, and the next engine ends it."""
    loaded = load(
        "{name: t, agent: {adapter: echo-agent}, sub_steps: [{id: a, kind: agent, description:"
        ' "self test -e begun || sleep 300.65\\nrun true\\nreport completed"}]}'
    )
    engine, workspace = free.engine, free.workspace
    instance = engine.submit(loaded, workspace=workspace)

    stopped = engine.run(instance, should_stop=lambda: _alive("sleep\x00300.65"))

    assert not stopped.final
    assert not _alive("sleep\x00300.65")
    (workspace / "begun").touch()
    assert engine.run(instance).state == "completed"
