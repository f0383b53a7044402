"""`openry output`: what was too large is looked into by name, and only by who may."""

from __future__ import annotations

import gzip
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_helpers import OpenRY

from openry.forwarder import Hand
from openry.forwarder.files import open_kept
from openry.ledger.outputs import find_output, outputs_of
from openry.models import Command
from openry.output.tokens import MARGIN, estimate_tokens

MakeHand = Callable[..., Hand]
FEW = "INFO fine {n}\n"


def said(openry: OpenRY, *args: str, status: int = 0) -> str:
    done = openry.raw("output", *args)
    assert done.returncode == status, done.stderr.decode() + done.stdout.decode()
    assert b"Traceback" not in done.stderr
    return (done.stdout + done.stderr).decode()


def log(path: Path, lines: int = 20_000) -> Path:
    text = "".join(f"2026-03-01 INFO request {n} took {n % 97} ms\n" for n in range(lines))
    path.write_text(text + "ERROR batch Kq1 was rejected\n")
    return path


# --- by hand --------------------------------------------------------------------------------


def test_a_large_answer_by_hand_is_kept_and_looked_into(openry: OpenRY):
    """list, show, grep, kinds and digest by the name of the output."""
    log(openry.cwd / "app.log", 40_000)
    openry("-c", "cat app.log")

    (one,) = json.loads(said(openry, "list", "--json"))["outputs"]
    name = one["name"]
    assert (one["lines"], one["command"]) == (40_001, "cat app.log")
    assert name in said(openry, "list")
    assert said(openry, "show", name, "--lines", "3:4") == (
        "2026-03-01 INFO request 2 took 2 ms\n2026-03-01 INFO request 3 took 3 ms\n"
    )
    assert said(openry, "show", name, "--lines", "40001") == "ERROR batch Kq1 was rejected\n"
    assert said(openry, "grep", name, r"Kq\d") == "40001:ERROR batch Kq1 was rejected\n"
    assert said(openry, "grep", name, "never there", status=1) == ""
    assert said(openry, "kinds", name).splitlines()[1].startswith("×40,000 1: 2026-03-01 INFO")
    digest = said(openry, "digest", name, "--tokens", "300")
    assert "40001: ERROR batch Kq1 was rejected" in digest
    assert estimate_tokens(digest) * MARGIN <= 300


def test_files_are_digested_without_a_ledger(openry: OpenRY):
    """A handler in a sandbox has none: plain text, exit 0, no home is made."""
    file = log(openry.cwd / "app.log")
    digest = said(openry, "digest", str(file), "--tokens", "400", "--task", "find the batch")
    assert "ERROR batch Kq1" in digest
    assert not openry.home.exists()


def test_parts_and_summaries_go_through_a_folder(openry: OpenRY):
    """slice writes the parts, merge checks what is said of them."""
    log(openry.cwd / "app.log")
    made = json.loads(said(openry, "slice", "app.log", "--into", "parts", "--tokens", "900"))
    folder = openry.cwd / "parts"
    texts = [(folder / one["file"]).read_text() for one in made["chunks"]]
    assert 1 < len(texts) <= 25
    items = [{"summary": "`batch Kq1` was rejected" if "Kq1" in text else "fine"} for text in texts]
    (folder / "summaries.json").write_text(json.dumps({"items": items}))
    assert "`batch Kq1` was rejected" in said(openry, "merge", "parts", "--tokens", "500")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("digest", "out-999"), "there is no output `out-999`: it never was, or it was pruned;"),
        (("show", ""), "the name is empty; name an output (see: openry output list) or a file"),
        (("grep", "", "x"), "the name is empty"),
        (("digest", "nowhere.log"), "`nowhere.log`: no such file or directory"),
        (("digest", "."), "`.`: is a directory"),
        (("digest", "pipe"), "`pipe` is no regular file"),
        (("grep", "app.log", "("), "`(` is no regular expression"),
        (("show", "app.log", "--lines", "a:b"), "--lines must be A:B"),
        (("digest", "app.log", "--tokens", "-3"), "--tokens"),
        (("digest", "app.log", "--tokens", "many"), "must be a whole number, got `many`"),
        (("merge", "."), "slices.json"),
        (("slice", "app.log", "--into", "/proc/parts"), "`/proc/parts`"),
        (("frobnicate",), "there is no `openry output frobnicate`"),
        (("grep",), "missing name, pattern"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(openry: OpenRY, words, sentence):
    """Exit 2, no traceback, the place and what would do."""
    log(openry.cwd / "app.log", 10)
    os.mkfifo(openry.cwd / "pipe")
    text = said(openry, *words, status=2)
    assert sentence in text
    assert text.count("\n") == 1


def test_a_pattern_that_never_ends_is_stopped(openry: OpenRY):
    """One that backtracks for ever takes a second, not a day."""
    (openry.cwd / "a.txt").write_text("a" * 5000 + "b\n")
    began = time.monotonic()
    text = said(openry, "grep", "a.txt", "^(a|aa)+$", status=2)
    assert "takes too long; use a simpler pattern" in text
    assert time.monotonic() - began < 60


def test_lines_around_a_match_are_shown_once(openry: OpenRY):
    """`-C` as grep has it: the line with a colon, its neighbours with a dash."""
    (openry.cwd / "a.txt").write_text("".join(f"l{n}\n" for n in range(1, 10)))
    assert said(openry, "grep", "a.txt", "l4", "-C", "1") == "3-l3\n4:l4\n5-l5\n"
    assert said(openry, "grep", "a.txt", "L4", "-i") == "4:l4\n"
    assert said(openry, "grep", "a.txt", "l", "--max", "2").endswith("ask for more with --max\n")


def test_a_line_as_long_as_the_output_is_looked_into_by_parts(openry: OpenRY):
    """grep shows what stands round the match, show gives all of it; numbers of lines hold."""
    line = "x" * 3_000_000 + "NEEDLE" + "y" * 900_000
    (openry.cwd / "a.txt").write_text(f"first\n{line}\nlast\n")
    found = said(openry, "grep", "a.txt", "NEEDLE")
    assert found.startswith("2:…xxx")
    assert "NEEDLE" in found
    assert len(found) < 3000
    assert said(openry, "grep", "a.txt", "last") == "3:last\n"
    assert said(openry, "show", "a.txt", "--lines", "2:3") == f"{line}\nlast\n"


@pytest.mark.parametrize("pattern", [r"a\Z", r"^(?!x).*a$", "[^ab]*+a", r"\Aa", "a$"])
def test_a_pattern_means_the_same_for_a_line_among_others(openry: OpenRY, pattern):
    """Anchors and looks ahead are of one line, though lines are read by the block."""
    (openry.cwd / "a.txt").write_text("x\na\nb\n")
    assert said(openry, "grep", "a.txt", pattern) == "2:a\n"


def test_a_kept_output_may_be_compressed(tmp_path: Path):
    """One function opens both; what is no compressed file is not taken for one by its content."""
    plain, packed = tmp_path / "a.stdout", tmp_path / "a.stdout.gz"
    data = gzip.compress(b"hello\n")
    plain.write_bytes(data)
    packed.write_bytes(data)
    with open_kept(str(plain)) as file:
        assert file.read() == data
    with open_kept(str(packed)) as file:
        assert file.read() == b"hello\n"


# --- in a run -------------------------------------------------------------------------------


def answered(hand: Hand, *words: str):
    return hand.look(words)


def kept(hand: Hand) -> str:
    """The name of a large output of `hand`'s."""
    result = hand.forward(Command("seq 1 20000"))
    return re.search(r"It is kept as (out-\d+)\.", result.stdout).group(1)


def test_an_answer_to_an_agent_stays_within_its_limit(make_hand: MakeHand):
    """What is looked at is cut as well, and says so."""
    hand = make_hand(max_output_tokens=400)
    name = kept(hand)
    for words in (("show", name), ("grep", name, "1"), ("kinds", name)):
        result = answered(hand, *words)
        assert estimate_tokens(result.stdout) * MARGIN <= 400, words
    assert "more lines are left out here" in answered(hand, "show", name).stdout
    assert answered(hand, "grep", name, "^777$").stdout == "777:777\n"


def test_files_are_read_by_the_rules_of_the_run(make_hand: MakeHand, tmp_path: Path, sandbox: str):
    """In the workspace yes; outside, through a link, or a pipe: no."""
    hand = make_hand(sandbox, max_output_tokens=900)
    workspace = Path(hand.context.workspace)
    log(workspace / "app.log", 50)
    outside = tmp_path / "secret.log"
    outside.write_text("ERROR the secret Kq9\n")
    (workspace / "link.log").symlink_to(outside)
    os.mkfifo(workspace / "pipe")

    assert "Kq1" in answered(hand, "digest", "app.log").stdout
    for name in (str(outside), "link.log", "../secret.log"):
        result = answered(hand, "digest", name)
        assert (result.exit_code, "Kq9" in result.stdout) == (126, False)
        assert "outside what this step may read" in result.stderr
    assert answered(hand, "digest", "pipe").exit_code == 2
    assert answered(hand, "slice", "app.log", "--into", str(tmp_path / "out")).exit_code == 2
    assert not (tmp_path / "out").exists()
    assert answered(hand, "slice", "app.log", "--into", "parts").exit_code == 0
    assert (workspace / "parts" / "slices.json").is_file()


def test_secrets_are_no_more_in_a_look_than_in_an_answer(make_hand: MakeHand):
    """A file of the workspace with a secret in it."""
    hand = make_hand(max_output_tokens=900, env={"API_TOKEN": "correct-horse-9"})
    (Path(hand.context.workspace) / "a.log").write_text("ERROR token correct-horse-9 refused\n")
    for words in (("digest", "a.log"), ("grep", "a.log", "token"), ("show", "a.log")):
        result = answered(hand, *words)
        assert "correct-horse" not in result.stdout
        assert "***API_TOKEN***" in result.stdout


def test_names_are_of_one_instance(make_hand: MakeHand):
    """Another instance does not learn that there is such an output."""
    hand = make_hand(max_output_tokens=400, instance_id="i1")
    name = kept(hand)
    other = make_hand(max_output_tokens=400, instance_id="i2")

    assert find_output(hand.ledger, name, instance_id="i1") is not None
    unknown = answered(other, "show", name)
    nobody = answered(other, "show", "out-999999")
    assert unknown.stderr.replace(name, "X") == nobody.stderr.replace("out-999999", "X")
    assert answered(other, "list").stdout == "no output was too large yet\n"
    assert len(outputs_of(hand.ledger)) == 1


def test_both_streams_are_kept_each_under_its_name(make_hand: MakeHand):
    """Standard error has a name of its own where both are too large."""
    hand = make_hand(max_output_tokens=400)
    result = hand.forward(Command("seq 1 9000; seq 1 8000 >&2"))
    name = re.search(r"kept as (out-\d+)\.", result.stdout).group(1)

    assert f"It is kept as {name}.stderr." in result.stderr
    assert answered(hand, "grep", name, "^8500$").exit_code == 0
    assert answered(hand, "grep", f"{name}.stderr", "^8500$").exit_code == 1
    assert estimate_tokens(result.stdout + result.stderr) <= 400


@pytest.mark.parametrize("limit", [200, 300, 500, 1000, 8000])
@pytest.mark.parametrize("what", ["digits", "hex", "chinese", "one line"])
def test_a_notice_is_never_larger_than_the_limit(make_hand: MakeHand, limit, what):
    """Whatever the output is made of, and however small the limit."""
    commands = {
        "digits": "seq 1 90000",
        "hex": "head -c 300000 /dev/urandom | od -An -tx1",
        "chinese": "yes 错误：连接被拒绝 | head -n 20000",
        "one line": "seq -s, 1 60000",
    }
    result = make_hand(max_output_tokens=limit).forward(Command(commands[what]))
    assert "[openry]" in result.stdout
    assert estimate_tokens(result.stdout) <= limit
