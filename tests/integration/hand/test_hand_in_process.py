"""The hand inside another program: pipelines of arguments, output files, sandboxes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest
from hand_helpers import PID, alive, in_time

from openry.forwarder import Hand
from openry.models import Command, Ending
from openry.sandbox.launcher import Launch, Unconfined

MakeHand = Callable[..., Hand]


def test_stages_are_a_pipeline_without_a_shell(make_hand: MakeHand, backend: str):
    """Arguments arrive as they are; bytes go in at the front and come out at the end."""
    hand = make_hand(backend)
    stages = (("grep", "-F", "--", "$HOME; `x`"), ("sort", "-r"), ("head", "-n", "1"))

    result = hand.forward(Command(stages=stages, stdin=b"a $HOME; `x`\nb $HOME; `x`\nc\n"))

    assert (result.exit_code, result.stdout) == (0, "b $HOME; `x`\n")


def test_a_pipeline_fails_with_its_last_failing_stage(make_hand: MakeHand, backend: str):
    """As with pipefail; but who stops because nobody reads on has not failed."""
    hand = make_hand(backend)

    assert hand.forward(Command(stages=(("sh", "-c", "exit 3"), ("cat",)))).exit_code == 3
    assert hand.forward(Command(stages=(("yes",), ("head", "-n", "1")))).exit_code == 0
    missing = hand.forward(Command(stages=(("cat",), ("no-such-program",))))
    assert missing.exit_code == 127
    assert "no-such-program" in missing.stderr


def test_an_output_file_is_written_whole_or_not_at_all(make_hand: MakeHand, backend: str):
    """A failing pipeline leaves what was there; a successful one replaces it, mode and all."""
    hand = make_hand(backend)
    target = Path(hand.context.workspace, "out.txt")
    target.write_text("old")
    target.chmod(0o640)

    failed = hand.forward(
        Command(stages=(("sh", "-c", "echo half; exit 1"),), output_file="out.txt")
    )
    assert (failed.exit_code, target.read_text()) == (1, "old")

    done = hand.forward(Command(stages=(("echo", "new"),), output_file="out.txt"))
    assert (done.exit_code, done.stdout, target.read_text()) == (0, "", "new\n")
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in target.parent.iterdir()] == ["out.txt"]


@pytest.mark.sandbox
@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
@pytest.mark.parametrize("place", ["bubblewrap.group_of", "tree.start"])
def test_a_command_that_cannot_be_started_leaves_nothing_open(
    make_hand: MakeHand, monkeypatch: pytest.MonkeyPatch, place: str
):
    """However far its sandbox had come; a program that goes on for days would run out of them."""
    hand = make_hand("bubblewrap")
    assert hand.forward(Command("true")).exit_code == 0
    before = len(list(Path("/proc/self/fd").iterdir()))

    def fail(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(f"openry.sandbox.{place}", fail)
    for _ in range(3):
        assert hand.forward(Command("true")).exit_code == 126

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_folders_above_an_output_file_are_made(make_hand: MakeHand, backend: str):
    """A result may be the first thing in its folder."""
    hand = make_hand(backend)

    hand.forward(Command(stages=(("echo", "new"),), output_file="x/y/out.txt"))

    assert Path(hand.context.workspace, "x/y/out.txt").read_text() == "new\n"


@pytest.mark.parametrize("path", ["../out.txt", "link/out.txt", "/etc/openry-test", "folder"])
def test_an_output_file_outside_is_refused(make_hand: MakeHand, tmp_path: Path, path: str):
    """Neither by `..`, nor by a link, nor by a full path; a sentence says why; nothing is run."""
    hand = make_hand()
    workspace = Path(hand.context.workspace)
    (workspace / "link").symlink_to(tmp_path)
    (workspace / "folder").mkdir()

    result = hand.forward(Command(stages=(("touch", "ran"),), output_file=path))

    assert result.exit_code == 2
    assert path in result.stderr
    assert not (workspace / "ran").exists()


def test_a_timeout_leaves_nothing_alive(make_hand: MakeHand, backend: str):
    """Also what left its session, also inside the sandbox; SIGTERM comes first there too."""
    hand = make_hand(backend)
    sleep = f"sleep {7_000_000 + os.getpid()}"  # other tests at once have others
    line = f"trap 'echo bye; exit 3' TERM; setsid {sleep} & echo on; {sleep}"

    result = in_time(
        lambda seconds: hand.forward(Command(line, timeout_s=seconds)),
        lambda result: "on\n" in result.stdout,
        0.5,
    )

    assert (result.exit_code, result.ending) == (124, Ending.TIMEOUT)
    assert result.stdout == "on\nbye\n"
    assert alive(sleep) == []


def test_background_children_end_with_the_call(make_hand: MakeHand, backend: str):
    """Whatever session they are in, whatever they print to."""
    hand = make_hand(backend)

    hand.forward(
        Command(f"(setsid sleep 7631{PID} >/dev/null 2>&1 &); sleep 7631{PID} & echo done")
    )

    assert alive(f"sleep 7631{PID}") == []


def test_whatever_was_ended_is_reaped(make_hand: MakeHand, backend: str):
    """A program that lives long gathers no dead children."""
    hand = make_hand(backend)
    hand.forward(Command("true"))
    before = _dead_children()

    nap = f"sleep 7632{PID}"
    for _ in range(3):
        hand.forward(Command(f"setsid {nap} & (setsid sh -c '{nap} & {nap}' &); echo"))

    assert _dead_children() <= before


def _dead_children() -> int:
    found = subprocess.run(
        ["ps", "-o", "stat=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    )
    return sum(line.startswith("Z") for line in found.stdout.splitlines())


def test_a_command_that_cannot_start_is_a_result(make_hand: MakeHand):
    """127 with the program's name, and a finished row."""
    hand = make_hand()

    result = hand.forward(Command(stages=(("./nothing-here",),)))

    assert result.exit_code == 127
    assert "nothing-here" in result.stderr


def test_what_the_kernel_finds_too_long_is_told_with_the_way_round(make_hand: MakeHand):
    """One argument or variable may have 128 KiB (B69); the text of a command may be longer."""
    hand, word = make_hand(), "x" * 140_000

    for command in (Command(stages=(("echo", word),)), Command("echo a", env={"A": word})):
        result = hand.forward(command)
        assert result.exit_code == 126
        assert "128 KiB: put it in a file" in result.stderr
        assert result.stderr.count("\n") == 1
    assert hand.forward(Command(f"echo {word} | wc -c")).stdout == "140001\n"


def test_tokens_are_counted_after_folding(make_hand: MakeHand):
    """A bar that is redrawn a thousand times costs an agent its last frame (B11)."""
    hand = make_hand(run_id="manual", max_output_tokens=500)
    bar = "i=0; while [ $i -lt 3000 ]; do printf '\\r%s/3000 [%s]' $i '#######'; i=$((i+1)); done"

    result = hand.forward(Command(f"{bar}; printf '\\nresult=42\\n'"))

    assert result.stdout == "2999/3000 [#######]\nresult=42\n"
    assert result.stdout_bytes > 30_000


def test_threads_share_a_hand(make_hand: MakeHand):
    """Calls neither mix nor wait for one another: each goes on once all have begun."""
    hand, results = make_hand(), {}
    meet = "touch begun.{n}; until [ $(ls begun.* | wc -l) = 6 ]; do sleep 0.02; done; echo {n}"

    def work(number: int) -> None:
        command = Command(meet.format(n=number), timeout_s=60)
        results[number] = hand.forward(command).stdout

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == {number: f"{number}\n" for number in range(6)}


def test_a_host_that_is_interrupted_finishes_the_row(make_hand: MakeHand):
    """KeyboardInterrupt in the middle: nothing alive, the row says `interrupted`."""
    hand = make_hand()
    begun = Path(hand.context.workspace, "begun")

    def interrupt() -> None:
        while not begun.exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        hand.forward(Command(f"touch begun; sleep 7632{PID}"))
    other.join()

    assert alive(f"sleep 7632{PID}") == []
    assert hand.ledger.recover_lost() == 0


def test_an_agents_answer_is_cut_by_tokens(make_hand: MakeHand):
    """Above the step's limit: size, a name for the whole, first and last lines, what to call."""
    hand = make_hand(run_id="manual", max_output_tokens=500)

    result = hand.forward(Command("seq 1 5000"))

    lines = result.stdout.splitlines()
    assert (lines[0], lines[-2]) == ("1", "5000")
    notice = [line for line in lines if line.startswith("[openry]")]
    assert "is larger than this step allows (500)" in notice[0]
    assert notice[1].startswith("[openry] call: openry --status overflow   or look inside: ")
    assert "5,000 lines, 23,893 bytes" in result.stdout  # the digest
    assert result.exit_code == 0
    assert Path(result.spill).read_text() == "".join(f"{n}\n" for n in range(1, 5001))
    both = hand.forward(Command("seq 1 5000 >&2; echo fine"))
    assert (both.stdout, "[openry]" in both.stderr) == ("fine\n", True)
    assert hand.forward(Command("seq 1 50")).stdout == "".join(f"{n}\n" for n in range(1, 51))


def test_python_capabilities_work_in_the_sandbox(make_hand: MakeHand, backend: str):
    """The running interpreter and this package can be read inside."""
    hand = make_hand(backend)
    code = "import openry.models, json, sys; print(json.load(sys.stdin)['a'])"

    result = hand.forward(
        Command(stages=((sys.executable, "-I", "-c", code),), stdin=b'{"a": "in"}')
    )

    assert (result.stdout, result.stderr) == ("in\n", "")


def test_each_call_has_an_empty_folder_of_its_own(make_hand: MakeHand):
    """Whatever the one before did with its own: files, links, permissions, nothing at all."""
    hand = make_hand("none")
    base = Path(hand.context.workspace).parent
    lines = ("true", "touch $TMPDIR/a", "chmod 777 $TMPDIR", "mkdir $TMPDIR/a; rmdir $TMPDIR/a",
             "rmdir $TMPDIR", "true", "true")  # fmt: skip
    seen = []
    for line in lines:
        said = hand.forward(Command(f"echo $TMPDIR; ls -A $TMPDIR; stat -c %a $TMPDIR; {line}"))
        folder, mode = said.stdout.split()
        assert mode == "700"
        seen.append(folder)

    assert len(set(seen)) == len(lines)
    waiting = [path for path in base.iterdir() if path.name.startswith("openry-")]
    assert len(waiting) <= 1, "one that nobody touched may wait for the next call"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux for our children")
def test_no_folder_is_handed_on_that_somebody_left_may_have_open(make_hand: MakeHand):
    """Who took all marks off and left its group is found no more; the next call's files are not
    for it."""
    hand = make_hand("none")
    pid = Path(hand.context.workspace, "pid")
    stays = f"env -i setsid sh -c 'echo $$ > {pid}; exec sleep 7623' > /dev/null 2>&1"
    wait = f"until [ -s {pid} ]; do sleep 0.01; done"

    first = hand.forward(Command(f"cd $TMPDIR && ls -di . && ({stays} &) ; {wait}"))
    try:
        then = hand.forward(Command("cd $TMPDIR && ls -di ."))
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)

    assert first.stdout and then.stdout
    assert first.stdout != then.stdout, "the same folder"


#: Two calls, and an end without warning.
KILLED_BETWEEN = """
import os, sys
from openry.config import load_config
from openry.forwarder import Hand
from openry.ledger.fast import FastLedger
from openry.models import Command, RunContext

config = load_config(sys.argv[1], env={})
hand = Hand(FastLedger(config.ledger), RunContext(workspace=os.getcwd()), config)
for _ in range(2):
    hand.forward(Command("true"))
print(len([name for name in os.listdir(os.environ["TMPDIR"])]), flush=True)
os.kill(os.getpid(), 9)
"""


def test_no_folder_waits_for_a_process_that_is_gone(tmp_path: Path):
    """What waits for the next call is removed by the watch."""
    base = tmp_path / "tmp dir"
    base.mkdir()
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(base)}
    argv = [sys.executable, "-c", KILLED_BETWEEN, str(tmp_path / "home")]
    (tmp_path / "home").mkdir(mode=0o700)

    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True)

    assert done.stdout == b"1\n", done.stderr.decode()
    until = time.monotonic() + 60
    while list(base.iterdir()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not list(base.iterdir())


class Boxed(Unconfined):
    """A sandbox of a host's own: its commands stand in another folder, and know a word of it."""

    backend = identity = "boxed"
    env: ClassVar = {"BOX": "ours"}

    def launch(self, argv: Sequence[str], cwd: str, tmp: str) -> Launch:
        return super().launch(argv, f"{cwd}/box", tmp)


def test_a_host_may_bring_its_own_sandbox(make_hand: MakeHand):
    """Each command runs in it and not in the one of the context, and the ledger names it."""
    given = make_hand("bubblewrap")
    box = Path(given.context.workspace, "box")
    box.mkdir()
    launcher = Boxed(given.context.sandbox)
    hand = Hand(given.ledger, given.context, given.config, launcher=launcher)

    result = hand.forward(Command("echo $BOX > made"))

    assert result.exit_code == 0
    assert (box / "made").read_text() == "ours\n"
    with closing(sqlite3.connect(given.ledger.path)) as ledger:
        ((shell,),) = ledger.execute("SELECT shell FROM commands_log")
    assert shell.endswith("(sandbox: boxed)")
