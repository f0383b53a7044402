"""Find what a sentence names: files, quoted texts, numbers, ordinals. Plain code, no model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from loop.values import Survey


class Kind(StrEnum):
    """What a mention is."""

    FILE = "file"  #: exists in the workspace
    NEW_FILE = "new_file"  #: looks like a file name and does not exist (yet)
    LITERAL = "literal"  #: stands in quotes
    EXAMPLE = "example"  #: stands in quotes and only shows a form
    NUMBER = "number"
    ORDINAL = "ordinal"  #: first = 1, last = -1
    TIME = "time"  #: a clock time such as `09:30`, or a day such as `2026-03-01`
    EXTENSION = "extension"  #: a kind of file, value is a glob such as `*.csv`


@dataclass(frozen=True, slots=True)
class Mention:
    """A named thing and its place `[start, end)` in the sentence.

    `is_target` is true when the words before say that something is written there.
    """

    kind: Kind
    value: str | int | float
    start: int
    end: int
    is_target: bool = False

    @property
    def text(self) -> str:
        return str(self.value)


_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』", "«": "»"}
_ENDING = r"\.[A-Za-z][A-Za-z0-9]{0,7}"
_FILE = re.compile(
    r"(?<![\w./-])(?:[A-Za-z0-9_][\w\-]*/)*[A-Za-z0-9_][\w\-]*(?:\.[\w\-]+)*"
    rf"{_ENDING}(?![\w/-])",
    re.ASCII,
)
#: Addresses of pages and people: they hold what looks like a file name.
_ADDRESS = re.compile(
    r"(?:https?|ftp|file)://[^\s，。、'\"“”]*[\w/]|\bwww\.[\w.-]+\w(?:/[^\s，。、'\"“”]*)?"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    re.ASCII,
)
#: Endings that make a word a file even where nothing says that it is written.
_ENDINGS = frozenset(
    """
    txt text log csv tsv json jsonl md markdown yaml yml toml xml html htm ini cfg conf env sql
    py js ts sh bat rb go rs java c h cpp css svg png jpg jpeg gif bmp webp pdf doc docx xls xlsx
    ppt pptx odt ods zip gz tar bak out list dat data db sqlite rst tex rtf eml mbox ics
    """.split()
)
#: Words that a Chinese name does not begin or end with: of putting, taking and joining.
_ZH_BEFORE = "到为成进入在叫存至和与及、把从对将"
#: A name with Chinese in it, after a word of putting.
_ZH_FILE = re.compile(
    rf"(?<=[{_ZH_BEFORE}])\s*"
    rf"(?P<name>[^\s，。；、：,;:“”\"'{_ZH_BEFORE}]+{_ENDING})"
)
#: The same with a blank before it, which says where it begins.
_ZH_APART = re.compile(rf"(?<=[{_ZH_BEFORE}]\s)(?P<name>[^\s，。；、：,;:“”\"']+{_ENDING})")
_NOT_FILES = re.compile(r"(?i)^(?:e\.g|i\.e|etc\.\w*|a\.m|p\.m|vs\.\w+|no\.\w+)$")
_EXTENSION = re.compile(
    r"(?i)(?<![\w*])\*\.(?P<glob>[a-z0-9]+)\b"
    r"|(?<![\w.])\.(?P<dotted>[a-z][a-z0-9]{0,5})(?![\w.])"
    r"|\b(?P<word>csv|txt|text|log|json|md|markdown|yaml|yml|xml|html|py|tsv|ini|sh"
    r"|pdf|png|jpe?g|gif|docx?|xlsx?|zip|sql|js|conf|bak)"
    r"[ -](?=files?\b)"
    r"|(?<![\w.])(?P<zh>csv|txt|log|json|md|yaml|yml|xml|html|py|tsv)(?=\s*(?:文件|格式的文件))"
)
_WORD_EXTENSION = {"text": "txt", "markdown": "md"}
_NUMBER = re.compile(
    r"(?<![\w.])(?<!\w=)-?\d+(?:\.\d+)?(?![\w]|\.\d)"
    r"|(?<=[\u4e00-\u9fff])-?\d+(?:\.\d+)?(?![A-Za-z0-9_-]|\.\d)"
)
_TIME = re.compile(
    r"(?<![A-Za-z0-9_:.-])"
    r"(?:\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?|\d{1,2}:\d\d(?::\d\d)?)"
    r"(?![A-Za-z0-9_:-])"
)
_NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
} | {"dozen": 12, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100}
_NUMBER_WORD = re.compile(
    r"(?i)(?<![\w-])(?:" + "|".join(sorted(_NUMBER_WORDS, key=len, reverse=True)) + r")(?![\w-])"
    r"(?!(?<=one)\s+(?:new\s+|single\s+)?(?:file|of|by|per)\b)"
)
_ZH_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九十")} | {"两": 2}
_ZH_NUMBER = re.compile(
    r"(?<=[前后第头])\s*([一二两三四五六七八九十]+)(?=\s*[行列个条名字])|(?<=最后)([一二两三四五六七八九十]+)"
    r"|(?<=[末的数])([一二两三四五六七八九十]+)(?=\s*行)"
)
_ORDINALS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(), start=1
    )
} | {"last": -1, "final": -1}
_ORDINAL = re.compile(
    r"(?i)(?<![\w-])(?P<word>" + "|".join(_ORDINALS) + r"|(?P<nth>\d+)(?:st|nd|rd|th))(?![\w-])"
)
#: Directly before a file name, these say that it is written.
_TARGET = re.compile(
    r"(?i)(?:\b(?:to|into|in|as|called|named|onto|under|output|results?|→|->|=>|>)|→|->|=>|>"
    r"|到|为|至|成|入|叫|存为|写进|放进|放在)\s*(?:(?:a|the|one|new|single|another|file|called|named|output"
    r"|result|文件|新文件|新的|一个|个)\s*)*[:：]?\s*['\"“`]?$"
)
#: `in FILE` is a place to read from unless something was put there just before.
#: `the same as FILE` is read.
_LIKE = re.compile(r"(?i)\b(?:same|just|exactly|identical|like) (?:as|to)\s+['\"`]?$")
_ONLY_IN = re.compile(r"(?i)\bin\s+(?:(?:the|a|file|new)\s+)*['\"`]?$")
_PUTTING = re.compile(
    r"(?i)\b(?:save|saved|saving|put|store|stored|write|written|record|results?|answers?|output|place|keep|goes"
    r"|collect|gather|it|them|that|those|these|number|count|list|list(?:ed)?)\b[^.;]{0,40}$"
)

_OVERWRITING = re.compile(
    r"(?i)\b(?:overwrite|rewrite|replace (?:the )?(?:whole )?contents? of)\s+"
    r"(?:the (?:file )?)?['\"`]?$|覆盖\s*$"
)
_CONTAINS = re.compile(r"(?i)\b(?:contain|includ|mention|with|having|has|match|say)\w*(?: in)?\s*$")
_EXAMPLE = re.compile(
    r"(?i)\b(?:like|such as|e\.g\.|for example|as in|in the form|formatted as)\s*$|例如|比如"
)


def find_mentions(text: str, survey: Survey) -> tuple[Mention, ...]:
    """All mentions in the order they stand, none overlapping another.

    Earlier kinds take their place first: quoted texts, existing file names, addresses, file-like
    words, kinds of files, ordinals, times, numbers.
    """
    taken: list[Mention] = []

    def free(start: int, end: int) -> bool:
        return all(end <= m.start or start >= m.end for m in taken)

    for finder in _FINDERS:
        taken += [m for m in finder(text, survey) if free(m.start, m.end)]
    return _overwritten(text, sorted(taken, key=lambda m: m.start))


def _overwritten(text: str, mentions: Sequence[Mention]) -> tuple[Mention, ...]:
    """`overwrite X with … of Y` writes X; without another file it is X that is read, too."""

    def is_written(mention: Mention) -> bool:
        others = (m for m in mentions if m.kind is Kind.FILE and not m.is_target)
        return (
            mention.kind is Kind.FILE
            and _OVERWRITING.search(text[: mention.start]) is not None
            and any(m.text != mention.text for m in others)
        )

    return tuple(replace(m, is_target=True) if is_written(m) else m for m in mentions)


def _existing(text: str, survey: Survey) -> Iterator[Mention]:
    covered: list[tuple[int, int]] = []
    for name in sorted(survey.names, key=len, reverse=True):
        for match in re.finditer(re.escape(name), text):
            start, end = match.span()
            if any(start < e and end > s for s, e in covered) or not _stands_alone(
                text, start, end, name
            ):
                continue
            covered.append((start, end))
            yield Mention(Kind.FILE, name, start, end, _is_target(text, start, exists=True))


def _addresses(text: str, survey: Survey) -> Iterator[Mention]:
    for match in _ADDRESS.finditer(text):
        yield Mention(Kind.LITERAL, match.group(), *match.span())


def _stands_alone(text: str, start: int, end: int, name: str) -> bool:
    """Whether `name` is not part of a longer file name; without a dot it must be exact words."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if before.isascii() and (before.isalnum() or before in "_/-."):
        return False
    if _after_chinese(text, start):
        return False
    if after.isascii() and (after.isalnum() or after in "_/-"):
        return False
    if after == "." and end + 1 < len(text) and text[end + 1].isalnum() and text[end + 1].isascii():
        return False
    return "." in name or "/" in name or name.upper() == name or before in "'\"`"


def _new_files(text: str, survey: Survey) -> Iterator[Mention]:
    ended = 0
    found = (*_ZH_APART.finditer(text), *_ZH_FILE.finditer(text))
    for match in sorted(found, key=lambda each: (each.start("name"), -each.end("name"))):
        start, end = match.span("name")
        if not match["name"].isascii() and start >= ended:
            ended = end
            yield Mention(
                Kind.NEW_FILE, match["name"], start, end, _is_target(text, start, exists=False)
            )
    for match in _FILE.finditer(text):
        name, start = match.group(), match.start()
        if _NOT_FILES.match(name) or name.replace(".", "").isdigit() or _after_chinese(text, start):
            continue
        target = _is_target(text, start, exists=False)
        known = name.rpartition(".")[2].lower() in _ENDINGS
        if known or (target and not _CONTAINS.search(text[:start])):
            yield Mention(Kind.NEW_FILE, name, *match.span(), target)
        else:
            yield Mention(Kind.LITERAL, name, *match.span())


def _after_chinese(text: str, start: int) -> bool:
    """Whether a name goes on to the left in Chinese, so that only a part of it was found."""
    return (
        start > 0
        and bool(re.match(r"[\u4e00-\u9fff]", text[start - 1]))
        and text[start - 1] not in _ZH_BEFORE + "里中的用按对比较看读取"
    )


def _quoted(text: str, survey: Survey) -> Iterator[Mention]:
    """Quoted texts; a quoted file name is a file. An apostrophe inside a word opens nothing."""
    index = 0
    while index < len(text):
        closing = _QUOTES.get(text[index])
        before = text[index - 1] if index else " "
        if closing is None or (text[index] == "'" and before.isascii() and before.isalnum()):
            index += 1
            continue
        end = _closing(text, index + 1, closing)
        if end < 0 or end == index + 1:
            index += 1
            continue
        inside = text[index + 1 : end]
        yield _quoted_mention(text, survey, inside, index, end + 1)
        index = end + 1


def _closing(text: str, start: int, quote: str) -> int:
    """Where the quotation ends; a `'` followed by a letter is an apostrophe."""
    end = text.find(quote, start)
    while (
        quote == "'"
        and 0 <= end < len(text) - 1
        and text[end + 1].isalpha()
        and text[end + 1].isascii()
    ):
        end = text.find(quote, end + 1)
    return end


def _quoted_mention(text: str, survey: Survey, inside: str, start: int, end: int) -> Mention:
    if inside in survey.names:
        return Mention(Kind.FILE, inside, start, end, _is_target(text, start, exists=True))
    target = _is_target(text, start, exists=False)
    if target and re.fullmatch(rf"[^\n]*{_ENDING}", inside) and not _ADDRESS.fullmatch(inside):
        return Mention(Kind.NEW_FILE, inside, start, end, is_target=True)
    kind = Kind.EXAMPLE if _EXAMPLE.search(text[:start]) else Kind.LITERAL
    return Mention(kind, inside, start, end)


def _is_target(text: str, start: int, *, exists: bool) -> bool:
    before = text[:start]
    if not _TARGET.search(before) or _LIKE.search(before):
        return False
    if _ONLY_IN.search(before):
        return not exists and bool(_PUTTING.search(_ONLY_IN.sub("", before)))
    return True


def _extensions(text: str, survey: Survey) -> Iterator[Mention]:
    for match in _EXTENSION.finditer(text):
        extension = next(value for value in match.groups() if value).lower()
        extension = _WORD_EXTENSION.get(extension, extension)
        yield Mention(Kind.EXTENSION, f"*.{extension}", *match.span())


def _ordinals(text: str, survey: Survey) -> Iterator[Mention]:
    for match in _ORDINAL.finditer(text):
        nth = match.group("nth")
        value = int(nth) if nth else _ORDINALS[match.group().lower()]
        yield Mention(Kind.ORDINAL, value, *match.span())


def _times(text: str, survey: Survey) -> Iterator[Mention]:
    for match in _TIME.finditer(text):
        yield Mention(Kind.TIME, match.group(), *match.span())


def _numbers(text: str, survey: Survey) -> Iterator[Mention]:
    for match in _NUMBER.finditer(text):
        digits = match.group()
        yield Mention(Kind.NUMBER, float(digits) if "." in digits else int(digits), *match.span())
    for match in _NUMBER_WORD.finditer(text):
        yield Mention(Kind.NUMBER, _NUMBER_WORDS[match.group().lower()], *match.span())
    for match in _ZH_NUMBER.finditer(text):
        yield Mention(Kind.NUMBER, _zh_number(match.group().strip()), *match.span())


def _zh_number(digits: str) -> int:
    """A Chinese numeral up to 99: 三, 十二, 二十, 二十五."""
    tens, ten, ones = digits.partition("十")
    if not ten:
        return _ZH_DIGITS[digits[-1]]
    return (_ZH_DIGITS[tens] if tens else 1) * 10 + (_ZH_DIGITS[ones] if ones else 0)


_FINDERS = (
    _quoted,
    _existing,
    _addresses,
    _new_files,
    _extensions,
    _ordinals,
    _times,
    _numbers,
)
