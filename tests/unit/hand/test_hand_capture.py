"""Both ends in memory, the whole in a file, characters whole."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openry.output.answer import manual_text
from openry.output.capture import Capture, Captured, whole_end, whole_start
from openry.output.notice import Reader, tokens_of, told
from openry.output.redact import Redactor
from openry.output.tokens import estimate_tokens, weigh


def _captured(
    chunks: list[bytes], tmp_path: Path, *, limit: int = 100, spill: int = 10**9
) -> Captured:
    def opened() -> io.BufferedWriter:
        return open(tmp_path / "spill", "wb")

    capture = Capture(Redactor(), limit=limit, open_spill=opened, spill_limit=spill)
    for chunk in chunks:
        capture.feed(chunk)
    return capture.end()


def test_what_fits_is_kept_whole_without_a_file(tmp_path: Path):
    """No spill, no notice, a digest of the bytes."""
    captured = _captured([b"one\n", b"two\n"], tmp_path)

    assert (captured.head, captured.tail, captured.spill) == (b"one\ntwo\n", b"", "")
    assert captured.digest == hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert (captured.size, captured.lines) == (8, 2)


def test_what_does_not_fit_keeps_both_ends_and_a_file(tmp_path: Path):
    """Every byte is in the file; both ends together are no larger than the limit."""
    data = b"".join(b"%05d\n" % n for n in range(1000))

    captured = _captured([data[i : i + 37] for i in range(0, len(data), 37)], tmp_path)

    assert (tmp_path / "spill").read_bytes() == data
    assert len(captured.head) + len(captured.tail) <= 100
    assert data.startswith(captured.head) and data.endswith(captured.tail)
    assert captured.left_out == len(data) - len(captured.head) - len(captured.tail)


def test_a_file_that_may_not_grow_counts_the_rest(tmp_path: Path):
    """What nothing keeps is at least counted."""
    captured = _captured([b"x" * 1000], tmp_path, spill=300)

    assert (tmp_path / "spill").stat().st_size == 300
    assert captured.dropped == 700


class _Full(io.FileIO):
    """A file on a disk without space."""

    def write(self, data: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_costs_the_file_only(tmp_path: Path):
    """The answer stays, says why nothing was saved, and leaves no useless part behind."""
    capture = Capture(
        Redactor(), limit=100, open_spill=lambda: _Full(tmp_path / "spill", "wb"), spill_limit=10**9
    )
    capture.feed(b"a" * 5000)

    captured = capture.end()

    assert (captured.spill, captured.trouble) == ("", "No space left on device")
    assert "not saved: no space left on device" in manual_text(captured, Redactor(), 100)
    assert not (tmp_path / "spill").exists()


@given(st.text(min_size=1), st.integers(0, 400))
def test_cuts_fall_between_characters(text: str, place: int):
    """Whatever the place, both sides decode."""
    data = text.encode("utf-8", "ignore")
    place %= len(data) + 1

    whole_start(data[:place]).decode()
    whole_end(data[place:]).decode()


@pytest.mark.parametrize("limit", [200, 1000, 1001, 1002, 1003])
@given(st.text(alphabet="ab é😀\n", min_size=500, max_size=4000))
def test_an_answer_is_never_larger_than_its_limit(tmp_path_factory, limit: int, text: str):
    """But for the one line that says what is missing."""
    folder = tmp_path_factory.mktemp("spill")
    captured = _captured([text.encode()], folder, limit=limit)

    answer = manual_text(captured, Redactor(), limit)

    kept = "".join(line for line in answer.splitlines() if not line.startswith("[openry]"))
    assert len(kept.encode()) <= limit
    answer.encode()


def test_an_agents_notice_says_how_large_and_what_to_call(tmp_path: Path):
    """First lines, size in bytes, lines and tokens, the name for the whole, last lines."""
    data = b"".join(b"line %d of the log\n" % n for n in range(5000))
    captured = _captured([data], tmp_path, limit=50_000)

    nothing = _captured([], tmp_path)
    said = told(captured, nothing, Redactor(), Reader(300), lambda _: [data], "out-17")

    answer = said.stdout
    assert (said.stderr, said.large) == ("", True)
    assert answer.startswith("line 0 of the log\n")
    assert "\nline 4999 of the log\n[openry] call: openry --status overflow" in answer
    assert answer.endswith("openry output grep out-17 REGEX\n")
    assert "It is kept as out-17." in answer
    assert "5,000 lines" in answer
    assert answer.count("[openry]") == 2
    assert estimate_tokens(answer) <= 300


def test_tokens_of_a_cut_output_are_judged_by_its_ends(tmp_path: Path):
    """Within a tenth of the whole's."""
    data = "".join(f"2026-03-01 error {n} in service\n" for n in range(20_000)).encode()

    cut = tokens_of(_captured([data], tmp_path, limit=20_000), weigh)

    assert cut == pytest.approx(estimate_tokens(data.decode()), rel=0.1)
