"""The policy's gate: what is refused was never started, and its row says why."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hand_helpers import OpenRY, need_bubblewrap

from openry.models import Command, Ending


def rows(hand: Any) -> list[tuple[Any, ...]]:
    """What the ledger keeps of the commands: ending, verdict, rule."""
    asked = "SELECT ending, verdict, exit_code FROM commands_log ORDER BY id"
    with closing(sqlite3.connect(hand.ledger.path)) as db:
        return db.execute(asked).fetchall()


@pytest.fixture
def hand(make_hand: Callable[..., Any]) -> Any:
    return make_hand(policy=("moderate",))


@pytest.mark.parametrize("cwd", ["..", "/root", "link", "sub/../.."])
def test_a_folder_outside_is_no_place_to_run_in(make_hand: Callable[..., Any], cwd: str) -> None:
    """What names no file reads the folder it runs in, so that is judged like a file to read."""
    hand = make_hand(policy=("strict",))
    workspace = Path(hand.context.workspace)
    (workspace / "sub").mkdir()
    (workspace / "link").symlink_to(workspace.parent)

    outside = hand.forward(Command(text="ls", cwd=cwd))
    inside = hand.forward(Command(text="ls -d .", cwd="sub"))

    assert (outside.exit_code, outside.stdout) == (126, "")
    assert "is outside what may be read" in outside.stderr
    assert (inside.exit_code, inside.stdout) == (0, ".\n")


def test_a_denied_command_is_not_started(hand: Any) -> None:
    """The answer is 126 with one sentence that says what to do instead; nothing has happened."""
    result = hand.forward(Command(text="echo x > made; git push origin main"))

    assert (result.exit_code, result.ending, result.stdout) == (126, Ending.REFUSED, "")
    assert result.stderr.startswith("openry: not allowed: a step publishes nothing; try: `git form")
    assert result.stderr.count("\n") == 1
    assert rows(hand) == [("refused", "deny", 126)]
    assert hand.forward(Command(text="ls")).stdout == ""


def test_what_needs_a_person_is_refused_where_nobody_is(hand: Any) -> None:
    """A `confirm` rule answers 126 as well, in words of its own."""
    result = hand.forward(Command(text="git reset --hard"))

    assert result.exit_code == 126
    assert result.stderr.startswith("openry: needs approval: ")


def test_an_allowed_command_runs_in_the_shell_that_was_judged(hand: Any) -> None:
    """What is judged is what runs: bash, whose grammar the policy reads."""
    result = hand.forward(Command(text='echo {a,b} "${BASH_VERSION:+bash}"'))

    assert result.stdout == "a b bash\n"


def test_a_variable_of_the_call_is_judged_like_an_assignment(hand: Any) -> None:
    """What a program would load cannot come in by the environment of one call."""
    result = hand.forward(Command(text="ls", env={"LD_PRELOAD": "./x.so"}))

    assert result.exit_code == 126
    assert "LD_PRELOAD" in result.stderr


def test_a_policy_that_cannot_be_read_runs_nothing(make_hand: Callable[..., Any]) -> None:
    """A run whose policy has a mistake is not run without it."""
    result = make_hand(policy=({"default": "perhaps"},)).forward(Command(text="echo ran"))

    assert (result.exit_code, result.stdout) == (2, "")
    assert "`default` must be" in result.stderr


def test_a_step_only_narrows(make_hand: Callable[..., Any]) -> None:
    """With two policies the stricter one decides, whichever stands first."""
    for policy in (("moderate", "strict"), ("strict", "permissive")):
        hand = make_hand(policy=policy)
        assert hand.forward(Command(text="touch made")).exit_code == 126
        assert hand.forward(Command(text="ls | wc -l")).exit_code == 0


def test_no_policy_costs_nothing() -> None:
    """Free use by hand imports nothing of the policy."""
    code = (
        "import sys, openry.forwarder.hand, openry.policy\n"
        "loaded = [m for m in sys.modules if m.startswith('openry.policy.')]\n"
        "print(loaded + [m for m in ('tree_sitter', 'yaml') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


def test_explain_says_what_would_happen(openry: Any) -> None:
    """`openry policy explain` answers with status 0, whatever the verdict."""
    command = [sys.executable, "-c", "import sys; from openry.cli import main; sys.exit(main())"]
    words = ["policy", "explain", "ls && sudo rm x", "--json"]

    done = subprocess.run([*command, *words], capture_output=True, text=True, check=True)

    found = json.loads(done.stdout)
    assert found["verdict"] == "deny"
    assert [part["argv"][0] for part in found["parts"]] == ["ls", "sudo"]
    assert set(found) >= {"verdict", "reason", "parts", "reads", "writes", "hosts"}


@pytest.mark.parametrize(
    "line",
    [
        "true && rm -rf d",
        "true; rm -rf d",
        "echo x | xargs rm",
        "true\nrm -rf d",
        "find d -exec rm {} ;",
        "echo $(rm -rf d)",
        "echo `rm -rf d`",
        "sleep 0 & rm -rf d",
    ],
)
def test_every_part_of_a_line_is_judged(make_hand: Callable[..., Any], line: str) -> None:
    """A denied program is found wherever it stands (B25), is named, and nothing has happened."""
    hand = make_hand(policy=({"mode": "blocklist", "commands": ["rm"]},))
    (Path(hand.context.workspace) / "d").mkdir()

    result = hand.forward(Command(text=line.replace("{} ;", "{} \\;")))

    assert (result.exit_code, result.ending) == (126, Ending.REFUSED)
    assert "rm" in result.stderr
    assert (Path(hand.context.workspace) / "d").is_dir()


def test_a_dry_run_says_the_real_verdict(hand: Any) -> None:
    """Verdict, rule and what would be allowed instead, as the gate would say them; no row."""
    denied = json.loads(hand.preview(Command(text="git push origin main")).stdout)
    asked = json.loads(hand.preview(Command(text="git reset --hard")).stdout)
    allowed = json.loads(hand.preview(Command(text="sort a.txt")).stdout)

    assert denied["verdict"] == "deny"
    assert denied["rule"].startswith("deny git push")
    assert denied["instead"].startswith("`git form")
    assert asked["verdict"] == "confirm"
    assert (allowed["verdict"], allowed["rule"]) == ("allow", "allow sort")
    assert rows(hand) == []


def test_a_dry_run_of_a_run_that_is_over_says_so(make_hand: Callable[..., Any]) -> None:
    """A run that nobody knows may start nothing, whatever its policy says."""
    hand = make_hand(run_id="run-9")

    told = json.loads(hand.preview(Command(text="ls")).stdout)

    assert told["verdict"] == "refused"
    assert "run `run-9` is not in the ledger" in told["reason"]


def _set_policy(openry: OpenRY, sections: str, *, sandbox: str = "auto") -> None:
    """A policy of config.yaml that allows everything, with these sections."""
    openry.home.mkdir(mode=0o700, exist_ok=True)
    policy = openry.home / "mine.yaml"
    policy.write_text(f"default: allow\n{sections}\n")
    (openry.home / "config.yaml").write_text(f"policy: {policy}\nsandbox: {sandbox}\n")


@pytest.mark.parametrize(
    ("limits", "line", "said"),
    [
        ("time_s: 5", "sleep 60", "stopped after 5 s (timeout)"),
        ("procs: 4", "for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait", "4 are allowed"),
        ("disk_mb: 2", "head -c 4000000 /dev/zero > big", "File size limit exceeded"),
    ],
)
def test_the_limits_of_a_policy_hold_by_hand(
    openry: OpenRY, limits: str, line: str, said: str
) -> None:
    """As they do in a run; without the policy the same command goes on."""
    _set_policy(openry, f"limits: {{{limits}}}")

    answer = openry("-c", line)

    assert answer["exit_code"] != 0
    assert said in answer["stderr"]
    assert openry("-c", "echo fine")["stdout"] == "fine\n"


@pytest.mark.sandbox
def test_what_a_policy_requires_holds_by_hand(openry: OpenRY, tmp_path: Path) -> None:
    """In the sandbox of config.yaml, round the current folder or that of `--cwd`."""
    need_bubblewrap()
    (tmp_path / "other").mkdir()
    line = f"echo x > in; echo x > {tmp_path}/out"
    _set_policy(openry, "")
    assert openry("-c", line)["exit_code"] == 0, "the control run failed"
    (tmp_path / "out").unlink()
    _set_policy(openry, "require: [fs_write, net]")

    here = openry("-c", line)
    there = openry("-c", line, "--cwd", str(tmp_path / "other"))
    tool = openry("--call", "count_lines", "--args", '{"path": "in"}')

    assert here["exit_code"] == there["exit_code"] == 0  # /tmp is another one there
    assert not (tmp_path / "out").exists()
    assert (openry.cwd / "in").exists() and (tmp_path / "other/in").exists()
    assert tool["exit_code"] == 0, tool["stdout"]
    assert openry("-c", "true", "--cwd", str(tmp_path / "nope"), status=2)["exit_code"] == 2


def test_what_nothing_holds_by_hand_is_refused(openry: OpenRY) -> None:
    """With `sandbox: none` a requirement cannot be met, and nothing is run."""
    _set_policy(openry, "require: [fs_write]", sandbox="none")

    answer = openry("-c", "touch ran")

    assert answer["exit_code"] == 125
    assert "`fs_write` is required" in answer["stderr"] and "sandbox: auto" in answer["stderr"]
    assert not (openry.cwd / "ran").exists()
