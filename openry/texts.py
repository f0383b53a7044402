"""Texts for whoever reads them: made short, or with a hint."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


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


def did_you_mean(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """A hint that offers the nearest of `known`; empty where none of them is so like `word`.

    >>> did_you_mean("promt", ("name", "prompt"))
    'did you mean `prompt`?'
    """
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), 1, likeness)
    return f"did you mean `{near[0]}`?" if near else ""


def bracketed(hint: str) -> str:
    """A hint for the end of a sentence, in brackets and with a blank before it, if there is one.

    >>> bracketed("it was shut"), bracketed("")
    (' (it was shut)', '')
    """
    return f" ({hint})" if hint else ""
