"""Characters that make a line look other than it is, or that shells read differently."""

from __future__ import annotations

import re

_ANYWHERE = (
    (re.compile("\0"), "a NUL character"),
    (re.compile("[\ue000-\ue00f]"), "a character of Unicode's private area"),
    (re.compile("[\ud800-\udfff]"), "bytes that are not UTF-8"),
)
_OUTSIDE_QUOTES = (
    (re.compile("\r"), "a carriage return"),
    (re.compile(r"\\\n"), "a backslash at the end of a line"),
    (re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"), "a sign that turns text round"),
    (re.compile("[\u00ad\u034f\u180e\u200b-\u200d\u2060-\u2064\ufeff]"), "an invisible character"),
    (re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]"), "a control character"),
)
_SUSPICIOUS = re.compile(
    "[\0\r\x01-\x08\x0b\x0c\x0e-\x1f\x7f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2069\ufeff\ud800-\udfff\ue000-\ue00f]|\\\\\n"
)


def is_suspicious(text: str) -> bool:
    """Whether any of these signs is in it, quoted or not."""
    return _SUSPICIOUS.search(text) is not None


def hidden_anywhere(text: str) -> str:
    """What must not be in a line at all; empty when nothing is."""
    if not is_suspicious(text):
        return ""
    return next((what for pattern, what in _ANYWHERE if pattern.search(text)), "")


def hidden_unquoted(text: str) -> str:
    """What must not be in the unquoted part of a word; empty when nothing is."""
    return next((what for pattern, what in _OUTSIDE_QUOTES if pattern.search(text)), "")
