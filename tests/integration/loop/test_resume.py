"""A session that is killed at any record ends, once resumed, as if it had not been."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loop.journal import Journal
from loop.kit import Kit
from loop.order import Order
from loop.session import Session
from loop.start import history, resume
from openry.config import load_config
from openry.errors import UsageError
from openry.ledger.process import process_id
from tests.integration.loop.conftest import Scripts, fill, tree

FAULTY = """\
name: two-faults
sub_steps:
  - id: pick
    kind: capability
    capability: csv_column
    args:
      path: sales.csv
      column: amuont
      output: amounts.txt

  - id: count
    kind: shell
    command: grep -c ERROR ap.log > count.txt
"""
ACCEPT = (
    {"type": "file_contains", "path": "amounts.txt", "contains": "200"},
    {"type": "file_contains", "path": "count.txt", "regex": r"\A2\s*\Z"},
)
TASK = "Save the amount column of sales.csv to amounts.txt and count the ERROR lines into count.txt"
#: Records that a whole session of this order writes.
RECORDS = 17


class Killed(BaseException):
    """What a killed process does not get to handle; here it only ends the session."""


class Dying(Journal):
    """A journal that dies at its `at`-th record, before or after it is written."""

    at, before, written = 0, True, 0

    def _write(self, name, *args, **values):
        kind = type(self)
        kind.written += 1
        if kind.written == kind.at and kind.before:
            raise Killed
        getattr(super(), name)(*args, **values)
        if kind.written == kind.at:
            raise Killed

    def note(self, **values):
        self._write("note", **values)

    def attempt(self, attempt):
        self._write("attempt", attempt)

    def round(self, round_, **values):
        self._write("round", round_, **values)

    def judged(self, attempt, verdict, **values):
        self._write("judged", attempt, verdict, **values)

    def certified(self, number, gates, runs):
        self._write("certified", number, gates, runs)

    def end(self, state, **values):
        self._write("end", state, **values)


def dying(at: int, *, before: bool) -> type[Dying]:
    return type("DyingAt", (Dying,), {"at": at, "before": before, "written": 0})


def result(kit: Kit, session_id: str, folder: Path) -> tuple:
    """What must be the same however often the session was killed."""
    found = history(kit, session_id)
    row = found.session
    text = Path(row["workflow_path"]).read_text()
    trail = [(r.number, r.verdict, r.text) for r in found.rounds]
    return row["outcome"], row["edits"], text, trail, tree(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory, reader):
    """A kit and an order in a folder of its own, each as if on a fresh machine."""
    kits = []

    def make(name: str, *, planner: str = "local/smollm2", opener=None, source=FAULTY):
        root = tmp_path_factory.mktemp(name)
        folder = fill(root / "work")
        config = load_config(root / "home", env={})
        kit = Kit(config, open_model=opener) if opener else Kit(config)
        kit.__dict__["reader"] = reader
        kits.append(kit)
        order = Order(
            TASK,
            str(folder),
            planner=planner,
            model="local/smollm2",
            accept=ACCEPT,
            source=source,
        )
        return kit, order, folder

    yield make
    for kit in kits:
        kit.close()


def go(kit, order, session_id, journal=None):
    return Session(kit, order, session_id, emit=lambda *e: None, journal=journal).run()


@pytest.fixture(scope="module")
def undisturbed(made):
    kit, order, folder = made("whole")
    go(kit, order, "whole")
    return result(kit, "whole", folder)


def points(count: int) -> list:
    """Every record, before and after; the quick run takes a seeded few of them."""
    quick = {(3, True), (4, False), (5, True), (6, False), (8, False)}
    every = [(at, before) for at in range(1, count + 1) for before in (True, False)]
    return [
        pytest.param(at, before, marks=[] if (at, before) in quick else [pytest.mark.long])
        for at, before in every
    ]


@pytest.mark.sandbox
@pytest.mark.parametrize(("at", "before"), points(RECORDS))
def test_dying_at_any_record_changes_nothing(made, undisturbed, at, before):
    """Die at the Nth record, resume: same outcome, same rounds, same YAML, same files."""
    kit, order, folder = made("killed")
    journal = dying(at, before=before)(kit.ledger, "killed")
    try:
        go(kit, order, "killed", journal)
    except Killed:
        if Journal(kit.ledger, "killed").history() is None:
            pytest.fail("the session must be on record before anything is done")
        resume(kit, "killed", emit=lambda *e: None).run()

    assert result(kit, "killed", folder) == undisturbed


@pytest.mark.sandbox
def test_a_session_has_no_more_records_than_are_killed_at(made):
    """The test above reaches the last record."""
    kit, order, _ = made("counted")
    journal = dying(0, before=True)(kit.ledger, "counted")

    go(kit, order, "counted", journal)

    assert type(journal).written == RECORDS


DRAFT = {
    "name": "drafted",
    "results": ["amounts.txt", "count.txt"],
    "sub_steps": [
        {"id": "a", "kind": "shell", "command": "cut -d, -f1 sales.csv > amounts.txt"},
        {
            "id": "b",
            "kind": "shell",
            "command": "awk '/ERROR/{n++} END{print n}' app.log > count.txt",
        },
    ],
}
MEND = {
    "edits": [{"op": "to_shell", "step": "a", "command": "cut -d, -f2 sales.csv > amounts.txt"}]
}


@pytest.mark.sandbox
@pytest.mark.parametrize("at", [2, 4, 6, 8])
def test_nothing_is_paid_twice(made, at):
    """The planner's answers are on disk before they are used; a resumed session reads them."""
    scripts = Scripts([json.dumps(DRAFT), json.dumps(MEND)])
    kit, order, _ = made("paid", planner="openai/scripted", opener=scripts, source="")
    journal = dying(at, before=False)(kit.ledger, "paid")
    try:
        go(kit, order, "paid", journal)
    except Killed:
        resume(kit, "paid", emit=lambda *e: None).run()

    assert history(kit, "paid").session["outcome"] == "converged"
    assert scripts.calls <= 2


CHILD = """
import os, signal, sys
from loop.cli import main
sys.argv = ["openry-loop", *sys.argv[1:]]
main()
"""


@pytest.mark.sandbox
@pytest.mark.parametrize("steps", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_killed_process_is_gone_on_with(made, undisturbed, tmp_path, reader_home, steps):
    """kill -9 of the whole process while a step runs, then `resume`: as if nothing had been."""
    kit, order, folder = made("shot")
    home = kit.config.home
    home.mkdir(exist_ok=True)
    (home / "cache").symlink_to(reader_home / "cache")
    source = tmp_path / "w.yaml"
    source.write_text(order.source)
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(list(order.accept)))
    env = {**os.environ, "OPENRY_HOME": str(home)}
    given = ["--dir", str(folder), "--from", str(source), "--accept", str(rules), "--yes", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, "new", TASK, *given], env=env, text=True,
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    seen, session_id = 0, ""
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        session_id = event.get("session", session_id)
        seen += event.get("event") == "step" and event.get("state") == "in_progress"
        if seen >= steps:
            os.killpg(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL

    resume(kit, session_id, emit=lambda *e: None).run()

    assert result(kit, session_id, folder)[:3] == undisturbed[:3]
    assert tree(folder) == undisturbed[4]


@pytest.mark.sandbox
def test_two_processes_never_work_on_one_session(made):
    """A session that another living process works on is not taken over."""
    kit, order, _ = made("shared")
    go(kit, order, "shared", dying(0, before=True)(kit.ledger, "shared"))
    parent = process_id(os.getppid())
    Journal(kit.ledger, "shared").note(
        state="running", ended_at=None, pid=parent.pid, pid_started_at=parent.started_at
    )

    with pytest.raises(UsageError, match=str(parent.pid)):
        resume(kit, "shared", emit=lambda *e: None)
