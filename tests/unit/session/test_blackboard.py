"""Texts that sessions share: whole, by plain names, under one lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from openry.config import load_config
from openry.errors import NotFoundError, UsageError
from openry.session.blackboard import MOST_BYTES, PROGRAMS, Blackboard, folder_of

HANG_GUARD_S = 60.0
COUNT = """
import sys
from pathlib import Path
from openry.session.blackboard import Blackboard

board, how = Blackboard(Path(sys.argv[1])), sys.argv[2]
for _ in range(200):
    if how == "add":
        board.add("n")
    else:
        with board.lock():
            board.put("n", str(int(board.get("n")) + 1))
"""


@pytest.fixture
def board(tmp_path):
    return Blackboard(tmp_path / "board")


@pytest.fixture
def program(tmp_path):
    """Runs `blackboard`, or another program, in a step's environment."""
    env = {
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "BLACKBOARD": str(tmp_path / "board"),
        "BLACKBOARD_PYTHON": sys.executable,
    }

    def start(*words, **more):
        return subprocess.Popen(
            words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
        )

    def run(*words, given=None):
        process = start(*words, stdin=subprocess.PIPE)
        out, err = process.communicate(given, timeout=HANG_GUARD_S)
        return process.returncode, out, err

    run.start = start
    run.env = env
    return run


# --- texts ----------------------------------------------------------------------------------


def test_a_text_is_there_until_it_is_replaced_or_removed(board):
    """Whoever looks sees all that has a name, and nothing else."""
    board.put("a.txt", "one\n")
    board.put("b", "")
    assert (board.get("a.txt"), board.get("b"), board.names()) == ("one\n", "", ["a.txt", "b"])
    board.put("a.txt", "two")
    board.remove("b")
    board.remove("b")
    assert (board.get("a.txt"), board.names()) == ("two", ["a.txt"])


def test_lines_and_numbers_are_added_to(board):
    """A missing text is empty, a missing number 0."""
    board.append("log", "one")
    board.append("log", "two\n")
    assert board.get("log") == "one\ntwo\n"
    assert [board.add("n"), board.add("n", 41), board.add("n", -2)] == [1, 42, 40]
    with pytest.raises(UsageError, match="what stands at `log` is no whole number: `one"):
        board.add("log")


def test_what_is_not_there_is_said_with_what_is(board):
    """Names are told."""
    board.put("errors", "5")
    with pytest.raises(NotFoundError, match=r"nothing called `eror` stands there \(.*`errors`\)"):
        board.get("eror")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc/x", ".hidden", "-x", "a\n", "a\0", "ä", "x" * 101]
)
def test_no_name_leads_out_of_the_folder(board, tmp_path, name):
    """Nothing is read, written or removed by it."""
    for deed in (board.get, board.remove, board.add, lambda n: board.put(n, "x")):
        with pytest.raises(UsageError, match="cannot be a name here"):
            deed(name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["board"]


def test_links_and_what_is_no_file_are_not_read(board, tmp_path):
    """A step may have put them there; `put` takes the place of a link, not of its target."""
    (tmp_path / "secret").write_text("s3cret")
    (tmp_path / "board/link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "board/pipe")
    (tmp_path / "board/folder").mkdir()
    for name in ("link", "pipe", "folder"):
        with pytest.raises(UsageError, match=f"`{name}` is no text of a blackboard"):
            board.get(name)
    assert board.names() == []
    board.put("link", "mine")
    assert board.get("link") == "mine"
    assert (tmp_path / "secret").read_text() == "s3cret"
    with pytest.raises(UsageError, match="`folder` is a folder"):
        board.put("folder", "x")


def test_only_text_of_some_size_is_taken(board, tmp_path):
    """In UTF-8, up to 1 MiB; else what was there stays."""
    board.put("a", "before")
    for text in ("x" * (MOST_BYTES + 1), "\udcff"):
        with pytest.raises(UsageError, match="`a` is"):
            board.put("a", text)
    assert board.get("a") == "before"
    (tmp_path / "board/b").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="no text in UTF-8"):
        board.get("b")


def test_a_reader_sees_one_whole_text_or_another(board):
    """However often it is replaced meanwhile."""
    texts, seen, done = [letter * 100_000 for letter in "ab"], set(), threading.Event()
    board.put("a", texts[0])

    def write():
        for turn in range(200):
            board.put("a", texts[turn % 2])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        seen.add(board.get("a"))
    writer.join(HANG_GUARD_S)
    assert seen <= set(texts)


# --- the lock -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["add", "lock"])
def test_two_processes_that_count_lose_nothing(board, tmp_path, how):
    """200 times each, by `add` and by the lock round reading and writing."""
    board.put("n", "0")
    both = [
        subprocess.Popen([sys.executable, "-c", COUNT, str(tmp_path / "board"), how])
        for _ in range(2)
    ]
    assert [each.wait(HANG_GUARD_S) for each in both] == [0, 0]
    assert board.get("n") == "400"


def test_shells_that_count_lose_nothing(program, board):
    """The same by `blackboard-lock`, from a shell; within it `add` does not wait for itself."""
    board.put("n", "0")
    log = '"$BLACKBOARD/l"'
    deed = "n=$(blackboard get n) && blackboard put n $((n + 1)) && blackboard add m >> " + log
    loop = f"for i in 1 2 3 4 5 6 7 8; do blackboard-lock sh -c '{deed}' || exit 1; done"
    both = [program.start("sh", "-c", loop) for _ in range(2)]
    said = [each.communicate(timeout=HANG_GUARD_S) for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    assert (board.get("n"), board.get("m")) == ("16", "16")
    assert board.get("l").split() == [str(n) for n in range(1, 17)]


def until_it_waits(process) -> None:
    """The kernel itself says who waits for a lock."""
    until = time.monotonic() + HANG_GUARD_S
    while not any(
        "->" in line and str(process.pid) in line.split()
        for line in Path("/proc/locks").read_text().splitlines()
    ):
        assert process.poll() is None, "it ended, and waited for nobody"
        assert time.monotonic() < until, "it does not come to the lock"
        time.sleep(0.01)


def test_the_lock_is_released_when_its_holder_is_killed(program, board, tmp_path):
    """With SIGKILL, so nothing of ours could release it."""
    holder = program.start(
        "blackboard-lock", "sh", "-c", "echo here; exec tail -f /dev/null", start_new_session=True
    )
    try:
        assert holder.stdout.readline() == "here\n"
        waiting = program.start("blackboard", "add", "n")
        until_it_waits(waiting)
        assert board.names() == []
        os.kill(holder.pid, signal.SIGKILL)
        assert waiting.communicate(timeout=HANG_GUARD_S) == ("1\n", "")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(holder.pid, signal.SIGKILL)
        holder.communicate(timeout=HANG_GUARD_S)


def test_programs_of_one_holder_lose_nothing(program, board):
    """They run at the same time under its lock, which they do not take again."""
    adds = "for i in 1 2 3 4 5 6 7 8; do blackboard add n & blackboard append l x & done; wait"
    status, out, err = program("blackboard-lock", "sh", "-c", adds)
    assert (status, err) == (0, "")
    assert sorted(map(int, out.split())) == list(range(1, 9))
    assert (board.get("n"), board.get("l")) == ("8", "x\n" * 8)


@pytest.mark.parametrize("words", [("put", "n", "5"), ("append", "n", "5"), ("remove", "n")])
def test_nothing_changes_while_somebody_holds_the_lock(program, board, words):
    """What was read under it is still there when it is written."""
    board.put("n", "1")
    with board.lock():
        waiting = program.start("blackboard", *words)
        until_it_waits(waiting)
        assert board.get("n") == "1"
    assert waiting.communicate(timeout=HANG_GUARD_S) == ("", "")
    assert board.names() == [] or board.get("n") != "1"


def test_what_a_killed_writer_left_is_tidied_up(board, tmp_path):
    """The draft of a text, whichever it was; nothing else."""
    folder = tmp_path / "board"
    for name in (".a.0123abcd", ".b.txt.deadbeef", ".mine", ".c.0123abcd.txt"):
        (folder / name).write_text("half")
    board.put("a", "whole")
    there = sorted(path.name for path in folder.iterdir())
    assert there == [".c.0123abcd.txt", ".changing", ".mine", "a"]


# --- the program ----------------------------------------------------------------------------


def test_the_program_does_the_same(program):
    """Answers end with a line end; a mistake is one sentence and not 0."""
    assert program("blackboard", "put", "a", "hello") == (0, "", "")
    assert program("blackboard", "get", "a") == (0, "hello\n", "")
    assert program("blackboard", "put", "b", "-", given="x\ny\n") == (0, "", "")
    assert program("blackboard", "get", "b") == (0, "x\ny\n", "")
    assert program("blackboard", "append", "b", "z") == (0, "", "")
    assert program("blackboard", "list") == (0, "a\nb\n", "")
    assert program("blackboard", "get", "c", "0") == (0, "0\n", "")
    assert program("blackboard", "add", "c") == (0, "1\n", "")
    assert program("blackboard", "add", "c", "-3") == (0, "-2\n", "")
    assert program("blackboard", "remove", "c") == (0, "", "")
    status, out, err = program("blackboard", "get", "c")
    assert (status, out) == (2, "") and err.startswith("blackboard: nothing called `c`")
    status, _, err = program("blackboard", "gte", "c")
    assert (status, err) == (2, "blackboard: there is no `gte`; see blackboard --help\n")
    status, _, err = program("blackboard", "put", "c")
    assert (status, err) == (2, "blackboard: `put` takes other words; see blackboard --help\n")
    status, _, err = program("blackboard")
    assert (status, err) == (2, "blackboard: it is not said what to do; see blackboard --help\n")
    status, out, _ = program("blackboard", "--help")
    assert status == 0 and "blackboard get NAME" in out


def test_the_lock_runs_a_command_as_it_is(program):
    """Its words, output and status; what cannot be started is said."""
    said = program("blackboard-lock", "sh", "-c", 'echo "$1"; exit 7', "x", "a  b")
    assert said == (7, "a  b\n", "")
    status, _, err = program("blackboard-lock", "no-such-program")
    assert status == 2 and err.startswith("blackboard: `no-such-program` cannot be started")


def test_no_stream_and_no_value_breaks_the_program(program, board, tmp_path):
    """Closed or full, and bytes that are no text: one sentence, or what is asked."""
    board.put("a", "1")

    def said(words):
        done = subprocess.run(
            ["sh", "-c", words], env=program.env, capture_output=True, timeout=HANG_GUARD_S
        )
        return done.returncode, done.stdout, done.stderr.decode()

    assert said("blackboard put a - <&-")[::2] == (
        2,
        "blackboard: `-` reads standard input, which is closed\n",
    )
    for to in (">&-", *([">/dev/full"] if sys.platform == "linux" else ())):
        status, _, err = said(f"blackboard get a {to}")
        assert status and err.startswith("blackboard: standard output cannot be written"), err
        assert err.count("\n") == 1, err
    assert said("blackboard get nothing \"$(printf '\\377')\"") == (0, b"\xff\n", "")
    (tmp_path / "board/folder").mkdir()
    for deed in ("remove folder", "put folder x"):
        assert said(f"blackboard {deed}")[2].startswith("blackboard: `folder` is a folder")


def test_it_lies_beside_the_ledger(tmp_path):
    """So that everybody who shares the ledger finds it; at home where that is no file."""
    home = tmp_path / "home"
    assert folder_of(load_config(home, env={}), "x") == home / "blackboards/x"
    elsewhere = load_config(home, env={"OPENRY_DB": str(tmp_path / "shared.db")})
    assert folder_of(elsewhere, "x") == tmp_path / "blackboards/x"
    server = load_config(home, env={"OPENRY_DB": "postgresql://db/openry"})
    assert folder_of(server, "x") == home / "blackboards/x"
