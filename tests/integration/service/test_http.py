"""`openry serve`, asked as programs and browsers ask it."""

import asyncio
import http.client
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from hand_helpers import OpenRY
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from run_helpers import RUN_ID, TOKEN, add_run

pytest.importorskip("fastapi")
from openry.service.guard import Guard, Keys

PROGRAM = [sys.executable, "-m", "openry"]
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def told(environment, place):
    """What a real server says when it begins; it is ended after the last test."""
    (place / "names.txt").write_text("bea\nadam\n")
    with subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0", "--dir", str(place)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            yield server.stdout.readline(), server.stdout.readline()
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def address(told):
    return told[0].split()[2].rstrip(";")


@pytest.fixture(scope="module")
def token(told, home):
    return (home / "serve.token").read_text().strip()


@pytest.fixture(scope="module")
def client(address, token):
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=address, headers=headers, timeout=60, trust_env=False) as made:
        yield made


def test_answers_are_sent_at_once():
    """Without the kernel's wait for more, which made every answer 40 ms late."""
    from openry.cli.serve import _listen

    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # what asyncio looks at


def test_the_token_is_ours_alone(token, home):
    """Long, and in a file that nobody else may read."""
    assert len(token) >= 32
    assert stat.S_IMODE((home / "serve.token").stat().st_mode) == 0o600


@pytest.mark.parametrize("form", ["json", "openai", "mcp"])
def test_tools_are_listed_in_each_form(client, form):
    """One entry a tool."""
    found = client.get("/capabilities", params={"format": form}).json()

    assert len(found) > 50
    assert any("count_lines" in json.dumps(each) for each in found)


def test_the_schema_names_every_form_of_an_answer(client):
    """Text and streams as well; the schema itself is sound."""
    schema = client.get("/openapi.json").json()

    def forms(path):
        return set(schema["paths"][path]["get"]["responses"]["200"]["content"])

    assert forms("/capabilities") == {"application/json", "text/plain"}
    assert forms("/events") == {"text/event-stream"}
    for each in schema["components"]["schemas"].values():
        Draft202012Validator.check_schema(each)


def test_tools_are_listed_in_words(client):
    """For a model without tool calling."""
    assert "- count_lines: " in client.get("/capabilities", params={"format": "prompt"}).text


def test_a_tool_is_called(client, place):
    """The answer is its result; the file it wrote is there."""
    arguments = {"path": "names.txt", "output": "sorted.txt"}

    answer = client.post("/invoke", json={"capability": "sort_lines", "arguments": arguments})

    assert answer.status_code == 200
    assert answer.json()["success"] is True
    assert (place / "sorted.txt").read_text() == "adam\nbea\n"


def test_a_failing_tool_is_an_answer(client):
    """Its class of error and a hint, with status 200."""
    asked = {"capability": "count_lines", "arguments": {"path": "name.txt"}}

    answer = client.post("/invoke", json=asked)

    assert answer.status_code == 200
    assert answer.json()["error"]["class"] == "not_found"
    assert "names.txt" in answer.json()["error"]["hint"]


def test_a_dry_run_does_nothing(client, place):
    """It says what would be written, and it is not written."""
    arguments = {"path": "names.txt", "output": "never.txt"}
    asked = {"capability": "sort_lines", "arguments": arguments, "dry_run": True}

    answer = client.post("/invoke", json=asked).json()

    assert answer["dry_run"] is True
    assert answer["verdict"] == "allow"
    assert not (place / "never.txt").exists()


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"capability": "count_lins"}, 404, ["count_lines"]),
        ({"capability": "count_lines", "arguments": {"pth": 1}}, 422, ["`pth`", "`path`"]),
        ({"capability": "count_lines", "x": 1}, 422, ["`x`"]),
        ({}, 422, ["`capability`"]),
    ],
)
def test_what_does_not_fit_is_said_plainly(client, asked, status, words):
    """Every problem at once, with its own status."""
    answer = client.post("/invoke", json=asked)

    assert answer.status_code == status
    assert all(word in answer.json()["message"] for word in words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"capability": "count_lines"', "the body is not JSON: Expecting ',' delimiter: line 1"),
        ('{"command": "true", "command": "false"}', "key `command` stands twice"),
        ('{"capability": "a", "arguments": {"b": 1, "b": 2}}', "key `b` stands twice"),
        ('{"command": ' + "[" * 100_000 + "]" * 100_000 + "}", "the body is nested too deep"),
        (b'{"command": "\xff"}', "the body is not JSON: 'utf-8' codec"),
    ],
)
def test_a_body_means_one_thing(client, body, words):
    """What is no JSON, or could be read in two ways, is one sentence."""
    for kind in ("application/json", "Application/JSON; charset=utf-8"):
        answer = client.post("/run", content=body, headers={"content-type": kind})

        assert answer.status_code == 422
        assert words in answer.json()["message"]


def test_bad_arguments_come_with_the_schema(client):
    """What a program needs to do it right the next time."""
    answer = client.post("/invoke", json={"capability": "count_lines", "arguments": {"a": 1}})

    assert answer.json()["schema"]["required"] == ["path"]


def test_a_line_answers_with_four_keys(client):
    """In their order, the command's own exit code among them."""
    answer = client.post("/run", json={"command": "cat names.txt; exit 3"}).json()

    assert list(answer) == ["exit_code", "stdout", "stderr", "duration_ms"]
    assert (answer["exit_code"], answer["stdout"]) == (3, "bea\nadam\n")


@pytest.fixture
def run_in_progress(home, place):
    """The run `run-1`, as an engine has it while its agent works."""
    openry = OpenRY(home, place)
    add_run(openry)
    return openry


def test_a_run_is_reported_by_who_has_its_token(client, run_in_progress):
    """Nobody else's word is taken; a second final word that differs is not either."""

    def say(status, token=TOKEN):
        said = {"run_id": RUN_ID, "token": token, "status": status, "payload": {"n": 1}}
        return client.post("/status", json=said).json()

    assert not say("completed", "5" * 63)["acknowledged"]
    assert say("completed") == {
        "status": "completed",
        "payload": {"n": 1},
        "acknowledged": True,
        "message": "",
    }
    assert say("completed")["acknowledged"]
    assert not say("failed")["acknowledged"]


def test_a_client_that_leaves_ends_its_command(address, token, place, log):
    """No process is left, and the row says so."""
    nap = f"sleep 4243.{os.getpid()}"
    body = json.dumps({"command": f"touch begun; {nap}"})
    leaving = http.client.HTTPConnection(address.removeprefix("http://"))
    leaving.request("POST", "/run", body, {"Authorization": f"Bearer {token}"} | JSON)
    while not (place / "begun").exists():
        time.sleep(0.02)

    leaving.close()

    while "interrupted" not in log()[-1]:
        time.sleep(0.1)
    assert subprocess.run(["pgrep", "-f", f"^{nap}"], check=False).returncode == 1


def test_a_hundred_calls_at_once_are_all_answered(client):
    """Each gets its own answer."""

    def ask(number):
        return client.post("/run", json={"command": f"echo {number}"}).json()["stdout"]

    with ThreadPoolExecutor(100) as pool:
        assert list(pool.map(ask, range(100))) == [f"{n}\n" for n in range(100)]


def test_nobody_comes_in_without_the_token(address, client):
    """Neither without one nor with another, and not by a name that is not the server's."""
    wrong = {"Authorization": "Bearer no"}

    with httpx.Client(base_url=address, trust_env=False) as stranger:
        assert stranger.get("/capabilities").status_code == 401
        assert stranger.get("/capabilities", headers=wrong).status_code == 401
        assert stranger.post("/run", json={"command": "true"}).status_code == 401
    assert client.get("/capabilities", headers={"Host": "a.example"}).status_code == 421
    assert client.get("/capabilities", headers={"Origin": "http://a.example"}).status_code == 403


def test_a_browser_logs_in_once(told, address):
    """The one-time address works once; its cookie is strict and only counts on our own pages."""
    login = told[1].split()[-1]
    line = {"command": "true"}
    with httpx.Client(trust_env=False, follow_redirects=True, timeout=60) as browser:
        page = browser.get(login)
        bare = browser.post(f"{address}/run", json=line)
        own = browser.post(f"{address}/run", json=line, headers={"Origin": address})

    assert page.status_code == 200
    assert "<title>OpenRY" in page.text
    cookie = page.history[0].headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert httpx.get(login, trust_env=False).status_code == 403
    assert (bare.status_code, own.status_code) == (403, 200)


def test_bodies_are_bounded(client):
    """More than a MiB is refused before it is read by anything else."""
    answer = client.post("/run", content=b'{"command": "' + b"x" * 1024 * 1024 + b'"}')

    assert answer.status_code == 413


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["/invoke", "/run", "/capabilities", "/nowhere"]),
    st.one_of(
        st.binary(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["capability", "arguments", "command", "cwd", "env", "x"]),
                    inner,
                )
            ),
            max_leaves=6,
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
def test_no_body_makes_the_server_stumble(client, path, body):
    """Whatever is sent: an answer that is no 5xx."""
    answer = client.post(path, content=body, headers={"content-type": "application/json"})

    assert answer.status_code < 500


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/invoke/", 404, "not_found"),
        ("GET", "/invoke", 405, "wrong_method"),
        ("DELETE", "/capabilities", 405, "wrong_method"),
        ("POST", "/run", 422, "bad_arguments"),
        ("POST", "/invoke", 404, "not_found"),
    ],
)
def test_every_refusal_has_one_shape(client, method, path, status, code):
    """A code for programs, a sentence for people, and each problem."""
    body = {"capability": "no_such_tool"} if path == "/invoke" and status == 404 else None
    answer = client.request(method, path, json=body, follow_redirects=False)

    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert answer.json()["message"]
    assert answer.json()["problems"]


COUNT = {"capability": "count_lines"}
#: What holds half a character, where it may stand, and the status of the answer.
HALVES = [
    ("/invoke", {**COUNT, "arguments": {"path": "n\udcff"}}, 200),
    ("/invoke", {**COUNT, "arguments": {"path": "n\udcff"}, "dry_run": True}, 200),
    ("/invoke", {**COUNT, "arguments": {"path": "n\ud800"}}, 422),
    ("/invoke", {**COUNT, "arguments": {"path\udcff": "n"}}, 422),
    ("/invoke", {**COUNT, "n\udcff": 1}, 422),
    ("/invoke", {"capability": "no\udcff"}, 404),
    ("/run", {"command": "echo \udcff"}, 422),
    ("/run", {"command": "true", "cwd": "\udcff"}, 200),
    ("/run", {"command": "true", "cwd": "\udcff", "dry_run": True}, 200),
    ("/run", {"command": "true", "env": {"A": "\udcff"}}, 200),
    ("/run", {"command": "true", "env": {"A\udcff": "a"}}, 200),
    ("/status", {"run_id": "\udcff", "token": "", "status": "failed"}, 422),
    ("/status", {"run_id": "x", "token": "", "status": "failed", "payload": {"\udcff": 1}}, 200),
    ("/run", {"command": "true", "env": {"A": "\ud800"}}, 422),
    ("/run", {"command": "true", "cwd": "\ud800"}, 422),
    ("/status", {"run_id": "x", "token": "", "status": "failed", "payload": {"\ud800": 1}}, 422),
    ("/status", {"run_id": "x", "token": "", "status": "failed", "payload": {"a": "\ud800"}}, 422),
]


@pytest.mark.parametrize(("path", "body", "status"), HALVES)
def test_half_a_character_makes_nobody_stumble(client, path, body, status):
    """JSON can name one, and names of files may hold it; every answer can be written."""
    answer = client.post(path, content=json.dumps(body), headers=JSON)

    assert answer.status_code == status, answer.text
    assert isinstance(answer.json(), dict)


@pytest.mark.parametrize("last", ["9" * 30, "9" * 5000])
def test_no_event_has_such_an_id(client, last):
    """The stream begins now, as after one that is no number."""
    headers = {"Last-Event-ID": last}
    with client.stream("GET", "/events", headers=headers) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(3)] == [": events of the ledger", "", ": "]


def test_strangers_are_refused_in_the_same_shape(address):
    """The guard's answers too."""
    for headers in ({}, {"Host": "elsewhere"}, {"Origin": "http://elsewhere"}):
        answer = httpx.get(f"{address}/capabilities", headers=headers, trust_env=False)
        assert answer.json()["problems"] == [answer.json()["message"]]


def test_a_body_that_does_not_come_is_not_waited_for():
    """Whoever says that one will come has so many seconds to send it."""
    said = []

    async def nothing_comes():
        await asyncio.Event().wait()

    async def send(message):
        said.append(message)

    async def unreachable(*_):
        raise AssertionError("it was let through")

    token = "t" * 20
    headers = {"host": "here:1", "authorization": f"Bearer {token}", "content-length": "99999"}
    pairs = [(name.encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/run", "headers": pairs}
    guard = Guard(unreachable, Keys(token, frozenset({"here:1"})), body_s=0.01)

    asyncio.run(guard(scope, nothing_comes, send))

    assert said[0]["status"] == 408
    assert (b"connection", b"close") in said[0]["headers"]
    assert "0.01 seconds" in json.loads(said[1]["body"])["message"]


def test_events_come_as_they_happen(client, environment, place):
    """A workflow that runs elsewhere is seen here, from the id that was asked for."""
    (place / "w.yaml").write_text(
        "name: w\nworkspace: shared\nsub_steps:\n  - {id: one, kind: shell, command: 'true'}\n"
    )
    argv = [sys.executable, "-m", "openry.orchestrator", "start", "w.yaml", "--wait"]
    runner = threading.Thread(
        target=subprocess.run,
        args=(argv,),
        kwargs={"env": environment, "cwd": place, "stdout": subprocess.DEVNULL},
    )
    runner.start()
    seen = []
    with client.stream("GET", "/events", params={"after": 0}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line[6:]))
            if any(event["new"] == "completed" and not event["run_id"] for event in seen):
                break
    runner.join()

    assert [event["id"] for event in seen] == sorted({event["id"] for event in seen})
    assert {"validated", "completed"} <= {event["new"] for event in seen}


def test_what_a_call_writes_is_an_event_while_it_runs(client, place):
    """Its last line, before it ends; nothing of it once it is over."""
    command = "echo half of it; while [ ! -e go ]; do sleep 0.05; done; echo over"
    runner = threading.Thread(
        target=client.post, args=("/run",), kwargs={"json": {"command": command}}
    )
    runner.start()
    with client.stream("GET", "/events") as stream:
        kind = ""
        for line in stream.iter_lines():
            kind = line[7:] if line.startswith("event: ") else kind
            if kind == "output" and line.startswith("data: "):
                heard = json.loads(line[6:])
                break
    (place / "go").touch()
    runner.join()

    assert heard["line"] == "half of it"
    assert heard["what"] == command
    assert set(heard) == {"call", "what", "seconds", "line"}


@pytest.mark.parametrize(
    ("options", "word"),
    [(["--port", "99999"], "--port"), (["--dir", "no"], "--dir"), (["--tools", "no*"], "no*")],
)
def test_what_cannot_be_served_is_one_sentence(environment, place, options, word):
    """Exit status 2, and nothing listens."""
    told = subprocess.run(
        [*PROGRAM, "serve", "--dir", str(place), *options],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 2
    assert word in told.stderr and told.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_a_token_that_others_may_read_is_refused(environment, tmp_path):
    """A token is a password."""
    (tmp_path / "token").write_text("x" * 40)
    (tmp_path / "token").chmod(0o644)
    argv = [*PROGRAM, "serve", "--port", "0", "--token-file", str(tmp_path / "token")]
    told = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)

    assert told.returncode == 2
    assert "chmod 600" in told.stderr


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_curl_of_the_readme_is_answered(tmp_path, readme):
    """As it stands there, but for the port, which may be taken here."""
    text = (Path(__file__).parents[3] / readme).read_text("utf-8")
    (serve, curl) = re.findall(r"```sh\n(openry serve .*) &\n(curl .*?)```", text, re.DOTALL)[0]
    (tmp_path / "app.log").write_text("one\ntwo\nthree\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "OPENRY_HOME": str(tmp_path / "home")}
    argv = ["sh", "-c", f"exec {serve.replace('9100', '0')}"]
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().split()[2].rstrip(";")
            asked = curl.replace("http://127.0.0.1:9100", address)
            done = subprocess.run(
                ["sh", "-c", asked], cwd=tmp_path, env=env, capture_output=True, check=False
            )
        finally:
            server.terminate()

    assert json.loads(done.stdout)["data"] == 3, done.stderr.decode()
