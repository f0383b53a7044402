"""What a terminal would show in the end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openry.output.fold import Folder, fold


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (b"a\rb\n", b"b\n"),
        (b"10%\r50%\r100%\r\n", b"100%\n"),
        (b"line\r\r\n", b"line\n"),
        (b"\x1b[1;31mred\x1b[0m\n", b"red\n"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", b"link\n"),
        (b"\x1b(Bplain\x1b7\x1b8\n", b"plain\n"),
        (b"b\x08bo\x08ol\x08ld\n", b"bold\n"),
        (b"a\x00b", "a\u2400b".encode()),
        ("é\x08e".encode(), b"e"),
        (b"ends\r", b"ends"),
        (b"tabs\tstay\n", b"tabs\tstay\n"),
    ],
)
def test_one_line_each(printed: bytes, shown: bytes):
    """Colours off, redrawn lines once, overstrikes undone, NUL visible."""
    assert fold(printed) == shown
    assert _in_reads(printed, []) == shown


def _in_reads(data: bytes, cuts: list[int]) -> bytes:
    folder = Folder()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return b"".join(folder.feed(data[a:b]) for a, b in pairwise(places)) + folder.end()


NOISE = b"a bc \r \n \r\n \x1b[31m \x1b]0;t\x07 \x08 \x00 \xc3\xa9".split(b" ")
noise = st.lists(st.sampled_from(NOISE)).map(b"".join)


@given(noise, st.lists(st.integers(0, 200), max_size=6))
def test_reads_do_not_change_what_is_shown(data: bytes, cuts: list[int]):
    """The same whether it came at once or in pieces."""
    assert _in_reads(data, cuts) == fold(data)


@given(noise)
def test_nothing_is_left_that_a_terminal_acts_on(data: bytes):
    """No carriage return, escape, backspace or NUL in what the agent reads."""
    assert not set(fold(data)) & {0x00, 0x08, 0x0D, 0x1B}


def test_a_line_without_end_is_not_held_for_ever():
    """Memory stays bounded when no line ends."""
    folder = Folder()
    given_on = sum(len(folder.feed(b"x" * 65_536)) for _ in range(64))

    assert given_on >= 62 * 65_536
