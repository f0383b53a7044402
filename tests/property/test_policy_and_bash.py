"""The reader against a real bash: no program is called that was not among those it found."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from openry.policy import Policy, load_policy
from tests.property.shell_lines import NESTED, STUBS, line

#: Real programs that start others; what they start is claimed as well.
WRAPPERS = ("env", "nice", "timeout", "nohup", "setsid", "xargs", "find", "sh", "bash")


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stub programs that write their name, and nothing else on PATH but wrappers."""
    folder = tmp_path_factory.mktemp("stubs")
    for name in STUBS:
        status = 1 if name in ("p4", "p5") else 0
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {folder}/called\nexit {status}\n")
        (folder / name).chmod(0o755)
    for name in WRAPPERS:
        (folder / name).symlink_to(shutil.which(name) or "/bin/sh")
    return folder


@pytest.fixture(scope="module")
def policy() -> Policy:
    """Nothing is denied by name: what is refused could not be analysed, or may run anything."""
    return load_policy({"default": "allow"})


def environment(stubs: Path, cwd: Path) -> dict[str, str]:
    return {"PATH": str(stubs), "HOME": str(cwd)}


def called(text: str, stubs: Path, cwd: Path) -> set[str]:
    """The stub programs that bash calls for `text`, in the background too."""
    log = stubs / "called"
    log.write_text("")
    running = subprocess.Popen(
        ["/bin/bash", "--noprofile", "--norc", "-c", text],
        env=environment(stubs, cwd),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    with suppress(subprocess.TimeoutExpired):
        running.communicate(timeout=2)
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    return set(log.read_text().split())


def missed(text: str, policy: Policy, stubs: Path, cwd: Path) -> tuple[set[str], set[str]]:
    """What bash calls for a line that is allowed, and what of it nobody claimed."""
    env = environment(stubs, cwd)
    found = policy.decide(text, cwd=str(cwd), path=str(stubs), inherited=env)
    if not found.allowed:
        return set(), set()
    claimed = {part.argv[0] for part in found.parts if part.argv}
    really = called(text, stubs, cwd)
    return really, really - claimed


def check(count: int, policy: Policy, stubs: Path, cwd: Path) -> int:
    """Compare `count` lines; how many of them were allowed and called something.

    They are the same each time; OPENRY_SEED, a number, makes others.
    """
    dice, compared = random.Random(int(os.environ.get("OPENRY_SEED", count))), 0
    for _ in range(count):
        text = line(dice)
        really, lost = missed(text, policy, stubs, cwd)
        assert not lost, (text, lost)
        compared += bool(really)
    return compared


@pytest.mark.parametrize("shape", NESTED)
def test_no_program_is_missed_in_any_construct(
    shape: str, policy: Policy, stubs: Path, tmp_path: Path
) -> None:
    """Each construct that the lines are made of, alone, with a program in each of its places."""
    text = shape
    for name in ("p1", "p2", "p3", "p1 a", "p2 a", "p3 a"):
        text = text.replace("§", name, 1)

    assert missed(text, policy, stubs, tmp_path)[1] == set(), text


def test_no_program_is_missed_in_a_sample(policy: Policy, stubs: Path, tmp_path: Path) -> None:
    """1,000 generated lines: what bash calls is among what the reader found."""
    assert check(1000, policy, stubs, tmp_path) > 100


@pytest.mark.long
def test_no_program_is_missed(policy: Policy, stubs: Path, tmp_path: Path) -> None:
    """20,000 generated lines, 0 missed."""
    assert check(20_000, policy, stubs, tmp_path) > 2_000
