"""The real `openry`, and a look at which processes are alive."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from openry.sandbox.landlock import NEEDED_ABI, abi
from openry.sandbox.libc import call

PROGRAM = str(Path(sys.executable).with_name("openry"))
#: In what a test looks for among all processes, lest it finds those of another run of it.
PID = os.getpid()
KEYS = ["exit_code", "stdout", "stderr", "duration_ms"]


class OpenRY:
    """`openry` with an OPENRY_HOME of its own."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self.home = home
        self.cwd = cwd
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "OPENRY_HOME": str(home)}

    def start(self, *args: str, env: dict[str, str] | None = None, **more: Any) -> Any:
        return subprocess.Popen(
            [PROGRAM, *args],
            cwd=self.cwd,
            env=self.env | (env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **{"stdin": subprocess.DEVNULL, **more},
        )

    def raw(self, *args: str, env: dict[str, str] | None = None, stdin: bytes = b"") -> Any:
        return subprocess.run(
            [PROGRAM, *args],
            cwd=self.cwd,
            env=self.env | (env or {}),
            input=stdin,
            capture_output=True,
            timeout=120,
        )

    def __call__(
        self, *args: str, env: dict[str, str] | None = None, stdin: bytes = b"", status: int = 0
    ) -> Any:
        """The answer, which must be one line with exactly the four keys."""
        done = self.raw(*args, env=env, stdin=stdin)
        assert done.stderr == b"", done.stderr.decode()
        assert done.returncode == status, done.stdout.decode()
        line = done.stdout.decode("utf-8")
        assert line.endswith("\n") and line.count("\n") == 1
        answer = json.loads(line)
        assert list(answer) == KEYS
        return answer

    def rows(self, what: str = "*") -> list[sqlite3.Row]:
        database = sqlite3.connect(self.home / "openry.db")
        database.row_factory = sqlite3.Row
        try:
            return database.execute(f"SELECT {what} FROM commands_log ORDER BY id").fetchall()
        finally:
            database.close()


def need_sandbox(name: str) -> None:
    """Without it: a failure in CI, a loud skip at home."""
    if name == "bubblewrap" and not shutil.which("bwrap"):
        _missing("bubblewrap is not installed; run: apt-get install bubblewrap")
    if name == "landlock" and abi() < NEEDED_ABI:
        pytest.skip(f"NOT TESTED: the kernel's landlock has version {abi()}, not {NEEDED_ABI}")


def need_bubblewrap() -> None:
    need_sandbox("bubblewrap")


def _missing(sentence: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(f"NOT TESTED: {sentence}")


def as_user(uid: int, work: Callable[[], Any]) -> Any:
    """What `work` returns when another user does it: in a child that has become that user.

    It must be JSON, and the parent must have done the like before: what another user cannot read
    cannot be imported any more.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  # another process
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            call("prctl", 4, 1, 0, 0, 0)  # as any process of that user: others of his may look
            os.write(write, json.dumps(work()).encode())
        except BaseException:
            os.write(write, json.dumps({"error": traceback.format_exc()}).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        told = json.loads(file.read())
    os.waitpid(child, 0)
    assert not (isinstance(told, dict) and "error" in told), told["error"]
    return told


def need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can become another user")


Answer = TypeVar("Answer")


def in_time(
    ask: Callable[[float], Answer], said: Callable[[Answer], bool], seconds: float
) -> Answer:
    """What comes of a time limit of `seconds`, or of the first longer one that leaves it the time
    to say what it has to: on a busy machine a shell may take seconds to get that far.
    """
    while not said(answer := ask(seconds)) and seconds < 100:
        seconds *= 4
    return answer


def alive(mark: str) -> list[str]:
    """Command lines of living processes that hold `mark`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark in words and state not in "ZX" and int(folder.name) != os.getpid():
            found.append(words)
    return found


def gone_within(mark: str, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while alive(mark):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
