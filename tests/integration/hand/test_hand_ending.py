"""Timeouts, signals, background children: how a call ends, and that nothing survives it."""

from __future__ import annotations

import json
import os
import re
import signal
import time

from hand_helpers import PID, OpenRY, alive, gone_within, in_time


def test_a_timeout_keeps_what_was_printed_and_leaves_nothing_alive(openry: OpenRY):
    """124, the text so far, one sentence (B05); every descendant is gone (B03)."""
    line = (
        "for i in 1 2 3; do echo step $i ok; done; echo oops >&2;"
        f"(setsid sleep 7611{PID}.1 &); sh -c 'sleep 7611{PID}.2 & sleep 7611{PID}.3 | cat; wait'"
    )
    answer = in_time(
        lambda seconds: openry("-c", line, "--timeout", str(seconds)),
        lambda answer: "oops" in answer["stderr"],
        0.7,
    )

    assert answer["exit_code"] == 124
    assert answer["stdout"] == "step 1 ok\nstep 2 ok\nstep 3 ok\n"
    assert re.fullmatch(r"oops\nopenry: stopped after [\d.]+ s \(timeout\)\n", answer["stderr"])
    assert alive(f"sleep 7611{PID}") == []
    row = openry.rows()[-1]
    assert (row["ending"], row["exit_code"], row["stdout"]) == ("timeout", 124, answer["stdout"])


def test_who_ignores_sigterm_is_killed(openry: OpenRY):
    """SIGTERM first, SIGKILL after the configured seconds."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "config.yaml").write_text("timeout: {kill_after: 0.3}\n")

    line = f"trap '' TERM; echo on; sleep 7612{PID} & wait; sleep 7612{PID}"

    answer = in_time(
        lambda seconds: openry("-c", line, "--timeout", str(seconds)),
        lambda answer: answer["stdout"] == "on\n",
        0.3,
    )

    assert (answer["exit_code"], answer["stdout"]) == (124, "on\n")
    assert alive(f"sleep 7612{PID}") == []


def test_who_heeds_sigterm_may_still_speak(openry: OpenRY):
    """What is printed between SIGTERM and the end belongs to the answer."""
    line = f"trap 'echo bye; exit 0' TERM; sleep 7613{PID} & wait"

    answer = in_time(
        lambda seconds: openry("-c", line, "--timeout", str(seconds)),
        lambda answer: answer["stdout"] == "bye\n",
        2,
    )

    assert answer["stdout"] == "bye\n"


def test_a_background_child_does_not_hold_the_answer(openry: OpenRY):
    """The call ends when the shell did, plus a short drain; what is left is ended (B01)."""
    line = (
        f"while :; do echo 1; sleep 0.05; done & sleep 0.2; echo FOREGROUND DONE; # mark7614{PID}"
    )

    answer = openry("-c", line)

    assert answer["duration_ms"] < 120_000  # it would go on for ever
    assert answer["exit_code"] == 0
    assert "FOREGROUND DONE\n" in answer["stdout"]
    assert "background" in answer["stderr"]
    assert alive(f"mark7614{PID}") == []


def test_a_quiet_background_child_is_ended_too(openry: OpenRY):
    """Also one that holds no pipe, also one in a session of its own."""
    openry("-c", f"sleep 7615{PID} >/dev/null 2>&1 & (setsid sleep 7615{PID} >/dev/null 2>&1 &)")

    assert gone_within(f"sleep 7615{PID}", 20)


def test_background_work_may_be_kept(openry: OpenRY):
    """`background: keep` leaves it alone."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "config.yaml").write_text("background: keep\n")

    answer = openry("-c", f"sleep 7616{PID} >/dev/null 2>&1 & echo $!")

    assert alive(f"sleep 7616{PID}")
    os.kill(int(answer["stdout"]), signal.SIGKILL)


def test_an_interrupt_ends_the_group_and_is_answered(openry: OpenRY):
    """SIGINT or SIGTERM to `openry`: the row says `interrupted`, JSON is still printed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        mark = openry.cwd / f"begun-{number}"
        process = openry.start("-c", f"echo begun; touch {mark}; sleep 7617{PID}")
        while not mark.exists():
            time.sleep(0.02)

        process.send_signal(number)
        out, err = process.communicate()

        answer = json.loads(out)
        assert err == b""
        assert answer["stdout"] == "begun\n"
        assert answer["stderr"].endswith("openry: interrupted\n")
        assert alive(f"sleep 7617{PID}") == []
        assert openry.rows()[-1]["ending"] == "interrupted"


def test_descriptors_of_the_caller_do_not_reach_the_command(openry: OpenRY, tmp_path):
    """Only 0, 1 and 2 are open in the command."""
    with open(tmp_path / "held", "wb") as held:
        process = openry.start("-c", "ls /proc/self/fd | wc -l", pass_fds=(held.fileno(),))
        out, _ = process.communicate()

    assert json.loads(out)["stdout"].strip() == "4"  # and the one that `ls` reads the folder by
