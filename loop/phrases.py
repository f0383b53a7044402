"""Cut a sentence into operations by the lexicon: where each writes, what it reads, what it does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from loop.grammar import Found, Words, token_of
from loop.lexicon import Lexicon, Rule, characters, lexicon
from loop.mentions import Kind, Mention

Remarks = frozenset[tuple[str, Any]]
#: (where it stands, where the next operation begins, whether `then` says so)
_Cut = tuple[int, int, bool]
_LETTERS = {
    Kind.FILE: "F",
    Kind.NEW_FILE: "N",
    Kind.LITERAL: "L",
    Kind.NUMBER: "Q",
    Kind.ORDINAL: "O",
    Kind.EXTENSION: "E",
    Kind.EXAMPLE: "X",
    Kind.TIME: "T",
}
_THEM_WORDS = frozenset(("them", "their", "these", "those"))
_PRONOUNS = _THEM_WORDS | {"it", "its"}
_COUNTED = frozenset(("numbers", "values", "figures", "amounts"))
_IT, _THEM = ("it",), ("them",)
#: Small words that mean something behind these: `with only tea` is not `with tea`.
_WEIGHTY = frozenset(
    "with contain contains containing has have having mention mentions mentioning say says saying "
    "are is not".split()
)
_MOST_STATES, _MOST_SEQUENCES, _MOST_CUTS = 160, 1024, 12
_CAPITALS = re.compile(r"(?<![\w.'\"/-])[A-Z]{2,}(?:_[A-Z]+)*(?![\w'\"/-]|\.\w)")
_NO_NEEDLES = frozenset(
    "CSV JSON TXT TSV XML THE AND ALL NOT ONLY OR IN TO OF IS AS BY ON AT IP IPS ID URL URLS "
    "NO".split()
)
#: Small words with a capital inside a sentence are names: `starts with An`.
_AN = re.compile(
    r"(?:(?<=with )|(?<=is )|(?<=contains )|(?<=contain ))(?:An|A|All|Any|The)(?![\w.])"
)
_SIGN = re.compile(r"[A-Z]\d+_|[,;]|(?:[^\s,;])+")
_PLAIN = {"（": "(", "）": ",", "，": ",", "、": "、", "；": ";", "。": ";", "？": ";", "！": ";"}


@dataclass(frozen=True, slots=True)
class Phrase:
    """One operation as its words say it, before it is known what `it` means."""

    rule: Rule
    slots: Found
    source: tuple[str, ...]
    output: str
    remarks: Remarks
    sequel: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """The sentence as words in small letters, every mention a token such as `F0_`."""

    words: tuple[str, ...]
    mentions: tuple[Mention, ...]
    original: str
    chinese: bool
    asides: frozenset[int] = frozenset()  #: commas that stand for an opening bracket

    @property
    def bare(self) -> str:
        """The sentence without its mentions."""
        letters = list(self.original)
        for mention in self.mentions:
            letters[mention.start : mention.end] = " " * (mention.end - mention.start)
        return "".join(letters)

    def names_a(self, kind: str) -> bool:
        """Whether the sentence names a file of that kind, `csv` or `json`."""
        endings = (".csv", ".tsv") if kind == "csv" else (f".{kind}",)
        return any(str(mention.value).lower().endswith(endings) for mention in self.mentions)

    def is_token(self, word: str) -> bool:
        return bool(token_of(word))

    def value(self, word: str) -> Any:
        return self.mentions[int(word[1:-1])].value

    def written(self, words: Sequence[str]) -> str:
        """The words as the person wrote them; "" where their spelling is not certain."""
        if len(words) == 1 and token_of(words[0]):
            mention = self.mentions[int(words[0][1:-1])]
            if mention.kind in (Kind.LITERAL, Kind.EXAMPLE):
                return str(mention.value)
            return self.original[mention.start : mention.end]
        if self.chinese:
            found = re.findall(r"\s*".join(map(re.escape, words)), self.bare, re.IGNORECASE)
            return str(found[0]) if len(set(found)) == 1 else ""
        pattern = r"\s+(?:(?:the|a|an)\s+)?".join(map(re.escape, words))
        found = re.findall(rf"(?i)(?<![\w-]){pattern}(?![\w-])", self.bare)
        return str(found[0]) if len(set(found)) == 1 else ""

    def joined(self, one: str, other: str) -> str:
        return one + other if self.chinese else f"{one} {other}"

    def names(self, words: Sequence[str]) -> tuple[str, ...]:
        """A list of names: `a, b and c`."""
        names: list[list[str]] = [[]]
        for word in words:
            if word in (",", "and", "和", "与", "及", "、"):
                names.append([])
            else:
                names[-1].append(word)
        written = tuple(self.written(name) for name in names if name)
        return written if all(written) else ()


def tokenize(text: str, mentions: Sequence[Mention]) -> tuple[Tokens, Lexicon]:
    """The words of `text`, and the language that they are in."""
    kept = sorted([*_kept(text, mentions), *_capitals(text, mentions)], key=lambda m: m.start)
    parts, at = [], 0
    for index, mention in enumerate(kept):
        parts += [text[at : mention.start].lower(), f" {_letter(mention)}{index}_ "]
        at = mention.end
    plain = "".join([*parts, text[at:].lower()])
    chinese = bool(re.search(r"[\u4e00-\u9fff]", plain))
    known = lexicon("chinese" if chinese else "english")
    for sign, meant in _PLAIN.items():
        plain = plain.replace(sign, meant)
    plain = re.sub(r"[)—–]|(?<=\s)-(?=\s+[a-z])", " , ", plain.replace("’", "'"))
    plain = re.sub(
        r"\(\s*(?:in|from|see|file|source|input|data)?\s*:?\s*(F\d+_)\s*[,)]", r" of \1 ", plain
    )
    plain = re.sub(
        r"(?<=[a-z])(?<!what)(?<!it)(?<!let)(?<!that)(?<!who)(?<!there)(?<!here)'s\b", " 's", plain
    )
    plain = plain.replace("(", " ,( ").replace("i.e.", " ")
    plain = re.sub(r"[.?!:：]+(?=\s|$|[,;\u4e00-\u9fff])", " ; ", plain).replace("_ 's ", "_ 's ")
    words = characters(plain) if chinese else _without_asides(known, _SIGN.findall(plain), text)
    words = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word not in known.grammar.skip
        or (before in _WEIGHTY and word in ("only", "just", "all", "any"))
    ]
    tidy: list[str] = []
    asides: set[int] = set()
    for word in words:
        if word == "(":
            asides.add(len(tidy) - 1)
            continue
        if word in ",;" and (not tidy or tidy[-1] in ",;"):
            if tidy and word == ";":
                tidy[-1] = ";"
            continue
        tidy.append(word)
    cut = next((at for at, word in enumerate(tidy) if word not in ",;"), 0)
    places = frozenset(at - cut for at in asides)
    return Tokens(_trim(tuple(tidy)), tuple(kept), text, chinese, places), known


def _as_said(words: Sequence[str]) -> Iterator[str]:
    """`by sorting …` and `, replacing …` as what they say: sort, replace."""
    before = ""
    for at, word in enumerate(words):
        after = words[at + 1] if at + 1 < len(words) else ""
        if word in ("by", "after") and after in _GERUNDS:
            yield ";"
        elif word in _GERUNDS and (
            before in ("by", "mind") or (before in (",", "after") and word in _CHANGING)
        ):
            yield from ((";",) if before == "," else ())
            yield _GERUNDS[word]
        else:
            yield word
        before = word


def _without_asides(lexicon: Lexicon, words: Sequence[str], text: str) -> list[str]:
    """The words without clauses that only say why: none of their words is of any pattern."""
    named = {found.lower() for found in re.findall(r"(?<=[a-z,] )[A-Z]\w+", text)}
    telling = (lexicon.telling - _IDLE) | named | {"only", "just", "except", "but", "not", "no"}

    def is_idle(clause: Sequence[str]) -> bool:
        joined = " ".join(clause)
        plain = re.sub(r"\blast (?:night|week|month|year|time)\b", "", joined)
        if re.search(r"\b(?:needs?|wants?)\b(?! (?:to|them|it|this|these|that)\b)", joined):
            return False
        return all(word.isalpha() and word not in telling for word in plain.split() if word != ",")

    words = list(words)
    end = next((at for at, word in enumerate(words) if word == ";"), 0)
    for stop in (end, *(at for at, word in enumerate(words) if word == ",")):
        clause, rest = words[:stop], words[stop + 1 :]
        if len(clause) < 3 or not rest or not is_idle(clause[1:] if stop != end else clause):
            continue
        why = clause[0] in ("because", "since", "as") or clause[:2] in (["so", "that"], ["so", "i"])
        asked = clause[0] == "to" and rest[:1] in (["would"], ["could"], ["can"], ["please"])
        ours = clause[0] == "for" and clause[1] in ("my", "our") and len(clause) < 6
        told = clause[0] in _SUBJECTS and (stop == end or rest[0] == "so")
        if why or asked or ours or told:
            words = rest
            break
    for at in range(len(words) - 2, 0, -1):
        if words[at] in ("because", "since") or words[at : at + 3] in _SO_THAT:
            tail = [word for word in words[at + 1 :] if word != ";"]
            if tail and is_idle(tail):
                words = words[:at]
            break
    return list(_as_said(words))


_SUBJECTS = frozenset("i we my our you the there this it she he they".split())
_SO_THAT = [["so", "that", who] for who in ("i", "we", "my", "our")] + [
    ["so", who, "can"] for who in ("i", "we")
]
#: Words of patterns that tell nothing of a chore by themselves.
_IDLE = frozenset(
    "i we my our you me us it its is are was were be been the a an to for of in on at with and so "
    "that this there has have had can could will would do does did want wants need needs like "
    "them they their as find see get send show too many much very when while how wonder list text "
    "report file people save all please more".split()
)
_CHANGING = frozenset("replacing changing substituting swapping turning converting".split())
_GERUNDS = {
    f"{stem}ing": verb
    for stem, verb in (
        *(
            (verb, verb)
            for verb in "extract sort order convert turn select filter copy collect".split()
        ),
        *((verb, verb) for verb in "pull pick count list keep alphabetize cut".split()),
        *(
            ("arrang", "arrange"),
            ("mak", "make"),
            ("tak", "take"),
            ("sav", "save"),
            ("writ", "write"),
        ),
        *(("remov", "remove"), ("delet", "delete"), ("dropp", "drop"), ("stripp", "strip")),
        *(("eliminat", "remove"), ("omitt", "omit"), ("replac", "replace"), ("chang", "change")),
        *(("substitut", "substitute"), ("swapp", "swap"), ("putt", "put"), ("spell", "spell")),
        *(("capitalis", "capitalise"), ("capitaliz", "capitalize"), ("uppercas", "uppercase")),
        *(("lowercas", "lowercase"), ("alphabetis", "alphabetise"), ("skipp", "skip")),
        *(("revers", "reverse"), ("join", "join"), ("leav", "leave"), ("throw", "throw")),
    )
}


def _letter(mention: Mention) -> str:
    """An example that is a number and a word shows how a tally is written."""
    if mention.kind is Kind.EXAMPLE and not re.fullmatch(r"\d+ \w+", str(mention.value)):
        return "L"
    return _LETTERS[mention.kind]


def _kept(text: str, mentions: Sequence[Mention]) -> Iterator[Mention]:
    """Mentions that stand as tokens: `first` and `one` are words unless they number something."""
    for mention in mentions:
        written = text[mention.start : mention.end].lower()
        after = text[mention.end :]
        if mention.kind is Kind.ORDINAL and not re.match(r"\s+(?:column|field|col)\b", after, re.I):
            continue
        counted = re.search(r"(?i)(?:from|at|with)\s*$", text[: mention.start])
        if written in ("one", "一") or (written == "1" and counted):
            continue
        yield mention


def _capitals(text: str, mentions: Sequence[Mention]) -> Iterator[Mention]:
    for match in (*_CAPITALS.finditer(text), *_AN.finditer(text)):
        clear = all(match.end() <= m.start or match.start() >= m.end for m in mentions)
        if clear and match.group() not in _NO_NEEDLES:
            yield Mention(Kind.LITERAL, match.group(), *match.span())


def _trim(words: Words) -> tuple[str, ...]:
    start, end = 0, len(words)
    while start < end and words[start] in ",;":
        start += 1
    while end > start and words[end - 1] in ",;":
        end -= 1
    return tuple(words[start:end])


def readings_of(tokens: Tokens, lexicon: Lexicon) -> Iterator[tuple[Phrase, ...]]:
    """Every way to cut the sentence so that each part is an operation, every word used."""
    if not tokens.words:
        return
    cuts = [cut for cut in _cuts(lexicon, tokens.words) if cut[0] not in tokens.asides]
    if len(cuts) > _MOST_CUTS:
        return
    found = tuple(islice(_from(tokens, lexicon, cuts, 0, sequel=False), _MOST_SEQUENCES + 1))
    if len(found) <= _MOST_SEQUENCES:  # an unseen reading might be the one that differs
        yield from found


def _from(
    tokens: Tokens, lexicon: Lexicon, cuts: Sequence[_Cut], at: int, *, sequel: bool
) -> Iterator[tuple[Phrase, ...]]:
    stops = [*(cut for cut in cuts if cut[0] > at), (len(tokens.words), -1, False)]
    for stop, after, then in stops:
        words = tokens.words[at:stop]
        if len({word for word in words if word[0] == "N" and token_of(word)}) > 2:
            return
        for phrase in fragment(lexicon, words):
            own = Phrase(*phrase, sequel=sequel)
            if own.rule.reads and not tokens.names_a(own.rule.reads):
                continue
            if after < 0:
                yield (own,)
                continue
            for rest in _from(tokens, lexicon, cuts, after, sequel=then):
                yield (own, *rest)


def _cuts(lexicon: Lexicon, words: Words) -> list[_Cut]:
    node = lexicon.grammar.node(str(lexicon.data["cut"]))
    then = lexicon.grammar.node(str(lexicon.data["then"]))
    found: list[_Cut] = []
    at = 1
    while at < len(words):
        end = max((end for end, _ in lexicon.grammar.match(node, words, at)), default=at)
        if at < end < len(words):
            after = any(lexicon.grammar.match(then, words[:end], i) for i in range(at, end))
            found.append((at, end, after))
        at = max(end, at + 1)
    return found


_Read = tuple[Rule, Found, tuple[str, ...], str, Remarks]


@lru_cache(maxsize=4096)
def fragment(lexicon: Lexicon, words: tuple[str, ...]) -> tuple[_Read, ...]:
    """Every way to read one part as an operation: its rule, slots, source, target and remarks."""
    found: dict[_Read, None] = {}
    for core, out, remarks in _peeled(lexicon, words):
        for rest, source in _sources(lexicon, core):
            for rule, slots in _matching(lexicon, rest):
                found[rule, slots, source, out, remarks] = None
    return tuple(found)


@lru_cache(maxsize=8192)
def _matching(lexicon: Lexicon, words: tuple[str, ...]) -> tuple[tuple[Rule, Found], ...]:
    words = _trim(words)
    if not words:
        return ()
    always, by_word = lexicon.entries
    found: dict[tuple[Rule, Found], None] = {}
    have = set(words)
    letters = frozenset(filter(None, map(token_of, have)))
    plain = frozenset(word for word in have if not token_of(word))
    for word in ("", *have):
        for node, rule in by_word.get(word, ()) if word else always:
            if not lexicon.grammar.reach(node).may_hold(plain, letters):
                continue
            if node.first is not None and words[0] not in node.first and not node.empty:
                continue
            if not any(need.isdisjoint(have) for need in node.needs):
                for end, slots in lexicon.grammar.match(node, words, 0):
                    if end == len(words):
                        found[rule, slots] = None
    return tuple(found)


_State = tuple[tuple[str, ...], str, Remarks]


def _peeled(lexicon: Lexicon, words: tuple[str, ...]) -> tuple[_State, ...]:
    """The part itself and what is left of it when targets, remarks and courtesies are taken off.

    Nothing at all where there are too many ways: an unseen one might be the one that differs.
    """
    queue: list[_State] = [(_trim(words), "", frozenset())]
    seen = dict.fromkeys(queue)
    for state in queue:
        for core, out, remarks in _steps(lexicon, state):
            after: _State = (_trim(core), out, remarks)
            if after[0] and after not in seen:
                seen[after] = None
                queue.append(after)
        if len(seen) > _MOST_STATES:
            return ()
    return tuple(seen)


def _steps(lexicon: Lexicon, state: _State) -> Iterator[_State]:
    words, out, remarks = state
    grammar = lexicon.grammar
    lead = max(
        (e for e, _ in grammar.match(grammar.node(lexicon.data["leads"]), words, 0)), default=0
    )
    if 0 < lead < len(words):
        yield words[lead:], out, remarks
    for at in range(max(1, len(words) - 6), len(words)):
        if any(True for _ in grammar.full(lexicon.data["trails"], words[at:])):
            yield words[:at], out, remarks
    if not out:
        yield from _targets(lexicon, words, remarks)
    yield from _remarked(lexicon, state)


def _targets(lexicon: Lexicon, words: tuple[str, ...], remarks: Remarks) -> Iterator[_State]:
    grammar = lexicon.grammar
    places = [i for i, word in enumerate(words) if token_of(word) in ("F", "N") and word]
    if not places:
        return
    first = max(places[-3] + 1 if len(places) > 2 else 0, len(words) - 16)
    for at in range(max(first, 1), places[-1] + 1):
        for pattern in lexicon.patterns("targets"):
            for found in grammar.full(pattern, words[at:]):
                source = next((src for name, src in found if name == "src"), ())
                yield words[:at] + (("of", *source) if source else ()), *_target(found, remarks)
    starts = {end for end, _ in _headed(lexicon, words)}
    for at in (0, *sorted(starts)):  # `Using a.txt, make b.txt with …`
        for pattern in lexicon.patterns("heads"):
            for end, found in grammar.match(grammar.node(pattern), words, at):
                if end < len(words):
                    yield words[:at] + words[end:], *_target(found, remarks)
    for at in range(1, places[-1] + 1):
        for pattern in lexicon.patterns("middles"):
            for end, found in grammar.match(grammar.node(pattern), words, at):
                if end < len(words):
                    yield words[:at] + words[end:], *_target(found, remarks)
    for at, word in enumerate(words):
        if word in lexicon.patterns("itself"):
            yield words[:at] + words[at + 1 :], "=", remarks


def _target(found: Found, remarks: Remarks) -> tuple[str, Remarks]:
    """The target's token, and what the words for the result say about it."""
    out = next(words[0] for name, words in found if name in ("out", "new"))
    said = {
        (name.removesuffix("that").replace("left", "rest").replace("text", "lines"), True)
        for name, _ in found
        if name.endswith("that")
    }
    return out, remarks | said


def _remarked(lexicon: Lexicon, state: _State) -> Iterator[_State]:
    words, out, remarks = state
    grammar = lexicon.grammar
    have = set(words)
    for means, node in lexicon.said:
        if any(need.isdisjoint(have) for need in node.needs):
            continue
        known = dict(remarks)
        if any(known.get(key, value) != value for key, value in means.items()):
            continue
        more = remarks | frozenset(means.items())
        for at in range(len(words)):
            ends = {end for end, _ in grammar.match(node, words, at) if end > at}
            if at and len(words) in ends:
                yield words[:at], out, more
            for end in ends:
                if end < len(words) and (at == 0 or words[at - 1] in ",;" or words[end - 1] == ","):
                    yield words[:at] + words[end:], out, more


def _sources(lexicon: Lexicon, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(what is left, the source's words) for every way to see what the part reads."""
    grammar = lexicon.grammar
    yield words, _pronoun(words)
    anaphor = grammar.node("{anaphor}")
    for end, source in _headed(lexicon, words):
        rest = words[end:]
        yield rest, source
        for at in range(len(rest)):  # `Take a.txt and sort it`
            for after, _ in grammar.match(anaphor, rest, at):
                yield (*rest[:at], "§", *rest[after:]), source
    for at in range(len(words)):
        for pattern in lexicon.patterns("sources"):
            for end, found in grammar.match(grammar.node(pattern), words, at):
                gone = _source(found) if found else _pronoun(words[at:end]) or _IT
                yield words[:at] + words[end:], gone
        if token_of(words[at]) in ("F", "N") and token_of(words[at]):
            if words[at + 1 : at + 2] == ("'s",):
                yield words[:at] + words[at + 2 :], (words[at],)
            yield (*words[:at], "§", *words[at + 1 :]), (words[at],)
        for end, _ in grammar.match(anaphor, words, at):
            if _COUNTED.intersection(words[at:end]):
                continue  # `these numbers` says what they are
            yield (*words[:at], "§", *words[end:]), _pronoun(words[at:end]) or _IT
        if words[at] in ("its", "their") or (
            words[at] in ("these", "those", "same")
            and _COUNTED.intersection(words[at + 1 : at + 2])
        ):
            yield words[:at] + words[at + 1 :], _pronoun(words[at : at + 1])


def _headed(lexicon: Lexicon, words: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Where the words begin with what is read: (their end, the source's words)."""
    grammar = lexicon.grammar
    for pattern in lexicon.patterns("headsources"):
        for end, found in grammar.match(grammar.node(pattern), words, 0):
            if end < len(words):
                yield end, _source(found)


def _pronoun(words: Words) -> tuple[str, ...]:
    """`it` or `them` when such a word is there; a noun behind `those` makes it clear."""
    if _THEM_WORDS.intersection(words):
        return _THEM
    return _IT if _PRONOUNS.intersection(words) else ()


def _source(found: Found) -> tuple[str, ...]:
    return next((words for name, words in found if name == "src"), _IT)
