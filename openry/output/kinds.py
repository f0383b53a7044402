"""What kind of line a line is, digits and numbers masked, and whether it tells of trouble.

Three masks, each coarser than the one before. Without digits two lines are compared a million
times a second; the other two are only asked of lines that are new by that.
"""

from __future__ import annotations

import re
from bisect import bisect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DIGITS = b"0123456789"
#: Numbers written in hexadecimal, parts of a UUID, digests: four digits or more, one of them 0-9.
_HEX = re.compile(rb"(?<![0-9A-Za-z])(?=[A-Fa-f]*+[0-9])(?:0x)?+[0-9A-Fa-f]{4,}+(?![0-9A-Za-z])")
#: A word that holds a digit, whatever else it is made of.
_VARYING = re.compile(
    rb"(?<![^\s,;:=|/\[\](){}<>'\"])[^\s,;:=|/\[\](){}<>'\"0-9]*+[0-9][^\s,;:=|/\[\](){}<>'\"]*+"
)

#: What tells of trouble, in small letters, also as part of a longer word.
_TROUBLE = (
    *"error exception fatal fail panic critical traceback segfault abort denied refused".split(),
    *"timeout cannot unable assert killed corrupt severe invalid unexpected unreachable".split(),
    *"deadlock undefined broken crash warn emerg alert violation lost".split(),
    *("segmentation fault", "timed out", "could not", "not found", "no such", "out of memory"),
    *("caused by", "core dumped", "can't"),
)
_WORD = re.compile(r"[^\W_]+(?:[-_.][^\W_]+)*")
_SHORTEST_WORD = 4
_MOST_WORDS = 24
#: Words of a task that say what to do, not what to look for.
_COMMON_WORDS = frozenset(
    "about above after also answer away based before below command complete completed contains"
    " count create each every exactly explain extract file files find first following from given"
    " have information into last line lines list look make must name named number only output"
    " print program read report result results return save script show summarise summarize tell"
    " text than that their them then there these they this those until using what when where"
    " which while will with write your openry status payload".split()
)
_FRAME = (b" ", b"\t", b"Caused by", b"at ", b"... ", b"Suppressed:")
_LONGEST_TRACE = 60


def task_words(task: str) -> tuple[str, ...]:
    """The words of a task that a line of interest may hold.

    >>> task_words("Find which batch of the import FAILED and write it to out.txt")
    ('batch', 'import', 'failed', 'out.txt')
    """
    words = (word.lower() for word in _WORD.findall(task))
    wanted = (w for w in words if len(w) >= _SHORTEST_WORD and w not in _COMMON_WORDS)
    return tuple(dict.fromkeys(wanted))[:_MOST_WORDS]


def signs_of_trouble(words: Iterable[str] = ()) -> tuple[bytes, ...]:
    """What to look for in lines made small; `words`, those of a task, count as trouble."""
    found = dict.fromkeys((*_TROUBLE, *(word.lower() for word in words)))
    return tuple(sign.encode() for sign in found)


def troubled(lines: Sequence[bytes], signs: Iterable[bytes]) -> set[int]:
    """Places of the lines that hold one of `signs`.

    >>> troubled([b"all well", b"Job FAILED", b"disk failure, error 5"], (b"fail", b"error"))
    {1, 2}
    """
    text = b"\n".join(lines).lower()
    starts: list[int] = []
    at = 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    found: set[int] = set()
    for sign in signs:
        place = text.find(sign)
        while place >= 0:
            after = bisect(starts, place)
            found.add(after - 1)
            place = text.find(sign, starts[after]) if after < len(starts) else -1
    return found


def kinds_of(lines: Sequence[bytes]) -> list[bytes]:
    """The kind of each line: hexadecimal numbers as one sign, other digits gone.

    >>> kinds_of([b"block 0xdeadbeef01 of 17", b"K3bcd took 5 ms"])
    [b'block # of ', b'Kbcd took  ms']
    """
    masked = _HEX.sub(b"#", b"\n".join(lines)).translate(None, DIGITS)
    return masked.split(b"\n")


def families_of(lines: Sequence[bytes]) -> list[bytes]:
    """The coarsest kind: each word that holds a digit as one sign, gaps alike.

    >>> families_of([b"081109 203615  INFO K3bcd: took=5ms"])
    [b'* * INFO *: took=*']
    """
    masked = _VARYING.sub(b"*", b"\n".join(lines))
    return [b" ".join(line.split()) for line in masked.split(b"\n")]


def trace_around(lines: Sequence[bytes], place: int) -> tuple[int, int]:
    """First and last place of the record that the line of trouble at `place` belongs to.

    Frames are lines that are set in, or begin as Java's do. In Python they come before the line
    that says what went wrong, elsewhere after it.
    """
    last = place
    end = min(len(lines) - 1, place + _LONGEST_TRACE)
    while last < end and lines[last + 1].startswith(_FRAME) and lines[last + 1].strip():
        last += 1
    if last > place and lines[place].startswith(b"Traceback") and last + 1 < len(lines):
        return place, last + 1
    first, start = place, max(0, place - _LONGEST_TRACE)
    while first > start and lines[first - 1].startswith((b" ", b"\t")):
        first -= 1
    if first < place and first > 0 and lines[first - 1].startswith(b"Traceback"):
        return first - 1, last
    return place, last
