"""`openry-orchestrator` as a person and a script meet it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

CHAIN = """
name: chain
inputs: {who: {default: world}}
workspace: shared
sub_steps:
  - {id: a, kind: shell, command: 'echo hello {{ inputs.who }} > out'}
  - {id: b, kind: shell, command: 'cat out'}
"""
BROKEN = """
name: broken
sub_steps:
  - {id: a, kind: shell, comand: 'true'}
  - {id: b, kind: shell, command: 'true', on_failure: c}
"""
ASKING = "{name: asking, sub_steps: [{id: ask, kind: approval, prompt: 'go on?'}]}"


@pytest.fixture(autouse=True)
def _files(here):
    for name, text in (("chain", CHAIN), ("broken", BROKEN), ("asking", ASKING)):
        (here / f"{name}.yaml").write_text(text)


def test_start_waits_and_shows_each_step(call, here):
    """`--wait` runs the workflow in the folder we stand in, and exits 0."""
    status, out, err = call("start", "chain.yaml", "--wait", "--input", "who=Ann")
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if line.startswith(("a:", "b:"))] == [
        "a: in_progress",
        "a: done",
        "b: in_progress",
        "b: done",
    ]
    assert (here / "out").read_text() == "hello Ann\n"


def test_the_json_shapes_carry_a_schema_version(call_json, call):
    """What scripts read: start, status, list, logs and inspect."""
    status, started = call_json("start", "chain.yaml")
    assert status == 0
    assert started == {"schema_version": 1, "instance": started["instance"], "state": "queued"}
    assert call("run", "--once")[0] == 0

    _, shown = call_json("status", started["instance"])
    assert (shown["state"], shown["workflow"], shown["schema_version"]) == ("completed", "chain", 1)
    step = shown["steps"][0]
    assert {"id", "state", "attempts", "run_id", "payload"} <= set(step)
    assert (step["id"], step["state"], step["attempts"]) == ("a", "done", 1)

    _, listed = call_json("list")
    assert [each["instance"] for each in listed["instances"]] == [started["instance"]]
    _, told = call_json("logs", started["instance"], "--step", "a")
    assert [event["new"] for event in told["events"]][-1] == "done"
    _, run = call_json("inspect", step["run_id"])
    assert run["commands"][0]["exit_code"] == 0


def test_an_id_may_be_shortened(call, call_json):
    """The first letters are enough when they fit one instance."""
    _, started = call_json("start", "chain.yaml")
    assert call_json("status", started["instance"][:6])[1]["instance"] == started["instance"]


def test_exit_codes_tell_how_it_ended(call, here):
    """0 completed, 1 failed, 3 waiting for a person; then yes and no."""
    (here / "bad.yaml").write_text(
        "{name: bad, sub_steps: [{id: a, kind: shell, command: exit 3}]}"
    )
    status, out, _ = call("start", "bad.yaml", "--wait")
    assert (status, out.splitlines()[-1]) == (1, "exit 3")
    status, out, _ = call("start", "asking.yaml", "--wait")
    assert status == 3
    assert "waiting for a person: go on?" in out
    instance = out.split("approve ")[1].split()[0]
    refused = call("approve", instance)[2]
    token = refused.split("--token-file ")[1].strip()
    assert call("approve", instance, "--comment", "fine", "--token-file", token)[0] == 0
    assert call("run", "--once")[0] == 0
    assert "completed" in call("status", instance)[1]
    assert "waits for nobody" in call("reject", instance, "--token-file", token)[2]


def test_only_the_operator_answers_for_a_person(call, call_json, here):
    """At a terminal, or with the operator's token: 0600, made once, and shown to no step."""
    _, started = call_json("start", "asking.yaml", "--wait")
    instance, place = started["instance"], here.parent / "home" / "operator.token"
    other = here / "other"
    other.touch(0o600)
    other.write_text("a guess")

    for words, said in (
        ((), f"or a script with --token-file {place}"),
        (("--token-file", str(other)), "does not hold the operator's token"),
        (("--token-file", str(here)), "is no regular file"),
        (("--token-file", str(here / "none")), "No such file"),
    ):
        status, out, err = call("approve", instance, *words)
        assert (status, out) == (2, "")
        assert said in err
    assert place.stat().st_mode & 0o777 == 0o600
    token = place.read_text()
    place.chmod(0o644)
    assert "others may read" in call("approve", instance, "--token-file", str(place))[2]
    place.chmod(0o600)
    assert call("reject", instance, "--token-file", str(place))[0] == 0
    assert place.read_text() == token


def test_a_script_may_name_the_token_before_there_is_one(call, here):
    """In a fresh home the file that is named is the one that is made: nobody has to fail first."""
    place = here.parent / "home" / "operator.token"
    place.unlink(missing_ok=True)

    _, _, said = call("approve", "nothing", "--token-file", str(place))

    assert "there is no instance `nothing`" in said
    assert place.stat().st_mode & 0o777 == 0o600


def test_a_person_at_a_terminal_needs_no_token(here, call_json):
    """A real terminal, with a real person's keyboard at its other end."""
    _, started = call_json("start", "asking.yaml", "--wait")
    answered, asking = os.openpty()
    code = f"from openry.orchestrator.cli import main; main(['approve', '{started['instance']}'])"

    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, stdin=asking, capture_output=True, text=True, timeout=60)
    os.close(answered)
    os.close(asking)

    assert done.stdout.endswith("approved\n"), done


@pytest.mark.sandbox
def test_no_step_sees_the_operators_token(call, call_json, here):
    """Not even one whose read list names the folder it is in."""
    home = here.parent / "home"
    call("approve", "0")
    (here / "peek.yaml").write_text(
        f"{{name: peek, workspace: shared, sandbox: {{backend: bubblewrap, read: ['{home}']}},"
        f" sub_steps: [{{id: a, kind: shell, command: 'env; cat {home}/* 2>&1; true'}}]}}"
    )
    _, ended = call_json("start", "peek.yaml", "--wait")

    said = json.dumps(ended)
    assert ended["state"] == "completed"
    assert (home / "operator.token").read_text().strip() not in said


def test_a_failed_instance_is_retried(call, call_json, here):
    """`retry --wait` goes on where it failed."""
    text = "{name: f, workspace: shared, sub_steps: [{id: a, kind: shell, command: test -e ok}]}"
    (here / "f.yaml").write_text(text)
    _, ended = call_json("start", "f.yaml", "--wait")
    (here / "ok").touch()
    assert call("retry", ended["instance"], "--from", "nope")[2].startswith(
        "openry-orchestrator: `f` has no step `nope`"
    )
    assert call("retry", ended["instance"], "--wait")[0] == 0


def test_a_queued_instance_is_cancelled(call, call_json):
    """`cancel` of what has not begun ends it at once; a second time is a mistake."""
    _, started = call_json("start", "chain.yaml")
    assert call("cancel", started["instance"])[0] == 0
    assert call_json("status", started["instance"])[1]["state"] == "cancelled"
    assert "has ended" in call("cancel", started["instance"])[2]


def test_validate_tells_every_problem_with_its_line(call, call_json):
    """All problems at once, with place and the nearest key; exit 2."""
    status, out, _ = call("validate", "broken.yaml")
    assert status == 2
    assert "broken.yaml:4: unknown key `comand` (did you mean `command`?)" in out
    assert "broken.yaml:5: `on_failure` leads nowhere" in out
    status, said = call_json("validate", "broken.yaml")
    assert (status, said["ok"]) == (2, False)
    assert set(said["problems"][0]) == {"file", "line", "message", "hint", "level"}
    assert call_json("validate", "chain.yaml")[1] == {
        "schema_version": 1,
        "ok": True,
        "problems": [],
    }


def test_strict_makes_warnings_errors(call, here):
    """A key of another tool is a warning; with `--strict` it is an error."""
    text = CHAIN + "semantic_reporting: true\n"
    (here / "foreign.yaml").write_text(text)
    assert call("validate", "foreign.yaml")[0] == 0
    assert call("validate", "foreign.yaml", "--strict")[0] == 2


def test_a_file_that_is_not_there_hides_no_problem_of_the_others(call):
    """Every file of the call is looked at, for `validate` as for `lint`."""
    for command in ("validate", "lint"):
        status, out, err = call(command, "nowhere.yaml", "broken.yaml", "/no/such.yaml")
        assert (status, err) == (2, "")
        assert "nowhere.yaml: does not exist" in out
        assert "broken.yaml:4: unknown key `comand`" in out
        assert "/no/such.yaml: does not exist" in out


def test_a_composition_is_validated_with_what_it_names(call, here):
    """A big step that nothing has is found before anything runs."""
    (here / "all.yaml").write_text("{name: all, big_steps: [chain, chian]}")
    status, out, _ = call("validate", "all.yaml")
    assert status == 2
    assert "`chian`" in out


def test_the_schema_is_json_schema(call):
    """Editors can check files against it."""
    from jsonschema import Draft202012Validator

    status, out, _ = call("schema")
    assert status == 0
    Draft202012Validator.check_schema(json.loads(out))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["start", "chian.yaml"], "`chian.yaml` does not exist (did you mean `chain.yaml`?)"),
        (
            ["start", "shell_chian"],
            "there is no workflow `shell_chian` (did you mean `shell_chain`?)",
        ),
        (["start", "chain.yaml", "--input", "who"], "`--input who` is not `key=value`"),
        (["start", "chain.yaml", "--input", "whom=x"], "did you mean `who`?"),
        (["start", "chain.yaml", "--dir", "nowhere"], "the workspace `nowhere` is not a folder"),
        (["start", "broken.yaml"], "broken.yaml:4: unknown key `comand`"),
        (["sttaus"], "there is no command `sttaus` (did you mean `status`?)"),
        (["status", "zzz"], "there is no instance `zzz`"),
        (["status", "--nope"], "no such option"),
        (["start"], "missing argument `NAME|FILE` (usage: openry-orchestrator start "),
        (["run", "--workers", "0"], "invalid value"),
        (["inspect", "zzz"], "run `zzz` is none: it never was, or it was pruned"),
        (["start", "w", "--dir", ""], "--dir is empty; name a file or folder"),
        (["start", "w", "--input-file="], "--input-file is empty; name a file or folder"),
        (["logs", "zzz"], "there is no instance `zzz`"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_2(call, words, said):
    """No traceback, no banner: what is wrong and what to do."""
    status, out, err = call(*words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.startswith("openry-orchestrator: ")
    assert "Traceback" not in err


def test_a_ledger_that_cannot_be_opened_is_one_sentence(call, here, monkeypatch):
    """A file that is no ledger is named, with what to set."""
    (here / "not.db").write_text("not a database, but a letter " * 100)
    monkeypatch.setenv("OPENRY_DB", str(here / "not.db"))
    status, _, err = call("list")
    assert status == 2
    assert "not a SQLite database" in err and "OPENRY_DB" in err


def test_a_step_cannot_steer_workflows(call, monkeypatch):
    """Inside a run the orchestrator refuses."""
    monkeypatch.setenv("OPENRY_RUN_ID", "abc")
    assert call("list")[0] == 2


def test_lint_tells_what_looks_wrong(call):
    """A step without a check is allowed, and told."""
    status, out, _ = call("lint", "chain.yaml")
    assert status == 0
    assert "warning" in out
