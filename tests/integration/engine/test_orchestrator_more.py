"""The rest of `openry-orchestrator`: drawing, foreseeing, following, replaying, keeping."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from openry.ledger.schema import workflow_instances
from openry.orchestrator.engine import Engine
from openry.orchestrator.terminal import settings

CHAIN = """
name: chain
inputs: {who: {default: world}, n: {type: int, default: 1}}
workspace: shared
sub_steps:
  - {id: a, kind: shell, command: 'echo hello {{ inputs.who }} > out', snapshot: before}
  - {id: b, kind: shell, command: 'cat out; echo "{\\"n\\": {{ inputs.n }}}" > n', snapshot: both}
  - id: c
    kind: shell
    command: 'echo {{ payload._stdout }} >> out'
    on_failure: a
    validation: [{type: file_exists, path: out}]
    validation_routing:
      - {when: {type: file_exists, path: "<&>"}, on_match: done, on_mismatch: abort}
"""


@pytest.fixture(autouse=True)
def _files(here):
    (here / "chain.yaml").write_text(CHAIN)


# --- graph --------------------------------------------------------------------------------------


def test_a_workflow_is_drawn_in_three_ways(call, call_json):
    """Every step and every way on, with its reason; whatever stands in names and rules."""
    _, said = call_json("graph", "./chain.yaml")
    assert [node["id"] for node in said["nodes"]] == ["a", "b", "c"]
    ways = {(e["from"], e["to"], e["why"].split()[0] if e["why"] else "") for e in said["edges"]}
    assert ways >= {("a", "b", ""), ("b", "c", ""), ("c", "a", "failed"), ("c", "done", "if")}
    assert said["drawing"].startswith("flowchart TD") and "<&>" not in said["drawing"]

    status, text, _ = call("graph", "./chain.yaml", "--format", "text")
    assert status == 0 and "-> a  [failed]" in text
    _, svg, _ = call("graph", "./chain.yaml", "--format", "svg")
    drawn = ElementTree.fromstring(svg)
    words = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a", "b", "c", "done", "abort"} <= set(words)
    assert call("graph", "./chain.yaml", "--format", "png")[0] == 2


def test_a_composition_is_drawn_with_its_conditions(call_json):
    """The shipped one, the same workflow twice included."""
    _, said = call_json("graph", "nightly")
    assert {"from": "shell_chain", "to": "alarm", "why": "failed"} in said["edges"]


# --- start ----------------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_be_done_and_does_nothing(call, call_json, here):
    """Plan, commands and what the policy says of each; no instance, no file, no folder."""
    (here / "guarded.yaml").write_text(
        "name: guarded\ncommand_policy: strict\nsub_steps:\n"
        "  - {id: look, kind: shell, command: ls}\n"
        "  - {id: wipe, kind: shell, command: 'rm -rf /'}\n"
        "  - {id: later, kind: shell, command: 'echo {{ payload.x }}'}\n"
    )
    status, said = call_json("start", "./guarded.yaml", "--dry-run")
    assert status == 0
    verdicts = {step["id"]: step["verdict"] for step in said["steps"]}
    assert verdicts == {"look": "allow", "wipe": "deny", "later": ""}
    assert "payload.x" in said["steps"][2]["note"]
    _, text, _ = call("start", "./chain.yaml", "--dry-run", "--input", "who=you")
    assert "echo hello {{ inputs.who }} > out" in text
    assert call_json("list")[1]["instances"] == []
    assert not (here / "out").exists()


def test_inputs_come_from_a_file(call, here):
    """YAML or JSON; what the command line gives lies over it; mistakes are sentences."""
    (here / "in.yaml").write_text("who: file\nn: 7\n")
    assert call("start", "./chain.yaml", "--wait", "--input-file", "in.yaml")[0] == 1
    assert (here / "out").read_text().startswith("hello file")
    assert json.loads((here / "n").read_text()) == {"n": 7}
    words = ("start", "./chain.yaml", "--wait", "--input-file", "in.yaml", "--input", "who=line")
    assert call(*words)[0] == 1
    assert (here / "out").read_text().startswith("hello line")
    (here / "bad.yaml").write_text("- 1\n")
    for file, said in (("gone.yaml", "no such file"), ("bad.yaml", "no mapping of inputs")):
        status, _, err = call("start", "./chain.yaml", "--input-file", file)
        assert status == 2 and said in err


# --- following ------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("status", "--watch"), ("logs", "--follow")])
def test_an_instance_is_followed_to_its_end(call_json, here, words):
    """Another process looks on; each change is a line, and the exit tells how it ended."""
    (here / "quick.yaml").write_text(
        "name: quick\nsub_steps:\n  - {id: a, kind: shell, command: sleep 0.5}\n"
        "  - {id: b, kind: shell, command: echo said}\n"
    )
    _, started = call_json("start", "./quick.yaml")
    argv = [sys.executable, "-m", "openry.orchestrator"]
    looking = subprocess.Popen(
        [*argv, words[0], started["instance"][:8], words[1], "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    subprocess.run([*argv, "run", "--once"], check=True, timeout=60)
    out, _ = looking.communicate(timeout=60)
    events = [json.loads(line) for line in out.splitlines()]
    assert looking.returncode == 0
    assert [e["new"] for e in events if e["step"] == "b"][-1] == "done"
    assert all(event["schema_version"] == 1 for event in events)


def test_watching_needs_an_id(call):
    """One sentence, exit 2."""
    assert call("status", "--watch")[0] == 2


# --- who works ------------------------------------------------------------------------------------


def test_engines_at_work_are_listed_with_what_they_hold(call_json, here):
    """While one serves it is there with its lease and runs; afterwards it is not."""
    (here / "slow.yaml").write_text(
        "name: slow\nworkspace: shared\n"
        "sub_steps: [{id: a, kind: shell, command: 'touch began; sleep 30'}]\n"
    )
    _, started = call_json("start", "./slow.yaml")
    with Engine(settings()) as engine:
        engine.serve(should_stop=(here / "began").exists)
        (worker,) = call_json("workers")[1]["workers"]
        assert (worker["state"], worker["pid"]) == ("running", os.getpid())
        assert worker["lease_until"] > worker["heartbeat_at"]
    assert call_json("workers")[1]["workers"] == []
    call_json("status", started["instance"])


def test_a_killed_engine_is_called_lost(call_json, here):
    """Its row says `running`; its process says otherwise."""
    pid = os.fork()
    if pid == 0:
        Engine(settings()).serve(should_stop=lambda: os.kill(os.getpid(), 9) is None)
    os.waitpid(pid, 0)
    (worker,) = call_json("workers")[1]["workers"]
    assert worker["state"] == "lost"


# --- replay ---------------------------------------------------------------------------------------


def test_an_instance_is_replayed_from_a_step_on_the_files_before_it(call, call_json, here):
    """A new instance, linked to the old one; the steps before do not run; the files are copies."""
    _, first = call_json("start", "./chain.yaml", "--wait")
    assert (here / "out").read_text() == "hello world\nhello world\n\n"
    status, plan = call_json("replay", first["instance"], "--from", "b", "--dry-run")
    assert (status, plan["steps"]) == (0, ["b", "c"])
    assert len(call_json("list")[1]["instances"]) == 1

    _, made = call_json("replay", first["instance"][:8], "--from", "b")
    assert made["replay_of"] == first["instance"]
    call("run", "--once")
    _, again = call_json("status", made["instance"])
    assert [(s["id"], s["state"]) for s in again["steps"] if s["attempts"]] == [
        ("b", "done"),
        ("c", "done"),
    ]
    assert (here / "out").read_text() == "hello world\nhello world\n\n", "the old files stay"
    assert Path(again["workspace"], "out").read_text() == "hello world\nhello world\n\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "d"), "never ran a step `d`"),
        (("--from", "c"), "nobody kept the files as they were before step `c`"),
    ],
)
def test_what_cannot_be_replayed_is_one_sentence(call, call_json, words, said):
    """And nothing is queued."""
    _, first = call_json("start", "./chain.yaml", "--wait")
    status, _, err = call("replay", first["instance"], *words)
    assert status == 2 and said in err
    assert len(call_json("list")[1]["instances"]) == 1


def fifty(command: str) -> str:
    """A workflow of fifty steps, each a line in `trace`; the 45th does something else."""
    lines = "\n".join(
        f"  - {{id: s{n}, kind: shell, command: {json.dumps(f'echo {n} >> trace')}}}"
        if n != 45
        else f"  - {{id: s45, kind: shell, snapshot: before, command: {json.dumps(command)}}}"
        for n in range(1, 51)
    )
    return f"name: fifty\nsub_steps:\n{lines}\n"


def test_fifty_steps_that_failed_at_one_are_mended_and_go_on_there(call, call_json, here):
    """45 to 50 run, on the files of 1 to 44; both know of each other; the saving is said."""
    (here / "fifty.yaml").write_text(fifty("test -f nowhere"))
    status, first = call_json("start", "./fifty.yaml", "--wait")
    assert (status, first["state"]) == (1, "failed")
    (here / "fifty.yaml").write_text(fifty("echo 45, mended >> trace"))
    words = ("replay", first["instance"], "--from", "s45", "--with", "./fifty.yaml")

    _, text, _ = call(*words, "--dry-run")
    assert "would run s45, s46, s47, s48, s49, s50 of" in text
    _, made = call_json(*words)
    call("run", "--once")
    _, again = call_json("status", made["instance"])

    assert (made["steps"], made["kept"]) == ([f"s{n}" for n in range(45, 51)], 44)
    done = [step for step in first["steps"] if step["state"] == "done"]
    assert len(done) == 44 and made["saved_s"] > 0
    assert re.search(
        rf"; 44 steps before are not done again, which saves {made['saved_s']:.1f} s", text
    )
    assert again["state"] == "completed"
    assert [s["id"] for s in again["steps"] if s["attempts"]] == made["steps"]
    trace = Path(again["workspace"], "trace").read_text().split("\n")
    assert trace == [*(str(n) for n in range(1, 45)), "45, mended", *map(str, range(46, 51)), ""]
    assert (again["replay_of"], again["from"]) == (first["instance"], "s45")
    _, old = call_json("status", first["instance"])
    assert old["replayed_by"] == [made["instance"]]
    assert f"replays {first['instance']} from `s45`" in call("status", made["instance"])[1]
    assert f"replayed by {made['instance']}" in call("status", first["instance"])[1]


@pytest.mark.parametrize(
    ("mended", "said"),
    [
        ("name: other\nsub_steps: [{id: s45, kind: shell, command: ls}]", "no mended `chain`"),
        (CHAIN.replace("id: b", "id: bb"), "the mended `chain` has no step `b` to begin at"),
        (CHAIN.replace("kind: shell", "kind: shall"), "shall"),
    ],
)
def test_what_is_no_mended_workflow_is_refused(call, call_json, here, mended, said):
    """Another one, one without the step, one that does not load: nothing is queued."""
    _, first = call_json("start", "./chain.yaml", "--wait")
    (here / "mended.yaml").write_text(mended)
    status, _, err = call("replay", first["instance"], "--from", "b", "--with", "./mended.yaml")
    assert status == 2 and said in err
    assert len(call_json("list")[1]["instances"]) == 1


# --- snapshots ------------------------------------------------------------------------------------


def test_folders_are_kept_compared_and_brought_back(call, call_json, here):
    """By the beginnings of their ids."""
    folder = here / "folder"
    folder.mkdir()
    (folder / "a").write_text("1")
    _, one = call_json("snapshot", "create", "--dir", "folder")
    (folder / "a").write_text("2")
    (folder / "b").write_text("3")
    _, two = call_json("snapshot", "create", "--dir", "folder")
    _, said = call_json("snapshot", "diff", one["snapshot"][:12], two["snapshot"][:12])
    assert said["changes"] == [
        {"change": "changed", "path": "a"},
        {"change": "added", "path": "b"},
    ]
    ids = [row["snapshot_id"] for row in call_json("snapshot", "list")[1]["snapshots"]]
    assert ids == [two["snapshot"], one["snapshot"]]
    assert call("snapshot", "restore", one["snapshot"][:12], "--to", "folder")[0] == 0
    assert [p.name for p in folder.iterdir()] == ["a"]
    status, _, err = call("snapshot", "diff", "feed", one["snapshot"])
    assert status != 0 and err.startswith("openry-orchestrator: ")


@pytest.mark.parametrize(
    ("when", "kept"),
    [
        ("snapshot: before", ["before step"]),
        ("snapshot: after", ["after step"]),
        ("snapshot: both", ["before step", "after step"]),
        ("irreversible: true", ["before step"]),
        ("irreversible: true, snapshot: none", []),
        ("snapshot: none", []),
    ],
)
def test_a_step_keeps_the_files_when_it_says_so(call_json, here, when, kept):
    """Before, after, both or not at all; before what cannot be undone."""
    (here / "w.yaml").write_text(
        f"name: w\nsub_steps: [{{id: a, kind: shell, command: echo > x, {when}}}]\n"
    )
    _, first = call_json("start", "./w.yaml", "--wait")
    rows = call_json("snapshot", "list", "--instance", first["instance"])[1]["snapshots"]
    assert [row["reason"] for row in reversed(rows)] == kept
    assert [row["files"] for row in reversed(rows)] == [int("after" in each) for each in kept]


# --- prune ----------------------------------------------------------------------------------------


def test_what_ended_long_ago_is_deleted_and_nothing_else(call, call_json, here):
    """With rows and folders; what is newer, or has not ended, stays."""
    (here / "own.yaml").write_text(
        "name: own\nsub_steps: [{id: a, kind: shell, command: echo > x}]\n"
    )
    old, new = (call_json("start", "./own.yaml", "--wait")[1] for _ in range(2))
    _, waiting = call_json("start", "./own.yaml")
    with Engine(settings()) as engine, engine.room.write() as connection:
        for each in (old["instance"], waiting["instance"]):
            past = {"created_at": "2020-01-01T00:00:00.000Z"}
            if each == old["instance"]:
                past["ended_at"] = "2020-01-01T00:00:01.000Z"
            where = workflow_instances.c.instance_id == each
            connection.execute(workflow_instances.update().where(where).values(**past))
    assert call_json("prune", "--older-than", "30d", "--dry-run")[1]["instances"] == 1
    assert call_json("prune")[1]["instances"] == 1
    left = {row["instance"] for row in call_json("list")[1]["instances"]}
    assert left == {new["instance"], waiting["instance"]}
    assert not Path(old["workspace"]).exists() and Path(new["workspace"]).exists()
    assert call_json("prune")[1]["instances"] == 0
    status, _, err = call("prune", "--older-than", "soon")
    assert status == 2 and "30d" in err


# --- test -----------------------------------------------------------------------------------------

TESTS = """
tests:
  - name: the whole way
    inputs: {who: you}
    steps:
      a: {}
      b: {stdout: "hello ${you} {{ x }}"}
      c: {files: {out: "it's there"}, stdout: end}
    expect:
      state: failed
      steps: [a, b, c]
      rules: [{type: file_contains, path: out, contains: "it's"}]
  - name: a route back
    steps:
      a: [{payload: {n: 1}}, {exit_code: 3}]
      b: {}
      c: {exit_code: 1}
    expect: {state: failed, reason: exit 3}
"""


def test_a_workflows_own_tests_are_run(call, call_json, here):
    """Recorded outputs take the place of commands; routes, rules and templates are real."""
    (here / "chain.test.yaml").write_text(TESTS)
    status, said = call_json("test", "./chain.yaml")
    assert (status, said["ok"]) == (0, True), said
    assert [test["steps"] for test in said["tests"]] == [["a", "b", "c"], ["a", "b", "c"]]
    assert not (here / "out").exists(), "nothing real was run"

    (here / "chain.test.yaml").write_text(TESTS.replace("reason: exit 3", "reason: exit 4"))
    status, text, _ = call("test", "./chain.yaml")
    assert status == 1
    assert "FAILED  a route back" in text and "expected a reason with `exit 4`" in text


def test_agents_are_scripted_and_people_answer_in_tests(call_json, here):
    """An agent's turns and a person's answer are recorded as well."""
    (here / "talk.yaml").write_text(
        "name: talk\nsub_steps:\n"
        "  - {id: say, description: say a word, payload_keys: [word]}\n"
        "  - {id: ask, kind: approval, prompt: 'is {{ payload.word }} right?'}\n"
        "  - {id: end, kind: shell, command: 'echo {{ payload.approved }}'}\n"
    )
    (here / "talk.test.yaml").write_text(
        "tests:\n"
        "  - name: yes\n    steps:\n"
        "      say: {say: [{action: report, status: completed, payload: {word: hi}}]}\n"
        "      ask: {approve: true}\n      end: {stdout: ok}\n"
        "    expect: {payload: {_stdout: ok}}\n"
        "  - name: no\n    steps:\n"
        "      say: {say: [{action: report, status: completed, payload: {word: hi}}]}\n"
        "      ask: {approve: false}\n    expect: {state: failed, reason: rejected}\n"
        "  - name: nobody\n    steps:\n"
        "      say: {say: [{action: report, status: completed, payload: {word: hi}}]}\n"
        "    expect: {state: suspended, steps: [say, ask]}\n"
    )
    status, said = call_json("test", "./talk.yaml")
    assert status == 0, said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there are no tests"),
        ("tests: []", "must not be empty"),
        ("tests: [{name: x, expct: {}}]", "did you mean `expect`"),
        ("tests: [{name: x, steps: {z: {}}}]", "no step `z`"),
    ],
)
def test_mistakes_in_tests_are_sentences(call, here, text, said):
    """With file and line."""
    if text is not None:
        (here / "chain.test.yaml").write_text(text)
    status, out, err = call("test", "./chain.yaml")
    assert status in (1, 2) and said in out + err


# --- schedules ------------------------------------------------------------------------------------


def test_schedules_are_added_listed_and_removed(call, call_json):
    """With the next time in both clocks."""
    words = ("--cron", "0 8 * * 1-5", "--tz", "Asia/Shanghai")
    _, made = call_json("schedule", "add", "./chain.yaml", *words, "--name", "morning")
    assert made["schedule"]["next_local"].endswith("08:00+08:00")
    (listed,) = call_json("schedule", "list")[1]["schedules"]
    assert (listed["name"], listed["zone"], listed["last"]) == ("morning", "Asia/Shanghai", None)
    assert "morning" in call("schedule", "list")[1]
    status, _, err = call("schedule", "remove", "mornin")
    assert status == 2 and "did you mean `morning`" in err
    assert call("schedule", "remove", "morning")[0] == 0
    assert call_json("schedule", "list")[1]["schedules"] == []


def test_a_dry_run_of_a_schedule_shows_the_next_times(call_json):
    """Local and UTC, across summer time, and nothing is kept."""
    words = ("--cron", "0 7-8 * * *", "--tz", "America/Los_Angeles", "--dry-run")
    _, said = call_json("schedule", "add", "./chain.yaml", *words, "--from", "2020-03-07T00:00")
    assert [each["local"][5:16] for each in said["next"]] == [
        "03-07T07:00", "03-07T08:00", "03-08T07:00", "03-08T08:00", "03-09T07:00", "03-09T08:00",
    ]  # fmt: skip
    assert [each["utc"][11:13] for each in said["next"]] == ["15", "16", "14", "15", "14", "15"]
    assert call_json("schedule", "list")[1]["schedules"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cron", "8 o'clock"), "is no cron line"),
        (("--cron", "* * * * *", "--overlap", "wait"), "must be one of skip, queue, cancel"),
        (("--cron", "* * * * *", "--catch-up", "some"), "must be one of none, last, all"),
        (("--cron", "* * * * *", "--tz", "Moon"), "no time zone `Moon`"),
        (("--cron", "* * * * *", "--dry-run", "--from", "noon"), "is no time"),
    ],
)
def test_mistakes_in_schedules_are_sentences(call, words, said):
    """Exit 2, nothing kept."""
    status, _, err = call("schedule", "add", "./chain.yaml", *words)
    assert status == 2 and said in err


def test_a_systemd_unit_is_written_for_this_user(call, call_json, here, monkeypatch):
    """It runs `run` with this OPENRY_HOME; `--dry-run` only shows it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here / "config"))
    _, said = call_json("service", "install", "--dry-run")
    assert not said["written"] and not (here / "config").exists()
    assert call("service", "install")[0] == 0
    unit = (here / "config" / "systemd" / "user" / "openry.service").read_text()
    assert unit == said["unit"]
    assert re.search(r"^ExecStart=\S.* run$", unit, re.MULTILINE)
    assert f"OPENRY_HOME={os.environ['OPENRY_HOME']}" in unit


# --- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("grpah", "x"), "did you mean `graph`"),
        (("schedule", "ad"), "add"),
        (("snapshot", "crate"), "create"),
        (("graph", "chian"), "there is no workflow `chian`"),
    ],
)
def test_a_word_that_is_not_known_offers_the_nearest(call, words, said):
    """Of groups as well; exit 2 and one sentence."""
    status, _, err = call(*words)
    assert status == 2 and said in err and "Traceback" not in err


def test_steering_answers_in_json_too(call_json, here):
    """`cancel` and `retry` say what they did, with the version of the shape."""
    _, made = call_json("start", "./chain.yaml")
    said = call_json("cancel", made["instance"])[1]
    assert (said["instance"], said["done"]) == (made["instance"], "asked to end")
    assert call_json("retry", made["instance"])[1]["done"] == "queued again"


def test_a_missing_big_step_is_told_with_its_line(call, here):
    """By `validate` and by `start`, whichever way it is written, with the nearest name."""
    (here / "whole.yaml").write_text(
        "name: whole\nbig_steps:\n  - chain\n  - {ref: chian}\n  - x\n"
    )
    for word in ("validate", "start"):
        status, out, err = call(word, "./whole.yaml")
        said = out + err
        assert status == 2
        assert "whole.yaml:4: there is no workflow `chian` (did you mean `chain`?)" in said
        assert "whole.yaml:5: there is no workflow `x`" in said


def test_an_overflow_handler_that_nobody_has_is_a_warning(call, here):
    """By `lint` and `validate`; the shipped ones and the words with a meaning are known."""
    text = "name: x\nsub_steps:\n  - {id: a, description: x}\n"
    text = text.replace("}", ", on_output_overflow: HANDLER}")
    for handler, known in (("overflow_digst", False), ("overflow_shell", True), ("fail", True)):
        (here / "x.yaml").write_text(text.replace("HANDLER", handler))
        for word in ("lint", "validate"):
            _, out, _ = call(word, "./x.yaml")
            assert ("did you mean `overflow_digest`?" in out) is not known, out
            assert ("x.yaml:3: warning: " in out) is not known


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", "a\\b", '"a\\tb"'])
def test_a_name_that_leads_elsewhere_is_refused_with_its_line(call, here, name):
    """A workflow's as well as a composition's."""
    for rest in ("sub_steps: [{id: a, kind: shell, command: 'true'}]", "big_steps: [chain]"):
        (here / "named.yaml").write_text(f"version: 1\nname: {name}\n{rest}\n")
        status, _, err = call("start", "./named.yaml")
        assert status == 2
        assert "named.yaml:2: " in err and "name" in err


def test_an_empty_id_and_an_unknown_state_are_mistakes(call):
    """Not the same as none, and not the same as nothing found."""
    for words in (("status", ""), ("status", "", "--watch"), ("logs", "")):
        status, _, err = call(*words)
        assert (status, "there is no instance ``" in err) == (2, True), err
    status, _, err = call("list", "--state", "complete")
    assert (status, "(did you mean `completed`?)" in err) == (2, True)
