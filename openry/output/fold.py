"""What a terminal would show in the end: colours off, redrawn lines once, NUL made visible."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern

#: Sequences a terminal acts on, never shows: CSI, OSC and its kin, charset choices, others.
_ESCAPES = (
    rb"\x1b\[[0-?]*[ -/]*[@-~]"
    rb"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"
    rb"|\x1b[ -/]+[0-~]"
    rb"|\x1b[0-Z\\-~]"
)
_BEGUN_ESCAPE = rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,4096}\x1b?|[ -/]*)\Z"
_VISIBLE_NUL = "\N{SYMBOL FOR NULL}".encode()
#: A partial line longer than this is given on: a later carriage return cannot erase it any more.
_LONGEST_HELD = 64 * 1024
_CODES = (b"\r", b"\x1b", b"\x08", b"\x00")
_compiled: dict[bytes, Pattern[bytes]] = {}


class Folder:
    """Folds a stream; the last, unfinished line waits because a carriage return may erase it."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        data = self._held + chunk if self._held else chunk
        done = data.rfind(b"\n") + 1
        if _is_plain(data) and len(data) - done <= _LONGEST_HELD:
            self._held = data[done:]
            return data[:done]
        lines, last = data[:done], _without_old_frames(data[done:])
        if len(last) > _LONGEST_HELD:
            given = len(last) - _partial(last)
            lines, last = lines + last[:given], last[given:]
        self._held = last
        return fold(lines)

    def end(self) -> bytes:
        data, self._held = self._held, b""
        return fold(data)


def fold(data: bytes) -> bytes:
    r"""`data` as a terminal would leave it.

    >>> fold(b"1%\r50%\r100%\r\nok\x1b[0m\n\x1b]0;title\x07a\x08b")
    b'100%\nok\nb'
    """
    if b"\x1b" in data:
        data = _regex(_ESCAPES).sub(b"", data)
    while b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    if b"\r" in data:
        data = b"\n".join([_last_frame(line).removesuffix(b"\r") for line in data.split(b"\n")])
    if b"\x08" in data:
        data = _without_overstrike(data)
    return data.replace(b"\x00", _VISIBLE_NUL)


def _is_plain(data: bytes) -> bool:
    """Whether nothing needs folding: four looks for one byte each, which cost next to nothing."""
    return not any(code in data for code in _CODES)


def _without_old_frames(line: bytes) -> bytes:
    """An unfinished line without what was drawn over. A sequence that has only begun waits."""
    if b"\r" not in line:
        return line
    whole = len(line) - _partial(line)
    drawn = _regex(_ESCAPES).sub(b"", line[:whole])
    return _last_frame(drawn) + line[whole:]


def _last_frame(line: bytes) -> bytes:
    """What is left of a line that was drawn again and again."""
    drawn = line.rstrip(b"\r")
    end = b"\r" if len(drawn) < len(line) else b""
    return drawn[drawn.rfind(b"\r") + 1 :] + end


def _partial(data: bytes) -> int:
    """Bytes at the end of `data` that may go on as an escape sequence or a line end."""
    begun = _regex(_BEGUN_ESCAPE).search(data[-5000:])
    return len(begun.group()) if begun else int(data.endswith(b"\r"))


def _without_overstrike(data: bytes) -> bytes:
    """Each backspace takes the character before it along, as in manual pages."""
    pair = _regex(rb"[^\n\x08][\x80-\xbf]*\x08")
    while True:
        data, count = pair.subn(b"", data)
        if not count:
            return data.replace(b"\x08", b"")


def _regex(look: bytes) -> Pattern[bytes]:
    import re

    if look not in _compiled:
        _compiled[look] = re.compile(look)
    return _compiled[look]
