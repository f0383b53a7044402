"""Turn what was captured into the text of an answer to a person, cut where it is too large."""

from __future__ import annotations

from openry.output.capture import Captured, whole_end, whole_start
from openry.output.redact import Redactor

#: A line end is preferred for a cut when it is at most this far from the place.
_NEAR = 0.25


def manual_text(captured: Captured, redactor: Redactor, limit: int) -> str:
    """The answer to a person: the whole, or both ends with a line saying where the rest is."""
    if not captured.left_out:
        text = decoded(captured.head, redactor)
        if len(text) <= limit and (text.isascii() or len(text.encode()) <= limit):
            return text
    head, tail = ends(captured, limit // 2, limit // 2)
    left_out = captured.shown - len(head) - len(tail)
    notice = f"[openry] {left_out:,} of {captured.shown:,} bytes left out here{_where(captured)}"
    return joined(head, (notice,), tail, redactor)


def ends(captured: Captured, first: int, last: int) -> tuple[bytes, bytes]:
    """So many bytes of both ends, cut at line ends where these are near."""
    head = captured.head[:first]
    body = captured.tail or captured.head[len(head) :]
    tail = body[max(0, len(body) - last) :]
    return _to_line_end(whole_start(head)), _from_line_start(whole_end(tail))


def _to_line_end(head: bytes) -> bytes:
    end = head.rfind(b"\n") + 1
    return head[:end] if end > len(head) * (1 - _NEAR) else head


def _from_line_start(tail: bytes) -> bytes:
    start = tail.find(b"\n") + 1
    return tail[start:] if 0 < start < len(tail) * _NEAR else tail


def joined(head: bytes, notice: tuple[str, ...], tail: bytes, redactor: Redactor) -> str:
    """Both ends with the lines of `notice` between them."""
    first, last = decoded(head, redactor), decoded(tail, redactor)
    gap = "" if first.endswith("\n") or not first else "\n"
    return f"{first}{gap}{chr(10).join(notice)}\n{last}"


def decoded(data: bytes, redactor: Redactor) -> str:
    """Text for an agent. Once more without secrets: folding may have joined the parts of one."""
    return redactor.whole(data).decode("utf-8", "replace")


def _where(captured: Captured) -> str:
    if captured.trouble:
        return f"; not saved: {captured.trouble.lower()}"
    dropped = f", except the last {captured.dropped:,} bytes" if captured.dropped else ""
    return f"; the whole is in {captured.spill}{dropped}" if captured.spill else ""
