"""The second reader's patterns, as the files of `templates/reading` hold them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from loop.grammar import Grammar, Node, Slot, Words, token_of
from loop.tables import DEGREES, VERBS
from openry.data import data_root

#: Words that cannot be a bare name or a text that is looked for.
_NEVER = frozenset(
    (
        "of in from with to into and or not no than the a an it them that this those these is "
        "are as by for each every at on more less most least fewer exactly either neither "
        "nothing something anything digits numbers number letters capitals spaces duplicates "
        "time timestamp "
        "text words word line lines row rows column columns field fields file files value "
        "values header heading headings title names upper lower case blank empty first last "
        "top bottom only both one ones its their § , ; then also out up down but except "
        "without punctuation commas semicolons dots url urls dates -> tab tabs between other "
        "which where whose highest lowest largest smallest biggest average mean sum total "
        "maximum minimum count almost nearly about roughly over under above below 's sorted "
        "unique distinct different longest shortest letter capital capitals "
        "uppercase lowercase there here copied kept found selected unless although though whereas "
        "if whenever whether while because until till never always"
    ).split()
)
#: What may well be a column's name all the same.
_COLUMNS = frozenset(
    (
        "title time timestamp "
        "names total count number numbers value values text url urls word words date "
        "dates average mean letters digits size"
    ).split()
)
#: Words that are answers in a table: `whose paid is no`.
_ANSWERS = frozenset(("no", "not", "none", "other", "all", "one", "upper", "lower", "total"))
#: Plural nouns that are no lines.
_NO_LINES = frozenset(
    (
        "words columns paragraphs sentences letters characters fields sections keys objects "
        "folders directories pages tabs spaces bytes digits chars cells blocks tables "
        "duplicates contents word column paragraph sentence letter character field section "
        "women men girls boys females males adults children seniors "
        "key object folder page tab is has this its as us files file lines rows times always"
    ).split()
)
#: Groups whose words say which comparison is meant, and the comparison.
COMPARISONS = {
    "eq": "==",
    "ne": "!=",
    "gt": ">",
    "ge": ">=",
    "lt": "<",
    "le": "<=",
    "starts": "starts",
    "ends": "ends",
    "holds": "contains",
    "lacks": "not_contains",
    "unstarts": "not_starts",
    "unends": "not_ends",
    "isempty": "empty",
    "isfull": "not_empty",
    "ormore": ">=",
    "orless": "<=",
    "neither": "!=",
    "unheld": "!=",
    "zafter": ">",
    "zbefore": "<",
}
#: Groups whose words say how two texts that are looked for belong together.
JOINS = {"orword": "or", "andword": "and", "andhave": "and", "butword": "but"}
#: Groups whose words begin a further condition, and how it belongs to the ones before.
FURTHER = {"andif": "and", "orif": "or", "andnot": "and"}
#: Words for a result that only fit some results, and the groups above.
_MARKS = frozenset(
    (
        *(
            f"{each}that"
            for each in (
                "left",
                "ordered",
                "once",
                "number",
                "text",
                "sorted",
                "joined",
                "numbered",
                "them",
                "it",
            )
        ),
        *COMPARISONS,
        *JOINS,
        *FURTHER,
        *("high", "low", "sinceyear", "held", "capsword", "smallword"),
    )
)
#: Words that number a word of a line.
PLACES = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(), start=1
    )
} | {"last": -1, "final": -1}
#: Levels of a log, and how its lines say them.
LEVELS = {
    word: said
    for words, said in (
        ("error errors", "ERROR"),
        ("warning warnings", "WARN"),
        ("info", "INFO"),
        ("debug", "DEBUG"),
        ("fatal", "FATAL"),
        ("critical", "CRITICAL"),
    )
    for word in words.split()
}
#: Words that number a line.
RANKS = {word: value for word, value in PLACES.items() if value > 0}
_WORD = re.compile(r"[^\W\d_][\w\-]*")
_SIGN = re.compile(
    r"[A-Z]\d+_|[\u4e00-\u9fff]|[,;、]|[^\s\u4e00-\u9fff,;、]+?(?=[A-Z]\d+_)|[^\s\u4e00-\u9fff,;、]+"
)
_ZH = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of operation and the patterns that say it."""

    kind: str
    say: tuple[str, ...]
    args: Mapping[str, Any] = field(default_factory=dict)
    reads: str = ""  #: `csv` or `json` where only such a file can be meant
    of: str = ""
    family: str = ""
    also: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash((self.kind, self.say, repr(self.args)))

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(
            f"{say} ({also})" if also else say for say in self.say for also in self.also or ("",)
        )


@dataclass(frozen=True)
class Lexicon:
    """One language: its patterns and word groups."""

    name: str
    data: Mapping[str, Any]
    kinds: Mapping[str, Mapping[str, Any]]
    rules: tuple[Rule, ...]
    grammar: Grammar

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def entries(
        self,
    ) -> tuple[tuple[tuple[Node, Rule], ...], Mapping[str, list[tuple[Node, Rule]]]]:
        """Patterns that may say anything, and the others by the words of which they need one."""
        always: list[tuple[Node, Rule]] = []
        by_word: dict[str, list[tuple[Node, Rule]]] = {}
        for rule in self.rules:
            for pattern in rule.patterns:
                node = self.grammar.node(pattern)
                if not node.needs:
                    always.append((node, rule))
                for word in min(node.needs, key=len, default=frozenset()):
                    by_word.setdefault(word, []).append((node, rule))
        return tuple(always), by_word

    @cached_property
    def said(self) -> tuple[tuple[Mapping[str, Any], Node], ...]:
        """What remarks mean, with their patterns."""
        return tuple((means, self.grammar.node(say)) for means, say in self.remarks())

    @cached_property
    def telling(self) -> frozenset[str]:
        """Every word of the patterns, and what the slots know."""
        ways = (str(self.data.get(key, "")) for key in ("leads", "trails"))
        said = " ".join([*all_patterns(self), *self.grammar.groups.values(), *ways])
        return frozenset(re.findall(r"[a-z][\w'-]*", said)) | _NEVER | _NO_LINES | set(LEVELS)

    def patterns(self, key: str) -> tuple[str, ...]:
        return tuple(self.data.get(key, ()))

    def remarks(self) -> Iterator[tuple[Mapping[str, Any], str]]:
        for remark in self.data["remarks"]:
            for say in remark["say"]:
                yield remark["means"], say


def lexicons() -> tuple[Lexicon, ...]:
    return lexicon("english"), lexicon("chinese")


@cache
def lexicon(name: str) -> Lexicon:
    """A language's patterns, read and compiled once."""
    return _load(name)


def _read(path: Path) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text("utf-8"), Loader=loader)  # noqa: S506  both are the safe one


def _merged(folder: Path) -> dict[str, Any]:
    """What the files of a language say: lists one after the other, in the order of their names."""
    data: dict[str, Any] = {}
    for path in sorted(folder.glob("*.yaml")):
        for key, value in _read(path).items():
            data[key] = data[key] + value if key in data else value
    return data


def _load(name: str) -> Lexicon:
    place = data_root() / "templates" / "reading"
    data, kinds = _merged(place / name), _read(place / "kinds.yaml")
    chinese = name == "chinese"
    rules = tuple(_rule(entry, kinds) for entry in data["patterns"])
    groups = {**data["groups"], "then": data["then"]}
    skip = frozenset(data.get("skip", ()))
    slots = _zh_slots() if chinese else _slots()
    split = characters if chinese else str.split
    return Lexicon(name, data, kinds, rules, Grammar(groups, slots, split, skip, _MARKS))


def _rule(entry: Mapping[str, Any], kinds: Mapping[str, Any]) -> Rule:
    kind = entry["kind"]
    return Rule(
        kind,
        tuple(entry["say"]),
        dict(entry.get("args", {})),
        entry.get("reads", ""),
        entry.get("of", ""),
        kinds.get(kind, {}).get("family", ""),
        tuple(entry.get("also", ())),
        tuple(entry.get("examples", ())),
        tuple(entry.get("not", ())),
    )


def characters(text: str) -> Words:
    """Chinese text as words: each Chinese character is one, runs of other signs stay together."""
    return _SIGN.findall(text)


def _tokens(letters: str) -> Slot:
    def ends(words: Words, at: int) -> Iterator[int]:
        if at < len(words) and token_of(words[at]) and words[at][0] in letters:
            yield at + 1

    return ends


def _is_bare(word: str) -> bool:
    return word not in _NEVER and not token_of(word)


def _bare(most: int, also: str = "", allowed: frozenset[str] = frozenset()) -> Slot:
    """A quoted text, or up to `most` plain words."""

    def ends(words: Words, at: int) -> Iterator[int]:
        if at < len(words) and token_of(words[at]) and words[at][0] in also:
            yield at + 1
        for end in range(at, min(at + most, len(words))):
            if not _is_bare(words[end]) and words[end] not in allowed:
                return
            yield end + 1

    return ends


def _one_of(words: frozenset[str]) -> Slot:
    def ends(there: Words, at: int) -> Iterator[int]:
        if at < len(there) and there[at] in words:
            yield at + 1

    return ends


def _rank(words: Words, at: int) -> Iterator[int]:
    if at < len(words) and (words[at] in RANKS or re.fullmatch(r"\d+(?:st|nd|rd|th)", words[at])):
        yield at + 1


def _signs(words: Words, at: int) -> Iterator[int]:
    """A quoted text, or signs that are no letters."""
    yield from _tokens("L")(words, at)
    if at < len(words) and words[at] not in ",;§" and not any(map(str.isalnum, words[at])):
        yield at + 1


def _step(words: Words, at: int) -> Iterator[int]:
    """Which of so many: `other`, or a rank that is not the first."""
    if at < len(words) and words[at] == "other":
        yield at + 1
    elif at < len(words) and words[at] != "first":
        yield from _rank(words, at)


def _thing(words: Words, at: int) -> Iterator[int]:
    if at >= len(words) or not _WORD.fullmatch(words[at]) or words[at] in _NO_LINES:
        return
    if _is_bare(words[at]) or words[at] == "names":
        yield at + 1


def _list(of: str, joins: frozenset[str], most: int = 2) -> Slot:
    """At least two names with commas and a last `and` between them."""
    name = _tokens(of) if of else _bare(most, "L", _COLUMNS)

    def ends(words: Words, at: int, count: int = 1) -> Iterator[int]:
        for end in name(words, at):
            if count > 1:
                yield end
            after = end
            while after < len(words) and after - end < 2 and words[after] in joins:
                after += 1
                yield from ends(words, after, count + 1)

    return ends


def _slots() -> dict[str, Slot]:
    joins = frozenset((",", "and"))
    return {
        "needle": _bare(1, "LQT"),
        "quoted": _tokens("L"),
        "exact": _tokens("LQT"),
        "new": _tokens("N"),
        "replacement": _bare(1, "LQ"),
        "value": _bare(1, "LQT"),
        "said": _bare(1, "LQT", _ANSWERS),
        "rank": _rank,
        "verb": _one_of(frozenset(VERBS)),
        "step": _step,
        "within": _bare(2, "L", _COLUMNS),
        "level": _one_of(frozenset(LEVELS)),
        "levels": _one_of(frozenset(word for word in LEVELS if word.endswith("s"))),
        "value2": _bare(1),
        "column": _bare(2, "L", _COLUMNS),
        "column2": _bare(1, "L", _COLUMNS),
        "columns": _list("", joins),
        "files": _list("FN", joins),
        "count": _tokens("Q"),
        "nth": _tokens("O"),
        "ext": _tokens("E"),
        "ext2": _tokens("E"),
        "example": _tokens("X"),
        "out": _tokens("FN"),
        "src": _tokens("FN"),
        "one": _one_of(frozenset(("1", "one"))),
        "thing": _thing,
        "item": _thing,
        "needle2": _bare(1, "LQ"),
        "later": _tokens("T"),
        "earlier": _tokens("T"),
        "since": _tokens("T"),
        "until": _tokens("T"),
        "day": _tokens("T"),
        **{name: _tokens("Q") for name in _NUMBERS},
        "degree": _degree,
        "pick": _bare(2, "L", _COLUMNS),
        "by": _bare(2, "L", _COLUMNS),
        "key2": _bare(2, "L", _COLUMNS),
        "key": _bare(1, "L", _COLUMNS),
        "place": _one_of(frozenset(PLACES)),
        "text": _signs,
        "old": _bare(1, "LQT", _ANSWERS),
        "level2": _one_of(frozenset(LEVELS)),
        "levels2": _one_of(frozenset(word for word in LEVELS if word.endswith("s"))),
        "sep": _separator,
        "signs": _one_of(frozenset(SIGN_WORDS)),
        "signs2": _separator,
        "mark": _mark,
        "left": _tokens("F"),
        "right": _tokens("F"),
        "same": _tokens("F"),
        "everyword": _one_of(frozenset(("all", "any"))),
        "onlyword": _one_of(frozenset(("only", "just"))),
    }


#: Slots that hold one number.
_NUMBERS = (
    "limit start stop upto longer longest_min shorter longest_max gt_n ge_n lt_n le_n"
).split()
#: Signs by their names, of one or of several.
SIGN_WORDS = {
    name: sign
    for names, sign in (
        ("comma commas", ","),
        ("semicolon semicolons", ";"),
        ("colon colons", ":"),
        ("space spaces blank blanks", " "),
        ("tab tabs", "\t"),
        ("dash dashes hyphen hyphens", "-"),
        ("dot dots period periods", "."),
        ("underscore underscores", "_"),
        ("slash slashes", "/"),
        ("pipe pipes bar bars", "|"),
    )
    for name in names.split()
}
#: Signs of two words, which end a line.
_SIGNS_OF_TWO = {"question mark": "?", "exclamation mark": "!", "full stop": "."}


def _separator(words: Words, at: int) -> Iterator[int]:
    yield from _tokens("L")(words, at)
    yield from _one_of(frozenset(SIGN_WORDS))(words, at)


def sign_of(words: Words) -> str:
    """The sign that these words name, or ""."""
    return _SIGNS_OF_TWO.get(" ".join(words), "") or SIGN_WORDS.get(words[0] if words else "", "")


def _mark(words: Words, at: int) -> Iterator[int]:
    if " ".join(words[at : at + 2]) in _SIGNS_OF_TWO:
        yield at + 2
    elif at < len(words) and words[at] in SIGN_WORDS:
        yield at + 1


def _degree(words: Words, at: int) -> Iterator[int]:
    for size in (1, 2):
        if " ".join(words[at : at + size]) in DEGREES and at + size <= len(words):
            yield at + size


def _zh_name(words: Words, at: int) -> Iterator[int]:
    """A quoted name or up to six characters of Chinese, or one word in other letters."""
    if at < len(words) and token_of(words[at]) == "L":
        yield at + 1
    for end in range(at, min(at + 6, len(words))):
        word = words[end]
        if token_of(word) or word in ",;§的" or (not _ZH.match(word) and end > at):
            return
        yield end + 1
        if not _ZH.match(word):
            return


#: What may stand for the rows or lines of a file, and says nothing more of them.
_ZH_ITEMS = frozenset(
    """
    人 学生 同学 员工 职员 订单 商品 产品 客户 用户 顾客 水果 蔬菜 名字 姓名 城市 行 记录 数据
    条目 书 书籍 项目
    任务 货物 物品 国家 地区 部门 班级 课程 电影 歌曲 账单 日志 词条 内容 东西
    项 种类 类别 类型 颜色 动物 会员 成员
    老师 公司 供应商 交易 发票 车辆 设备 文章 单号 值 品种 店铺 电话 邮箱 地址 元素 对象
    """.split()
)
#: What narrows a text down, and so is no part of one that is looked for without quotes.
_ZH_NARROWS = re.compile(
    r"第[一二三四五六七八九十\d]|最[前后先]|首个|每[个行]|所有|全部|任何|[一两三几]个|[每各这那]"
)
_ZH_LEVELS = ("错误", "警告", "调试")


def _zh_item(words: Words, at: int) -> Iterator[int]:
    for end in _zh_name(words, at):
        if "".join(words[at:end]) in _ZH_ITEMS:
            yield end


def _zh_degree(words: Words, at: int) -> Iterator[int]:
    yield from (
        at + size
        for size in (2, 3)
        if "".join(words[at : at + size]) in DEGREES and words[at] == "最"
    )


def _zh_level(words: Words, at: int) -> Iterator[int]:
    if "".join(words[at : at + 2]) in _ZH_LEVELS:
        yield at + 2


def _zh_text(words: Words, at: int) -> Iterator[int]:
    for end in _zh_name(words, at):
        if not _ZH_NARROWS.search("".join(words[at:end])):
            yield end


def _zh_list(words: Words, at: int) -> Iterator[int]:
    def ends(start: int, count: int) -> Iterator[int]:
        for end in _zh_name(words, start):
            if count > 1:
                yield end
            if end < len(words) and words[end] in ("和", "、", "与", ",", "及"):
                yield from ends(end + 1, count + 1)

    return ends(at, 1)


def _zh_slots() -> dict[str, Slot]:
    joins = frozenset((",", "和", "、", "与", "及"))
    return {
        **_slots(),
        "needle": _tokens("L"),
        "replacement": _tokens("L"),
        "value": _zh_value,
        "bare": _zh_text,
        "bare2": _zh_text,
        "newtext": _zh_name,
        "item": _zh_item,
        "thing": _zh_item,
        "zlevel": _zh_level,
        "upto": _zh_value,
        "by": _zh_name,
        "degree": _zh_degree,
        "said": _zh_value,
        "pick": _zh_name,
        "column": _zh_name,
        "column2": _zh_name,
        "columns": _zh_list,
        "files": _list("FN", joins),
    }


def _zh_value(words: Words, at: int) -> Iterator[int]:
    yield from _tokens("LQT")(words, at)
    yield from _zh_name(words, at)


def all_patterns(lexicon: Lexicon) -> Sequence[str]:
    """Every pattern of a language, for a check that all can be read."""
    return [
        *(p for rule in lexicon.rules for p in rule.patterns),
        *(p for key in ("targets", "heads", "middles", "sources") for p in lexicon.patterns(key)),
        *(say for _, say in lexicon.remarks()),
    ]
