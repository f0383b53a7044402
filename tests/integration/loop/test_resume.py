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
from loop.session import Session
from loop.start import history, resume
from openry.errors import UsageError
from openry.ledger.process import process_id
from tests.integration.loop.helpers import (
    FAULTY,
    TWO,
    Scripts,
    fill,
    kit_in,
    mortal,
    order_for,
    tree,
)

ACCEPT = (
    {"type": "file_contains", "path": "amounts.txt", "contains": "200"},
    {"type": "file_contains", "path": "count.txt", "regex": r"\A2\s*\Z"},
)
#: Records that a whole session of this order writes.
RECORDS = 17


class Killed(BaseException):
    """What a killed process does not get to handle; here it only ends the session."""


def die() -> None:
    raise Killed


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

    def make(name: str, *, planner: str = "local/smollm2", scripts=None, source=FAULTY):
        root = tmp_path_factory.mktemp(name)
        folder = fill(root / "work")
        kit = kit_in(root / "home", reader, scripts)
        kits.append(kit)
        order = order_for(folder, TWO, planner=planner, accept=ACCEPT, source=source)
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
    journal = mortal(at, before=before, die=die)(kit.ledger, "killed")
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
    journal = mortal(0, before=True, die=die)(kit.ledger, "counted")

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
    kit, order, _ = made("paid", planner="openai/scripted", scripts=scripts, source="")
    journal = mortal(at, before=False, die=die)(kit.ledger, "paid")
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
        [sys.executable, "-c", CHILD, "new", TWO, *given], env=env, text=True,
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
    go(kit, order, "shared", mortal(0, before=True, die=die)(kit.ledger, "shared"))
    parent = process_id(os.getppid())
    Journal(kit.ledger, "shared").note(
        state="running", ended_at=None, pid=parent.pid, pid_started_at=parent.started_at
    )

    with pytest.raises(UsageError, match=str(parent.pid)):
        resume(kit, "shared", emit=lambda *e: None)
