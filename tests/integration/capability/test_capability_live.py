"""What a long call writes is seen by the person who sits at the terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

TOOL = r"""
name: slow_count
description: Counts slowly. Use it for trying only.
command_template: [sh, -c, "echo early; sleep 2.3; printf 'late \\033[31mred\\n'"]
output_parser: lines
examples: [{request: count slowly, arguments: {}}]
"""


def test_who_waits_for_a_tool_sees_what_it_writes(tmp_path: Path) -> None:
    """On the terminal, once it takes long and without escape codes; the answer stays one line.

    What was written at first is shown only where that moment came before it was read.
    """
    folder = tmp_path / "home" / "capabilities" / "slow"
    folder.mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    (folder / "slow_count.yaml").write_text(TOOL)
    ours, theirs = pty.openpty()
    env = {"PATH": os.environ["PATH"], "OPENRY_HOME": str(tmp_path / "home")}

    argv = [sys.executable, "-m", "openry", "--call", "slow_count"]
    done = subprocess.run(
        argv, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=theirs, check=True,
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(ours, 4096).decode()
    os.close(ours)

    assert shown.split("\r\n") in (["late [31mred", ""], ["early", "late [31mred", ""])
    assert done.stdout.count(b"\n") == 1
    assert json.loads(json.loads(done.stdout)["stdout"])["data"] == ["early", "late red"]
