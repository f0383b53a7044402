"""A maintainer walks through a session's edits; every line knows whence it came."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.apply import apply, data_of, dump
from loop.cli import app
from loop.edits import Proposal, RelaxCheck, SetTimeout, ToShell
from loop.events import diff
from loop.evidence import StepRun, Trial
from loop.journal import Attempt, Gate, Journal, Round
from loop.kit import Kit
from loop.order import Order
from loop.provenance import BY_HAND, blame, provenance
from loop.review import hunks
from loop.shelf import keep_best, write
from loop.start import resume
from loop.understanding import seal, unsealed
from loop.values import Acceptance
from openry.config import load_config
from openry.errors import UsageError
from openry.models import RuleResult
from tests.integration.loop.helpers import fill

#: Of twelve edits the first nine mend a step each, the others give one more time.
MENDED, LONGER = range(9), range(9, 12)
ACCEPT = tuple({"type": "file_contains", "path": f"o{n}.txt", "contains": "BOB"} for n in MENDED)
GATES = (Gate("G0", True, "fine"), Gate("G3", True, "passes alone"))


def steps():
    return [
        {"id": f"s{n}", "kind": "shell", "command": f"cat names.txt > o{n}.txt"} for n in range(12)
    ]


def proposal(n: int) -> Proposal:
    step, why = f"s{n}", f"reason {n}"
    if n in MENDED:
        edit = ToShell(step=step, command=f"tr a-z A-Z < names.txt > o{n}.txt", why=why)
    else:
        edit = SetTimeout(step=step, seconds=77, why=why)
    return Proposal((edit,), "planner:scripted", why)


@pytest.fixture
def kit(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENRY_HOME", str(tmp_path / "home"))
    with Kit(load_config(tmp_path / "home", env={})) as made:
        yield made


@pytest.fixture
def session(kit, tmp_path):
    """A session of twelve accepted edits, as the loop writes it down, and its saved workflow."""
    folder = fill(tmp_path / "work")
    order = Order("capitals", str(folder), planner="local/x", model="local/x", accept=ACCEPT)
    stored = {"hard": list(ACCEPT)}
    values = {
        "name": "capitals",
        "task": order.task,
        "directory": str(folder),
        "settings": order.to_data(),
        "acceptance": stored,
        "acceptance_hash": seal(stored),
        "acceptance_origin": "given",
        "snapshot_id": kit.store.create(folder).id,
    }
    journal = Journal.begin(kit.ledger, "s1", values)
    text = "# by a person\n" + dump({"name": "capitals", "sub_steps": steps()})
    failed = Trial(text, "completed", tuple(StepRun(f"s{n}", "shell", "done") for n in range(12)))
    journal.round(Round(0, text, failed, "failed"), edits=0, started_at="")
    for n in range(12):
        before, text = text, apply(text, proposal(n).edits)
        attempt = Attempt(
            n + 1, 0, proposal(n), f"sig{n}", text, diff(before, text), GATES, "accepted", "better"
        )
        journal.attempt(attempt)
        trial = replace(failed, text=text, instance_id=f"run{n}")
        if n == 11:
            trial = replace(trial, hard=tuple(RuleResult("held", True) for _ in ACCEPT))
        journal.round(Round(n + 1, text, trial, "accepted"), edits=n + 1, started_at="")
    history = journal.history()
    shelf = kit.config.home / "workflows"
    shelf.mkdir(parents=True)
    notes = provenance(history, history.current, order, stop="target_met", strength={})
    write(shelf / "capitals.yaml", text, notes)
    journal.end("ended", outcome="converged", workflow_path=str(shelf / "capitals.yaml"))
    return shelf / "capitals.yaml"


def run(*args: str, given: str = "", code: int = 0) -> str:
    result = CliRunner().invoke(app, ["review", "s1", *args], input=given, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def walked(kit, path: Path) -> None:
    """What must be true after the walk, however it was made."""
    done = data_of(path.read_text())["sub_steps"]
    assert path.read_text().startswith("# by a person\n")
    assert all("timeout_seconds" not in done[n] for n in LONGER)
    assert done[0]["command"] == "tr '[:lower:]' '[:upper:]' < names.txt > o0.txt"
    assert [done[n]["command"] for n in MENDED][1:] == [
        f"tr a-z A-Z < names.txt > o{n}.txt" for n in MENDED
    ][1:]
    history = Journal(kit.ledger, "s1").history()
    assert history.current.trial.acceptable
    assert history.current.text == path.read_text()
    verdicts = [each.verdict for each in history.attempts if each.position == 0]
    assert verdicts.count("accepted") == 8
    assert verdicts.count("reverted") == 4
    lines = {line.text.strip(): line for line in blame(path)}
    mine = lines["command: tr '[:lower:]' '[:upper:]' < names.txt > o0.txt"]
    assert (mine.edit, mine.origin, mine.reviewer) == ("1.1", "person", "ada")
    other = lines["command: tr a-z A-Z < names.txt > o3.txt"]
    assert (other.edit, other.reviewer, "reason 3" in other.why) == ("4.0", "ada", True)
    assert (lines["- id: s3"].origin, lines["- id: s3"].edit) == ("draft", "")


@pytest.mark.sandbox
def test_a_maintainers_walk_at_the_terminal(kit, session, tmp_path, monkeypatch):
    """Twelve edits: one edited, eight accepted, three rejected; certified again."""
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\np = pathlib.Path(sys.argv[1])\n"
        "p.write_text(p.read_text().replace('tr a-z A-Z', \"tr '[:lower:]' '[:upper:]'\"))\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")

    shown = run("--as", "ada", given="e\n" + "a\n" * 8 + "r\n" * 3)

    assert "12 of 12" in shown
    assert "passes alone" in shown
    assert "certified again" in shown
    walked(kit, session)


@pytest.mark.sandbox
def test_the_same_walk_by_the_page_and_its_decisions(kit, session, tmp_path):
    """The page shows every edit and loads nothing; its decisions lead to the same file."""
    page = tmp_path / "review.html"
    run("--html", str(page))
    text = page.read_text()
    assert text.count('<section class="hunk"') == 12
    assert "http://" not in text
    assert "https://" not in text
    command = "tr '[:lower:]' '[:upper:]' < names.txt > o0.txt"
    mine = {"op": "to_shell", "step": "s0", "command": command}
    said = [{"hunk": "1.0", "decision": "edit", "edits": [mine]}]
    said += [{"hunk": f"{n + 1}.0", "decision": "accept"} for n in MENDED if n]
    said += [{"hunk": f"{n + 1}.0", "decision": "reject"} for n in LONGER]
    file = tmp_path / "decisions.json"
    file.write_text(json.dumps({"session": "s1", "decisions": said}))

    answer = json.loads(run("--decisions", str(file), "--as", "ada", "--json"))

    assert (answer["certified"], len(answer["rejected"])) == (True, 3)
    walked(kit, session)


@pytest.mark.sandbox
def test_rejecting_what_is_needed_writes_nothing(kit, session, tmp_path):
    """The run without the edit breaks a rule: named, exit 1, and everything is as it was."""
    before = session.read_text()
    file = tmp_path / "d.json"
    file.write_text(json.dumps([{"hunk": "3.0", "decision": "reject"}]))

    said = run("--decisions", str(file), code=1)

    assert "o2.txt" in said
    assert session.read_text() == before
    assert len(hunks(Journal(kit.ledger, "s1").history())) == 12


def test_leaving_in_between_writes_nothing(kit, session):
    """`q`, or the end of the input, is no decision."""
    before = session.read_text()

    run(given="a\nr\nq\n")
    run(given="a\n")

    assert session.read_text() == before
    assert all(not hunk.reviewer for hunk in hunks(Journal(kit.ledger, "s1").history()))


def test_a_file_edited_by_hand_is_seen(kit, session, tmp_path):
    """Review does not write over a person's own change, and `blame` names its lines."""
    text = session.read_text()
    session.write_text(text.replace("# by a person\n", "# by a person\n# and again\n"))
    file = tmp_path / "d.json"
    file.write_text(json.dumps([{"hunk": "12.0", "decision": "reject"}]))

    said = run("--decisions", str(file), code=2)

    assert "edited by hand" in said
    assert [line.number for line in blame(session) if line.origin == BY_HAND] == [2]


def test_a_best_so_far_that_was_edited_is_seen_before_a_session_goes_on(kit, session):
    """It would go on with its own text, and write over the person's."""
    journal = Journal(kit.ledger, "s1")
    journal.end("interrupted", ended_at=None, outcome="interrupted")
    folder = kit.config.home / "loops" / "s1"
    folder.mkdir(parents=True)
    best = keep_best(folder, journal.history())
    resume(kit, "s1", emit=lambda *e: None)
    best.write_text(best.read_text() + "# mine\n")

    with pytest.raises(UsageError, match="was edited by hand") as caught:
        resume(kit, "s1", emit=lambda *e: None)
    best.unlink()

    assert f"--from {best}" in str(caught.value)
    resume(kit, "s1", emit=lambda *e: None)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([{"hunk": "9.9", "decision": "accept"}], "no edit is called `9.9`"),
        ([{"hunk": "1.0", "decision": "maybe"}], "`maybe` is no decision"),
        ([{"hunk": "1.0", "decision": "edit", "edits": [{"op": "explode"}]}], "decisions[0]"),
        ({"session": "other", "decisions": []}, "is about session `other`"),
        ("{", "is no JSON"),
    ],
)
def test_wrong_decisions_are_one_sentence(kit, session, tmp_path, data, said):
    """Whatever is wrong with the file is named with its place; nothing is written."""
    file = tmp_path / "d.json"
    file.write_text(data if isinstance(data, str) else json.dumps(data))

    assert said in run("--decisions", str(file), code=2)


@pytest.mark.sandbox
def test_what_waits_for_a_person_fails_the_check(kit, session, tmp_path):
    """`--check` is 0 while nothing waits, 4 while something does; accepted, it stands."""
    run("--check")
    journal = Journal(kit.ledger, "s1")
    rule = {"type": "file_contains", "path": "o0.txt", "contains": "never"}
    text = dump(
        {
            "name": "w",
            "sub_steps": [
                {**steps()[0], "command": "tr a-z A-Z < names.txt > o0.txt", "validation": [rule]}
            ],
        }
    )
    only = Journal.begin(kit.ledger, "s2", {**_row(journal), "name": "waits"})
    trial = Trial(text, "failed", (StepRun("s0", "shell", "failed", reason="rule", attempts=1),))
    only.round(Round(0, text, trial, "failed"), edits=0, started_at="")
    relax = Proposal((RelaxCheck(step="s0", index=0),), "rule:check_too_strict", "too strict")
    after = apply(text, relax.edits)
    only.attempt(Attempt(1, 0, relax, "sig", after, diff(text, after), GATES, "waiting", "starred"))
    only.end("ended", outcome="needs_human")

    result = CliRunner().invoke(app, ["review", "s2", "--check"])
    assert result.exit_code == 4
    assert "1.0 waits for a person" in result.output
    file = tmp_path / "d.json"
    file.write_text(json.dumps([{"hunk": "1.0", "decision": "accept"}]))
    result = CliRunner().invoke(app, ["review", "s2", "--decisions", str(file), "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    assert answer["accepted"] == ["1.0"]
    assert "never" not in Path(answer["workflow"]).read_text()
    assert CliRunner().invoke(app, ["review", "s2", "--check"]).exit_code == 0


def test_an_acceptance_that_an_older_version_sealed_still_holds():
    """The seal is of what is stored: it held more once, and a change to any of it is told."""
    stored = {"hard": [dict(ACCEPT[0])], "soft": []}
    text = json.dumps(stored, sort_keys=True, ensure_ascii=False)
    row = {
        "session_id": "s1",
        "acceptance": stored,
        "acceptance_origin": "given",
        "acceptance_hash": sha256(text.encode()).hexdigest(),
    }

    assert unsealed(row) == Acceptance((ACCEPT[0],), "given")
    for changed in ({"hard": []}, {**stored, "soft": [1]}):
        with pytest.raises(UsageError, match="changed after it was sealed"):
            unsealed({**row, "acceptance": changed})


def _row(journal: Journal) -> dict:
    row = journal.history().session
    one = {"hard": [ACCEPT[0]]}
    settings = {**row["settings"], "accept": [ACCEPT[0]]}
    kept = {key: row[key] for key in ("task", "directory", "snapshot_id", "acceptance_origin")}
    sealed = seal(one)
    return {**kept, "settings": settings, "acceptance": one, "acceptance_hash": sealed}
