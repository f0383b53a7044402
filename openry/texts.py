"""Texts made short enough to be shown."""

from __future__ import annotations


def shortened(text: str, longest: int) -> str:
    """`text`, or its beginning and `…`, together of so many characters.

    >>> shortened("abcd", 4), shortened("abcde", 4)
    ('abcd', 'abc…')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def one_line(text: str, longest: int) -> str:
    r"""`text` on one line, with single blanks, `shortened`.

    >>> one_line(" a\n  b ", 9)
    'a b'
    """
    return shortened(" ".join(text.split()), longest)
