"""How the larger programs end: nothing that was said or asked for at the end is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: What is at work as the program leaves.
NOBODY = ""
A_THREAD = "threading.Thread(target=lambda: (time.sleep(0.2), print('done'))).start()"
A_DAEMON = "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
CODE = """
import atexit, sys, threading, time
from openry.orchestrator.__main__ import _leave
atexit.register(print, "tidied up")
{at_work}
sys.stdout.write("said, ")
_leave(3)
"""


@pytest.mark.parametrize(
    ("at_work", "said"),
    [(NOBODY, ["said, tidied up"]), (A_DAEMON, ["said, tidied up"]), (A_THREAD, ["said, done"])],
)
def test_leaving_says_all_and_does_what_was_asked_for_at_the_end(at_work, said):
    """What is left is said, what registered itself is called; a thread at work is waited for."""
    code = CODE.format(at_work=at_work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines()[0] == said[0]
    assert done.stdout.splitlines()[-1].endswith("tidied up")


PROGRAMS = [
    ("openry-orchestrator", "list"),
    ("openry-orchestrator", "list", "--json"),
    ("openry-orchestrator", "--nope"),
    ("openry-loop", "--version"),
    ("openry-loop", "list"),
]


def shell(line: str, words: tuple[str, ...], home: Path) -> subprocess.CompletedProcess[str]:
    """What comes of `line` with `words` in the place of "$@"."""
    program = Path(sys.executable).with_name(words[0])
    env = {**os.environ, "OPENRY_HOME": str(home)}
    env.pop("PYTHONUNBUFFERED", None)
    argv = ["sh", "-c", line, "sh", str(program), *words[1:]]
    return subprocess.run(argv, capture_output=True, text=True, env=env)


@pytest.mark.parametrize("words", PROGRAMS)
@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_stream_that_is_closed_is_no_trouble(tmp_path, words, closed):
    """The status is that of an open one, and nothing but the sentences is said."""
    usual = shell('"$@"', words, tmp_path)

    done = shell(f'"$@" {closed}>&-', words, tmp_path)

    assert done.returncode == usual.returncode
    assert done.stdout == ("" if closed == "1" else usual.stdout)
    assert done.stderr == ("" if closed == "2" else usual.stderr)


@pytest.mark.parametrize("words", [each for each in PROGRAMS if "--nope" not in each])
def test_what_cannot_be_written_is_said_in_a_sentence(tmp_path, words):
    """A full disk is no success, and no traceback."""
    done = shell('"$@" > /dev/full', words, tmp_path)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"{words[0]}: ")
