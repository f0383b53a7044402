"""`openry mcp`, asked by the protocol's own client."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

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


@contextmanager
def speaking(environment, folder, *options, stray=b"", before=""):
    """A server that is spoken to by the line: gives a function that writes one, and one that reads
    an answer. In the end its standard error holds `stray`. A shell does `before` before it."""
    argv = [*PROGRAM, "mcp", "--dir", str(folder), *options]
    argv = ["sh", "-c", f'{before}; exec "$@"', "sh", *argv] if before else argv
    server = subprocess.Popen(argv, env=environment, stdin=-1, stdout=-1, stderr=-1)

    def say(line):
        server.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        server.stdin.flush()

    def hear():
        return json.loads(server.stdout.readline())

    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    client = {"clientInfo": {"name": "test", "version": "1"}}
    try:
        say({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {**about, **client}})
        assert hear()["id"] == 0
        say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield say, hear
        _, err = server.communicate(timeout=100)
        assert (server.returncode, err) == (0, stray)
    finally:
        server.kill()  # only where something above went wrong is it still there
        server.communicate()


def call(number, command):
    params = {"name": "openry", "arguments": {"command": command}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


#: What a client may write wrong, the error of JSON-RPC, the number in the answer, words of it.
WRONG_LINES = [
    (b"no json", -32700, None, "not JSON"),
    (b'{"jsonrpc": "2.0", "id": 1, "method": ', -32700, None, "not JSON"),
    (b"\xff\xfe", -32700, None, "not JSON"),
    (
        b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}',
        -32600,
        None,
        "taken: key `id` stands",
    ),
    (b"[" * 100_000, -32700, None, "nested too deep"),
    (b"[]", -32600, None, "one a line"),
    (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, None, "one a line"),
    (b"42", -32600, None, "no message"),
    (b'{"id": 7, "method": "ping"}', -32600, 7, "`jsonrpc`"),
    (b'{"jsonrpc": "1.0", "id": "x", "method": "ping"}', -32600, "x", "`jsonrpc`"),
    (b'{"jsonrpc": "2.0", "id": 8, "method": 5}', -32600, 8, "`method`"),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None, "`id`"),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "ping", "params": []}', -32600, 9, "`params`"),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "\\ud800"}', -32600, 9, "JSON"),
    (b'"' + b"x" * (8 * 1024 * 1024) + b'"', -32600, None, "longer than"),
    (b'"' + b"x" * (30 * 1024 * 1024) + b'"', -32600, None, "longer than"),
]


def test_a_line_that_is_no_message_is_answered_and_the_next_one_served(environment, folder):
    """By an error of JSON-RPC that says what is wrong, and to which request it belongs."""
    with speaking(environment, folder) as (say, hear):
        for line, code, number, words in WRONG_LINES:
            say(line)
            answer = hear()
            assert (answer["error"]["code"], answer["id"]) == (code, number), (line[:80], answer)
            assert words in answer["error"]["message"], (line[:80], answer)
            assert len(answer["error"]["message"]) < 500
        say(b"  ")
        say(call(10, "echo on"))
        assert hear()["result"]["structuredContent"]["stdout"] == "on\n"


def test_a_request_that_lacks_something_is_told_what(environment, folder):
    """Not only that it is wrong; whoever has not begun is told how to begin."""
    argv = [*PROGRAM, "mcp", "--dir", str(folder)]
    with subprocess.Popen(argv, env=environment, stdin=-1, stdout=-1) as server:
        server.stdin.write(json.dumps(call(1, "true")).encode() + b"\n")
        server.stdin.flush()
        error = json.loads(server.stdout.readline())["error"]
    assert error == {"code": -32602, "message": "`tools/call`: say `initialize` first"}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    with speaking(environment, folder) as (say, hear):
        for params, words in (
            ({}, "`params.name`"),
            ({"name": 5}, "`params.name`"),
            ({"name": "openry", "arguments": []}, "`params.arguments`"),
            ({"name": "openry", "_meta": {"progressToken": {}}}, "progressToken"),
        ):
            say({**request, "params": params})
            error = hear()["error"]
            assert error["code"] == -32602 and words in error["message"], (params, error)


@pytest.mark.skipif(os.name != "posix", reason="closes descriptors by the shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_without_its_streams_it_says_so(environment, folder, closed):
    """One sentence."""
    argv = ["sh", "-c", f'exec "$@" {closed}', "sh", *PROGRAM, "mcp", "--dir", str(folder)]
    done = subprocess.run(argv, env=environment, stdin=-3, capture_output=True)
    assert done.returncode == 2
    assert done.stderr.startswith(b"openry: standard input or output is closed")
    assert done.stderr.count(b"\n") == 1


def test_what_is_said_at_once_is_answered_each_by_itself(environment, folder):
    """Lines need not come one by one, nor whole; answers come as calls end."""
    with speaking(environment, folder) as (say, hear):
        say(b"\n".join(json.dumps(call(n, f"echo {n}")).encode() for n in range(1, 21)))
        answers = [hear() for _ in range(20)]

    stdout = {each["id"]: each["result"]["structuredContent"]["stdout"] for each in answers}
    assert stdout == {n: f"{n}\n" for n in range(1, 21)}


def test_calls_that_wait_hold_no_files(environment, folder):
    """However many there are, each runs when it is its turn."""
    with speaking(environment, folder, before="ulimit -n 256") as (say, hear):
        calls = [call(n, f"sleep 0.1; echo {n}") for n in range(1, 201)]
        threading.Thread(target=lambda: [say(each) for each in calls]).start()
        answers = {each["id"]: each for each in (hear() for _ in calls)}

    assert all("result" in each for each in answers.values()), answers
    stdout = {n: each["result"]["structuredContent"]["stdout"] for n, each in answers.items()}
    assert stdout == {n: f"{n}\n" for n in range(1, 201)}


def test_a_large_answer_waits_for_a_client_that_does_not_read(environment, folder):
    """Neither side waits for ever when both have much to say."""
    with speaking(environment, folder) as (say, hear):
        big = "x" * 100_000
        writing = threading.Thread(
            target=lambda: [say(call(n, f"cat; : {big}; head -c 50000 /dev/zero | tr '\\0' a"))
                            for n in range(1, 31)]
        )  # fmt: skip
        writing.start()
        answers = [hear() for _ in range(30)]
        writing.join()

    assert {each["id"] for each in answers} == set(range(1, 31))


def test_a_client_that_reads_no_more_is_the_end(environment, folder):
    """Without a word on standard error."""
    argv = [*PROGRAM, "mcp", "--dir", str(folder)]
    server = subprocess.Popen(argv, env=environment, stdin=-1, stdout=-1, stderr=-1)
    server.stdout.close()
    server.stdin.write(b"no json\n" * 3)
    server.stdin.flush()

    assert server.stderr.read() == b""
    server.wait(100)


def test_messages_may_come_from_a_file(environment, folder):
    """Where standard input is no pipe the protocol's own library reads it."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    client = {"clientInfo": {"name": "test", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {**about, **client}}
    (folder / "said").write_text(json.dumps(first) + "\n")
    with open(folder / "said", "rb") as said:
        argv = [*PROGRAM, "mcp", "--dir", str(folder)]
        done = subprocess.run(argv, env=environment, stdin=said, capture_output=True, check=True)

    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "openry"


def test_nothing_gets_among_the_messages(environment, folder):
    """A command has neither our standard input nor our standard output, even if it looks for it."""
    with speaking(environment, folder, stray=b"x\n") as (say, hear):
        say(call(1, "cat; echo x > /proc/$PPID/fd/1; ls -l /proc/self/fd | grep -c pipe"))
        answer = hear()

    assert answer["id"] == 1
    assert answer["result"]["structuredContent"]["stdout"] == "2\n"


def test_an_answer_with_half_a_character_ends_nothing():
    """It is written as the escape that JSON has for it."""
    from mcp_types import JSONRPCResponse

    from openry.service.stdio import _line_of

    odd = {"text": "x\ud800y"}
    line = _line_of(JSONRPCResponse(jsonrpc="2.0", id=1, result=odd))

    assert json.loads(line)["result"] == odd
    assert line.endswith(b"}\n")
