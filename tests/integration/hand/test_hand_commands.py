"""`openry config`, `doctor`, `log`, `--call`, `--capabilities`, `capability`."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from hand_helpers import OpenRY


def _said(openry: OpenRY, *args: str, status: int = 0, env: dict[str, str] | None = None) -> str:
    done = openry.raw(*args, env=env)
    assert done.returncode == status, done.stderr.decode() + done.stdout.decode()
    assert b"Traceback" not in done.stderr
    return (done.stdout + done.stderr).decode()


def test_config_says_where_each_value_came_from(openry: OpenRY):
    """Environment over file over default."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "config.yaml").write_text("timeout: {default: 5}\nmodel: local/a.gguf\n")

    out = _said(openry, "config", "--json", env={"OPENRY_MODEL": "openai/x"})

    found = json.loads(out)
    assert found["timeout.default"] == {"value": 5.0, "from": "file"}
    assert found["model"] == {"value": "openai/x", "from": "environment"}
    assert found["timeout.kill_after"] == {"value": 5.0, "from": "default"}
    assert "timeout.default" in _said(openry, "config")


def test_config_shows_no_secret(openry: OpenRY):
    """Neither texts that are never to be shown, nor the password of an address."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "config.yaml").write_text("redact: {literals: [my-own-secret, other-secret]}\n")
    env = {"OPENRY_DB": "postgresql://me:hunter2@db/openry"}

    for args in (("config",), ("config", "--json")):
        told = _said(openry, *args, env=env)
        assert "***" in told
        assert not [word for word in ("my-own", "other-secret", "hunter2") if word in told]


def test_a_wrong_config_is_told_whole(openry: OpenRY):
    """Every problem at once, with the likely meaning, and nothing is run."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "config.yaml").write_text("timeuot: {default: 5}\nbrake: {grace_seconds: -1}\n")

    said = _said(openry, "config", status=2)
    answer = openry("-c", "touch made", status=2)

    for text in (said, answer["stderr"]):
        assert "did you mean `timeout.default`?" in text
        assert "`brake.grace_seconds` must be more than 0 seconds, got `-1`" in text
    assert not (openry.cwd / "made").exists()


def test_doctor_looks_at_the_real_things(openry: OpenRY):
    """Shell and ledger work here; what does not comes with its fix."""
    out = openry.raw("doctor", "--json").stdout

    found = {finding["name"]: finding for finding in json.loads(out)}
    assert found["shell"]["ok"] and found["ledger"]["ok"] and found["quarantine"]["ok"]
    without = openry.raw("doctor", env={"PATH": "/nowhere"}).stdout.decode()
    assert "FAIL  sandbox: bubblewrap, bubblewrap is not installed; run: apt-get" in without
    assert all(
        finding["ok"] or finding["fix"] or not finding["needed"] for finding in found.values()
    )


def test_log_shows_what_was_asked(openry: OpenRY):
    """The last commands, those of a run, the failed ones, the recent ones."""
    openry("-c", "echo one")
    openry("-c", "exit 7")

    assert [row["command"] for row in json.loads(_said(openry, "log", "--json"))] == [
        "echo one",
        "exit 7",
    ]
    assert [row["exit_code"] for row in json.loads(_said(openry, "log", "--failed", "--json"))] == [
        7
    ]
    assert "no command of a run `manul` is in the ledger (did you mean `manual`?)" in _said(
        openry, "log", "--run", "manul", status=2
    )
    assert "the last ones are manual" in _said(openry, "log", "--run", "x", "--json", status=2)
    assert "no command of a step `s1`" in _said(openry, "log", "--step", "s1", status=2)
    assert "echo one" in _said(openry, "log", "--since", "1h")
    assert len(json.loads(_said(openry, "log", "--grep", "^on|7$", "--json"))) == 2
    assert json.loads(_said(openry, "log", "--grep", "two", "--json")) == []
    assert "regular expression" in _said(openry, "log", "--grep", "(", status=2)
    assert "--since must be" in _said(openry, "log", "--since", "soon", status=2)
    assert _said(openry, "log", "--since", "2999-01-01") == "nothing fits\n"
    assert len(json.loads(_said(openry, "log", "--limit", "1", "--json"))) == 1


def test_log_looks_for_an_expression_in_every_row(openry: OpenRY):
    """Not only in the last hundred: one that fits is found however old it is."""
    openry("-c", "echo needle")
    code = "import openry.cli\nfor n in range(120): openry.cli.main(['-c', f'echo {n}'])"
    subprocess.run([sys.executable, "-c", code], env=openry.env, cwd=openry.cwd, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip

    assert "echo needle" in _said(openry, "log", "--grep", "needle")
    found = json.loads(_said(openry, "log", "--grep", "echo", "--limit", "3", "--json"))
    assert [row["command"] for row in found] == ["echo 117", "echo 118", "echo 119"]


def test_log_shows_what_a_killed_hand_left_as_lost(openry: OpenRY):
    """Nobody has to ask for recovery: looking is enough."""
    process = openry.start("-c", "touch begun; sleep 600")
    while not (openry.cwd / "begun").exists():
        time.sleep(0.02)
    process.kill()
    process.wait()

    assert [row["ending"] for row in json.loads(_said(openry, "log", "--json"))] == ["lost"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["log", "--faild"], "unknown option `--faild` (did you mean `--failed`?)"),
        (["log", "--limit", "x"], "--limit must be a whole number, got `x`"),
        (["log", "--limit", "0"], "--limit must be at least 1"),
        (["log", "--run"], "--run needs a value"),
        (["config", "x"], "too many words: `x`"),
        (
            ["policy", "explian", "ls"],
            "there is no `openry policy explian` (did you mean `explain`?)",
        ),
        (["backup"], "missing FILE"),
        (["secret"], "missing one of set, list, remove"),
    ],
)
def test_words_that_mean_nothing_are_one_sentence(openry: OpenRY, args: list[str], said: str):
    """Status 2, what was meant, where to look; no usage to wade through."""
    told = _said(openry, *args, status=2)

    assert told.startswith(f"openry: {said}")
    assert told.count("\n") == 1


def test_a_tool_is_called_like_a_command(openry: OpenRY):
    """Four keys; stdout holds the ToolResult; the row names the call."""
    (openry.cwd / "app.log").write_text("ERROR a\nok\nERROR b\n")
    args = {"path": "app.log", "needle": "ERROR"}

    answer = openry("--call", "count_matching_lines", "--args", json.dumps(args))

    result = json.loads(answer["stdout"])
    assert (answer["exit_code"], result["success"], result["data"]) == (0, True, 2)
    assert "count_matching_lines" in openry.rows("command")[0]["command"]
    dry = openry("--call", "count_matching_lines", "--args", json.dumps(args), "--dry-run")
    assert json.loads(dry["stdout"])["reads"] == [str(openry.cwd / "app.log")]
    assert len(openry.rows()) == 1


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("count_matchin_lines", "{}", "did you mean `count_matching_lines`?"),
        ("count_matching_lines", "{}", "missing `path`"),
        ("count_matching_lines", "[]", "must be a JSON object"),
        ("count_matching_lines", "{", "not JSON"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(openry: OpenRY, name: str, args: str, said: str):
    """Status 2, all problems in one answer, nothing run."""
    answer = openry("--call", name, "--args", args, status=2)

    assert said in answer["stderr"]


def test_a_failing_tool_is_an_answer(openry: OpenRY):
    """The error's class and hint are in the ToolResult; `openry` itself ends with 0."""
    answer = openry("--call", "count_lines", "--args", '{"path": "nothing.txt"}')

    result = json.loads(answer["stdout"])
    assert answer["exit_code"] != 0
    assert (result["success"], result["error"]["class"]) == (False, "not_found")


@pytest.mark.parametrize("form", ["json", "prompt", "openai", "mcp"])
def test_tools_are_offered_in_each_form(openry: OpenRY, form: str):
    """One of them is found in each."""
    said = _said(openry, "--capabilities", "--format", form)

    assert "count_matching_lines" in said
    if form != "prompt":
        assert len(json.loads(said)) > 20


def test_capabilities_can_be_listed_shown_tested_and_added(openry: OpenRY, tmp_path):
    """A pack with a mistake is refused with what is missing."""
    assert "text.count_lines" in _said(openry, "capability", "list")
    assert "path (string, required)" in _said(openry, "capability", "show", "count_lines")
    assert "secrets it reads: MAIL_PASSWORD" in _said(openry, "capability", "show", "send_mail")
    assert ": ok" in _said(openry, "capability", "test", "count_lines")
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "bad.yaml").write_text("name: bad\ncommand_template: [echo]\n")
    assert "description" in _said(openry, "capability", "add", str(pack), status=2)


@pytest.mark.parametrize("word", ["conifg", "logs", "nothing"])
def test_an_unknown_command_is_one_sentence(openry: OpenRY, word: str):
    """Status 2 and, where one is near, what was meant."""
    assert _said(openry, word, status=2).count("\n") == 1


def test_help_and_version(openry: OpenRY):
    """Both on standard output."""
    assert "openry -c" in _said(openry, "--help")
    assert _said(openry, "--version").startswith("openry ")
