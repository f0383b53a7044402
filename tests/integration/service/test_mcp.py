"""`openry mcp`, asked by the protocol's own client."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from jsonschema import Draft202012Validator

from openry.capability import Registry
from openry.config import load_config
from openry.service.desk import Desk
from openry.service.mcp import HANDSHAKES, STATELESS, Session

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

    async def talk(client):
        try:
            async with asyncio.timeout(1):
                await client.call_tool("openry", {"command": "touch begun; sleep 4242"})
        except TimeoutError:
            pass
        for _ in range(100):
            row = log()[-1]
            if "interrupted" in row:
                break
            await asyncio.sleep(0.1)
        return row, await client.call_tool("openry", {"command": "echo on"})

    row, after = ask(environment, folder, talk)

    assert (folder / "begun").exists()
    assert "interrupted" in row and "sleep 4242" in row
    assert after.structured_content["stdout"] == "on\n"
    assert subprocess.run(["pgrep", "-f", "^sleep 4242"], check=False).returncode == 1


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


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_both_kinds_of_clients_are_served(environment, folder, mode):
    """Those that begin with a handshake, and those that name their revision in each request."""

    async def session():
        words = [*PROGRAM[1:], "mcp", "--dir", str(folder)]
        server = mcp.StdioServerParameters(command=PROGRAM[0], args=words, env=environment)
        async with mcp.Client(server, mode=mode) as client:
            listed = await client.list_tools()
            answer = await client.call_tool("openry", {"command": "echo 1"})
            return client.protocol_version, client.server_info.name, listed.tools, answer

    version, name, tools, answer = asyncio.run(session())

    assert version == {"legacy": HANDSHAKES, "auto": STATELESS}[mode][-1]
    assert name == "openry"
    assert tools
    assert answer.structured_content["stdout"] == "1\n"


def wait_until(done):
    while not done():
        time.sleep(0.01)


def start(environment, folder):
    return subprocess.Popen(
        [*PROGRAM, "mcp", "--dir", str(folder)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def request(number, method="tools/call", **params):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message) + "\n"


def line(number, command):
    return request(number, name="openry", arguments={"command": command})


def test_what_is_no_request_is_refused_and_the_next_one_is_answered(environment, folder):
    """Each with the protocol's own number; notes and answers that nobody waits for are ignored."""
    newer = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2999-01-01"}}
    lines = [
        "no JSON\n",
        '{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}\n',
        "[]\n",
        '{"jsonrpc": "2.0", "id": true, "method": "ping"}\n',
        '{"jsonrpc": "2.0", "id": 3, "result": {}}\n',
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [7]}}\n',
        request(4, "resources/list"),
        request(5, name="openry", arguments=[1]),
        request(6, "tools/list", **newer),
        request(7, "ping"),
    ]

    out, err = start(environment, folder).communicate("".join(lines), timeout=60)

    answers = [json.loads(answer) for answer in out.splitlines()]
    assert [(each["id"], each.get("error", {}).get("code")) for each in answers] == [
        (None, -32700), (None, -32700), (None, -32600), (None, -32600),
        (4, -32601), (5, -32602), (6, -32022), (7, None),
    ]  # fmt: skip
    assert "2026-07-28" in answers[6]["error"]["data"]["supported"]
    assert err == ""


@pytest.mark.parametrize("end", ["closed", "interrupted"])
def test_what_runs_at_the_end_is_called_off(environment, folder, log, end):
    """Its client went, or a person pressed Ctrl-C: no process is left, and the row says so."""
    server = start(environment, folder)
    server.stdin.write(line(1, f"echo $$ > {end}; mkfifo wait; read x < wait"))
    server.stdin.flush()
    wait_until(lambda: (folder / "wait").exists())

    if end == "closed":
        server.stdin.close()
    else:
        server.send_signal(signal.SIGINT)

    assert server.wait(60) == (0 if end == "closed" else 130)
    assert server.stdout.read() == server.stderr.read() == ""
    assert "interrupted" in log()[-1]
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / end).read_text()), 0)


def test_a_call_that_waits_for_its_turn_can_be_called_off(tmp_path, folder, monkeypatch):
    """It is never begun and never answered; the calls after it are."""
    monkeypatch.setattr("openry.service.mcp.CALLS_AT_ONCE", 1)
    config = load_config(tmp_path / "home", env={})
    desk = Desk(config, Registry(), folder, env={"PATH": os.environ["PATH"]})
    (asks, asked), (answers, answered) = os.pipe(), os.pipe()
    serving = threading.Thread(target=Session(desk, asks, answered).run)
    serving.start()

    def off(number):
        said = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        return json.dumps({**said, "params": {"requestId": number}}) + "\n"

    with open(asked, "w", encoding="utf-8") as ours, open(answers, encoding="utf-8") as theirs:
        ours.write(line(1, "mkfifo wait; read x < wait") + line(2, "touch second"))
        ours.write(line(3, "echo three") + off(2) + request(4, "ping"))
        ours.flush()
        first = json.loads(theirs.readline())
        wait_until(lambda: (folder / "wait").exists())
        ours.write(off(1))
        ours.flush()
        second = json.loads(theirs.readline())
    serving.join()

    assert (first["id"], second["id"]) == (4, 3)
    assert second["result"]["structuredContent"]["stdout"] == "three\n"
    assert not (folder / "second").exists()
    os.close(asks)
    os.close(answered)
