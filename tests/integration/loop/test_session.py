"""Whole sessions on the real engine: right drafts, mended faults, honest ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loop.kit import Kit
from loop.start import add_template, history, new, resume
from openry.errors import UsageError
from openry.orchestrator.loader import load
from tests.integration.loop.helpers import FAULTY, ODD, TWO, Scripts, kit_in, tree

COUNT = "Count the lines containing 'ERROR' in app.log and save the number to count.txt"
SORT = "Sort names.txt alphabetically and save to sorted.txt"
SORTED = {"type": "command", "run": "sort -c sorted.txt"}
NUMBER = {"type": "file_contains", "path": "count.txt", "regex": r"\A\d+\s*\Z"}


@pytest.mark.sandbox
def test_a_right_draft_needs_no_round(run, order, folder, home):
    """Results reach the folder, the workflow the shelf, and nothing else changes."""
    before = tree(folder)

    finished, _ = run(order(SORT, accept=(SORTED,)))

    assert (finished.outcome, finished.rounds, finished.edits) == ("converged", 0, 0)
    assert tree(folder) == {**before, "sorted.txt": "al\nbob\ncy\n"}
    assert load(Path(finished.workflow)).ok
    assert Path(finished.workflow).parent == home / "workflows"
    prov = json.loads(Path(finished.workflow).with_suffix(".prov.json").read_text())
    assert len(prov["lines"]) == len(Path(finished.workflow).read_text().splitlines())


HAS_200 = {"type": "file_contains", "path": "amounts.txt", "contains": "200"}


@pytest.mark.sandbox
def test_real_mistakes_are_mended_one_step_at_a_time(run, order, folder):
    """Each round names step and cause, edits that step's lines only, and is accepted by replay."""
    finished, events = run(order(TWO, accept=(HAS_200, NUMBER), source=FAULTY))

    rounds = [data for name, data in events if name == "round"]
    attempts = [data for name, data in events if name == "attempt"]
    assert finished.outcome == "converged"
    assert finished.rounds == finished.edits == 2
    assert [each["diagnosis"]["step"] for each in rounds] == ["pick", "count"]
    assert "amuont" in rounds[0]["diagnosis"]["cause"]
    assert "ap.log" in rounds[1]["diagnosis"]["cause"]
    assert [each["verdict"] for each in attempts] == ["accepted", "accepted"]
    assert [gate["gate"] for gate in attempts[0]["gates"]] == ["G0", "G3", "G4", "run"]
    wanted = FAULTY.replace("amuont", "amount").replace("ap.log", "app.log")
    assert Path(finished.workflow).read_text() == wanted
    assert (folder / "amounts.txt").read_text() == "10\n9\n200\n"


ONE = "Save the lines of app.log that contain 'ERROR' to errors.txt"
WRONG_WORD = """\
name: wrong-word
sub_steps:
  - id: keep
    kind: capability
    capability: filter_lines
    args:
      path: app.log
      needle: INFO
      output: errors.txt
"""


@pytest.mark.sandbox
def test_a_silent_mistake_is_seen_by_the_second_reading(run, order, folder):
    """Nobody stated anything and every step passes: the wording itself says that it is wrong."""
    finished, events = run(order(ONE, source=WRONG_WORD))

    (diagnosis,) = [data["diagnosis"] for name, data in events if name == "round"]
    assert diagnosis["failure_class"] == "silent_wrong"
    assert diagnosis["step"] == "keep"
    assert Path(finished.workflow).read_text() == WRONG_WORD.replace("INFO", "ERROR")
    assert (folder / "errors.txt").read_text() == "09:01 ERROR disk\n09:02 ERROR net\n"


@pytest.mark.sandbox
def test_what_a_person_wrote_and_accepts_is_left_alone(run, order, folder):
    """A given workflow that passes the given rules is not edited for what the wording suggests."""
    rule = {"type": "file_contains", "path": "errors.txt", "contains": "start"}

    finished, _ = run(order(ONE, source=WRONG_WORD, accept=(rule,)))

    assert (finished.outcome, finished.edits) == ("converged", 0)
    assert Path(finished.workflow).read_text() == WRONG_WORD


@pytest.mark.sandbox
def test_a_result_that_is_never_accepted_stays_away(run, order, folder):
    """The folder is as it was, and the best so far is on disk and named."""
    before = tree(folder)
    impossible = {"type": "file_contains", "path": "count.txt", "contains": "forty-two"}

    finished, _ = run(order(COUNT, accept=(impossible,)))

    assert (finished.outcome, finished.exit_status) == ("not_converged", 1)
    assert tree(folder) == before
    assert load(Path(finished.workflow)).ok
    assert finished.results == ()


@pytest.mark.sandbox
def test_a_file_that_changed_meanwhile_is_left_alone(kit, order, folder):
    """Somebody writes the result file while the loop works: theirs stays, and a person decides."""

    def emit(event, data):
        if event == "draft":
            (folder / "count.txt").write_text("mine")

    finished = new(kit, order(COUNT, accept=(NUMBER,)), emit=emit).run()

    assert (finished.outcome, finished.stop) == ("needs_human", "workspace_changed")
    assert (folder / "count.txt").read_text() == "mine"


@pytest.mark.sandbox
def test_a_weak_acceptance_is_no_success_where_a_strong_one_is_required(run, order, folder):
    """`--require-strong` leaves the folder alone and says what would have passed as well."""
    before = tree(folder)
    weak = {"type": "file_exists", "path": "out.txt"}

    finished, _ = run(order("Do the usual with names.txt into out.txt", accept=(weak,),
                            require_strong=True))  # fmt: skip

    assert finished.outcome in ("needs_human", "not_converged")
    assert tree(folder) == before


@pytest.mark.sandbox
@pytest.mark.parametrize(("rule", "noted"), [("names.txt", True), ("sorted.txt", False)])
def test_what_holds_before_the_run_is_said(run, order, rule, noted):
    """A stated rule that the untouched folder passes says nothing of the result."""
    accept = ({"type": "file_exists", "path": rule},)

    finished, events = run(order("Sort names.txt into sorted.txt", accept=accept))

    (plan,) = [data for event, data in events if event == "plan"]
    assert ("all that is stated holds before anything is done" in plan["assumed"]) == noted
    assert finished.outcome == "converged"


@pytest.mark.sandbox
def test_a_question_is_answered(run, order, folder):
    """A task that names no result file gets its answer as a file of its own."""
    before = tree(folder)

    finished, _ = run(order("How many words are in names.txt?"))

    (result,) = finished.results
    assert finished.outcome == "converged"
    assert Path(result).read_text().strip() == "3"
    assert {**tree(folder), **before} == tree(folder)


@pytest.mark.sandbox
def test_what_a_sentence_made_it_makes_again(run, order, folder):
    """Its result is there the second time: not what is read, and what changed meanwhile counts."""
    task = (
        "Keep the rows of sales.csv whose name is Ann and whose amount is more than 8 in kept.csv"
    )
    (folder / "sales.csv").write_text("name,amount\nAnn,10\nBo,9\nAnn,7\n")
    run(order(task))
    (folder / "sales.csv").write_text("name,amount\nAnn,10\nBo,9\nAnn,70\n")

    run(order(task))

    assert (folder / "kept.csv").read_text() == "name,amount\nAnn,10\nAnn,70\n"


@pytest.mark.sandbox
def test_a_result_that_is_there_already_is_a_result(run, order, folder):
    """The same task again names its file, judges it, and says that it is as it was."""
    first, _ = run(order(SORT))
    before = tree(folder)

    again, events = run(order(SORT))

    (delivered,) = [data for name, data in events if name == "delivered"]
    assert (delivered["written"], delivered["unchanged"]) == ([], ["sorted.txt"])
    assert again.results == first.results == (str(folder / "sorted.txt"),)
    assert again.acceptance_strength == first.acceptance_strength == "strong"
    assert tree(folder) == before


@pytest.mark.sandbox
def test_what_is_deleted_can_be_found_again(run, order, folder):
    """A file that the task takes away lies in the folder's trash; nothing else is touched."""
    before = tree(folder)

    finished, events = run(order("Delete names.txt"))

    names = before.pop("names.txt")
    (delivered,) = [data for name, data in events if name == "delivered"]
    assert finished.outcome == "converged"
    assert delivered["removed"] == ["names.txt"]
    assert finished.removed == (str(folder / "names.txt"),)
    assert (finished.results, finished.acceptance_strength) == ((), "weak")
    assert finished.weak_because == ("nothing was compared with the removal of names.txt",)
    assert tree(folder) == {**before, ".trash/names.txt": names}


@pytest.mark.sandbox
def test_a_task_may_change_a_file_in_its_place(run, order, folder):
    """Where the task says so, the result is the input itself."""
    before = tree(folder)

    finished, _ = run(order("Sort names.txt in place"))

    assert finished.outcome == "converged"
    assert tree(folder) == {**before, "names.txt": "al\nbob\ncy\n"}


def test_a_task_that_names_nothing_is_not_guessed(kit, order):
    """Where the folder leaves a choice, a task without a file name is one sentence."""
    with pytest.raises(UsageError, match="names no file"):
        new(kit, order("make it nice"), emit=lambda *e: None).run()


@pytest.mark.sandbox
def test_stopping_is_not_losing(kit, order, folder):
    """Ctrl-C during a run ends as interrupted, leaves the folder alone, and can be resumed."""
    before, asked = tree(folder), []

    def should_stop():
        asked.append(1)
        return len(asked) > 2

    source = "name: slow\nsub_steps:\n  - {id: a, kind: shell, command: sleep 30}\n"
    session = new(
        kit, order(COUNT, accept=(NUMBER,), source=source), emit=lambda *e: None,
        should_stop=should_stop,
    )  # fmt: skip

    finished = session.run()

    assert (finished.outcome, finished.exit_status) == ("interrupted", 130)
    assert tree(folder) == before
    assert history(kit, session.id).session["state"] == "interrupted"


@pytest.mark.sandbox
def test_what_only_a_person_may_do_waits_for_one(run, order, folder):
    """All that was agreed holds, a step's own rule is too strict: nothing loosens it by itself."""
    before = tree(folder)
    source = (
        "name: strict\nsub_steps:\n  - id: count\n    kind: shell\n"
        "    command: grep -c ERROR app.log > count.txt\n    validation:\n"
        "      - type: file_contains\n        path: count.txt\n        contains: '77'\n"
        "    on_validation_fail: abort\n"
    )

    finished, events = run(order(ODD, source=source, accept=(NUMBER,)))

    assert (finished.outcome, finished.exit_status) == ("needs_human", 4)
    assert "relax_check(count" in finished.sentence
    assert [d["verdict"] for name, d in events if name == "attempt"][-1] == "waiting"
    assert tree(folder) == before


@pytest.mark.sandbox
def test_time_is_a_budget(run, order, folder):
    """A step that would go on beyond the minutes is ended; exit 3, the folder as it was."""
    before = tree(folder)
    source = "name: slow\nsub_steps:\n  - {id: a, kind: shell, command: sleep 3000}\n"

    finished, _ = run(order(ODD, source=source, accept=(NUMBER,), max_minutes=0.05))

    assert (finished.outcome, finished.exit_status, finished.stop) == ("budget", 3, "budget_time")
    assert tree(folder) == before


@pytest.mark.sandbox
def test_a_folder_that_cannot_be_written_can_be_mended_and_resumed(kit, order, folder):
    """A result that cannot be put back is one sentence, and nothing has to be run again."""
    (folder / "sorted").write_text("a file where a folder is wanted")
    source = (
        "name: deep\nsub_steps:\n  - {id: a, kind: shell, command: "
        "rm sorted && mkdir sorted && sort names.txt > sorted/names.txt}\n"
    )
    rule = {"type": "file_exists", "path": "sorted/names.txt"}
    session = new(kit, order(ODD, source=source, accept=(rule,)), emit=lambda *e: None)

    finished = session.run()
    (folder / "sorted").unlink()
    again = resume(kit, session.id, emit=lambda *e: None).run()

    assert (finished.outcome, finished.exit_status) == ("unusable", 2)
    assert f"resume {session.id}" in finished.sentence
    assert again.outcome == "converged"
    assert (folder / "sorted/names.txt").read_text() == "al\nbob\ncy\n"


def structured(home, reader, *replies) -> tuple[Kit, Scripts]:
    scripts = Scripts(replies)
    return kit_in(home, reader, scripts), scripts


#: No capability writes this, so the planner must be asked.
SENTENCE = {"type": "file_contains", "path": "count.txt", "regex": r"\A2 errors, 1 info\s*\Z"}
WRONG = {
    "name": "drafted",
    "plan": ["count the errors"],
    "results": ["count.txt"],
    "sub_steps": [{"id": "a", "kind": "shell", "command": "grep -c INFO app.log > count.txt"}],
}
MEND = {
    "edits": [
        {
            "op": "to_shell",
            "step": "a",
            "command": 'echo "$(grep -c ERROR app.log) errors, $(grep -c INFO app.log) info"'
            " > count.txt",
            "why": "the sentence is wanted",
        }
    ]
}


@pytest.mark.sandbox
def test_a_capable_planner_drafts_and_mends(run, order, folder, home, reader):
    """A draft as JSON, a failure diagnosed by code, an edit by the model, gates by code."""
    kit, scripts = structured(home, reader, json.dumps(WRONG), json.dumps(MEND))

    with kit:
        finished, _ = run(order(ODD, accept=(SENTENCE,), planner="openai/scripted"), kit=kit)

    assert finished.outcome == "converged"
    assert (folder / "count.txt").read_text() == "2 errors, 1 info\n"
    assert scripts.calls == 2
    assert finished.edits == 1


@pytest.mark.sandbox
def test_a_useless_planner_leaves_nothing_behind(run, order, folder, home, reader):
    """Two calls, one sentence, no workflow saved, the folder as it was."""
    before = tree(folder)
    kit, scripts = structured(home, reader, "no", "no")

    with kit:
        finished, _ = run(order(COUNT, accept=(NUMBER,), planner="openai/scripted"), kit=kit)

    assert (finished.outcome, finished.exit_status) == ("unusable", 2)
    assert "--planner local/smollm2" in finished.sentence
    assert scripts.calls == 2
    assert tree(folder) == before
    assert not (home / "workflows").exists()


@pytest.mark.sandbox
def test_a_planner_cannot_cheat(run, order, folder, home, reader):
    """A constant, a hidden failure or a loosened check is refused, whatever it would score."""
    commands = ("echo '2 errors, 1 info' > count.txt", "cat .x > count.txt || true", "echo 2 > x")
    cheats = [{"edits": [{"op": "to_shell", "step": "a", "command": c}]} for c in commands]
    replies = (WRONG, *cheats)
    kit, _ = structured(home, reader, *map(json.dumps, replies))

    with kit:
        finished, events = run(order(ODD, accept=(SENTENCE,), planner="openai/scripted"), kit=kit)

    attempts = [
        data for name, data in events if name == "attempt" and data["origin"].startswith("planner:")
    ]
    assert finished.outcome == "not_converged"
    assert all(attempt["verdict"] == "rejected" for attempt in attempts)
    assert len(attempts) == 3
    assert all("constant" in a["reason"] or "true" in a["reason"] for a in attempts)


def said(**action) -> str:
    return json.dumps(action)


AGENT = """\
name: agentic
sub_steps:
  - id: say
    kind: agent
    description: Say how app.log went, in a few words, in count.txt
    max_sub_step_retries: 1
"""


@pytest.mark.sandbox
def test_an_agent_hears_what_is_wrong_with_its_result(run, order, folder, home, reader):
    """A silent mistake of an agent: the check it lacked is added, and its retry does right.

    What the agent said in the run before is not asked, or paid, again.
    """
    end = said(action="report", status="completed")
    wrong = said(action="run", command="echo fine > count.txt")
    right = said(action="run", command="echo 2 > count.txt")
    kit, scripts = structured(home, reader, wrong, end, right, end)

    with kit:
        finished, events = run(order(ODD, source=AGENT, accept=(NUMBER,)), kit=kit)

    (attempt,) = [data for name, data in events if name == "attempt"]
    assert finished.outcome == "converged"
    assert attempt["edit"].startswith("add_check(say")
    assert [gate["gate"] for gate in attempt["gates"]] == ["G0", "G1", "G4", "run"]
    assert "count.txt" in scripts.model.requests[2].messages[-1].text
    assert scripts.model.left == 0
    assert finished.acceptance_strength == "weak"
    assert "asks a model" in finished.weak_because[0]
    assert "95 %" in finished.confidence


@pytest.mark.sandbox
def test_a_solved_task_comes_again_with_other_files(run, order, folder, kit):
    """A template drafts it at once; the run and the acceptance judge it like any draft."""
    solved, _ = run(order(SORT, accept=(SORTED,)))
    add_template(kit, solved.session, name="sorting")
    (folder / "people.txt").write_text("zoe\nann\n")
    task = SORT.replace("names.txt", "people.txt").replace("sorted.txt", "people_sorted.txt")

    finished, events = run(order(task, accept=({**SORTED, "run": "sort -c people_sorted.txt"},)))

    plans = [data["plan"] for name, data in events if name == "plan"]
    assert finished.outcome == "converged"
    assert "template `sorting`" in plans[-1][0]
    assert (folder / "people_sorted.txt").read_text() == "ann\nzoe\n"


UNMENDABLE = """\
name: capitals
sub_steps:
  - id: capitals
    kind: shell
    command: tr a-z < names.txt > count.txt
"""


@pytest.mark.sandbox
def test_the_larger_planner_is_asked_only_after_the_smaller_did_not_help(run, order, home, reader):
    """Rules and readings do not get there; in a later round the next rung is asked, once."""
    mend = {"op": "to_shell", "step": "capitals", "command": "tr a-z A-Z < names.txt > count.txt"}
    scripts = Scripts([json.dumps({"edits": [mend]})])
    rule = {"type": "file_contains", "path": "count.txt", "contains": "BOB"}

    with kit_in(home, reader, scripts) as kit:
        ladder = order(ODD, source=UNMENDABLE, accept=(rule,), ladder=("openai/scripted",))
        finished, _ = run(ladder, kit=kit)
        attempts = history(kit, finished.session).attempts

    asked = [each.round for each in attempts if each.proposal.origin.startswith("planner")]
    assert finished.outcome == "converged"
    assert (finished.edits, scripts.calls, len(asked)) == (1, 1, 1)
    assert asked[0] > 1


@pytest.mark.sandbox
def test_a_budget_that_buys_too_little_begins_nothing(run, order, folder, home, reader):
    """Fewer than three rounds: said beforehand with what is needed, and no call is made."""
    scripts = Scripts()
    before = tree(folder)

    with kit_in(home, reader, scripts) as kit:
        few = order(ODD, planner="openai/scripted", budget_tokens=9000, accept=(NUMBER,))
        finished, _ = run(few, kit=kit)

    assert (finished.outcome, finished.stop, finished.exit_status) == ("budget", "budget_tokens", 3)
    assert "not begun" in finished.sentence
    assert scripts.calls == 0
    assert tree(folder) == before


@pytest.mark.sandbox
def test_instances_say_how_often_a_model_gets_there(run, order, home, reader):
    """Each whole run asks the model anew; what passed of how many is the confidence, exactly."""
    asked: list = []

    def agent(request) -> str:
        asked.append(request)
        acted = len(request.messages) > 2
        act = said(action="run", command="grep -c ERROR app.log > count.txt")
        return said(action="report", status="completed") if acted else act

    scripts = Scripts([agent] * 100)
    with kit_in(home, reader, scripts) as kit:
        finished, events = run(order(ODD, source=AGENT, accept=(NUMBER,), instances=4), kit=kit)

    seeds = {request.seed for request in asked}
    judged = [data["note"] for name, data in events if name == "judged"]
    assert finished.outcome == "converged"
    assert finished.confidence == "4 of 4 runs passed: at least 47% with 95 % confidence"
    assert len(seeds) == 4
    assert judged == [finished.confidence]


@pytest.mark.sandbox
def test_a_model_that_mostly_fails_has_not_converged(run, order, folder, home, reader):
    """The first run was luck: one of four passes, and that is no workflow to keep."""
    before = tree(folder)

    def agent(request) -> str:
        acted = len(request.messages) > 2
        word = "2" if request.seed == 0 else "two"
        act = said(action="run", command=f"echo {word} > count.txt")
        return said(action="report", status="completed") if acted else act

    with kit_in(home, reader, Scripts([agent] * 100)) as kit:
        finished, _ = run(order(ODD, source=AGENT, accept=(NUMBER,), instances=4), kit=kit)

    assert (finished.outcome, finished.stop) == ("not_converged", "unreliable")
    assert "only 1 of 4 runs passed" in finished.sentence
    assert tree(folder) == before


@pytest.mark.sandbox
def test_a_drafted_result_that_no_input_changes_is_made_up(run, order, folder, home, reader):
    """A draft that computes the expected number out of nothing passes every rule, and not the test
    whether anything else would come of other files."""
    made = {
        "name": "drafted",
        "results": ["count.txt"],
        "sub_steps": [
            {"id": "a", "kind": "shell", "command": "awk 'BEGIN {print 1 + 1}' app.log > count.txt"}
        ],
    }
    before = tree(folder)
    kit, _ = structured(home, reader, json.dumps(made))

    with kit:
        finished, _ = run(order(COUNT, planner="openai/scripted", accept=(NUMBER,)), kit=kit)

    assert (finished.outcome, finished.stop) == ("needs_human", "made_up")
    assert "step `a` writes the same count.txt" in finished.sentence
    assert tree(folder) == before
