"""Words of a shell line: their text as far as it is known, with marks where it is not.

A mark is a character of Unicode's private area; a line that holds one of them itself is refused.
"""

from __future__ import annotations

import re
from itertools import product
from typing import NamedTuple

UNKNOWN = "\ue000"  #: any text, also none, also with slashes
STAR = "\ue001"  #: any text without a slash
ONE = "\ue002"  #: one character but a slash
OPEN, COMMA, CLOSE = "\ue003", "\ue004", "\ue005"  #: an unquoted `{`, `,` and `}`
NAME = "\ue006"  #: any text without a slash that is not empty, no option and not `..`
NUMBER = f"0{NAME}"  #: some number of a long range
# Only in `Word.paths`:
DEEP = "\ue007"  #: any text, also with slashes; no part of it is `.` or `..`
CUT = "\ue008"  #: the same with its end cut off, which may leave `..`
VALUE, END = "\ue009", "\ue00a"  #: what stands between them is the name of a value

_MARKED = re.compile("[\ue000-\ue00f]")
_BRACES = str.maketrans({OPEN: "{", COMMA: ",", CLOSE: "}"})
_SHOWN = str.maketrans({UNKNOWN: "…", STAR: "*", ONE: "?", NAME: "…", DEEP: "…"} | _BRACES)
_MOST_BRACED = 256


class Opaque(Exception):  # noqa: N818  # not an error: a way of saying "cannot be analysed"
    """What cannot be analysed; caught where the decision is made."""


class Word(NamedTuple):
    """One word of a command.

    Attributes:
        text: Without quotes; marks stand for what is not known.
        splits: It holds an unquoted expansion: at run time it may be no word or several.
        quoted: Some of it was quoted, so it is neither a keyword nor a pattern by accident.
        number: What is not known of it is digits only.
        paths: Where `text` is not known: each text that it may be, in which a value that bounds it
            has a name (see `openry.policy.tracing`). Empty where nothing bounds it.
        operand: It begins with no dash, whatever the run brings.
    """

    text: str
    splits: bool = False
    quoted: bool = False
    number: bool = False
    paths: tuple[str, ...] = ()
    operand: bool = False

    @property
    def literal(self) -> str | None:
        """The exact text, or None where it is not known."""
        text = self.text
        return None if self.splits or (not text.isascii() and marked(text)) else text

    @property
    def may_be_option(self) -> bool:
        if self.number or self.operand:
            return False
        return self.splits or self.text[:1] in ("-", UNKNOWN, STAR, ONE)

    @property
    def shown(self) -> str:
        return shown(self.text)


def shown(text: str) -> str:
    """`text` for people: `*` and `?` for patterns, `…` for what is not known."""
    return text if text.isascii() else text.translate(_SHOWN)


def marked(text: str) -> bool:
    return not text.isascii() and _MARKED.search(text) is not None


def plain(text: str) -> str:
    """`text` where braces have no meaning, as in an assignment."""
    return text if text.isascii() else text.translate(_BRACES)


def expand_braces(word: Word) -> list[Word]:
    """The words that brace expansion makes of `word`.

    >>> from openry.policy.words import CLOSE, COMMA, OPEN, Word, expand_braces
    >>> [w.text for w in expand_braces(Word(f"x{OPEN}a{COMMA}b{CLOSE}.txt"))]
    ['xa.txt', 'xb.txt']
    """
    if word.text.isascii():
        return [word]
    if OPEN not in word.text:
        return [word._replace(text=plain(word.text))]
    texts = _expand(word.text)
    if len(texts) > _MOST_BRACED:
        raise Opaque("braces that make more than 256 words")
    paths = [_expand(one) for one in word.paths]
    # An empty unquoted alternative is no word at all; keeping it is the stricter reading.
    return [
        Word(
            plain(text),
            word.splits,
            word.quoted,
            paths=tuple(plain(some[at]) for some in paths if len(some) == len(texts)),
        )
        for at, text in enumerate(texts)
    ]


def _expand(text: str) -> list[str]:
    for start, sign in enumerate(text):
        if sign != OPEN:
            continue
        found = _alternatives(text, start)
        if found is None:
            continue
        options, end = found
        inner = [one for option in options for one in _expand(option)]
        rest = _expand(text[end:])
        if len(inner) * len(rest) > _MOST_BRACED:
            raise Opaque("braces that make more than 256 words")
        return [text[:start] + a + b for a, b in product(inner, rest)]
    return [text]


def _alternatives(text: str, start: int) -> tuple[list[str], int] | None:
    """The alternatives of the brace at `start`, and where it ends; None if it is no expansion."""
    depth, begun, options = 0, start + 1, []
    for place in range(start, len(text)):
        sign = text[place]
        if sign == OPEN:
            depth += 1
        elif sign == COMMA and depth == 1:
            options.append(text[begun:place])
            begun = place + 1
        elif sign == CLOSE:
            depth -= 1
            if depth:
                continue
            last = text[begun:place]
            if options:
                return [*options, last], place + 1
            return (_range(last), place + 1) if ".." in last else None
    return None


def _range(text: str) -> list[str]:
    """The words of `1..5`, or something unknown."""
    found = re.fullmatch(r"(-?[0-9]{1,6})\.\.(-?[0-9]{1,6})", text)
    if found is None or found[1].lstrip("-").startswith("0") or found[2].startswith("0"):
        return [UNKNOWN]
    first, last = int(found[1]), int(found[2])
    if abs(last - first) >= _MOST_BRACED:
        return [UNKNOWN if min(first, last) < 0 else NUMBER]
    step = 1 if last >= first else -1
    return [str(number) for number in range(first, last + step, step)]
