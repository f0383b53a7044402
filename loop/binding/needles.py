"""Texts to look for, to put in their place, and to write."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loop.binding.scene import Choice, Slot, from_mention
from loop.binding.words import EMPTY, NO_NEEDLES, SIGNS
from loop.mentions import Kind

_SAYING = (
    "contain(?:s|ing|ed)?",
    "mention(?:s|ing|ed)?",
    "includ(?:e|es|ing)",
    "match(?:es|ing)?",
    "sa(?:y|ys|ying|id)",
    "(?:start|begin|end)(?:s|ing|ning)? (?:with|in)",
    "with(?:out)?",
    "having|has|have|lack(?:s|ing)?|excluding|except(?: for)?",
    "(?:talk(?:s|ing)? |speak(?:s|ing)? )?about",
    "marked|tagged|labell?ed|status|where|like|for|from|is|are|equals?|=",
)
_LEADING = r"(?:(?:the|a|an|any|exactly|word|text|string|phrase|term|value|status|as|in)\s+)*"
#: A word of saying or holding, and the word that it leads to.
_CONTAIN = re.compile(
    rf"(?i)\b(?:{'|'.join(_SAYING)}|the (?:word|text|string|phrase|term))\s+{_LEADING}"
    r"(?P<word>[\w@#$%&.+/-]*\w)"
)
_ZH_CONTAIN = re.compile(
    r"(?:包含|含有|提到|出现|带有|含)(?:了|着)?\s*(?P<word>[^\s，。、的“”\"'「」]+)"
)
_CAPITALS = re.compile(r"(?<![\w.'/-])[A-Z][A-Z_]{2,}(?![\w'/-]|\.\w)")
#: A word in brackets or with a sign before it, as it stands in a file.
_MARKED = re.compile(r"\[[^\]\s]+\]|<[^>\s]+>|(?<!\w)[#@$][\w-]+")

#: A sign by its name: `with a question mark`.
_SIGNED = re.compile(
    rf"(?i)\b(?:{'|'.join(_SAYING)})\s+{_LEADING}(?P<sign>{'|'.join(map(re.escape, SIGNS))})s?\b"
)

_CHANGE = r"(?:replace|substitute|change|swap|turn|convert|rename|exchange|correct|make)"
_FILLERS = (
    r"(?:(?:every|each|all|any|the|(?:spelling|occurrences?|instances?)(?: of)?|word|text|string"
    r"|phrase)\s+)*"
)
_REPLACE = re.compile(
    rf"""(?ix)\b{_CHANGE}\s+{_FILLERS}
    (?P<old>[^,;]+?)\s+(?:with|by|to|into|for|a|->|→)\s+(?:the\ (?:word|text)\ )?
    (?P<new>.+?)
    (?=\s+(?:in|wherever|throughout|everywhere|and|all\ over|inside|on|itself)\b|[,;.]|$)"""
)
_INSTEAD = re.compile(
    r"(?i)(?:(?:use|with|write|put|say) )?(?P<new>[^\s,]+) "
    r"(?:instead of|in place of|rather than) (?P<old>[^\s,;.]+)"
)
_BECOMES = re.compile(
    r"(?i)\b(?:each |every |all )?(?P<old>[\w/-]+) (?:in \S+ )?"
    r"(?:becomes?|should (?:read|be)|->|→) (?P<new>[\w/-]+)"
)
_ZH_REPLACE = re.compile(
    r"(?:把|将)?(?:\S*?[中里]的?)?(?P<old>[^\s，。把将中里]+?)\s*(?:全部|都)?"
    r"(?:替换|换|改)(?:成|为|作)\s*(?P<new>[^\s，。]+)"
)
_TURNED = re.compile(r"(?i)instead of|in place of|rather than|\bfor each\b|\bwherever\b")


def needles(slot: Slot) -> Iterator[Choice]:
    """Texts to look for: quoted, after a word of containing, in capitals, or found in the input."""
    if slot.tool.with_role("replacement"):
        yield from (pair[0] for pair in _replaced(slot)[:1])
        return
    quoted = slot.scene.of(Kind.LITERAL)
    yield from map(from_mention, quoted)
    if not quoted:
        yield from _unquoted(slot)


def _unquoted(slot: Slot) -> Iterator[Choice]:
    text, heads = slot.scene.text, slot.heads
    for match in _MARKED.finditer(text):
        if match.group() in heads:
            yield Choice(match.group())
    for match in _CAPITALS.finditer(text):
        if match.group() not in NO_NEEDLES and not slot.scene.names_file(match.start()):
            yield Choice(match.group(), cost=0.02 if match.group() in heads else 0.25)
    for pattern in (_CONTAIN, _ZH_CONTAIN):
        for match in pattern.finditer(text):
            word, at = match["word"], match.start("word")
            if word.casefold() in EMPTY or slot.scene.names_file(at):
                continue
            starts = frozenset(m.start for m in slot.scene.mentions if m.start == at)
            yield Choice(word, starts, 0.05 if word in heads else 0.3)
    for match in _SIGNED.finditer(text):
        sign = sign_or_word(match["sign"])
        if sign in heads:
            yield Choice(sign, cost=0.02)
    yield from _known_words(slot)


def _known_words(slot: Slot) -> Iterator[Choice]:
    """Bare words of the text that stand in some, but not all, lines of the input: a last resort."""
    lines = [line for line in slot.heads.splitlines() if line.strip()]
    for match in re.finditer(r"[\w-]{3,}", slot.scene.text):
        word = match.group()
        if word.casefold() in EMPTY or slot.scene.inside(match.start(), tuple(Kind)):
            continue
        whole = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        if 0 < sum(bool(whole.search(line)) for line in lines) < max(2, len(lines)):
            yield Choice(word, cost=0.15)


def replacements(slot: Slot) -> Iterator[Choice]:
    """What is put in place of the needle."""
    yield from (pair[1] for pair in _replaced(slot)[:1])


def _replaced(slot: Slot) -> list[tuple[Choice, Choice]]:
    """(old, new) of a replacement, quoted or not; an unquoted old text must stand in the input."""
    text, quoted = slot.scene.text, slot.scene.of(Kind.LITERAL)
    if len(quoted) >= 2:
        old, new = quoted[:2]
        if _TURNED.search(text[old.end : new.start]):
            old, new = new, old
        return [(from_mention(old), from_mention(new))]
    starts = frozenset(m.start for m in quoted)
    found = []
    for pattern in (_INSTEAD, _REPLACE, _BECOMES, _ZH_REPLACE):
        match = pattern.search(_without_files(slot))
        if match:
            old_text = _grounded(_bare(match["old"]), slot.heads)
            new_text = sign_or_word(_bare(match["new"]))
            cost = 0.05 if old_text and old_text in slot.heads else 0.3
            found.append((Choice(old_text, starts, cost), Choice(new_text, starts)))
    return sorted(found, key=lambda pair: pair[0].cost)


def _without_files(slot: Slot) -> str:
    """The text without its file names and the `in` or `of` before them."""
    parts, at = [], 0
    for m in slot.scene.of(Kind.FILE):
        parts.append(
            re.sub(
                r"(?i)\s*\b(?:in|of|from|inside|throughout)\s*$", "", slot.scene.text[at : m.start]
            )
        )
        at = m.end
    return "".join([*parts, slot.scene.text[at:]])


def _grounded(words: str, heads: str) -> str:
    """The longest end of `words` that stands in `heads`: `the old name Acme` gives `Acme`."""
    if sign_or_word(words) != words:
        return sign_or_word(words)
    parts = words.split(" ")
    for first in range(len(parts)):
        if " ".join(parts[first:]) in heads:
            return " ".join(parts[first:])
    return parts[-1]


def sign_or_word(words: str) -> str:
    """The sign that a word names, else the word.

    >>> sign_or_word("the semicolons"), sign_or_word("pear")
    (';', 'pear')
    """
    name = re.sub(r"(?i)^(?:(?:the|a|an|all|every|each|any|single)\s+)+", "", words).casefold()
    singular = (name, name.removesuffix("s"), name.removesuffix("es"))
    return next((SIGNS[each] for each in singular if each in SIGNS), words)


def _bare(word: str) -> str:
    return word.strip("'\"“”‘’`「」")


def texts(slot: Slot) -> Iterator[Choice]:
    """Texts to write as they are."""
    yield from map(from_mention, slot.scene.of(Kind.LITERAL))
