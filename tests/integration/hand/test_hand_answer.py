"""What `openry -c` answers, row by row of its table."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hand_helpers import KEYS, OpenRY


def test_the_answer_has_exactly_four_keys(openry: OpenRY):
    """One line of JSON with four keys in this order, whatever happens."""
    answer = openry("-c", "echo hello world")

    assert list(answer) == KEYS
    assert (answer["exit_code"], answer["stdout"], answer["stderr"]) == (0, "hello world\n", "")
    assert isinstance(answer["duration_ms"], int)


@pytest.mark.parametrize(("line", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("nosuch", 127)])
def test_a_failing_command_is_not_a_failing_tool(openry: OpenRY, line: str, code: int):
    """The exit code is in the answer; `openry` itself ends with 0, or with it on --propagate."""
    assert openry("-c", line)["exit_code"] == code
    assert openry("-c", line, "--propagate", status=code)["exit_code"] == code


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-c", ""], "empty"),
        (["-c", "  \n"], "empty"),
        (["-c", "pwd", "--cwd", "C:/tmp"], "does not exist"),
        (["-c", "pwd", "--timeout", "0"], "--timeout"),
        (["-c", "pwd", "--timeout", "nan"], "--timeout"),
        (["-c", "pwd", "--env", "A"], "NAME=VALUE"),
        (["-c", "pwd", "--env", "=A"], "NAME=VALUE"),
        (["-c", "pwd", "--tiemout", "3"], "did you mean `--timeout`?"),
        (["-c", "pwd", "--payload", "{}"], "does not go with `-c`"),
        (["-c", "pwd", "-c", "pwd"], "`-c` is given twice"),
        (["-c"], "needs a value"),
        (["-c", "@nosuch"], "No such file"),
        (["--cwd", "/"], "say what to do"),
        (["-c", "ls", "-la"], "quote the whole command: -c 'ls -l'"),
        (["-c", "echo", "two words"], "quote the whole command"),
        (["-c", "@big"], "larger than 1 MiB; let the command run the file itself: -c 'sh FILE'"),
    ],
)
def test_a_wrong_call_is_answered_in_json(openry: OpenRY, args: list[str], said: str):
    """Status 2, one sentence on the answer's stderr, nothing run."""
    (openry.cwd / "big").write_text("#" * (1024 * 1024 + 1))

    answer = openry(*args, status=2)

    assert (answer["exit_code"], answer["stdout"]) == (2, "")
    assert said in answer["stderr"]
    assert answer["stderr"].startswith("openry: ")
    assert answer["stderr"].count("\n") == 1


def test_what_is_no_file_is_not_waited_for(openry: OpenRY):
    """A pipe nobody writes to, and a folder, are one sentence at once."""
    os.mkfifo(openry.cwd / "pipe")

    for given in (("-c", "@pipe"), ("--call", "count_lines", "--args", "@pipe")):
        assert "no regular file" in openry(*given, status=2)["stderr"]
    assert "this is a folder" in openry("-c", "@.", status=2)["stderr"]


def test_a_command_may_come_from_a_file_or_from_standard_input(openry: OpenRY):
    """`@FILE` and `-` reach the shell byte for byte."""
    text = "printf '%s\\n' 'a  b' \"$0\"  # \xff é".encode("latin-1")
    (openry.cwd / "line.sh").write_bytes(text)

    from_file = openry("-c", "@line.sh")
    from_stdin = openry("-c", "-", stdin=text)

    assert from_file["stdout"] == from_stdin["stdout"] == "a  b\n/bin/sh\n"
    stored = openry.rows("command")[0]["command"]
    assert stored.startswith("printf '%s\\n' 'a  b'")


def test_quotes_heredocs_and_pid_reach_the_shell_as_they_are(openry: OpenRY):
    """The line is never parsed and joined again (B19), nor are backslashes lost (B71)."""
    line = (
        "true | true; { echo inside; }; echo PID=$$\ncat <<'MY-MARKER' | cat\n"
        "a \"b\" 'c' `d` $e !f \\g\nMY-MARKER\nprintf '%s\\n' 'C:\\Users\\me\\new dir\\t.txt'"
    )

    answer = openry("-c", line)

    out = answer["stdout"].splitlines()
    assert out[0] == "inside"
    assert out[1].removeprefix("PID=").isdigit()
    assert out[2:] == ["a \"b\" 'c' `d` $e !f \\g", "C:\\Users\\me\\new dir\\t.txt"]
    assert openry.rows("command")[0]["command"] == line


def test_a_command_longer_than_an_argument_may_be_runs(openry: OpenRY):
    """Linux allows 128 KiB an argument; a longer line goes to the shell by descriptor (B69)."""
    word = "x" * 300_000
    (openry.cwd / "long.sh").write_text(f"echo {word} | wc -c; echo $0")

    answer = openry("-c", "@long.sh")

    assert answer["exit_code"] == 0
    assert answer["stdout"].split()[0] == "300001"


@pytest.mark.parametrize("letter", ["x", "é", "字", "\U0001f600"])
def test_length_is_counted_in_bytes(openry: OpenRY, letter: str):
    """A line of 90,000 characters runs whatever they are (B69)."""
    (openry.cwd / "long.sh").write_text(f"printf %s {letter * 90_000} | wc -c")

    answer = openry("-c", "@long.sh")

    assert (answer["stdout"].strip(), answer["stderr"]) == (str(90_000 * len(letter.encode())), "")


def test_the_exit_status_is_the_shells_own(openry: OpenRY):
    """`-c` runs without pipefail, as documented (B17)."""
    assert openry("-c", "false | cat")["exit_code"] == 0


def test_nothing_persists_from_call_to_call(openry: OpenRY):
    """`cd` and variables end with the call; --cwd and --env are per call (B21)."""
    openry("-c", "cd / && export FOO=1")

    assert openry("-c", "pwd; echo FOO=$FOO")["stdout"] == f"{openry.cwd}\nFOO=\n"
    assert openry("-c", "pwd; echo $FOO", "--cwd", "/", "--env", "FOO=a=b")["stdout"] == "/\na=b\n"


def test_standard_input_is_empty_unless_passed_on(openry: OpenRY):
    """What reads its input ends at once; --stdin passes ours on (B07)."""
    assert openry("-c", "cat; echo end", stdin=b"mine")["stdout"] == "end\n"
    assert openry("-c", "read x; echo got:$x", stdin=b"mine\n")["stdout"] == "got:\n"
    assert openry("-c", "cat", "--stdin", stdin=b"mine")["stdout"] == "mine"


def test_the_environment_is_built_not_inherited(openry: OpenRY):
    """Nothing but the allow-list, what was asked for, and a folder of the call's own."""
    given = {"OPENAI_API_KEY": "sk-test-AAAA1111", "EDITOR": "vi", "LD_PRELOAD": "", "LANG": "C"}

    out = openry("-c", "env; test -d $TMPDIR && echo there", "--env", "MINE=1", env=given)["stdout"]

    found = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    assert {"PATH", "HOME", "TMPDIR", "MINE", "LANG", "TERM", "CI"} <= set(found)
    assert not [name for name in found if name.startswith("OPENRY_")]
    assert not {"OPENAI_API_KEY", "EDITOR", "LD_PRELOAD"} & set(found)
    assert (found["LANG"], found["TERM"]) == ("C", "dumb")
    assert out.endswith("there\n")
    assert not Path(found["TMPDIR"]).exists()


def test_a_dry_run_says_what_would_run_and_runs_nothing(openry: OpenRY):
    """No process, no row."""
    answer = openry("-c", "touch made", "--dry-run", "--timeout", "2")

    told = json.loads(answer["stdout"])
    assert told["argv"] == ["/bin/sh", "-c", "touch made"]
    assert (told["timeout_s"], told["verdict"]) == (2.0, "allow")
    assert not (openry.cwd / "made").exists()
    assert not (openry.home / "openry.db").exists()


def test_a_dry_run_names_what_the_line_touches(openry: OpenRY):
    """Files read and written and hosts, as far as the line says them."""
    line = "sort names.txt > out.txt && curl https://example.com/x"

    told = json.loads(openry("-c", line, "--dry-run")["stdout"])

    here = str(openry.cwd)
    assert f"{here}/names.txt" in told["reads"]
    assert told["writes"] == [f"{here}/out.txt"]
    assert told["hosts"] == ["example.com:443"]
    assert told["reason"] == "no policy is in force"
    assert not (openry.cwd / "out.txt").exists()


@pytest.mark.parametrize("seconds", ["1e-9", "999999999", "1e8"])
def test_a_timeout_may_be_tiny_or_huge(openry: OpenRY, seconds: str):
    """From a nanosecond to thirty years: an answer, never a traceback."""
    answer = openry("-c", "sleep 0.2", "--timeout", seconds)

    assert answer["exit_code"] == (124 if seconds == "1e-9" else 0)
