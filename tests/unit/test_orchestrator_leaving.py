from __future__ import annotations

import subprocess
import sys

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
