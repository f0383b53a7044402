"""What a `confirm` rule asks of a person, and what their answer is good for."""

from __future__ import annotations

import json
import os
import pty
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from openry.ledger.db import Ledger
from openry.ledger.records import answer_approval, pending_approvals
from openry.models import Command, Ending

CONFIRM = ({"default": "allow", "commands": [{"confirm": "touch", "message": "it makes a file"}]},)
TOUCH = Command(text="touch made")


@pytest.fixture
def hand(make_hand: Callable[..., Any]) -> Any:
    return make_hand(policy=CONFIRM)


def asked(hand: Any) -> tuple[Any, ...]:
    with closing(Ledger(hand.ledger.path)) as ledger, ledger.read() as connection:
        return pending_approvals(connection, "manual")


def answer(hand: Any, state: str, comment: str = "") -> None:
    with closing(Ledger(hand.ledger.path)) as ledger, ledger.write() as connection:
        for each in pending_approvals(connection, "manual"):
            at = "2030-01-01T00:00:00.000Z"
            answer_approval(connection, at, each.id, state, by="somebody", comment=comment)


def test_a_question_is_stored_once_and_the_command_is_refused(hand: Any) -> None:
    """Nobody there: 126, one question however often it is tried, and nothing was started."""
    results = [hand.forward(TOUCH) for _ in range(3)]

    assert {result.exit_code for result in results} == {126}
    assert results[0].stderr.startswith("openry: needs approval: it makes a file; request 1 ")
    assert [each.kind for each in asked(hand)] == ["command"]
    assert "`touch made`" in asked(hand)[0].question


def test_a_yes_lets_the_same_command_through_once(hand: Any) -> None:
    """Only that command, and only one time: the next asks again."""
    hand.forward(TOUCH)
    answer(hand, "approved")

    other = hand.forward(Command(text="touch made other"))
    first, second = hand.forward(TOUCH), hand.forward(TOUCH)

    assert (other.exit_code, first.exit_code, second.exit_code) == (126, 0, 126)
    with closing(sqlite3.connect(hand.ledger.path)) as db:
        rows = db.execute(
            "SELECT c.ending, c.verdict, a.state FROM commands_log c"
            " JOIN approvals a ON a.command_id = c.id"
        ).fetchall()
    assert rows == [("exited", "confirm", "approved")]


def test_a_no_holds(hand: Any) -> None:
    """The agent hears that a person said no, and what they said; it is not asked again."""
    hand.forward(TOUCH)
    answer(hand, "rejected", "use the\nother folder")

    result = hand.forward(TOUCH)

    assert result.exit_code == 126
    assert "openry: not allowed: a person said no (use the other folder)" in result.stderr
    assert asked(hand) == ()


@pytest.mark.parametrize(
    "other",
    [
        {"env": {"A": "1"}},
        {"cwd": "sub"},
        {"stdin": b"x"},
    ],
)
def test_a_yes_is_for_exactly_what_was_shown(hand: Any, other: dict[str, Any]) -> None:
    """The same words in another folder, with other variables or input are another command."""
    os.mkdir(os.path.join(hand.context.workspace, "sub"))  # noqa: PTH102, PTH118
    hand.forward(TOUCH)
    answer(hand, "approved")

    assert hand.forward(Command(text=TOUCH.text, **other)).exit_code == 126
    assert hand.forward(TOUCH).exit_code == 0


def test_nothing_is_hidden_in_a_question(make_hand: Callable[..., Any]) -> None:
    """Control characters, signs that turn text round and line ends are spelt out; secrets not."""
    rule = {"default": "allow", "commands": [{"confirm": "echo"}]}
    hand = make_hand(policy=(rule,), env={"API_TOKEN": "s3cr3t-value"})
    hand.forward(Command(text="echo 'a\x1b[2K\u202eb\n' s3cr3t-value"))

    (each,) = asked(hand)

    assert each.question.isprintable()
    assert "\\x1b[2K\\u202eb\\n" in each.question
    assert "s3cr3t" not in each.question


def test_ten_at_once_use_a_yes_once(hand: Any) -> None:
    """The approval is looked up and used in the transaction that starts the command."""
    from concurrent.futures import ThreadPoolExecutor

    hand.forward(TOUCH)
    answer(hand, "approved")

    with ThreadPoolExecutor(10) as pool:
        results = list(pool.map(hand.forward, [TOUCH] * 10))

    assert sorted(result.exit_code for result in results) == [0] + [126] * 9


def test_a_brake_goes_before_a_question(make_hand: Callable[..., Any]) -> None:
    """A run that may start nothing any more is told so; no person is asked for it."""
    hand = make_hand(policy=CONFIRM, run_id="run-unknown")

    result = hand.forward(TOUCH)

    assert "is not in the ledger" in result.stderr
    with closing(sqlite3.connect(hand.ledger.path)) as db:
        assert db.execute("SELECT count(*) FROM approvals").fetchone() == (0,)


@pytest.mark.parametrize(("said", "exit_code"), [(True, 0), (False, 126)])
def test_whoever_sits_there_is_asked(hand: Any, said: bool, exit_code: int) -> None:
    """With a person at the terminal nothing is stored: they say yes or no at once."""
    from openry.forwarder import Hand

    questions: list[str] = []

    def ask(question: str) -> bool:
        questions.append(question)
        return said

    own = Hand(hand.ledger, hand.context, hand.config, ask=ask)
    result = own.forward(TOUCH)

    assert result.exit_code == exit_code
    assert len(questions) == 1
    assert asked(hand) == ()


def test_by_hand_the_terminal_asks(openry: Any) -> None:
    """`openry -c` under a configured policy asks at the terminal and prints one answer."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "config.yaml").write_text("policy: moderate\n")
    pid, terminal = pty.fork()
    if pid == 0:
        words = [sys.executable, "-c", "import sys; from openry.cli import main; sys.exit(main())"]
        os.chdir(openry.cwd)
        os.execvpe(words[0], [*words, "-c", "shred -u nothing; echo on"], openry.env)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(terminal, 1024)
    os.write(terminal, b"y\n")
    until = time.monotonic() + 60
    while b'"exit_code"' not in said and time.monotonic() < until:
        said += os.read(terminal, 1024)
    os.waitpid(pid, 0)
    os.close(terminal)

    assert b"run `shred -u nothing; echo on` in" in said
    assert json.loads(said[said.index(b"{") :].splitlines()[0])["stdout"] == "on\n"
    assert [row["verdict"] for row in openry.rows()] == ["confirm"]


def test_a_capability_is_judged_by_what_its_arguments_name(make_hand: Callable[..., Any]) -> None:
    """Not by its definition's words: its files must be where the policy says, its hosts too."""
    policy = {
        "default": "deny",
        "commands": [{"deny": "delete", "message": "nothing is deleted here"}],
        "files": {"read": ["src/**"], "write": ["out/**"]},
        "network": {"hosts": ["api.test:443"]},
    }
    hand = make_hand(policy=(policy,))

    def call(name: str, **named: Any) -> Any:
        return hand.forward(Command(stages=(("true",),), label=name, capability=name, **named))

    assert call("count_lines", reads=("src/a.txt",)).exit_code == 0
    assert call("sort_lines", reads=("src/a",), writes=("out/b",)).exit_code == 0
    assert "`sub" not in call("count_lines", reads=("secret.txt",)).stderr
    assert call("count_lines", reads=("secret.txt",)).ending is Ending.REFUSED
    assert call("sort_lines", reads=("src/a",), writes=("src/b",)).exit_code == 126
    assert call("copy", writes=("out/../.git/hooks/x",)).exit_code == 126
    assert call("http_request", urls=("https://api.test/v1",)).exit_code == 0
    assert call("http_request", urls=("https://other.test/",)).exit_code == 126
    assert "nothing is deleted here" in call("delete", writes=("out/a",)).stderr


def test_a_label_alone_frees_nothing(make_hand: Callable[..., Any]) -> None:
    """A command of a rule carries a label too; its text is judged like any other."""
    hand = make_hand(policy=("strict",))
    shell = ("bash", "--noprofile", "--norc", "-o", "pipefail", "-c")

    assert hand.forward(Command(stages=((*shell, "ls | wc -l"),), label="ls")).exit_code == 0
    assert hand.forward(Command(stages=((*shell, "touch x"),), label="ls")).exit_code == 126
    assert hand.forward(Command(stages=(("touch", "x"),), label="ls")).exit_code == 126


def test_arithmetic_with_a_variable_of_the_run_runs_nothing(make_hand: Callable[..., Any]) -> None:
    """A value from elsewhere is data, also where bash would evaluate it once more."""
    rule = {"default": "allow", "commands": [{"deny": "touch"}]}
    hand = make_hand(policy=(rule,), env={"n": "a[$(touch made)]", "k": "3"})

    assert hand.forward(Command(text="echo $((n + 1))")).exit_code == 126
    assert hand.forward(Command(text="echo $((k + 1))")).stdout == "4\n"
