"""Tools that misbehave, and calls that need a person: real programs through the real hand."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openry.agent.calls import call_tool, preview_call
from openry.capability import ToolDefinition, ToolResult, invoke, load_registry
from openry.capability.result import error_classes
from openry.config import load_config
from openry.forwarder import Hand
from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.ledger.journal import ledger_now
from openry.ledger.records import answer_approval, pending_approvals
from openry.models import RunContext, SandboxSpec


def tool(script: str, **more: Any) -> ToolDefinition:
    """A program of a few shell words; `$1` and so on are its parameters."""
    names = list(more.get("parameters", {}))
    return ToolDefinition.model_validate(
        {
            "name": "odd",
            "command_template": ["sh", "-c", script, "odd", *(f"{{{n}}}" for n in names)],
        }
        | more
    )


@pytest.fixture
def run(runner, workspace: Path) -> Callable[..., ToolResult]:
    def run(odd: ToolDefinition, **arguments: Any) -> ToolResult:
        return invoke(odd, arguments, runner(workspace), workspace, sleep=lambda _: None)

    return run


# --- odd programs -------------------------------------------------------------------------


def test_json_after_a_banner_is_the_data(run):
    """With colours, progress and a farewell around it; the output itself stays."""
    script = (
        """printf '\\033[1mTool 2.1\\033[0m\\n 10%%\\r100%%\\r\\n{"rows": [1]}\\nNew version!\\n'"""
    )

    result = run(tool(script, output_parser="json"))

    assert result.data == {"rows": [1]}
    assert "Tool 2.1" in result.raw_output


@pytest.mark.parametrize("parser", ["auto", "lines", "json", "table", "text"])
def test_no_data_is_made_of_a_part(run, parser: str):
    """Of an output that does not fit into an answer: its ends are there, and where the whole is."""
    result = run(tool("yes '{\"n\": 1}' | head -n 200000", output_parser=parser))

    assert result.success
    assert result.data is None
    assert "left out here" in result.raw_output
    assert "1,800,000 bytes" in result.notes[0]
    assert "out-" in result.notes[0]


@pytest.mark.parametrize("parser", ["auto", "json", "yaml"])
def test_half_a_character_in_json_is_no_stumbling_block(run, parser: str):
    """JSON can name what nobody can write: the data can be, the output says what was there."""
    script = r"""printf '{"a\\ud800": ["x\\ud800y", "\\ud83d\\ude00"], "b": 1}\n'"""

    result = run(tool(script, output_parser=parser))

    assert result.data == {"a\ufffd": ["x\ufffdy", "\U0001f600"], "b": 1}
    assert "\\ud800" in result.raw_output
    assert any("halves of characters" in note for note in result.notes)
    assert json.loads(result.to_json().encode())["data"] == result.data


def test_what_looks_like_a_cut_output_is_an_output(run):
    """A log in which our line stands is read as it is."""
    result = run(tool("echo '[openry] 5 of 10 bytes left out here'", output_parser="lines"))

    assert result.data == ["[openry] 5 of 10 bytes left out here"]
    assert result.notes == ()


def test_an_output_that_is_no_text_is_said(run):
    """Bytes that are no characters are replaced, and the answer says so."""
    result = run(tool("printf 'a\\000b\\377\\n'", output_parser="lines"))

    assert result.success
    assert any("no UTF-8" in note for note in result.notes)
    assert json.loads(result.to_json())["raw_output"].startswith("a")


def test_a_tool_that_fails_with_exit_0_has_failed(run):
    """Where its definition says how it says so; the class is read from its words."""
    odd = tool("echo 'ERROR: no such table: x'", error_patterns=["^ERROR: .*"])

    error = run(odd).error

    assert error and (error.error_class, error.message) == ("not_found", "ERROR: no such table: x")


def test_a_tool_that_hangs_is_ended_in_its_own_time(run, workspace: Path):
    """With what it started; the time is the tool's, not one for all."""
    for seconds in (1, 5, 25):  # on a busy machine a shell may take as long to get that far
        result = run(tool("sleep 6000 & echo $! > pid; echo begun; wait", timeout=seconds))
        if result.raw_output:
            break

    assert result.error and result.error.error_class == "timeout"
    assert result.raw_output == "begun\n"
    pid = int((workspace / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists() or "zombie" in Path(f"/proc/{pid}/status").read_text()


@pytest.mark.parametrize(
    "script", ["read -r word && echo got", "read -r word < /dev/tty && echo got"]
)
def test_a_tool_that_asks_for_a_password_gets_none(run, script: str):
    """Neither standard input nor the terminal answers: it fails, it does not wait."""
    result = run(tool(f"printf 'Password: '; {script} || {{ echo 'login required' >&2; exit 1; }}",
                      timeout=20))  # fmt: skip

    assert result.error and result.error.error_class == "auth"
    assert error_classes()["auth"].says == "person"


def test_no_shipped_tool_may_take_for_ever():
    """Each kind has its own time; none more than ten minutes."""
    times = {each.timeout_s for each in load_registry()}

    assert len(times) > 2
    assert max(times) <= 600


@pytest.mark.parametrize(
    ("words", "idempotent", "runs"),
    [
        ("connection reset by peer", True, 3),
        ("429 Too Many Requests", True, 3),
        ("connection reset by peer", False, 1),
        ("invalid option -- x", True, 1),
        ("Permission denied", True, 1),
        ("401 Unauthorized", True, 1),
        ("jqq: command not found", True, 1),
    ],
)
def test_what_passes_by_itself_is_tried_again(run, workspace: Path, words, idempotent, runs):
    """Three times for the network and for limits, where a repetition does no harm; else once."""
    odd = tool(f"echo x >> count; echo '{words}' >&2; exit 1", idempotent=idempotent)

    result = run(odd)

    assert (result.attempts, (workspace / "count").read_text().count("x")) == (runs, runs)


def test_a_request_is_repeated_by_its_method():
    """GET may be asked again, POST may not."""
    request = load_registry().get("http_request")

    assert request.may_repeat({"method": "GET"})
    assert not request.may_repeat({"method": "POST"})


def test_the_login_is_checked_by_a_real_program(run, workspace: Path):
    """Until somebody logged in the tool is not started; afterwards nobody checks again."""
    check = {"command": ["test", "-e", "token"], "hint": "run: touch token"}
    odd = tool("echo ran >> count", auth_check=check, name="needs_token")

    refused = run(odd)
    (workspace / "token").touch()
    assert run(odd).success
    (workspace / "token").unlink()

    assert refused.error
    assert (refused.error.error_class, refused.error.hint) == ("auth", "run: touch token")
    assert run(odd).success
    assert (workspace / "count").read_text() == "ran\nran\n"


def test_a_missing_program_says_what_is_missing(run):
    """The person gets the name; a model is told that other arguments do not help."""
    odd = ToolDefinition.model_validate({"name": "t", "command_template": ["no-such-program-here"]})

    error = run(odd).error

    assert error and error.error_class == "missing_dependency"
    assert "no-such-program-here" in error.message
    assert "install no-such-program-here" in error.hint


def test_secrets_stay_out_of_the_row_and_the_plan(workspace: Path, tmp_path: Path):
    """The log shows their names; the program gets their values."""
    odd = tool(
        'printf "%s" "$1" > got',
        parameters={"key": {"type": "string", "required": True, "description": "The key."}},
        secrets=["key"],
    )
    (tmp_path / "home").mkdir(mode=0o700)
    config = load_config(tmp_path / "home", env={})
    with FastLedger(config.ledger) as ledger:
        hand = Hand(ledger, RunContext(workspace=str(workspace)), config)
        assert call_tool(hand, odd, {"key": "hunter2-secret"}, workspace).answer.exit_code == 0
        plan = preview_call(hand, odd, {"key": "hunter2-secret"}, workspace).stdout

    assert (workspace / "got").read_text() == "hunter2-secret"
    assert b"hunter2" not in b"".join(p.read_bytes() for p in (tmp_path / "home").glob("*.db*"))
    assert json.loads(plan)["label"] == 'odd {"key": "***key***"}'


# --- a person's yes -----------------------------------------------------------------------


@pytest.fixture
def asking(tmp_path: Path, workspace: Path):
    """`(hand, tool, answer)`: a tool that needs a yes, and a way to answer what is asked."""
    (tmp_path / "home").mkdir(mode=0o700)
    config = load_config(tmp_path / "home", env={})
    odd = tool(
        'echo "$1" >> sent',
        parameters={"text": {"type": "string", "required": True, "description": "What."}},
        requires_confirmation=True,
        name="send_it",
    )
    with FastLedger(config.ledger) as fast:
        hand = Hand(fast, RunContext(workspace=str(workspace)), config, env=dict(os.environ))

        def answer(state: str) -> list[str]:
            with Ledger(config.ledger).write() as connection:
                asked = pending_approvals(connection, "manual")
                for each in asked:
                    at = ledger_now(connection)
                    answer_approval(connection, at, each.id, state, by="ann", comment="")
            return [each.question for each in asked]

        yield hand, odd, answer


def test_a_call_that_needs_a_yes_waits_in_the_ledger(asking, workspace: Path):
    """Asked once, run once for each yes, with exactly the arguments that were shown."""
    hand, odd, answer = asking

    first = call_tool(hand, odd, {"text": "a\u202eb"}, workspace).answer
    again = call_tool(hand, odd, {"text": "a\u202eb"}, workspace).answer
    questions = answer("approved")
    other = call_tool(hand, odd, {"text": "another"}, workspace).answer
    done = call_tool(hand, odd, {"text": "a\u202eb"}, workspace)
    once_more = call_tool(hand, odd, {"text": "a\u202eb"}, workspace).answer

    assert (first.exit_code, again.exit_code, other.exit_code) == (126, 126, 126)
    assert "needs approval" in first.stderr
    assert "waits for a person" in first.stderr
    assert len(questions) == 1
    assert 'send_it {"text": "a\\u202eb"}' in questions[0]
    assert done.result and done.result.success
    assert once_more.exit_code == 126
    assert (workspace / "sent").read_text() == "a\u202eb\n"


def test_a_no_is_a_no(asking, workspace: Path):
    """And nothing was run."""
    hand, odd, answer = asking
    call_tool(hand, odd, {"text": "x"}, workspace)
    answer("rejected")

    told = call_tool(hand, odd, {"text": "x"}, workspace).answer

    assert "a person said no" in told.stderr
    assert not (workspace / "sent").exists()


def test_who_sits_at_the_terminal_is_asked_there(asking, workspace: Path):
    """One question, with every sign visible; no is a refusal."""
    hand, odd, _ = asking
    plans: list[str] = []

    refused = call_tool(
        hand, odd, {"text": "x\n"}, workspace, confirm=lambda plan: bool(plans.append(plan))
    )
    agreed = call_tool(hand, odd, {"text": "y"}, workspace, confirm=lambda plan: True)

    assert refused.result and refused.result.error
    assert refused.result.error.error_class == "refused"
    assert agreed.result and agreed.result.success
    assert plans == ['send_it {"text": "x\\n"}']
    assert (workspace / "sent").read_text() == "y\n"


def test_a_dry_run_says_that_a_person_is_asked(asking, workspace: Path):
    """Before anything is asked."""
    hand, odd, answer = asking

    plan = json.loads(preview_call(hand, odd, {"text": "x"}, workspace).stdout)

    assert (plan["verdict"], plan["requires_confirmation"]) == ("confirm", True)
    assert answer("approved") == []


# --- the network of a step ----------------------------------------------------------------


@pytest.mark.sandbox
@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("hosts", "error_class", "said"),
    [((), "network", "could not be reached"), (("api.example.com",), "permission", "not")],
)
def test_requests_keep_to_the_network_of_their_step(
    workspace: Path,
    tmp_path: Path,
    scheme: str,
    hosts: tuple[str, ...],
    error_class: str,
    said: str,
):
    """Without a network nothing is reached; with a list, the proxy refuses what is not on it."""
    (tmp_path / "home").mkdir(mode=0o700)
    config = load_config(tmp_path / "home", env={})
    spec = SandboxSpec("bubblewrap", (str(workspace),), hosts=hosts)
    with FastLedger(config.ledger) as ledger:
        run = Hand(ledger, RunContext(workspace=str(workspace), sandbox=spec), config).forward
        request = load_registry().get("http_request")
        arguments = {"url": f"{scheme}://other.example.org/"}
        error = invoke(request, arguments, run, workspace, sleep=lambda _: None).error

    assert error and error.error_class == error_class
    assert said in error.message
