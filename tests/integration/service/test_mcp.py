"""`openry mcp`, asked by the protocol's own client."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest
from jsonschema import Draft202012Validator

mcp = pytest.importorskip("mcp")
PROGRAM = [sys.executable, "-m", "openry"]


def ask(environment, folder, talk, *options):
    """Start a server, let `talk` have a client of it, return what `talk` returned."""

    async def session():
        parameters = mcp.StdioServerParameters(
            command=PROGRAM[0],
            args=[*PROGRAM[1:], "mcp", "--dir", str(folder), *options],
            env=environment,
        )
        async with mcp.Client(parameters) as client:
            return await talk(client)

    return asyncio.run(session())


def test_each_tool_is_listed_with_a_sound_schema(environment, folder):
    """Names, descriptions and JSON Schemas of all tools, and the one for command lines."""

    async def talk(client):
        return (await client.list_tools()).tools

    found = {tool.name: tool for tool in ask(environment, folder, talk)}

    assert {"count_lines", "csv_filter", "openry"} <= set(found)
    for tool in found.values():
        assert tool.description
        Draft202012Validator.check_schema(tool.input_schema)
    assert not found["count_lines"].annotations.destructive_hint
    assert found["openry"].annotations.destructive_hint


def test_tools_can_be_narrowed(environment, folder):
    """Only what a pattern names is offered, and nothing else can be called."""

    async def talk(client):
        names = {tool.name for tool in (await client.list_tools()).tools}
        other = await client.call_tool("csv_filter", {})
        line = await client.call_tool("openry", {"command": "true"})
        return names, other, line

    names, other, line = ask(environment, folder, talk, "--tools", "count_*", "--no-shell")

    assert "count_lines" in names
    assert all(name.startswith("count_") for name in names)
    assert other.is_error and "csv_filter" in other.structured_content["message"]
    assert line.is_error


def test_a_call_answers_with_the_tool_s_result(environment, folder):
    """The same as text for models and as values for programs; the file is there."""

    async def talk(client):
        return await client.call_tool("sort_lines", {"path": "names.txt", "output": "s.txt"})

    answer = ask(environment, folder, talk)

    assert not answer.is_error
    assert answer.structured_content["success"] is True
    assert json.loads(answer.content[0].text) == answer.structured_content
    assert (folder / "s.txt").read_text() == "adam\nbea\n"


def test_bad_arguments_come_back_all_at_once_with_the_schema(environment, folder):
    """What a model needs to do it right the next time."""

    async def talk(client):
        return (
            await client.call_tool("count_lines", {"pth": "names.txt"}),
            await client.call_tool("openry", {"command": "", "x": 1}),
        )

    for answer in ask(environment, folder, talk):
        assert answer.is_error
        assert len(answer.structured_content["problems"]) == 2
        assert answer.structured_content["schema"]["required"]


def test_a_line_answers_with_four_keys(environment, folder):
    """A failing command is an answer, not a failing tool."""

    async def talk(client):
        return await client.call_tool("openry", {"command": "cat names.txt; exit 3"})

    answer = ask(environment, folder, talk)

    assert not answer.is_error
    assert list(answer.structured_content) == ["exit_code", "stdout", "stderr", "duration_ms"]
    assert answer.structured_content["exit_code"] == 3
    assert answer.structured_content["stdout"] == "bea\nadam\n"


def test_a_policy_holds_for_every_call(environment, folder):
    """What the policy refuses is not run, and the answer says why."""

    async def talk(client):
        return await client.call_tool("openry", {"command": "curl http://example.com"})

    answer = ask(environment, folder, talk, "--policy", "moderate")

    assert answer.structured_content["exit_code"] == 126
    assert "not allowed" in answer.structured_content["stderr"]


def test_progress_is_told_while_a_call_runs(environment, folder):
    """Rising seconds and what was written last, for a client that asked; secrets are hidden."""
    told = []

    async def talk(client):
        async def note(progress, total, message):
            told.append((progress, message))

        line = "echo step one; echo token ghp_0123456789abcdefghij0123456789abcdef; sleep 2.5"
        await client.call_tool("openry", {"command": line}, progress_callback=note)

    ask(environment, folder, talk)

    assert told
    assert told == sorted(told)
    assert any("s: token ***" in message for _, message in told), told
    assert not any("ghp_" in message for _, message in told)


def test_a_call_that_is_called_off_ends_its_command(environment, folder, log):
    """No process is left, the row says `interrupted`, and the server goes on."""
    nap = f"sleep 4242.{os.getpid()}"

    async def talk(client):
        call = client.call_tool("openry", {"command": f"touch begun; {nap}"})
        calling = asyncio.create_task(call)
        while not (folder / "begun").exists():
            await asyncio.sleep(0.02)
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        while "interrupted" not in (row := log()[-1]):
            await asyncio.sleep(0.1)
        return row, await client.call_tool("openry", {"command": "echo on"})

    row, after = ask(environment, folder, talk)

    assert nap in row
    assert after.structured_content["stdout"] == "on\n"
    assert subprocess.run(["pgrep", "-f", f"^{nap}"], check=False).returncode == 1


def test_many_calls_at_once_are_all_answered(environment, folder):
    """A hundred at once: each gets its own answer."""

    async def talk(client):
        calls = [client.call_tool("openry", {"command": f"echo {n}"}) for n in range(100)]
        return [answer.structured_content["stdout"] for answer in await asyncio.gather(*calls)]

    assert ask(environment, folder, talk) == [f"{n}\n" for n in range(100)]


def test_a_folder_that_is_not_there_is_one_sentence(environment, folder):
    """Exit status 2 before anything is served."""
    told = subprocess.run(
        [*PROGRAM, "mcp", "--dir", str(folder / "no")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 2
    assert told.stderr.startswith("openry: folder ") and told.stderr.count("\n") == 1


def test_the_server_ends_when_its_client_does(environment, folder):
    """A closed standard input is the end, without a word on standard error."""
    server = subprocess.Popen(
        [*PROGRAM, "mcp", "--dir", str(folder)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = server.communicate("", timeout=60)

    assert (server.returncode, out, err) == (0, "", "")
