"""The same intent has the same fingerprint; circles are seen, polling is none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openry.forwarder.fingerprint import action_of, fingerprint
from openry.forwarder.loops import Circles, Limits
from openry.models import Command, RunContext

CASES = Path(__file__).parents[4] / "shared" / "cases" / "agent-trajectories"


def of(command: Command | str, folder: Path, run: str = "run-1234", **context) -> str:
    given = command if isinstance(command, Command) else Command(command)
    about = RunContext(run_id=run, workspace=str(folder), **context)
    return fingerprint(given, about, str(folder))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("date -d 2026-03-01", "date -d 2027-11-30"),
        ("log 2026-03-01T09:00:00.000Z", "log 2026-03-02 10:01:02"),
        ("touch stamp-1767225600", "touch stamp-1767999999"),
        ("cat /tmp/tmp.AbCdEf/x", "cat /tmp/other/x"),
        ("sort in > tmp.a8Xk2Pq", "sort in > tmp.zzzzzzz"),
        ("echo run-1234", "echo run-5678"),
        ("  ls  ", "ls"),
        ("echo $RANDOM", "echo $RANDOM"),
    ],
)
def test_what_changes_each_time_is_no_part_of_it(tmp_path, one, other):
    """Times, temporary names, ids of the run; `$RANDOM` is what is written, not what comes."""
    assert of(one, tmp_path) == of(other, tmp_path, run="run-5678")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("echo a", "echo b"),
        ("grep -c 10 x", "grep -c 11 x"),
        ("echo a b", "echo 'a b'"),
        (Command("cat", stdin=b"a"), Command("cat", stdin=b"b")),
        (Command(stages=(("a", "b"),)), Command(stages=(("a",), ("b",)))),
        (Command("ls"), Command("ls", capability="x")),
        ("git checkout v1.2", "git checkout v1.3"),
    ],
)
def test_another_intent_has_another(tmp_path, one, other):
    """What is done differs, and so does the part that says what is done."""
    assert action_of(of(one, tmp_path)) != action_of(of(other, tmp_path))


def test_input_files_count_and_targets_do_not(tmp_path):
    """What a named file holds is in the second part; a file that is written is no input."""
    (tmp_path / "in.txt").write_text("one")
    first, appended = of("sort in.txt", tmp_path), of("echo x >> in.txt", tmp_path)
    (tmp_path / "in.txt").write_text("two")

    assert of("sort in.txt", tmp_path) != first
    assert action_of(of("sort in.txt", tmp_path)) == action_of(first)
    assert of("echo x >> in.txt", tmp_path) == appended


def test_odd_inputs_neither_wait_nor_fail(tmp_path):
    """A pipe, a link, a folder, a huge file, a name that is none: all are told or left out."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 33)

    text = f"cat pipe link folder huge ../x {'y' * 5000} \udcff \0 /etc/passwd"
    assert len(of(text, tmp_path)) == 64


@given(st.text(max_size=200))
def test_any_text_has_one(text):
    """Whatever a command is, it has 64 digits, the same ones twice."""
    about = RunContext(run_id="r", workspace="/nowhere")
    found = [fingerprint(Command(text), about, "/nowhere") for _ in range(2)]

    assert found[0] == found[1]
    assert len(found[0]) == 64


# --- circles ------------------------------------------------------------------------------------


def told(steps, limits=Limits()) -> list[tuple[int, bool]]:  # noqa: B008
    """At which steps a loop is seen, and whether it is braked."""
    circles, found = Circles(limits), []
    for number, (text, result) in enumerate(steps, 1):
        why, brake = circles.note(text, text, result)
        if why:
            found.append((number, brake))
    return found


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_a_circle_is_told_within_three_turns_and_then_braked(length):
    """Whatever the length up to four: warned at the third turn, braked at the sixth."""
    steps = [(f"do {n % length}", "same") for n in range(8 * length)]

    assert told(steps)[:2] == [(3 * length, False), (6 * length, True)]


@pytest.mark.parametrize(
    "steps",
    [
        [("curl status", f"{n} %") for n in range(30)],
        [(text, "same") for _ in range(20) for text in ("sleep 5", "curl status")],
        [("sleep 1; cat state", "same")] * 30,
        [(f"cat {n}", "same") for n in range(30)],
        [("ls", "a"), ("ls", "a"), ("cat x", "b"), ("ls", "a"), ("ls", "a")],
    ],
)
def test_polling_and_work_are_no_circles(steps):
    """Output that changes, waiting between looks, and different things are none."""
    assert told(steps) == []


def test_mostly_repeats_are_a_circle():
    """Seven of ten of the last twenty were there before."""
    texts = ["a", "b", "c", "d", "e", "f", "a", "c", "e", "b", "d", "f", "c", "a", "e", "d", "b"]
    steps = [(text, "same") for text in [*texts, "f", "a", "d"]]

    assert told(steps) == [(20, False)]


@pytest.mark.skipif(not CASES.is_dir(), reason="the recorded cases are not here")
def test_nobody_is_braked_who_later_succeeds():
    """605 recorded runs: no brake before a full reward, and one warning: of a real circle."""
    warned = braked = runs = 0
    for path in sorted(CASES.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            case, circles = json.loads(line), Circles(Limits())
            runs += 1
            turns = zip(case["actions"], case["observations"], strict=False)  # some break off
            for number, (text, seen) in enumerate(turns):
                why, brake = circles.note(text.strip(), text, str(seen))
                later = 1.0 in case["rewards"][number + 1 :]
                warned += bool(why) and later
                braked += brake and later

    assert runs == 605
    assert (warned, braked) == (1, 0)
