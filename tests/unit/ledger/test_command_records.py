"""Commands as the ledger tells them."""

from __future__ import annotations

import pytest

from openry.ledger import commands
from openry.ledger.db import Ledger
from openry.models import CommandResult, Ending, RunContext

OK = CommandResult(0, "fine", "", 0.02, stdout_bytes=4)
BAD = CommandResult(2, "", "oops", 0.02)
TIMEOUT = CommandResult(124, "", "", 2.0, Ending.TIMEOUT)


@pytest.fixture
def ledger(home):
    """A ledger in which two runs of one instance, and somebody by hand, did something."""
    home.add_run("run-1", step_id="count", status="in_progress")
    home.add_run("run-2", step_id="write", status="in_progress")
    for run_id, text, result in (
        ("run-1", "grep -c ERROR app.log", OK),
        ("manual", "ls", OK),
        ("run-2", "cat nothing", BAD),
        ("run-1", "sleep 9", TIMEOUT),
        ("run-2", "tail -f app.log", None),
    ):
        begun = home.fast.begin(
            RunContext(run_id=run_id, token="the token"), text, fingerprint=text[:3]
        )
        if result is not None:
            home.fast.finish(begun.command_id, result)
    with Ledger(home.path) as made, made.read() as connection:
        yield connection


def _texts(records) -> list[str]:
    return [record.command for record in records]


def test_a_run_s_commands_come_in_order(ledger):
    """What a run asked for, first to last, with how it ended."""
    first, second = commands.of_run(ledger, "run-1")

    assert (first.seq, first.command, first.ok) == (1, "grep -c ERROR app.log", True)
    assert (first.stdout, first.stdout_bytes, first.duration_ms) == ("fine", 4, 20)
    assert (second.seq, second.ending, second.exit_code, second.ok) == (2, "timeout", 124, False)


def test_a_step_and_an_instance_gather_their_runs(ledger):
    """A step has the commands of all its attempts, an instance those of all its steps."""
    assert _texts(commands.of_step(ledger, "i-1", "write")) == ["cat nothing", "tail -f app.log"]


def test_a_running_command_has_no_end_yet(ledger):
    """What has started is shown as such: no exit code, no duration, not ok."""
    running = commands.of_run(ledger, "run-2")[-1]

    assert (running.ending, running.exit_code, running.ended_at) == ("started", None, None)
    assert not running.ok


@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        ({"failed": True}, ["cat nothing", "sleep 9"]),
        ({"run_id": "manual"}, ["ls"]),
        ({"step_id": "write", "failed": True}, ["cat nothing"]),
        ({"fingerprint": "gre"}, ["grep -c ERROR app.log"]),
        ({"since": "2999-01-01T00:00:00.000Z"}, []),
        ({"workflow": "demo", "limit": 2}, ["sleep 9", "tail -f app.log"]),
    ],
)
def test_commands_are_found_by_what_is_known_of_them(ledger, asked, texts):
    """Everything asked for applies, and the newest are kept when there are too many."""
    assert _texts(commands.find(ledger, **asked)) == texts


def test_nothing_is_found_where_nothing_is(ledger):
    """An unknown run has no commands; that is no error."""
    assert commands.of_run(ledger, "nobody") == ()


def test_commands_of_many_runs_are_those_of_each(ledger):
    """Asked for together, as many as a statement cannot hold at once, each run has its own."""
    one_by_one = {run_id: commands.of_run(ledger, run_id) for run_id in ("run-1", "run-2")}
    strangers = [f"nobody-{number}" for number in range(1200)]

    found = commands.of_runs(ledger, ["run-1", *strangers, "run-2"])

    assert all(one_by_one.values())
    assert found == one_by_one
