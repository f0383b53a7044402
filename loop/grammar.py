"""A small pattern language over words, in which `templates/reading/*.yaml` is written.

`[x]` may be missing, `(x|y)` is a choice, `x*` may come any number of times, `{name}` is a word
group of the file or one of its slots. A comma may follow every word. Everything else is a word.

>>> grammar = Grammar({"lines": "line|lines"}, {})
>>> list(grammar.full("[keep] {lines} with (tea|milk)", ("lines", "with", "tea")))
[()]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

Words = Sequence[str]
Found = tuple[tuple[str, tuple[str, ...]], ...]
#: An end, and what the slots hold up to there.
End = tuple[int, Found]
Memo = dict[tuple[int, int], tuple[End, ...]]
_MOST_MEMOS = 512
#: How far a slot may reach from a place: the possible ends.
Slot = Callable[[Words, int], Iterator[int]]
_PIECE = re.compile(r"\s*(?:(\{\w+\})|([\[\]()|*])|([^\s\[\]()|{}*]+))")


@dataclass(frozen=True, slots=True)
class Node:
    """One piece of a pattern.

    Attributes:
        needs: Sets of words of which at least one must be there.
        first: The words that it can begin with; None when any word can.
        empty: Whether it can match nothing.
    """

    kind: str  #: `words` (any one of `value`), `seq`, `alt`, `opt`, `star`, `slot`
    value: frozenset[str] = frozenset()
    parts: tuple[Node, ...] = ()
    name: str = ""
    needs: tuple[frozenset[str], ...] = ()
    first: frozenset[str] | None = None
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Reach:
    """What a pattern can hold at all, to pass it over without a try.

    Attributes:
        words: Every word of it.
        letters: The mentions that its slots take.
        room: How many other words its slots can take.
    """

    words: frozenset[str] = frozenset()
    letters: frozenset[str] = frozenset()
    room: int = 0

    def may_hold(self, words: frozenset[str], letters: frozenset[str]) -> bool:
        return letters <= self.letters and len(words - self.words) <= self.room


def _word(words: frozenset[str]) -> Node:
    return Node("words", words, needs=(words,), first=words)


def _around(kind: str, inner: Node, *, name: str = "", optional: bool = False) -> Node:
    needs = () if optional else inner.needs
    return Node(kind, frozenset(), (inner,), name, needs, inner.first, optional or inner.empty)


@dataclass
class Grammar:
    """Word groups and slots; `split` cuts a literal into words, `skip` are words left out."""

    groups: Mapping[str, str]
    slots: Mapping[str, Slot]
    split: Callable[[str], Words] = str.split
    skip: frozenset[str] = frozenset()
    marks: frozenset[str] = frozenset()  #: groups that are told like slots
    _nodes: dict[str, Node] = field(default_factory=dict)
    _reach: dict[int, Reach] = field(default_factory=dict)
    _memo: dict[tuple[str, ...], Memo] = field(default_factory=dict)

    def full(self, pattern: str, words: Words) -> Iterator[Found]:
        """What the slots hold, for every way in which the pattern covers all of `words`."""
        node = self.node(pattern)
        have = set(words)
        if not any(need.isdisjoint(have) for need in node.needs):
            for end, found in self.match(node, words, 0):
                if end == len(words):
                    yield found

    def node(self, pattern: str) -> Node:
        """The pattern as nodes; word groups are shared."""
        if pattern not in self._nodes:
            pieces = [
                piece for match in _PIECE.finditer(pattern) for piece in match.groups() if piece
            ]
            self._nodes[pattern], rest = self._choice(pieces)
            if rest:
                raise ValueError(f"unbalanced `{rest[0]}` in `{pattern}`")
        return self._nodes[pattern]

    def _choice(self, pieces: list[str]) -> tuple[Node, list[str]]:
        ways: list[Node] = []
        while True:
            parts: list[Node] = []
            while pieces and pieces[0] not in ("|", "]", ")"):
                part, pieces = self._part(pieces)
                parts += part
            ways.append(_sequence(parts))
            if not pieces or pieces[0] != "|":
                return _either(ways), pieces
            pieces = pieces[1:]

    def _part(self, pieces: list[str]) -> tuple[list[Node], list[str]]:
        head, pieces = pieces[0], pieces[1:]
        if head in ("[", "("):
            inner, pieces = self._choice(pieces)
            if not pieces:
                raise ValueError(f"`{head}` is not closed")
            parts = [_around("opt", inner, optional=True) if head == "[" else inner]
            pieces = pieces[1:]
        elif head.startswith("{"):
            name = head[1:-1]
            known = name in self.slots
            parts = [Node("slot", name=name) if known else self.node(self.groups[name])]
            if name in self.marks:
                parts = [_around("mark", parts[0], name=name)]
        else:
            words = [word for word in self.split(head) if word not in self.skip]
            parts = [_word(frozenset((word,))) for word in words]
        if pieces and pieces[0] == "*":
            inner = _sequence(parts)
            inner = inner.parts[0] if inner.kind == "opt" else inner
            parts, pieces = [_around("star", inner, optional=True)], pieces[1:]
        return parts, pieces

    def reach(self, node: Node) -> Reach:
        """What `node` can hold at all."""
        if id(node) not in self._reach:
            self._reach[id(node)] = self._reach_of(node)
        return self._reach[id(node)]

    def _reach_of(self, node: Node) -> Reach:
        if node.kind == "words":
            return Reach(node.value | {","})
        if node.kind == "slot":
            return _reach_of_slot(self.slots[node.name])
        parts = [self.reach(part) for part in node.parts]
        rooms = [part.room for part in parts]
        room = (max if node.kind == "alt" else sum)(rooms)
        return Reach(
            frozenset().union(*(part.words for part in parts)),
            frozenset().union(*(part.letters for part in parts)),
            _ENDLESS if node.kind == "star" and room else room,
        )

    def match(self, node: Node, words: Words, at: int) -> tuple[End, ...]:
        """Every end that `node` can reach from `at`, with what its slots hold."""
        sentence = tuple(words)
        if sentence not in self._memo:
            if len(self._memo) >= _MOST_MEMOS:
                self._memo.clear()
            self._memo[sentence] = {}
        return self._ends(node, sentence, at, self._memo[sentence])

    def _ends(self, node: Node, words: tuple[str, ...], at: int, memo: Memo) -> tuple[End, ...]:
        if node.first is not None and (at >= len(words) or words[at] not in node.first):
            return ((at, ()),) if node.empty else ()
        key = (id(node), at)
        if key not in memo:
            memo[key] = tuple(dict.fromkeys(self._reached(node, words, at, memo)))
        return memo[key]

    def _reached(self, node: Node, words: tuple[str, ...], at: int, memo: Memo) -> Iterator[End]:
        if node.kind == "words":
            if at < len(words) and words[at] in node.value:
                yield from _and_comma(words, at + 1)
        elif node.kind == "seq":
            reached: list[End] = [(at, ())]
            for part in node.parts:
                reached = [
                    (last, found + more) if more else (last, found)
                    for end, found in reached
                    for last, more in self._ends(part, words, end, memo)
                ]
                if not reached:
                    return
            yield from reached
        elif node.kind == "alt":
            for part in node.parts:
                yield from self._ends(part, words, at, memo)
        elif node.kind == "slot":
            for end in self.slots[node.name](words, at):
                for after, _ in _and_comma(words, end):
                    yield after, ((node.name, tuple(words[at:end])),)
        elif node.kind == "mark":
            for end, found in self._ends(node.parts[0], words, at, memo):
                yield end, ((node.name, tuple(words[at:end])), *found)
        else:
            yield at, ()
            for end, found in self._ends(node.parts[0], words, at, memo):
                if node.kind == "opt" or end == at:
                    yield end, found
                else:
                    for last, more in self._ends(node, words, end, memo):
                        yield last, found + more


def _and_comma(words: Words, end: int) -> Iterator[tuple[int, Found]]:
    if end < len(words) and words[end] == ",":
        yield end + 1, ()
    yield end, ()


def _sequence(parts: list[Node]) -> Node:
    if len(parts) == 1:
        return parts[0]
    needs = tuple(need for part in parts for need in part.needs)
    first: frozenset[str] | None = frozenset()
    for part in parts:
        first = None if first is None or part.first is None else first | part.first
        if not part.empty:
            break
    empty = all(part.empty for part in parts)
    return Node("seq", parts=tuple(parts), needs=needs, first=first, empty=empty)


def _either(ways: list[Node]) -> Node:
    """A choice; ways that are single words become one set, which makes long groups quick."""
    if len(ways) == 1:
        return ways[0]
    single = frozenset(word for way in ways if way.kind == "words" for word in way.value)
    others = [way for way in ways if way.kind != "words"]
    parts = ([_word(single)] if single else []) + others
    if len(parts) == 1:
        return parts[0]
    first = frozenset().union(*(way.first or () for way in parts))
    known = all(way.first is not None for way in parts)
    needs: tuple[frozenset[str], ...] = ()
    if all(way.needs for way in others):
        needs = (single.union(*(min(way.needs, key=len) for way in others)),)
    empty = any(way.empty for way in parts)
    return Node("alt", frozenset(), tuple(parts), "", needs, first if known else None, empty)


def _reach_of_slot(slot: Slot) -> Reach:
    """By trial: which mentions it takes, and how many words that no pattern knows."""
    letters = frozenset(
        letter
        for letter in "FNLQOEXT"
        if any(True for words in _tried(f"{letter}0_") for _ in slot(words, 0))
    )
    ends = [end for word in ("qqq", "七") for words in _tried(word) for end in slot(words, 0)]
    lists = any(
        end > 0 for word in ("qqq", "七", "L0_") for end in slot((word, ",", word), 0) if end > 1
    )
    taken = max(ends, default=0)
    closed = _CLOSED if not taken else 0
    return Reach(frozenset((",",)), letters, _ENDLESS if lists else max(taken, closed))


def _tried(word: str) -> tuple[Words, ...]:
    return ((word,), (word,) * 8, (word, ",", word))


_ENDLESS = 999
#: Words that a slot of certain words takes at most.
_CLOSED = 6


@cache
def token_of(word: str) -> str:
    """The letter of a mention's token such as `F0_`, or "" for a word."""
    return word[0] if re.fullmatch(r"[A-Z]\d+_", word) else ""
