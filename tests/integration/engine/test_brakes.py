"""Cancel, timeouts and shutdown: everything that runs can be stopped, and says why it was."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

LONG = "sleep 3000 & echo started > started; sleep 3000"


def in_background(engine, instance_id):
    """Run an instance in a thread; its outcome is in the list it returns with the thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(engine.run(instance_id)))
    thread.start()
    return thread, found


def wait_for(condition):
    while not condition():
        time.sleep(0.01)


def test_a_cancelled_command_is_ended_with_its_whole_group(bench):
    """A shell step hears no soft brake, so it is ended at once, and nothing behind it runs."""
    instance_id = bench.submit(
        f"""
        name: long
        sub_steps:
          - {{id: a, kind: shell, command: '{LONG}'}}
          - {{id: b, kind: shell, command: 'touch b'}}
        """
    )
    thread, found = in_background(bench.engine, instance_id)
    wait_for((bench.workspace / "started").exists)

    assert bench.engine.cancel(instance_id)
    thread.join()

    (outcome,) = found
    assert (outcome.state, outcome.step("a").state) == ("cancelled", "cancelled")
    assert not (bench.workspace / "b").exists()
    assert not bench.engine.cancel(instance_id)


def test_a_queued_instance_is_cancelled_at_once(bench):
    """What has not begun never begins."""
    instance_id = bench.submit("{name: x, sub_steps: [{id: a, kind: shell, command: touch a}]}")
    assert bench.engine.cancel(instance_id)
    assert bench.engine.run(instance_id).state == "cancelled"
    assert not (bench.workspace / "a").exists()


def test_a_suspended_instance_can_be_cancelled(bench):
    """Nobody has to answer a question that matters no longer."""
    instance_id = bench.submit("{name: x, sub_steps: [{id: a, kind: approval}]}")
    assert bench.engine.run(instance_id).state == "suspended"
    bench.engine.cancel(instance_id)
    assert bench.engine.run(instance_id).state == "cancelled"


def test_an_agent_hears_the_soft_brake_and_may_report(bench):
    """After a cancel the next command answers with the brake text and runs nothing."""
    bench.engine.room.times = replace(bench.engine.room.times, grace_s=3000.0)
    commands = []

    def next_command(request):
        commands.append(request.messages[-1].text)
        if "User requested immediate stop" in commands[-1]:
            return json.dumps({"action": "report", "status": "cancelled"})
        time.sleep(0.05)
        return json.dumps({"action": "run", "command": f"echo {len(commands)} >> n"})

    bench.script(*[next_command] * 1000)
    instance_id = bench.submit(
        "{name: x, sub_steps: [{id: a, description: Count on, max_tool_calls: 0, "
        "agent: {max_turns: 990}}]}"
    )
    thread, found = in_background(bench.engine, instance_id)
    wait_for(lambda: (bench.workspace / "n").exists())
    bench.engine.cancel(instance_id)
    thread.join()

    assert found[0].state == "cancelled"
    assert "User requested immediate stop" in commands[-1]


def test_an_agent_that_ignores_the_brake_is_stopped_after_the_grace(bench):
    """The command under way is ended when the grace is over, and the step is cancelled."""
    run = json.dumps({"action": "run", "command": LONG})
    bench.script(run, run, run)
    instance_id = bench.submit("{name: x, sub_steps: [{id: a, description: Wait}]}")
    thread, found = in_background(bench.engine, instance_id)
    wait_for((bench.workspace / "started").exists)

    began = time.monotonic()
    bench.engine.cancel(instance_id)
    thread.join()

    assert time.monotonic() - began > 0.4
    assert found[0].state == "cancelled"


STUBBORN = (
    "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 77.{n} & sleep 77.{n}; sleep 77.{n}' &);"
    " (setsid sleep 77.{n} &); sleep 77.{n} & echo on > started; sleep 77.{n}; sleep 77.{n}"
)


def sleepers(number: int) -> list[str]:
    """Command lines of what still sleeps."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if line.startswith(f"sleep 77.{number}") and state not in "ZX":
            found.append(line)
    return found


@pytest.mark.parametrize("kind", ["agent", "shell", "capability"])
@pytest.mark.parametrize("backend", ["none", pytest.param("auto", marks=pytest.mark.sandbox)])
def test_the_hard_brake_ends_the_whole_tree(bench, kind, backend):
    """Grandchildren that ignore SIGTERM, in sessions of their own: SIGKILL after the grace."""
    number = {"agent": 1, "shell": 2, "capability": 3}[kind] * 10 + (backend == "none")
    (bench.workspace / "stubborn.sh").write_text(STUBBORN.format(n=number))
    bench.engine.room.config = replace(bench.engine.room.config, kill_after_s=0.5)
    bench.script(*[json.dumps({"action": "run", "command": "sh stubborn.sh"})] * 3)
    registry = bench.engine.room.registry
    if kind == "capability":
        registry._tools["count_lines"] = _stubborn(registry.entry("count_lines"))
    step = {
        "agent": "{id: a, description: Wait}",
        "shell": "{id: a, kind: shell, command: sh stubborn.sh}",
        "capability": "{id: a, kind: capability, capability: count_lines, args: {path: started}}",
    }[kind]
    text = f"{{name: x, sandbox: {{backend: {backend}}}, sub_steps: [{step}]}}"
    instance_id = bench.submit(text)
    thread, found = in_background(bench.engine, instance_id)
    wait_for((bench.workspace / "started").exists)
    assert sleepers(number)

    bench.engine.cancel(instance_id)
    thread.join()

    assert found[0].state == "cancelled"
    assert sleepers(number) == []
    (command,) = found[0].step("a").commands
    assert command.ending == "interrupted"


def _stubborn(entry):
    """The tool, as one that does not end."""
    tool = entry.tool.model_copy(update={"python": None, "command_template": ["sh", "stubborn.sh"]})
    return replace(entry, tool=tool)


def test_an_agent_step_has_its_clock(bench):
    """`timeout_seconds` of an agent step ends it with that reason, and it may be retried."""
    run = json.dumps({"action": "run", "command": "sleep 3000"})
    bench.script(run, json.dumps({"action": "report", "status": "completed"}))
    outcome = bench.run(
        "{name: x, sub_steps: [{id: a, description: Wait, timeout_seconds: 6, on_failure: retry}]}"
    )
    assert outcome.ok, outcome.reason
    assert outcome.step("a").attempts == 2


def test_the_big_steps_clock_is_not_reset_by_retries(bench):
    """`timeout_minutes` starts once; when it is over nothing is retried any more."""
    outcome = bench.run(
        """
        name: bounded
        timeout_minutes: 0.02
        max_retries: 50
        sub_steps:
          - {id: a, kind: shell, command: 'sleep 0.5; exit 1', on_failure: retry,
             max_sub_step_retries: 50}
        """
    )
    assert outcome.state == "failed"
    assert outcome.reason == "timeout: the big step's time is up"


def test_stopping_puts_the_step_back_and_another_engine_goes_on(bench, config):
    """A clean shutdown loses nothing: the step under way is queued again, uncounted."""
    instance_id = bench.submit(
        """
        name: long
        sub_steps:
          - {id: a, kind: shell, command: 'echo a >> log'}
          - {id: b, kind: shell, command: 'echo b >> log; test -e go || sleep 3000'}
          - {id: c, kind: shell, command: 'echo c >> log'}
        """
    )
    log = bench.workspace / "log"
    stop = lambda: log.exists() and "b" in log.read_text()  # noqa: E731
    outcome = bench.engine.run(instance_id, should_stop=stop)
    assert (outcome.state, outcome.step("b").state) == ("running", "queued")
    (bench.workspace / "go").touch()

    from openry.orchestrator.engine import Engine

    with Engine(config) as other:
        outcome = other.run(instance_id)

    assert outcome.ok, outcome.reason
    assert bench.read("log").split() == ["a", "b", "b", "c"]
    lost, again = (run for run in bench.runs(instance_id) if run.step_id == "b")
    assert (lost.status, lost.reason, again.requeue_count) == ("lost", "interrupted", 0)


def test_one_broken_step_does_not_delay_the_others(bench):
    """While one instance sleeps, ten others run to their end."""
    slow = bench.submit("{name: slow, sub_steps: [{id: a, kind: shell, command: sleep 3000}]}")
    quick = [
        bench.submit("{name: quick, sub_steps: [{id: a, kind: shell, command: 'true'}]}")
        for _ in range(10)
    ]
    done = lambda: all(bench.engine.outcome(each).final for each in quick)  # noqa: E731
    bench.engine.serve(should_stop=done)
    assert bench.engine.outcome(slow).state == "running"


def test_a_mistake_of_ours_keeps_its_traceback_and_hurts_nobody_else(bench, monkeypatch):
    """An exception in the engine reaches whoever runs that instance; others run on."""
    from openry.orchestrator import worker

    real = worker.chart

    def broken(standing, *rest):
        if standing.spec.name == "unlucky":
            raise ZeroDivisionError("ours")
        return real(standing, *rest)

    monkeypatch.setattr(worker, "chart", broken)
    text = "{{name: {}, sub_steps: [{{id: a, kind: shell, command: 'true'}}]}}"
    unlucky, lucky = (bench.submit(text.format(name)) for name in ("unlucky", "lucky"))
    with pytest.raises(ZeroDivisionError):
        bench.engine.run(unlucky)
    assert bench.engine.run(lucky).ok


def test_who_answers_after_a_cancel_comes_too_late(bench, monkeypatch):
    """Also between the step's end and its instance's: nothing waits any more, nothing breaks."""
    instance_id = bench.submit("{name: x, sub_steps: [{id: ask, kind: approval}]}")
    assert bench.engine.run(instance_id).state == "suspended"
    assert bench.engine.cancel(instance_id)
    with monkeypatch.context() as held:
        held.setattr(bench.engine.crew, "follow", lambda run: False)
        bench.engine.patrol.scan()
    assert bench.engine.answer(instance_id, approve=True) == 0
    assert bench.engine.run(instance_id).state == "cancelled"
