"""Standard output that takes nothing any more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hand_helpers import OpenRY

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", [("config",), ("log",), ("-c", "true"), ("--nonsense",)])
def test_a_full_disk_behind_the_answer_is_one_sentence(openry: OpenRY, words: tuple[str, ...]):
    """On standard error, with a status of its own."""
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "openry", *words],
            cwd=openry.cwd,
            env=openry.env,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert done.returncode == 1
    assert done.stderr == "openry: standard output cannot be written: No space left on device\n"
