"""Readings of a sentence that leave some of its words out: better guesses, never understanding.

Where a word has no place, the rest of the sentence may still say one thing only. What was left out
is named, so that nobody takes such a reading for more than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

from loop.grammar import token_of
from loop.lexicon import Lexicon
from loop.mentions import Mention
from loop.phrases import Tokens, tokenize
from loop.wording import Op, readings_in

#: So many ways to leave words out are tried, those that leave out least first.
_MOST_TRIES = 16
#: At most so many single words are left out together.
_MOST_WORDS = 3


@dataclass(frozen=True, slots=True)
class Loose:
    """Readings that agree but for what is open, and the words that they leave out."""

    readings: tuple[tuple[Op, ...], ...]
    dropped: tuple[str, ...]


def loose_readings(text: str, mentions: Sequence[Mention]) -> Loose | None:
    """The readings that leave out least, or None where leaving out does not help."""
    tokens, lexicon = tokenize(text, mentions)
    for gone in islice(_ways(tokens, lexicon), _MOST_TRIES):
        rest = replace(
            tokens,
            words=tuple(word for at, word in enumerate(tokens.words) if at not in gone),
            asides=frozenset(),
        )
        found = readings_in(rest, lexicon)
        if found:
            return Loose(found, tuple(tokens.words[at] for at in sorted(gone)))
    return None


def _ways(tokens: Tokens, lexicon: Lexicon) -> Iterator[frozenset[int]]:
    """Places to leave out: strange words, clauses that name nothing, then both."""
    words = tokens.words
    unknown = [
        at
        for at, word in enumerate(words)
        if not token_of(word) and word not in lexicon.telling and word not in ",;"
    ]
    clauses = [
        frozenset(range(start, end))
        for start, end in _clauses(words)
        if not any(map(token_of, words[start:end]))
    ]
    seen: set[frozenset[int]] = set()
    for way in (
        *(frozenset(pick) for size in (1, 2) for pick in combinations(unknown, size)),
        *clauses,
        *(clause | {at} for clause in clauses for at in unknown if at not in clause),
        *(one | other for one, other in combinations(clauses, 2)),
        *(frozenset(pick) for pick in combinations(unknown, _MOST_WORDS)),
        frozenset(unknown),
    ):
        if way and way not in seen:
            seen.add(way)
            yield way


def _clauses(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """What stands between commas and semicolons, with the sign before it."""
    start = 0
    for at, word in enumerate((*words, ";")):
        if word in (",", ";"):
            if at > start:
                yield (start - 1 if start else 0), at
            start = at + 1
