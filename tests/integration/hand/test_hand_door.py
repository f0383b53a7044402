"""Inside a run there is one door, and on the agent's side of it nothing but a client."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hand_helpers import PROGRAM, OpenRY, alive, gone_within, need_bubblewrap
from run_helpers import TOKEN, sql, worker

from openry.capability import load_registry
from openry.forwarder import door as doors
from openry.forwarder.door import Door
from openry.forwarder.frames import MAX_BODY, MAX_HEAD, Asked, Reply, read_reply, read_request
from openry.models import SandboxSpec

STOP = "User requested immediate stop"


@pytest.fixture
def agent(openry: OpenRY) -> Iterator[OpenRY]:
    """`openry` as a run's agent has it; two tools are offered."""
    with worker(openry, offered=("count_lines", "sort_lines"), registry=load_registry()) as door:
        openry.door = door
        yield openry


def rows(openry: OpenRY, what: str = "ending, exit_code") -> list[tuple]:
    return sql(openry, f"SELECT {what} FROM commands_log ORDER BY id")


# --- the token --------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "5"])
def test_without_the_runs_token_nothing_is_done(agent: OpenRY, token: str):
    """Missing or wrong: 126 and a sentence in every form; nothing is run, read or changed."""
    agent.env["OPENRY_RUN_TOKEN"] = token
    (agent.cwd / "command").write_text("touch made")

    for words in (["-c", "touch made"], ["-c", "@command"], ["--call", "count_lines"]):
        answer = agent(*words)
        assert answer["exit_code"] == 126
        assert answer["stderr"].startswith("openry: not allowed: OPENRY_RUN_TOKEN is ")
    for words in (["--capabilities"], ["output", "list"]):
        assert b"OPENRY_RUN_TOKEN is " in agent.raw(*words).stdout
    said = json.loads(agent.raw("--status", "completed").stdout)
    assert (said["status"], said["acknowledged"]) == ("completed", False)
    assert "OPENRY_RUN_TOKEN" in said["message"]

    assert not (agent.cwd / "made").exists()
    assert {row[0] for row in rows(agent, "ending")} == {"refused"}
    assert sql(agent, "SELECT status, tool_calls FROM task_state") == [("in_progress", 0)]
    assert sql(agent, "SELECT count(*) FROM payloads") == [(0,)]


def test_the_token_is_nowhere_in_ledger_or_answer(agent: OpenRY):
    """Stored hashed, and taken out of what a command prints or is."""
    answer = agent("-c", f"echo {TOKEN}")

    assert answer["stdout"] == "***OPENRY_RUN_TOKEN***\n"
    assert TOKEN.encode() not in (agent.home / "openry.db").read_bytes()


# --- what is asked for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [["config"], ["log"], ["mcp"], ["serve"], ["secret", "set", "A"], ["policy"], ["nonsense"]],
)
def test_what_is_not_for_agents_is_refused(agent: OpenRY, words: list[str]):
    """Exit 2 and a sentence that names what there is."""
    done = agent.raw(*words)

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"is not available inside a run; there are -c, --call, --status" in done.stderr


def test_only_what_the_step_offers_can_be_called(agent: OpenRY):
    """The others are not even listed."""
    (agent.cwd / "a.txt").write_text("1\n2\n3\n")

    answer = agent("--call", "count_lines", "--args", '{"path": "a.txt"}')
    refused = agent("--call", "replace_text", "--args", "{}", status=2)
    listed = json.loads(agent.raw("--capabilities").stdout)

    assert json.loads(answer["stdout"])["data"] == 3
    assert "offered: count_lines, sort_lines" in refused["stderr"]
    assert [tool["name"] for tool in listed] == ["count_lines", "sort_lines"]


def test_a_usage_error_is_the_same_as_by_hand(agent: OpenRY):
    """One sentence, status 2, in JSON."""
    assert "did you mean `--status`" in agent("--statu", "x", status=2)["stderr"]
    assert "the command is empty" in agent("-c", " ", status=2)["stderr"]
    assert agent.raw("-c", "exit 3", "--propagate").returncode == 3


def test_standard_input_comes_along(agent: OpenRY):
    """As a command, as a payload, and passed on to the command itself."""
    long = b"echo $((" + b"1+" * 100_000 + b"1))"

    assert agent("-c", "-", stdin=long)["stdout"] == "100001\n"
    assert agent("-c", "cat", "--stdin", stdin=b"given\n")["stdout"] == "given\n"
    said = json.loads(
        agent.raw("--status", "completed", "--payload", "-", stdin=b'{"a": 1}').stdout
    )
    assert (said["payload"], said["acknowledged"]) == ({"a": 1}, True)
    too_long = agent("-c", "-", stdin=b"#" * (1024 * 1024 + 1), status=2)
    assert "larger than 1 MiB" in too_long["stderr"]


def test_calls_at_once_do_not_wait_for_each_other(agent: OpenRY):
    """Each of two commands ends only when it sees that the other was started."""
    meet = "touch {0}; until test -e {1}; do sleep 0.02; done; echo met"
    both = [agent.start("-c", meet.format(*pair)) for pair in (("a", "b"), ("b", "a"))]

    answers = [json.loads(one.communicate(timeout=60)[0]) for one in both]

    assert [answer["stdout"] for answer in answers] == ["met\n", "met\n"]


def test_a_limit_holds_over_the_door(agent: OpenRY):
    """Of ten calls at once under a limit of three, exactly three run."""
    sql(agent, "UPDATE task_state SET max_tool_calls = 3")
    calls = [agent.start("-c", "echo ran") for _ in range(10)]

    said = [json.loads(call.communicate(timeout=60)[0])["stdout"] for call in calls]

    assert sum(one == "ran\n" for one in said) == 3
    assert sum(one.startswith(STOP) for one in said) == 7


# --- ending -----------------------------------------------------------------------------------


def _running(agent: OpenRY, mark: str) -> subprocess.Popen:
    process = agent.start("-c", f"sleep 300.{mark} & sleep 300.{mark}")
    until = time.monotonic() + 30
    while len(alive(f"sleep 300.{mark}")) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    assert alive(f"sleep 300.{mark}")
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_client_ends_the_command(agent: OpenRY, number: int):
    """Its whole group; the row says `interrupted`, and JSON is printed all the same."""
    process = _running(agent, f"7{number}")

    process.send_signal(number)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["exit_code"] == 130
    assert not alive(f"sleep 300.7{number}")
    assert rows(agent, "ending") == [("interrupted",)]


def test_a_killed_client_takes_its_command_along(agent: OpenRY):
    """Nobody is left to read the answer, so nothing goes on."""
    process = _running(agent, "79")

    process.kill()
    process.communicate()

    assert gone_within("sleep 300.79", 30)
    until = time.monotonic() + 30
    while rows(agent, "ending") != [("interrupted",)] and time.monotonic() < until:
        time.sleep(0.02)
    assert rows(agent, "ending") == [("interrupted",)]


def test_a_closing_door_ends_what_runs_and_still_answers(agent: OpenRY):
    """The hard brake: the command is ended, the client reads how; then there is no door."""
    process = _running(agent, "78")

    agent.door.close()
    out, _ = process.communicate(timeout=60)

    assert json.loads(out)["exit_code"] == 130
    assert not alive("sleep 300.78")
    assert not Path(agent.door.folder).exists()


def test_without_worker_the_agent_is_told_to_stop(agent: OpenRY):
    """The brake's text, so that no agent mistakes it for a failing tool."""
    agent.door.close()

    answer = agent("-c", "true")
    said = agent.raw("--status", "completed")

    assert (answer["exit_code"], answer["stdout"].splitlines()[0]) == (0, STOP)
    assert json.loads(said.stdout)["acknowledged"] is False


def test_who_waits_for_a_verdict_may_leave(agent: OpenRY):
    """`--wait` ends with its caller, and its thread with it."""
    process = agent.start("--status", "completed", "--wait")
    until = time.monotonic() + 30
    while sql(agent, "SELECT status FROM task_state") == [("in_progress",)]:
        assert time.monotonic() < until
        time.sleep(0.02)

    process.kill()
    process.communicate()

    while agent.door._callers:
        assert time.monotonic() < until
        time.sleep(0.02)


# --- who sends anything else ------------------------------------------------------------------


GOOD = Asked(TOKEN, "/", ["-c", "echo fine"]).to_bytes()
BAD = {
    "nothing": b"",
    "half a length": b"\0\0",
    "a length without more": (100).to_bytes(4, "big") + bytes(4),
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a head too long": (MAX_HEAD + 1).to_bytes(4, "big") + bytes(4),
    "a body too long": bytes(4) + (MAX_BODY + 1).to_bytes(4, "big"),
    "all ones": b"\xff" * 64,
    "no magic": (5).to_bytes(4, "big") + bytes(4) + b"hello",
    "no words": (8).to_bytes(4, "big") + bytes(4) + b"openry/1",
    "an empty head": bytes(8),
    "cut off": GOOD[:-3],
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_message_is_answered_and_hurts_nobody(agent: OpenRY, name: str):
    """A sentence, and the next call is answered as ever."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(agent.door.path)
        caller.sendall(BAD[name])
        caller.shutdown(socket.SHUT_WR)
        status, out, _ = read_reply(caller.recv)

    assert status in (2, 74)
    assert json.loads(out)["stderr"].startswith("openry: ")
    assert agent("-c", "echo fine")["stdout"] == "fine\n"


def test_no_words_at_all_are_a_usage_error(agent: OpenRY):
    """Not our own mistake."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(agent.door.path)
        caller.sendall(Asked(TOKEN, "", []).to_bytes())
        status, _, err = read_reply(caller.recv)

    assert status == 2
    assert b"is not available inside a run" in err


def test_silent_callers_keep_nobody_waiting(agent: OpenRY):
    """Thirty that say nothing, and ten that stopped in the middle; the next is answered."""
    silent = []
    for number in range(40):
        caller = socket.socket(socket.AF_UNIX)
        caller.connect(agent.door.path)
        if number % 4 == 0:
            caller.sendall(GOOD[:20])
        silent.append(caller)

    assert agent("-c", "echo fine")["stdout"] == "fine\n"
    for caller in silent:
        caller.close()


def test_a_caller_that_takes_no_answer_is_left_behind(agent: OpenRY, monkeypatch):
    """Its thread gives up; the others were never kept."""
    monkeypatch.setattr(doors, "_PATIENCE_S", 0.5)
    greedy = socket.socket(socket.AF_UNIX)
    greedy.connect(agent.door.path)
    greedy.sendall(Asked(TOKEN, "/", ["-c", "head -c 900000 /dev/zero | tr '\\0' x"]).to_bytes())

    assert agent("-c", "echo fine")["stdout"] == "fine\n"
    until = time.monotonic() + 30
    while agent.door._callers and time.monotonic() < until:
        time.sleep(0.05)
    assert not agent.door._callers
    greedy.close()


def test_one_too_many_is_told_to_wait(monkeypatch):
    """The door has room for so many; the next reads a sentence, and later ones get in again."""
    monkeypatch.setattr(doors, "_MOST_CALLERS", 1)
    inside, leave = threading.Event(), threading.Event()

    def answer(asked: Asked, wake_fd: int, stdin_fd: int) -> Reply:
        inside.set()
        leave.wait(30)
        return Reply("served")

    door = Door(answer)
    first, second = (socket.socket(socket.AF_UNIX) for _ in range(2))
    try:
        first.connect(door.path)
        first.sendall(GOOD)
        assert inside.wait(30)
        second.connect(door.path)
        status, out, _ = read_reply(second.recv)
        leave.set()
        assert (status, "too many calls at once" in out.decode()) == (75, True)
        assert read_reply(first.recv) == (0, b"served", b"")
    finally:
        leave.set()
        door.close()
        first.close()
        second.close()


def test_a_mistake_of_ours_is_one_callers_alone(tmp_path: Path):
    """It is said as such, and the door stays open."""

    def answer(asked: Asked, wake_fd: int, stdin_fd: int) -> Reply:
        if asked.words == ("bad",):
            raise ZeroDivisionError("a slip")
        if asked.words == ("worse",):
            raise FileNotFoundError("a file")
        return Reply("fine")

    door = Door(answer)
    try:
        for word, said in (
            ("bad", b"internal error: ZeroDivisionError: a slip"),
            ("worse", b"internal error: FileNotFoundError: a file"),
            ("ok", b"fine"),
        ):
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(door.path)
                caller.sendall(Asked("", "", [word]).to_bytes())
                assert said in read_reply(caller.recv)[1]
    finally:
        door.close()


@pytest.mark.parametrize("words", [[], ["-c", "echo é\udcff"], ["a"] * 5000, ["x" * 200_000]])
def test_a_request_arrives_as_it_was_sent(words: list[str]):
    """Whatever words the kernel lets through, however the bytes come in."""
    data = Asked("t", "/caf\udce9", words, b"\0body\0").to_bytes()
    place = 0

    def read(size: int) -> bytes:
        nonlocal place
        part = data[place : place + min(size, 777)]
        place += len(part)
        return part

    asked = read_request(read)

    assert (asked.token, asked.cwd, list(asked.words)) == ("t", "/caf\udce9", words)
    assert asked.body == b"\0body\0"


# --- files that an agent names ----------------------------------------------------------------


@pytest.fixture
def confined(openry: OpenRY) -> Iterator[OpenRY]:
    """The agent of a step in a sandbox, under the policy `moderate`."""
    yield from _confined(openry, timeout_s=100.0)


@pytest.fixture
def hurried(openry: OpenRY) -> Iterator[OpenRY]:
    """The same with two seconds for each command."""
    yield from _confined(openry, timeout_s=2.0)


def _confined(openry: OpenRY, timeout_s: float) -> Iterator[OpenRY]:
    need_bubblewrap()
    with worker(openry, sandbox="bubblewrap", policy=("moderate",), timeout_s=timeout_s):
        (openry.cwd / "sub").mkdir()
        (openry.cwd / "sub" / "command").write_text("echo from file")
        (openry.home.parent / "secret").write_text('echo "{}"')
        yield openry


@pytest.mark.sandbox
def test_a_file_of_the_workspace_may_be_named(confined: OpenRY):
    """Relative to where the agent is."""
    confined.cwd, top = confined.cwd / "sub", confined.cwd
    assert confined("-c", "@command")["stdout"] == "from file\n"
    (top / "link").symlink_to("sub/command")
    assert confined("-c", "@../link")["stdout"] == "from file\n"


@pytest.mark.sandbox
@pytest.mark.parametrize("how", ["straight", "dots", "link", "folder link", "ledger", "system"])
def test_a_file_outside_is_not_read_for_the_agent(confined: OpenRY, how: str):
    """The worker may read it; the step may not, so the worker does not: 126, and a row."""
    outside = confined.home.parent
    (confined.cwd / "out").symlink_to(outside / "secret")
    (confined.cwd / "up").symlink_to(outside)
    name = {
        "straight": f"{outside}/secret",
        "dots": "../secret",
        "link": "out",
        "folder link": "up/secret",
        "ledger": f"{confined.home}/openry.db",
        "system": "/etc/passwd",
    }[how]

    answer = confined("-c", f"@{name}")
    said = json.loads(confined.raw("--status", "completed", "--payload", f"@{name}").stdout)

    assert answer["exit_code"] == 126
    assert "outside what this step may read" in answer["stderr"]
    assert said["acknowledged"] is False and "outside what this step" in said["message"]
    assert rows(confined) == [("refused", 126)]


@pytest.mark.sandbox
def test_only_regular_files_are_read(confined: OpenRY):
    """A pipe that nobody writes is not waited for; a device and a folder are none either."""
    os.mkfifo(confined.cwd / "pipe")

    for name, said in (
        ("pipe", "no regular file"),
        ("sub", "no regular file"),
        ("none", "No such"),
    ):
        assert said in confined("-c", f"@{name}", status=2)["stderr"]
    assert confined("-c", "@/dev/zero")["exit_code"] == 126


def test_a_link_put_in_between_is_not_followed(tmp_path: Path):
    """Judged, then swapped for a link, then opened: what it leads to is not read."""
    from openry.errors import UsageError
    from openry.forwarder.reading import read_regular

    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("seen")
    assert read_regular(f"{tmp_path}/real/file", 10, "the file") == b"seen"

    (tmp_path / "real").rename(tmp_path / "other")
    (tmp_path / "real").symlink_to("other")
    with pytest.raises(UsageError, match="the file"):
        read_regular(f"{tmp_path}/real/file", 10, "the file")
    (tmp_path / "last").symlink_to("other/file")
    with pytest.raises(UsageError, match="the file"):
        read_regular(f"{tmp_path}/last", 10, "the file")


@pytest.mark.sandbox
def test_a_folder_is_judged_like_a_path_to_read(confined: OpenRY):
    """`--cwd` in the workspace, or not at all; whether it exists outside is not told."""
    assert confined("-c", "pwd", "--cwd", "sub")["stdout"] == f"{confined.cwd}/sub\n"
    for place in (confined.home.parent, "/root-of-nobody", confined.home, "/etc"):
        answer = confined("-c", "pwd", "--cwd", str(place))
        assert (answer["exit_code"], answer["stdout"]) == (126, "")
        assert "outside what this step may read" in answer["stderr"]
    preview = confined("-c", "pwd", "--dry-run", "--cwd", "/etc")
    assert preview["exit_code"] == 126


@pytest.mark.sandbox
def test_a_variable_is_judged_like_an_assignment(confined: OpenRY):
    """`--env` can do nothing that `NAME=VALUE command` could not."""
    good = confined("-c", "echo $A", "--env", "A=fine")
    bad = confined("-c", "true", "--env", "LD_PRELOAD=./x.so")
    same = confined("-c", "LD_PRELOAD=./x.so true")

    assert good["stdout"] == "fine\n"
    assert bad["exit_code"] == same["exit_code"] == 126
    assert bad["stderr"] == same["stderr"]


@pytest.mark.sandbox
def test_a_timeout_is_cut_to_the_steps(hurried: OpenRY):
    """An agent may ask for less time than its step has, not for more."""
    answer = hurried("-c", "sleep 60", "--timeout", "50")

    assert answer["exit_code"] == 124
    assert "stopped after 2 s" in answer["stderr"]


# --- the folder -------------------------------------------------------------------------------


def _door() -> Door:
    return Door(lambda asked, wake_fd, stdin_fd: Reply("served"))


def test_the_door_is_for_its_owner_alone():
    """The folder is 0700, the socket 0600; both are gone when it is closed."""
    door = _door()
    folder, path = Path(door.folder), Path(door.path)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*folder.iterdir()] == [path]
    door.close()
    assert not folder.exists()


def test_a_long_path_is_no_trouble(tmp_path: Path, monkeypatch):
    """A socket's path may have 108 bytes; a longer folder for temporary files is passed over."""
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(long))

    door = _door()
    door.close()

    assert len(os.fsencode(door.path)) < 104
    assert not door.path.startswith(str(long))


def test_what_a_killed_worker_left_is_swept(tmp_path: Path, monkeypatch):
    """A socket nobody listens on goes; one somebody listens on, and a newborn, stay."""
    with _ShortFolder() as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
        left, born = (base / f"openry-run-{name}" for name in ("left", "born"))
        for folder in (left, born):
            folder.mkdir()
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(folder / "hand"))
        alive_door = _door()
        for folder in (left, Path(alive_door.folder)):
            os.utime(folder, (1, 1))

        _door().close()

        assert not left.exists()
        assert born.exists() and Path(alive_door.folder).exists()
        alive_door.close()


class _ShortFolder:
    """A folder whose path is short enough for a socket, unlike pytest's."""

    def __enter__(self) -> Path:
        import tempfile

        self._made = tempfile.TemporaryDirectory()
        return Path(self._made.__enter__())

    def __exit__(self, *_: object) -> None:
        self._made.cleanup()


# --- from inside a sandbox ----------------------------------------------------------------------


@pytest.mark.sandbox
def test_the_ledger_is_out_of_reach_but_for_the_door(openry: OpenRY, make_hand):
    """An agent in its sandbox acts through the door, and sees neither ledger nor home."""
    need_bubblewrap()
    home = openry.home
    with worker(openry, sandbox="bubblewrap") as door:
        spec = SandboxSpec("bubblewrap", (str(openry.cwd),), door=door.folder)
        inside = make_hand(workspace=str(openry.cwd), sandbox=spec)
        env = f"OPENRY_SOCKET=/run/openry/hand OPENRY_RUN_TOKEN={TOKEN}"
        script = f"""
        {env} {PROGRAM} -c 'echo by the door > made'
        ls {home} {home.parent} 2>&1
        cat {home}/openry.db 2>&1
        python3 -c 'import sqlite3 as s; s.connect("{home}/openry.db").execute("DROP TABLE events")'
        OPENRY_HOME={home} {PROGRAM} -c 'echo by hand > by_hand'
        OPENRY_HOME={home} {PROGRAM} log
        rm -rf /run/openry; touch /run/openry/x
        {env} {PROGRAM} -c 'echo still there'
        """
        from openry.models import Command

        said = inside.forward(Command(text=script)).stdout.splitlines()
        kept = [row for row in rows(openry, "run_id, ending") if row[0] != "manual"]

    assert (openry.cwd / "made").read_text() == "by the door\n"
    assert not (openry.cwd / "by_hand").exists()
    assert any("inside a run's sandbox" in line for line in said)
    assert json.loads(said[-1])["stdout"] == "still there\n"
    assert not any("openry.db" in line and "SQLite" in line for line in said)
    assert kept == [("run-1", "exited")] * 2
    database = sqlite3.connect(home / "openry.db")
    assert database.execute("SELECT count(*) FROM task_state").fetchone() == (1,)
    database.close()
