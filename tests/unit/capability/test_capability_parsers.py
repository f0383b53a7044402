"""Output becomes data where it can, and is never lost where it cannot."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.capability import ToolDefinition, invoke
from openry.capability.parsers import ParseError, parse
from openry.capability.result import classify, error_classes
from openry.models import Command, CommandResult, Ending

BANNER = "Welcome to tool 2.1!\nLoading [====] done\n"


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": [1]}\n', {"a": [1]}),
        ("[1, 2]", [1, 2]),
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        (BANNER + '{\n  "a": 1\n}\n', {"a": 1}),
        ('{"a": 1}\nA new release is available: 2.2\n', {"a": 1}),
        ('10:00:01 INFO {\n10:00:01 INFO "a": 1\n10:00:02 INFO }\n10:00:03 bye\n', {"a": 1}),
        ("\x1b[32m{\x1b[0m}\n", {}),
        ("10%\r50%\r100%\r\n7\n", ["100%", "7"]),
        ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
        ("a\tb\n1\t2\n", [["a", "b"], ["1", "2"]]),
        ("ID   AGE\nAnn  3\nBo   12\n", [{"ID": "Ann", "AGE": "3"}, {"ID": "Bo", "AGE": "12"}]),
        ("name: Ann\nage: 3\n", {"name": "Ann", "age": "3"}),
        ("HOME=/h\nLANG=C\n", {"HOME": "/h", "LANG": "C"}),
        ("12\n", 12),
        ("-1.5\n", -1.5),
        ("007\n", "007"),
        ("true\n", True),
        ("one line\n", "one line"),
        ("one\ntwo words\n", ["one", "two words"]),
        ("Well, this is prose,\nand so, is this.\n", ["Well, this is prose,", "and so, is this."]),
        ("", ""),
    ],
)  # fmt: skip
def test_auto_knows_the_common_forms(text, data):
    """JSON with a banner or log prefixes, JSONL, CSV, aligned tables, pairs, lines, one value."""
    assert parse(text, "auto") == data


@settings(max_examples=100)
@given(st.text())
def test_auto_takes_everything(text):
    """No output makes the parser fail."""
    parse(text, "auto")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_json_is_read_back(value):
    """With a banner before and a notice after, too, when it is an object or a list."""
    text = json.dumps(value)
    assert parse(text, "json") == value
    if isinstance(value, dict | list):
        assert parse(f"banner\n{text}\nnotice\n", "json") == value


@given(
    st.lists(
        st.lists(
            st.text(st.characters(codec="utf-8", categories=["L", "N", "P"])),
            min_size=2,
            max_size=2,
        ),
        min_size=1,
    )
)
def test_csv_is_read_back(rows):
    """What the csv module writes."""
    out = io.StringIO()
    csv.writer(out).writerows(rows)

    assert parse(out.getvalue(), "csv") == rows


@pytest.mark.parametrize(
    ("text", "how"), [("none", "json"), ("none", "jsonl"), ("a: [", "yaml"), ("x", "table")]
)
def test_what_is_not_of_the_form_is_said(text, how):
    """One exception, whose reason is kept."""
    with pytest.raises(ParseError):
        parse(text, how)


# --- a call's result ----------------------------------------------------------------------


def tool(**changes) -> ToolDefinition:
    return ToolDefinition.model_validate({"name": "t", "command_template": ["t"], **changes})


def answering(*results: CommandResult):
    """A hand that gives these answers in order, and what it was asked."""
    asked: list[Command] = []
    left = list(results)

    def run(command: Command) -> CommandResult:
        asked.append(command)
        return left.pop(0)

    return run, asked


def failed(code: int, stderr: str = "", stdout: str = "") -> CommandResult:
    return CommandResult(code, stdout, stderr, 0.0)


def test_an_output_that_cannot_be_parsed_is_kept_and_said():
    """The call went well; its output is there in full beside a remark."""
    run, _ = answering(CommandResult(0, "no json\n", "", 0.0))

    result = invoke(tool(output_parser="json"), {}, run, Path("/"))

    assert result.success
    assert result.data is None
    assert result.raw_output == "no json\n"
    assert "the output is no json" in result.notes[0]


@pytest.mark.parametrize(
    ("result", "error_class"),
    [
        (failed(1, "grep: a.txt: No such file or directory"), "not_found"),
        (failed(1, "cat: x: Permission denied"), "permission"),
        (failed(1, "curl: (6) Could not resolve host: x"), "network"),
        (failed(1, "HTTP 429 Too Many Requests"), "rate_limited"),
        (failed(1, "Error: 401 Unauthorized"), "auth"),
        (failed(128, "fatal: could not read Username for 'https://x'"), "auth"),
        (failed(127, "sh: 1: jqq: not found"), "missing_dependency"),
        (failed(2, "sort: invalid option -- 'k'"), "bad_arguments"),
        (failed(1, "mkdir: cannot create directory 'a': File exists"), "conflict"),
        (failed(1, "tee: x: No space left on device"), "resource"),
        (failed(1, "error[conflict]: `a` exists"), "conflict"),
        (failed(64), "bad_arguments"),
        (failed(1), "internal"),
        (CommandResult(124, "", "", 1.0, Ending.TIMEOUT), "timeout"),
        (CommandResult(126, "", "openry: not allowed: x", 0.0, Ending.REFUSED), "refused"),
        (CommandResult(137, "", "", 0.0, Ending.SIGNALLED), "internal"),
    ],
)
def test_a_failure_has_a_class_a_message_and_a_hint(result, error_class):
    """By how it ended, by what it wrote, by its exit code."""
    error = classify(result)

    assert error.error_class == error_class
    assert error.message
    installs = error_class == "missing_dependency"
    assert error.hint.startswith("install `jqq`" if installs else error_classes()[error_class].hint)


def test_the_table_has_the_twelve_classes():
    """None is missing, each with a hint for whoever must mend it."""
    assert set(error_classes()) == {
        "not_found", "permission", "auth", "network", "timeout", "rate_limited", "bad_arguments",
        "missing_dependency", "resource", "conflict", "refused", "internal",
    }  # fmt: skip


def test_a_network_error_is_tried_again_and_a_writing_tool_is_not():
    """Three times with a growing pause, only where a repetition does no harm."""
    trouble = failed(1, "connection reset by peer")
    good = CommandResult(0, "ok\n", "", 0.0)
    pauses: list[float] = []

    run, asked = answering(trouble, trouble, good)
    result = invoke(tool(), {}, run, Path("/"), sleep=pauses.append)
    once, _ = answering(trouble)
    other = invoke(tool(idempotent=False), {}, once, Path("/"), sleep=pauses.append)

    assert result.success
    assert result.attempts == len(asked) == 3
    assert pauses == [1.0, 2.0]
    assert other.error and other.error.error_class == "network"


def test_a_tools_own_retry_rule_wins():
    """Per class of error."""
    run, asked = answering(failed(1, "already exists"), CommandResult(0, "", "", 0.0))
    own = {"conflict": {"attempts": 2, "backoff_s": 0}}

    assert invoke(tool(retry=own), {}, run, Path("/"), sleep=lambda _: None).success
    assert len(asked) == 2


def test_exit_0_with_an_error_text_is_an_error_where_the_tool_says_so():
    """Some programs say "error" and exit with 0."""
    run, _ = answering(CommandResult(0, "ok so far\nERROR: quota exceeded\n", "", 0.0))

    result = invoke(tool(error_patterns=["^ERROR: .*"], idempotent=False), {}, run, Path("/"))

    assert not result.success
    assert result.error and result.error.error_class == "rate_limited"
    assert result.error.message == "ERROR: quota exceeded"
    assert result.raw_output.startswith("ok so far")


def test_an_exit_code_that_is_an_answer_is_no_error():
    """`grep` says 1 when nothing matches."""
    run, _ = answering(failed(1))

    result = invoke(tool(ok_exits=[0, 1], output_parser="lines"), {}, run, Path("/"))

    assert result.success
    assert result.data == []


def test_what_needs_confirmation_is_not_run_without():
    """Nobody there to ask is a refusal; the plan shows control characters."""
    asking = tool(
        requires_confirmation=True,
        parameters={"text": {"type": "string"}},
        command_template=["t", "{text}"],
    )
    run, asked = answering(CommandResult(0, "", "", 0.0))
    plans: list[str] = []

    refused = invoke(asking, {"text": "a\u202eb"}, run, Path("/"))
    agreed = invoke(
        asking, {"text": "a\u202eb"}, run, Path("/"), confirm=lambda plan: not plans.append(plan)
    )

    assert refused.error and refused.error.error_class == "refused"
    assert agreed.success
    assert len(asked) == 1
    assert plans == ['t {"text": "a\\u202eb"}']


def test_the_login_is_checked_once_before_the_first_use():
    """A failing check says how to log in and runs nothing else."""
    shy = tool(name="needs_login", auth_check={"command": ["t", "whoami"], "hint": "run: t login"})
    good = CommandResult(0, "", "", 0.0)

    run, asked = answering(failed(1))
    refused = invoke(shy, {}, run, Path("/"))
    run_again, asked_again = answering(good, good, good)
    invoke(shy, {}, run_again, Path("/"))
    invoke(shy, {}, run_again, Path("/"))

    assert refused.error and refused.error.hint == "run: t login"
    assert len(asked) == 1
    assert [command.stages[0] for command in asked_again] == [("t", "whoami"), ("t",), ("t",)]


def test_a_result_is_json_however_odd_its_data():
    """The answer of `openry --call`."""
    run, _ = answering(failed(1, "error[not_found]: `a`: no such file"))

    said = json.loads(invoke(tool(), {}, run, Path("/")).to_json())

    assert said["success"] is False
    assert said["error"] == {
        "class": "not_found",
        "message": "`a`: no such file",
        "hint": "check the name; list the folder to see what is there",
    }
