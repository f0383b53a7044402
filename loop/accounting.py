"""Conditions that a sentence states and that a guessed plan makes nothing of.

A likeness cannot show whether `after 10:00` or `twice` was minded. So each such word, and each
number, time and quoted text, must have left a trace in the plan's calls: a tool, a setting, a
value. What has left none is named, and never dropped without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from loop.binding.words import EMPTY
from loop.mentions import Kind, Mention
from openry.capability.definition import ToolDefinition

#: A call: the tool's name and its settings.
Call = tuple[str, Mapping[str, Any]]
#: Whether one call minds a condition.
Minds = Callable[[str, Mapping[str, Any]], bool]
_VALUES = (Kind.NUMBER, Kind.TIME, Kind.LITERAL)


def unaccounted(
    text: str,
    mentions: Sequence[Mention],
    calls: Iterable[Call],
    tools: Mapping[str, ToolDefinition] | None = None,
) -> tuple[str, ...]:
    """The words of `text` that none of `calls` makes anything of, as they stand.

    Args:
        tools: The tools of the calls. With them every English word must be one that a tool of the
            plan is asked with, a value, a name, or one that says nothing by itself.
    """
    plan = [(tool, args) for tool, args in calls]
    found = [*_unused_values(text, mentions, plan), *_unminded(text, mentions, plan)]
    found += _swollen(text, mentions, plan)
    if tools is not None:
        found += _unknown_words(text, mentions, plan, tools)
    return tuple(dict.fromkeys(words for _, words in sorted(found)))


def _unknown_words(
    text: str,
    mentions: Sequence[Mention],
    plan: Sequence[Call],
    tools: Mapping[str, ToolDefinition],
) -> Iterator[tuple[int, str]]:
    known = set(_FILLERS)
    for name, args in plan:
        known |= vocabulary(tools[name]) if name in tools else frozenset()
        known |= {_stem(word) for value in args.values() for word in _WORD.findall(str(value))}
    known |= {_stem(word) for m in mentions for word in _WORD.findall(m.text)}
    for match in _WORD.finditer(text):
        hidden = any(m.start <= match.start() < m.end for m in mentions)
        if not hidden and len(match.group()) > 1 and _stem(match.group()) not in known:
            yield match.start(), match.group()


def vocabulary(tool: ToolDefinition) -> frozenset[str]:
    """The stems of the words that a tool is described and asked with."""
    return _stems((tool.name, tool.description, *(each.request for each in tool.examples)))


@cache
def _stems(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_stem(word) for text in texts for word in _WORD.findall(text))


def _stem(word: str) -> str:
    """A word without its ending, in small letters: `sorted`, `sorts` and `sort` are one."""
    word = word.casefold()
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= 3), "")
    return word.removesuffix(ending)


_WORD = re.compile(r"[A-Za-z][A-Za-z']*")
_ENDINGS = ("ically", "ing", "edly", "ies", "ied", "es", "ed", "ly", "s", "e")
#: Words that say nothing by themselves, wherever they stand.
_FILLERS = frozenset(
    _stem(word)
    for word in (
        *EMPTY,
        *"""person people individual lot lots bunch couple combine merge single export give given
        gives tell content contents data info information details whole entire complete resulting
        final also version form format way currently current working directory again finally next
        afterwards together after before while once some thing things stuff thanks thank hello hi
        than am has let us whether above below inside outside please kindly simply really very
        else use using make making made produce create generate prepare build be been being do
        does did should must shall will may might also plus via per about over under across
        throughout place turn look see read open take go find""".split(),
    )
)


def _unused_values(
    text: str, mentions: Sequence[Mention], plan: Sequence[Call]
) -> Iterator[tuple[int, str]]:
    used = {each for _, args in plan for value in args.values() for each in _parts(value)}
    for m in mentions:
        if m.kind not in _VALUES or m.is_target or m.text.casefold() in used:
            continue
        if m.kind is Kind.NUMBER and (m.value == 1 or _names_column(text, m)):
            continue
        if any(m.text.casefold() in each for each in used if m.kind is not Kind.NUMBER):
            continue
        yield m.start, _with_word_before(text, m)


def _swollen(
    text: str, mentions: Sequence[Mention], plan: Sequence[Call]
) -> Iterator[tuple[int, str]]:
    """Guessed texts that go over into another part of the sentence: `omega but leave the first`."""
    known = {m.text for m in mentions}
    for _, args in plan:
        for key in ("needle", "replacement", "text", "value"):
            value = str(args.get(key, ""))
            if value and value not in known and _JOINS.search(value):
                yield max(text.find(value), 0), value


#: Words at which a text without quotes ends.
_JOINS = re.compile(
    r"(?i)(?<=\s)(?:but|and|or|then|unless|except|from|to|into|save|write|leave|keep|in)(?=\s)"
    r"|[,;，；。]|保存|写入|存为|另存|然后"
)


def _names_column(text: str, mention: Mention) -> bool:
    return bool(
        re.match(r"(?i)\s*(?:columns?|fields?|files?|tables?|goals?)\b", text[mention.end :])
    )


def _with_word_before(text: str, mention: Mention) -> str:
    before = re.search(r"[\w']+\s+$", text[: mention.start])
    return text[before.start() if before else mention.start : mention.end].strip()


def _parts(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list | tuple) else (value,):
        yield str(each).casefold()


def _unminded(
    text: str, mentions: Sequence[Mention], plan: Sequence[Call]
) -> Iterator[tuple[int, str]]:
    hidden = [m for m in mentions if m.kind in (Kind.FILE, Kind.NEW_FILE, Kind.LITERAL)]
    for pattern, minds in _CONDITIONS:
        for match in pattern.finditer(text):
            if any(m.start < match.end() and match.start() < m.end for m in hidden):
                continue
            if not any(minds(tool, args) for tool, args in plan):
                yield match.start(), " ".join(match.group().split())


def _tools(*names: str) -> Minds:
    return lambda tool, args: tool in names


def _set(key: str, *values: Any) -> Minds:
    return lambda tool, args: args.get(key) in values if values else bool(args.get(key))


def _either(*tests: Minds) -> Minds:
    return lambda tool, args: any(test(tool, args) for test in tests)


def _never(tool: str, args: Mapping[str, Any]) -> bool:
    return False


_COMPARES = _either(_set("op", "<", "<=", ">", ">="), _set("regex"))
_DESCENDS = _either(
    _set("reverse"),
    _set("descending"),
    _set("order", "value"),
    _tools("max_number", "reverse_lines", "longest_line"),
)
_EXTREME = _either(
    _set("function", "max", "min"),
    _set("count"),
    _tools("max_number", "min_number", "longest_line", "shortest_line", "sort_lines"),
)
_ORDERS = _either(
    _tools("sort_lines", "csv_sort", "find_files", "list_directory", "count_each_line"),
    _tools("csv_aggregate", "diff"),
    _set("sorted"),
)
_ONCE = _either(
    _tools("unique_lines", "count_unique_lines", "repeated_lines", "common_lines"),
    _tools("count_each_line", "csv_aggregate", "csv_concat"),
    _set("unique"),
)
_LEAVES_OUT = _either(
    _tools("remove_lines", "remove_empty_lines", "skip_lines", "lines_only_in_first"),
    _tools("csv_drop_columns", "unique_lines", "replace_text", "trim_lines", "diff"),
    _set("op", "!=", "not_contains", "not_empty"),
    _set("unique"),
    _set("regex"),
)
_ZH_LEAVES_OUT = _either(
    _tools("remove_lines", "remove_empty_lines", "skip_lines", "lines_only_in_first"),
    _tools("csv_drop_columns", "unique_lines"),
    _set("op", "!=", "not_contains", "not_empty"),
)
_PLACE = r"(?:first|second|third|fourth|fifth|last|\d+(?:st|nd|rd|th))"
_FIGURE = r"(?:sum|total|average|mean|median|minimum|maximum|smallest|largest|lowest|highest)"
_UNIT = r"(?:lines|words|characters|rows|bytes)"
_SORTS_BY = _either(_tools("csv_sort"), _set("group_by"), _set("order", "value"))
#: What states a condition, and the calls that mind it.
_CONDITIONS: tuple[tuple[re.Pattern[str], Minds], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), minds)
    for pattern, minds in (
        # when
        (
            r"\b(?:after|before|since|until|earlier than|later than)"
            r"\s+(?=\d|noon|midnight|\w+day\b)\S+",
            _COMPARES,
        ),
        (r"\bbetween\s+\S+\s+and\s+\S+", _either(_COMPARES, _tools("line_range", "join_lines"))),
        (r"\b(?:on|only) (?:week(?:days?|ends?)|\w+days)\b|\b(?:today|yesterday)(?:'s)?\b", _never),
        # how often and how many
        (r"\b(?:every|each) (?:second|third|fourth|fifth|other|\d+(?:st|nd|rd|th)) \w+", _never),
        (r"\b(?:odd|even|alternate)(?:ly)?(?:-numbered)?\b", _never),
        (r"\b(?:exactly|only|just) (?:once|one time)\b|\bsingle time\b", _tools("csv_concat")),
        (r"\b(?:exactly|only|just) (?:twice|two times)\b", _never),
        (r"\b(?:at least|more than|at most|less than) (?:once|twice)\b", _tools("repeated_lines")),
        (
            r"(?<!than )(?<!least )(?<!most )(?<!exactly )(?<!only )\btwice\b",
            _tools("repeated_lines"),
        ),
        (r"\b(?:each|every|them|it)(?: \w+){0,2} once\b|\bonly once\b|\bonce each\b", _ONCE),
        (
            r"\b(?:at least|at most|(?:no )?(?:more|less) than|fewer than)\b(?! once)(?! twice)",
            _COMPARES,
        ),
        (r"\bmost (?:often|common|frequent)(?:ly)?\b", _either(_set("descending"), _set("count"))),
        (r"\bleast (?:often|common|frequent)(?:ly)?\b", _never),
        # which
        (
            r"\bignor\w+ (?:the )?(?:upper|lower|capital|case|letter case)|\bcase[- ]insensitiv\w*"
            r"|\bregardless of (?:upper|lower|capital|case)|\bupper (?:or|and) lower[- ]case"
            r"|\bwhatever the case|\bcase (?:doesn't|does not) matter|不区分大小写|忽略大小写",
            _either(_set("ignore_case"), _tools("upper_case", "lower_case")),
        ),
        (
            r"\b(?:exact|whole|full|complete) words?\b|\b(?:exact|whole|full) lines?\b",
            _either(_set("where", "word", "whole"), _set("whole_word")),
        ),
        (
            r"\b(?:start|begin)(?:s|ning|ing)? (?:with|in)\b|开头",
            _either(
                _set("where", "start"), _set("op", "starts"), _set("regex"), _tools("add_to_lines")
            ),
        ),
        (
            r"\bend(?:s|ed|ing)? (?:with|in|on)\b|结尾",
            _either(
                _set("where", "end"), _set("op", "ends"), _set("regex"), _tools("add_to_lines")
            ),
        ),
        (
            r"\b(?:longer|shorter|bigger|larger|smaller|higher|lower|greater|older|younger|cheaper)"
            r" than\b",
            _COMPARES,
        ),
        (
            r"\b(?:empty|blank)\b|空行",
            _either(_tools("remove_empty_lines"), _set("op", "empty", "not_empty"), _set("regex")),
        ),
        (
            r"\b(?:distinct|different|unique|duplicates?|duplicated|repeated|dedup\w*)\b|去重|重复",
            _either(_ONCE, _tools("diff", "lines_only_in_first", "table_join")),
        ),
        (
            r"\b(?:both)\b(?=[^.;]{0,30}\band\b)",
            _either(
                _set("regex"),
                _set("other"),
                _set("paths"),
                _set("columns"),
                _set("side"),
                _tools("trim_lines", "filter_lines"),
            ),
        ),
        (
            r"\bexcept\b|\bbut (?:not|without)\b|\bother than\b|\bapart from\b|除了|以外",
            _LEAVES_OUT,
        ),
        (
            r"每隔|奇数|偶数|恰好|刚好|倒数第|第[二三四五]大|之间的?|以[后前]的|之[后前]的|两次|随机",
            _COMPARES,
        ),
        (
            r"\bby \w+ and "
            r"(?!sav|writ|stor|put|keep|output|export|print|then )\w+ (?=(?:in)?to\b|in\b)",
            _never,
        ),
        (r"\b(?:and )?then by\b|\bthen (?:on|after) the\b", _never),
        (
            r"\bin (?:only |just )?the (?:first|last|second|third) (?:line|row)s?\b",
            _tools("first_lines", "last_lines", "line_range"),
        ),
        (r"\binstead\b|\brather than\b|\bin place of\b", _tools("replace_text")),
        # what to take away, and what is asked for beside something else
        (
            r"\b(?:delete|remove|drop|discard|erase|cut|strip)(?: (?!to\b|in\b|from\b)[\w-]+){0,4}"
            r" (?:lines?|rows?|words?)\b",
            _either(_LEAVES_OUT, _COMPARES),
        ),
        (r"\b(?:after|before) the (?:first|last)\b", _tools("skip_lines", "line_range")),
        (
            rf"\b{_PLACE}(?: \w+)?(?: lines?| rows?)? and (?:the )?(?:last|first)\b(?! names?\b)"
            r"(?! \w+ (?:columns?|fields?)\b)(?! (?:columns?|fields?)\b)",
            _never,
        ),
        (rf"\b{_PLACE} and (?:the )?{_PLACE} (?:columns?|fields?)\b", _never),
        (rf"\b{_FIGURE} and (?:the )?{_FIGURE}\b", _never),
        (rf"\b{_UNIT}(?:,? and| as well as| &) (?:the )?(?:number of )?{_UNIT}\b", _never),
        (
            r"\b(?:without|not containing|not having) \S+(?: and| or|,) (?:without|not)\b",
            _set("regex"),
        ),
        # what only some lines are, or are not
        (
            r"\b(?:after|before|until|up to|following|preceding|above|below) (?:the |a )?"
            r"(?:lines?|rows?|words?|headings?|entry|section)\b",
            _tools("skip_lines", "line_range", "add_to_lines"),
        ),
        (
            r"\bbut (?!keep (?:the |their |its )?(?:original |same )?(?:order|head))"
            r"(?:leave|keep|only|skip)\b",
            _never,
        ),
        (
            r"\b(?:start|begin|end|contain)\w* [^,;]{1,40}\band "
            r"(?:start|begin|end|contain|hav|not)\w*",
            _never,
        ),
        (
            r"\b(?:second|third|fourth|fifth|\d+(?:st|nd|rd|th)) [\w']+ (?:line|row|entry)\b"
            r"|\b(?:replac|chang|swap|substitut)\w+ (?:only )?the (?:first|last|second|third)\b"
            r"|前\s*\S{1,3}行[中里]",
            _never,
        ),
        (r"\b(?:leav|exclud|omitt|skipp)ing (?:out )?", _LEAVES_OUT),
        (
            r"\bwithout (?!regard|paths?|folders?|case|(?:the |their |its )?head)",
            _either(_LEAVES_OUT, _tools("csv_columns", "csv_column", "unique_lines")),
        ),
        (r"\b(?:like|such as|for example|e\.g\.),? \d", _never),
        (
            r"每(?!行|一行)[个种类位名家]",
            _either(_set("group_by"), _tools("count_each_line", "unique_lines")),
        ),
        (r"\bunless\b|\bneither\b|\bnor\b", _never),
        (
            r"\b(?:rows?|records?|entries|lines) (?:with|that ha(?:ve|s)) the "
            r"(?:\w+est|minimum|maximum|most|least)\b",
            _either(_tools("csv_sort", "longest_line", "shortest_line", "sort_lines")),
        ),
        (
            r"\b(?:with|of) the (?:\w+est|most|least) [\w ]{1,20} (?:of|for|per|in) "
            r"(?:each|every)\b",
            _never,
        ),
        (
            r"\b(?:highest|largest|biggest|greatest|most \w+|newest|latest)(?: \w+){0,2} "
            r"(?:first|on top|at the top)\b|\bfrom (?:high|large|big|new|most)\w*(?: \w+)? to\b",
            _DESCENDS,
        ),
        (
            r"\b(?:highest|largest|biggest|greatest|lowest|smallest|oldest|youngest|newest|latest"
            r"|earliest|cheapest|shortest|longest|heaviest|lightest|fastest|slowest)\b"
            r"(?!(?: \w+){0,2} (?:first|on top|at the top)\b)",
            _either(_EXTREME, _DESCENDS, _ORDERS),
        ),
        (
            r"\b(?:which|what|who)(?: \w+){1,6} (?:is|has|have|was) the (?:\w+est|most|least)\b",
            _EXTREME,
        ),
        (
            r"\b(?:first|last) (?:\w+ )?columns?\b",
            _either(_set("column"), _set("columns"), _tools("csv_headers")),
        ),
        (
            r"\bwhose \w+|\bwho (?:is|are|ha|live|work|come|earn)\w*",
            _either(_tools("csv_filter", "json_filter", "csv_sort", "filter_lines")),
        ),
        (
            r"低于|高于|大于|小于|超过|不足|至少|至多|不少于|不多于|多于|少于|早于|晚于|\d分?以[上下]",
            _COMPARES,
        ),
        (
            r"不是|不等于|不含|不包含|不包括|没有|不带|(?<![删去清移])除(?!号|法)|排除|不以",
            _ZH_LEAVES_OUT,
        ),
        (
            r"最[高低大小多少][^，,]{0,6}(?:删除|去掉)|(?:删除|去掉)[^，,]{0,8}最[高低大小多少]",
            _never,
        ),
        (r"从高到低|从大到小|由高到低|由大到小|降序|从多到少|倒序|从晚到早|从新到旧", _DESCENDS),
        (r"从低到高|从小到大|由低到高|由小到大|升序|从少到多|从早到晚", _ORDERS),
        (r"只出现|仅出现|出现一次|最[高大低小多少]的?(?!值)", _either(_EXTREME, _DESCENDS)),
        (
            r"每[个种类一]?(?!行)[\u4e00-\u9fff]{1,4}的",
            _either(_set("group_by"), _tools("count_each_line")),
        ),
        (
            r"(?<!从)第[\d一二三四五六七八九十]+(?:个|次|列)",
            _either(_set("column"), _tools("csv_column")),
        ),
        # in which order
        (
            r"\bby (?:the |their |its )?(?:(?:last|first|second|third|family) "
            r"(?:name|word|letter|part)s?|surnames?|lengths?|size|dates?|time|age)\b|按长度",
            _SORTS_BY,
        ),
        (
            r"\b(?:sorted|alphabetical(?:ly)?|ascending|descending|in order)\b|排序|升序|降序",
            _ORDERS,
        ),
        (r"\b(?:random\w*|shuffl\w*)\b", _never),
        # which place
        (
            r"\b(?:second|third|fourth|fifth)[- ]"
            r"(?:largest|smallest|highest|lowest|last|longest|biggest|most)\b",
            _never,
        ),
        (
            r"\b(?:first|last) (?:word|letter|field|character)s?\b",
            _tools("text_column", "csv_column", "csv_sort"),
        ),
    )
)
