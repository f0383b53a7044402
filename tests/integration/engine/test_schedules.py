"""Schedules: each due time begins one instance, whoever looks, and what is wrong is noted."""

from __future__ import annotations

import time

import pytest

from openry.errors import NotFoundError, UsageError
from openry.ledger.change import change
from openry.ledger.journal import later, ledger_now
from openry.ledger.schema import schedules
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load

MARK = "name: mark\nworkspace: shared\nsub_steps:\n  - {id: a, kind: shell, command: 'echo {{ inputs.me }} >> log'}\ninputs: {me: {default: x}}\n"  # fmt: skip  # noqa: E501


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mark.yaml"
    path.write_text(MARK)
    return path


def due(bench, name, seconds_ago):
    """Make it due so long ago, as it would be after an engine that was away."""
    with bench.engine.room.write() as connection:
        at = later(ledger_now(connection), -seconds_ago)
        assert change(connection, schedules, {"name": name}, {"next_at": at}) == 1


def far_off(bench):
    """A cron line that is due once an hour, and not while a test runs."""
    with bench.engine.ledger.read() as connection:
        minute = int(ledger_now(connection)[14:16])
    return f"{(minute + 30) % 60} * * * *"


def add(bench, file, **more):
    more = {"zone": "UTC", "workspace": bench.workspace, **more}
    return bench.engine.clockwork.add(str(file), more.pop("cron", far_off(bench)), **more)


def test_what_is_due_begins_once_and_runs(bench, file):
    """It runs with its inputs in its folder; the next time is in the future."""
    made = add(bench, file, inputs={"me": "ann"}, name="every hour")
    due(bench, made.name, 1)
    bench.engine.serve(once=True)
    assert bench.read("log") == "ann\n"
    (schedule,) = bench.engine.clockwork.all()
    (firing,) = bench.engine.clockwork.firings(made.name)
    assert firing.outcome == "started"
    assert bench.engine.outcome(firing.instance_id).ok
    assert schedule.next_at > firing.due_at


def test_two_engines_begin_it_once(bench, config, file):
    """Both look at the same due time; one instance is there."""
    add(bench, file)
    due(bench, "mark", 1)
    before = bench.engine.clockwork.all()
    now = later(before[0].next_at, 1)
    with Engine(config) as other:
        bench.engine.clockwork._fire(before[0], now)
        other.clockwork._fire(before[0], now)
    assert len(bench.engine.instances()) == 1
    assert [each.outcome for each in bench.engine.clockwork.firings("mark")] == ["started"]


@pytest.mark.parametrize(
    ("catch_up", "started", "missed"), [("none", 0, 3), ("last", 1, 2), ("all", 3, 0)]
)
def test_missed_times_are_made_up_for_as_wanted(bench, file, catch_up, started, missed):
    """Each due time has its note, whatever came of it."""
    add(bench, file, catch_up=catch_up, overlap="queue")
    with bench.engine.ledger.read() as connection:
        seconds = int(ledger_now(connection)[17:19])
    due(bench, "mark", 30 * 60 + seconds + 2 * 3600)
    bench.engine.serve(once=True)
    outcomes = [firing.outcome for firing in bench.engine.clockwork.firings("mark")]
    assert (outcomes.count("started"), outcomes.count("missed")) == (started, missed)
    log = bench.workspace / "log"
    assert (log.read_text().split() if log.exists() else []) == ["x"] * started


@pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
def test_what_follows_while_the_last_one_runs(bench, file, overlap):
    """`skip` leaves it out, `queue` waits for it, `cancel` ends it."""
    file.write_text(MARK.replace("echo {{", "test -e go || sleep 3000; echo {{"))
    add(bench, file, overlap=overlap)
    log = bench.workspace / "log"
    due(bench, "mark", 1)
    bench.engine.clockwork.tick()
    (first,) = (each.instance_id for each in bench.engine.instances())
    bench.engine.serve(should_stop=lambda: bench.engine.outcome(first).steps[0].state != "pending")
    due(bench, "mark", 1)
    bench.engine.clockwork.tick()
    (bench.workspace / "go").touch()
    bench.engine.serve(once=True)
    states = [each.state for each in reversed(bench.engine.instances())]
    expected = {
        "skip": ["completed"],
        "queue": ["completed", "completed"],
        "cancel": ["cancelled", "completed"],
    }
    assert states == expected[overlap]
    assert log.read_text().split() == ["x"] * states.count("completed")


def test_a_file_that_broke_meanwhile_is_noted_and_hurts_nobody(bench, file):
    """The due time is over, with the reason; other schedules go on."""
    add(bench, file, name="broken")
    other = file.with_name("other.yaml")
    other.write_text(MARK.replace("mark", "other"))
    add(bench, other, name="fine")
    file.write_text("name: mark\nsub_steps: 5\n")
    due(bench, "broken", 1), due(bench, "fine", 1)
    bench.engine.serve(once=True)
    (firing,) = bench.engine.clockwork.firings("broken")
    assert firing.outcome == "failed" and "mark.yaml:2" in firing.reason
    assert bench.read("log") == "x\n"


def test_mistakes_are_told_when_it_is_added(bench, file):
    """The cron line, the zone, the inputs, the name: each is one sentence, and nothing is kept."""
    for more, said in (
        ({"cron": "99 * * * *"}, "is no cron line"),
        ({"zone": "Mars/Base"}, "no time zone"),
        ({"inputs": {"you": "1"}}, "no input `you`"),
        ({"workspace": file}, "is not a folder"),
    ):
        with pytest.raises(UsageError, match=said):
            add(bench, file, **more)
    with pytest.raises(NotFoundError, match=r"mark\.yaml"):
        add(bench, file.with_name("marc.yaml"))
    assert bench.engine.clockwork.all() == ()
    add(bench, file)
    with pytest.raises(UsageError, match="there is a schedule `mark` already"):
        add(bench, file)


def test_a_removed_schedule_begins_nothing(bench, file):
    """And an unknown one is named with the nearest."""
    add(bench, file)
    with pytest.raises(NotFoundError, match="did you mean `mark`"):
        bench.engine.clockwork.remove("marc")
    due(bench, "mark", 1)
    bench.engine.clockwork.remove("mark")
    bench.engine.serve(once=True)
    assert bench.engine.instances() == ()


def test_waiting_for_others_costs_no_scans(bench, file, monkeypatch):
    """An instance that must wait for others is looked at, not tried again and again."""
    (file.parent / "one.yaml").write_text(
        "name: one\nconcurrency: {max_parallel_instances: 1}\nbig_steps: [slow]\n"
    )
    (file.parent / "slow.yaml").write_text(
        "name: slow\nsub_steps: [{id: a, kind: shell, command: 'echo in; sleep 1; echo out'}]\n"
    )
    loaded = load(file.parent / "one.yaml")
    for _ in range(2):
        bench.engine.submit(loaded, workspace=bench.workspace)
    tries, scans = [], []
    patrol, worker = bench.engine.patrol, bench.engine.crew.worker
    scan, start = patrol.scan, worker.start
    monkeypatch.setattr(patrol, "scan", lambda *only: scans.append(1) or scan(*only))
    monkeypatch.setattr(worker, "start", lambda *what: tries.append(what[0]) or start(*what))
    began = time.monotonic()

    bench.engine.serve(once=True)

    assert {each.state for each in bench.engine.instances()} == {"completed"}
    assert len(tries) <= 3, "both at first, and whoever had to wait once more"
    assert len(scans) < 50 + 20 * (time.monotonic() - began)
