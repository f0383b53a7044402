"""What all processes of a command together may use."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_helpers import PID, alive, gone_within

from openry.forwarder import Hand
from openry.models import Command, CommandResult, SandboxSpec
from openry.sandbox.cgroup import held_by_groups, make_group

MakeHand = Callable[..., Hand]


def _run(make_hand: MakeHand, backend: str, line: str, **limits: int) -> CommandResult:
    workspace = make_hand().context.workspace
    spec = SandboxSpec(backend, (workspace,), **limits)
    return make_hand(sandbox=spec).forward(Command(line, timeout_s=250))


def test_memory_is_counted_over_all_processes(make_hand: MakeHand, backend: str):
    """Three that are small enough alone are too much together, and all are ended."""
    one = f"{sys.executable} -c 'import time; x = bytearray(150 << 20); time.sleep(200)'"

    result = _run(make_hand, backend, f"{one} & {one} & {one} & wait; # 7640{PID}", memory_mb=250)

    assert result.exit_code == 137
    assert "MiB of memory, 250 are allowed" in result.stderr
    assert alive(f"7640{PID}") == []


def test_processes_are_counted(make_hand: MakeHand, backend: str):
    """A crowd is ended."""
    result = _run(
        make_hand, backend, f"for i in $(seq 60); do sleep 7641{PID} & done; wait", processes=40
    )

    assert result.exit_code == 137
    assert "processes at once, 40 are allowed" in result.stderr
    assert alive(f"sleep 7641{PID}") == []


def test_a_control_group_holds_what_comes_between_two_looks(make_hand: MakeHand, backend: str):
    """Where one can be made: never more processes than allowed, and no group is left."""
    if "pids" not in held_by_groups():
        pytest.skip("NOT TESTED: no control group can be made here")
    line = f"i=0; while [ $i -lt 200 ]; do sleep 7643{PID} & i=$((i+1)); done; wait"

    result = _run(make_hand, backend, line, processes=12)

    assert result.exit_code == 137
    assert "too many processes at once, 12 are allowed" in result.stderr
    assert gone_within(f"sleep 7643{PID}", 100)
    assert _groups_are_removed(100)


def _groups_are_removed(seconds: float) -> bool:
    """A group whose last process is dying is removed by the next call at the latest."""
    until = time.monotonic() + seconds
    while list(Path("/sys/fs/cgroup").glob(f"**/openry-{os.getpid()}-*")):
        held_by_groups()
        if time.monotonic() > until:
            return False
    return True


def test_a_group_of_version_2_is_limited_where_its_parent_gives_it(tmp_path: Path):
    """The files and what is written into them; a folder that gives nothing has no groups."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    if own is None:
        pytest.skip("NOT TESTED: there are no control groups of version 2 here")
    here = tmp_path / own.strip("/")
    here.mkdir(parents=True, exist_ok=True)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    assert make_group(SandboxSpec(processes=7, memory_mb=3), str(tmp_path)) is None

    (here / "cgroup.subtree_control").write_text("memory pids\n")
    made = make_group(SandboxSpec(processes=7, memory_mb=3), str(tmp_path))

    assert made is not None
    (folder,) = map(Path, made.folders)
    assert (folder.parent, made.doors) == (here, (f"{folder}/cgroup.procs",))
    assert (folder / "pids.max").read_text() == "9"
    assert (folder / "memory.max").read_text() == str(3 << 20)
    (folder / "memory.events").write_text("low 0\noom_kill 2\n")
    assert made.refused() == "memory"


def test_processor_time_is_counted(make_hand: MakeHand, backend: str):
    """Not wall time: waiting costs nothing."""
    busy = _run(make_hand, backend, f"{sys.executable} -c 'while True: pass'", cpu_s=1)
    idle = _run(make_hand, backend, "sleep 1.5; echo done", cpu_s=1)

    assert busy.exit_code == 137
    assert idle.stdout == "done\n"


@pytest.mark.parametrize("limit", [{"file_mb": 1}, {"disk_mb": 1}])
def test_a_file_does_not_grow_without_end(make_hand: MakeHand, backend: str, limit: dict):
    """The kernel holds it, with or without a sandbox."""
    result = _run(make_hand, backend, "head -c 5000000 /dev/zero > big; wc -c < big", **limit)

    assert int(result.stdout) <= 1024 * 1024


@pytest.mark.parametrize("limit", [{"tmp_mb": 1}, {"disk_mb": 1}])
@pytest.mark.sandbox
def test_a_sandboxs_tmp_does_not_grow_without_end(make_hand: MakeHand, limit: dict):
    """All files of it together."""
    line = "for i in 1 2 3; do head -c 800000 /dev/zero > /tmp/$i; done; cat /tmp/? | wc -c"

    result = _run(make_hand, "bubblewrap", line, **limit)

    assert int(result.stdout) <= 1024 * 1024


def test_files_are_counted_over_the_whole_command(make_hand: MakeHand, backend: str):
    """Many that are small enough alone; those that were there before do not count."""
    hand = make_hand()
    assert hand.forward(Command("head -c 9000000 /dev/zero > before")).ok
    assert _run(make_hand, backend, "sleep 0.3; echo x > b; echo done", disk_mb=4).ok
    line = (
        "mkdir d; for i in $(seq 9); do head -c 1000000 /dev/zero > d/$i; done; sleep 200; exit 3"
    )

    result = _run(make_hand, backend, line, disk_mb=4)

    assert result.exit_code == 137
    assert "MiB of files, 4 are allowed" in result.stderr


def test_a_sandboxs_time_is_the_shorter_one(make_hand: MakeHand, backend: str):
    """Of what the call asks for, the run's and the policy's."""
    spec = SandboxSpec(backend, (make_hand().context.workspace,), time_s=0.2)

    result = make_hand(sandbox=spec, timeout_s=30).forward(Command("sleep 20", timeout_s=25))

    assert (result.exit_code, str(result.ending)) == (124, "timeout")


def test_no_more_of_an_output_is_kept_than_may_be(make_hand: MakeHand, backend: str):
    """What is beyond it is counted and dropped."""
    hand = make_hand(sandbox=SandboxSpec(backend, (make_hand().context.workspace,), output_mb=1))

    result = hand.forward(Command("head -c 9000000 /dev/zero | tr '\\0' 'x'"))

    kept = [path for path in (hand.config.home / "runs").rglob("*") if path.is_file()]
    assert result.stdout_bytes == 9_000_000
    assert kept and sum(path.stat().st_size for path in kept) <= 1024 * 1024


def test_without_limits_nobody_looks(make_hand: MakeHand, backend: str):
    """Nothing is ended."""
    assert _run(make_hand, backend, "sleep 0.5; echo done").stdout == "done\n"
