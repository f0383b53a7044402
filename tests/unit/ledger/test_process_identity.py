"""A process is told from another that got its number."""

from __future__ import annotations

import os
import subprocess

from openry.ledger.process import ProcessId, is_alive, process_id, this_process


def test_this_process_is_alive():
    """Whoever asks is there."""
    assert is_alive(this_process())


def test_a_process_that_ended_is_not():
    """Also while its parent has not asked how it ended."""
    child = subprocess.Popen(["sleep", "60"])
    known = process_id(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    assert is_alive(known) is False
    child.wait()
    assert is_alive(known) is False


def test_a_name_with_spaces_and_parentheses_hides_nothing(tmp_path):
    """The start time is read right whatever the program is called."""
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen([program, "60"])

    assert is_alive(process_id(child.pid))
    child.kill()
    child.wait()


def test_a_number_of_another_time_is_another_process():
    """Number alone proves nothing: the start time must be the same, and the boot."""
    me = this_process()
    boot, namespace, ticks = me.started_at.split("/")

    assert is_alive(ProcessId(me.pid, f"{boot}/{namespace}/{int(ticks) + 1}", me.host)) is False
    assert is_alive(ProcessId(me.pid, f"other/{namespace}/{ticks}", me.host)) is False


def test_what_cannot_be_seen_from_here_is_not_judged():
    """Another host's process, or one numbered inside a container, is neither alive nor gone."""
    me = this_process()
    boot, _, ticks = me.started_at.split("/")

    assert is_alive(ProcessId(me.pid, me.started_at, "elsewhere")) is None
    assert is_alive(ProcessId(me.pid, f"{boot}/4026599999/{ticks}", me.host)) is None


def test_without_a_start_time_nobody_is_known():
    """A number alone, which a stranger may have by now, is no sign of life."""
    assert is_alive(ProcessId(1, "", this_process().host)) is False
