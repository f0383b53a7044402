"""Inside a run, over its socket: reports, brakes, limits, the step's workspace."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hand_helpers import OpenRY, need_bubblewrap
from run_helpers import sql, worker

AT = "2026-03-01T09:00:00.000Z"


@pytest.fixture
def run(openry: OpenRY) -> Iterator[OpenRY]:
    """`openry` as the agent of the run `run-1` in progress, whose workspace is its folder."""
    with worker(openry, sandbox="none"):
        yield openry


def _set(openry: OpenRY, **columns: object) -> None:
    for name, value in columns.items():
        sql(openry, f"UPDATE task_state SET {name} = ?", value)


def _report(openry: OpenRY, status: str, *more: str, stdin: bytes = b"") -> dict:
    done = openry.raw("--status", status, *more, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout)


def test_a_command_belongs_to_its_run(run: OpenRY):
    """Row and workspace are the run's, wherever `openry` is called."""
    run.cwd, here = Path("/"), run.cwd

    answer = run("-c", "pwd; echo $OPENRY_WORKSPACE $OPENRY_RUN_ID")

    assert answer["stdout"] == f"{here}\n{here}\n"
    row = run.rows()[-1]
    assert (row["run_id"], row["workflow"], row["step_id"]) == ("run-1", "demo", "step")
    assert (row["instance_id"], row["seq"]) == ("i-1", 1)


def test_a_report_is_acknowledged_again_and_never_changed(run: OpenRY):
    """Idempotent; a different final status after a final one is refused."""
    first = _report(run, "completed", "--payload", '{"n": 3}')
    again = _report(run, "completed", "--payload", '{"n": 3}')
    other = _report(run, "failed")

    assert list(first) == ["status", "payload", "acknowledged"]
    assert first == again == {"status": "completed", "payload": {"n": 3}, "acknowledged": True}
    assert other["acknowledged"] is False
    assert "completed" in other["message"]


def test_a_payload_may_come_from_a_file_or_standard_input(run: OpenRY):
    """Also one longer than an argument may be (B69)."""
    text = json.dumps({"a": "y" * 200_000})
    (run.cwd / "payload.json").write_text(text)

    assert _report(run, "in_progress", "--payload", "@payload.json")["acknowledged"]
    assert _report(run, "completed", "--payload", "-", stdin=text.encode())["acknowledged"]
    stored = sql(run, "SELECT payload FROM task_state")[0][0]
    assert json.loads(stored) == {"a": "y" * 200_000}


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ('{"k": "\\ud83d"}', "the payload holds"),
        ('{"k": NaN}', "the payload holds"),
        ("[1]", "must be a JSON object"),
        ("{", "not JSON"),
        ('{"a": 1, "a": 2}', "key `a` stands twice"),
        ("@nothing.json", "No such file"),
    ],
)
def test_a_payload_that_is_no_payload_is_refused_at_the_door(run: OpenRY, payload: str, said: str):
    """Never stored (B27); status 2, one sentence."""
    done = run.raw("--status", "completed", "--payload", payload)

    assert done.returncode == 2
    assert said in json.loads(done.stdout)["stderr"]
    assert sql(run, "SELECT status FROM task_state") == [("in_progress",)]


def test_a_payload_larger_than_a_mebibyte_is_refused(run: OpenRY):
    """Put it in a file, and give its path."""
    text = json.dumps({"a": "y" * 1_100_000}).encode()

    done = run.raw("--status", "completed", "--payload", "-", stdin=text)

    assert done.returncode == 2
    assert "larger than 1 MiB" in json.loads(done.stdout)["stderr"]


def test_an_unknown_status_names_the_known_ones(run: OpenRY):
    """Nothing is recorded."""
    done = run.raw("--status", "finished")

    assert done.returncode == 2
    assert "completed" in json.loads(done.stdout)["stderr"]


def test_waiting_gives_the_verdict(run: OpenRY):
    """`--wait` blocks until validation has spoken."""

    def judge() -> None:
        while sql(run, "SELECT status FROM task_state") == [("in_progress",)]:
            time.sleep(0.02)
        _set(run, status="failed", validation_status="failed", reason="out.txt is missing",
             ended_at=AT)  # fmt: skip

    judging = threading.Thread(target=judge)
    judging.start()
    answer = _report(run, "completed", "--wait")
    judging.join()

    assert (answer["verdict"], answer["message"]) == ("failed", "out.txt is missing")


@pytest.mark.parametrize(
    "columns", [{"cancel_requested": 1}, {"brake": "timeout"}, {"status": "completed"}]
)
def test_a_braked_run_starts_nothing_more(run: OpenRY, columns: dict):
    """Exit code 0 and, as the first line, exactly the brake's text."""
    _set(run, **columns, **({"ended_at": AT} if "status" in columns else {}))

    answer = run("-c", "touch made")

    assert answer["exit_code"] == 0
    assert answer["stdout"].splitlines()[0] == "User requested immediate stop"
    assert answer["stderr"] == ""
    assert not (run.cwd / "made").exists()
    assert run.rows()[-1]["ending"] == "braked"


def test_a_limit_of_three_lets_ten_calls_run_three(run: OpenRY):
    """Exactly, however parallel they are."""
    _set(run, max_tool_calls=3)
    answers: list[dict] = []
    threads = [
        threading.Thread(target=lambda: answers.append(run("-c", "echo ran"))) for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    ran = [answer for answer in answers if answer["stdout"] == "ran\n"]
    assert len(ran) == 3
    assert sum("immediate stop" in answer["stdout"] for answer in answers) == 7


def test_a_run_that_nobody_knows_may_do_nothing(openry: OpenRY):
    """126 and what to do about it."""
    answer = openry("-c", "touch made", env={"OPENRY_RUN_ID": "run-9"})

    assert answer["exit_code"] == 126
    assert "run-9" in answer["stderr"]
    assert not (openry.cwd / "made").exists()


@pytest.mark.sandbox
def test_the_sandbox_of_a_run_is_its_workers(openry: OpenRY, tmp_path: Path):
    """Its commands see the workspace and no more."""
    need_bubblewrap()
    with worker(openry, sandbox="auto"):
        answer = openry("-c", f"echo x > made; ls {tmp_path}")

    assert (openry.cwd / "made").exists()
    assert answer["stdout"] == "cwd\n"
