"""Cut a task into fragments, one operation each. Every way of cutting is a candidate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from loop.mentions import Mention

MAX_BOUNDARIES = 7

#: Places where a new operation may begin; the surer ones first.
_BOUNDARIES = (
    (
        1.0,
        re.compile(
            r"\s*[;；。\n]+\s*(?:(?:and\s+)?(?:then|finally|next|afterwards|also)\b,?\s*)?", re.I
        ),
    ),
    (
        1.0,
        re.compile(
            r"(?<=[\w'\"`)])[.!?]\s+(?=\S)(?:(?:then|finally|next|afterwards|also)\b,?\s*)?", re.I
        ),
    ),
    (
        0.9,
        re.compile(
            r",?\s*\b(?:and\s+)?(?:then|after that|afterwards|finally|lastly|next)\b,?\s+", re.I
        ),
    ),
    (
        0.9,
        re.compile(
            r"[，,、]?\s*(?:然后|接着|之后|随后|最后(?!\s*[一二两三四五六七八九十\d])|再(?=[把将从统按排对取保写存用去求算数计])|并且?(?=[把将从统按排对取求算数计]))\s*"
        ),
    ),
    (0.6, re.compile(r",\s*(?:and|plus|as well as)\s+", re.I)),
    (0.5, re.compile(r"[，,]\s*")),
    (0.4, re.compile(r"\s+(?:and|plus|&)\s+", re.I)),
)
#: A fragment made of nothing but this only says where to put what the one before produced.
_SAVING = re.compile(
    r"(?i)^(?:(?:please|and|then|also|just|now)\s+)*(?!(?:count|list|total|sum|number|find)\b)"
    r"(?:save|store|write|put|record|output|place|dump|export|keep|print|send|call|name|report|give)?\s*"
    r"(?:me\s+)?(?:(?:it|them|that|those|these|this|the|all|one|results?|output|outcome|answer|number"
    r"|total|count|figure|list|rest|lines?|copy|value|file|matches|ones|found|new|only|just|single)\s*)*"
    r"(?:down|out)?\s*(?:to|into|in|as|under|called|named|at)?\s*(?:(?:the|a|new|file|called|named)\s*)*$"
)
_SAVING_ZH = re.compile(
    r"^(?:请|并|再|然后|把|将|结果|它们?|其|内容|数字|个数|数量|行数|总数|保存|存储|写入|写|存|放|输出|记录|导出"
    r"|到|在|进|为|成|入|里|中|文件|新|下来|的|一个|叫|名为)*$"
)
#: Nothing but an order or a form: it describes what the fragment before it produces.
_DESCRIBING = re.compile(
    r"(?i)^(?:(?:with|and|the|most|least|in|from|to|any|either|of|a|an|its|by|mix|mixed)\s+)*"
    r"(?:(?:larg|high|bigg|great|small|low|new|old|young|late|cheap|dear|short|long)(?:est|e?r)"
    r"|biggest|latest|best|worst|frequent|common|expensive|descending|ascending|alphabetical"
    r"|numerical|reverse|capitals?|upper|lower|small|large|big|high|low|z|a|one)\b"
    r"(?:\s+(?:number|value|one|ones|count|score|first|last|on|at|the|top|bottom|order|to|or|and|per"
    r"|line|case|letters?|small|large|big|high|low|lower|upper|capitals?|a|z"
    r"|(?:small|low|high|larg|bigg)(?:est)))*$"
)
_ORDERED = re.compile(
    r"(?i)\b(?:first|last|top|bottom|order)$|\bto\s+\w+$"
    r"|\b(?:any|mix|mixed|either)\b.*\b(?:case|letters?|capitals?)$"
)


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place `[start, end)` between two fragments; `weight` says how sure a new goal begins."""

    start: int
    end: int
    weight: float


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part `[start, end)` of the task. `sequel` is true when a word such as `then` led to it."""

    start: int
    end: int
    sequel: bool = False


def boundaries(text: str, mentions: Sequence[Mention]) -> tuple[Boundary, ...]:
    """Where the task may be cut, outside of every mention; at most the seven surest."""
    found: list[Boundary] = []
    for weight, pattern in _BOUNDARIES:
        for match in pattern.finditer(text):
            start, end = match.span()
            if start == 0 or end >= len(text.rstrip()):
                continue
            if any(start < m.end and end > m.start for m in mentions):
                continue
            if any(start < b.end and end > b.start for b in found):
                continue
            found.append(Boundary(start, end, weight))
    surest = sorted(found, key=lambda b: -b.weight)[:MAX_BOUNDARIES]
    return tuple(sorted(surest, key=lambda b: b.start))


def segmentations(
    text: str, cuts: Sequence[Boundary]
) -> Iterator[tuple[tuple[Fragment, ...], float]]:
    """Every way to cut at some of `cuts`, with a log-weight: a sure cut left out costs most."""
    for size in range(len(cuts) + 1):
        for chosen in combinations(cuts, size):
            weight = sum(
                _log_odds(cut.weight) if cut in chosen else -_log_odds(cut.weight) for cut in cuts
            )
            yield _fragments(text, chosen), weight


def _log_odds(weight: float) -> float:
    return {1.0: 0.6, 0.9: 0.5, 0.6: 0.1, 0.5: 0.0, 0.4: -0.1}[weight]


def _fragments(text: str, chosen: Sequence[Boundary]) -> tuple[Fragment, ...]:
    starts = [0, *(cut.end for cut in chosen)]
    ends = [*(cut.start for cut in chosen), len(text.rstrip().rstrip(".。!"))]
    sequels = [False, *(cut.weight >= 0.9 for cut in chosen)]
    return tuple(map(Fragment, starts, ends, sequels))


def belongs_to_last(words: str) -> bool:
    """Whether a fragment, its mentions taken out, only says where to put something, or how.

    >>> [belongs_to_last(w) for w in ("save it as", "highest first", "the largest to", "sort it")]
    [True, True, False, False]
    """
    words = re.sub(r"[\s,.:：，。]+", " ", words).strip()
    saves = _SAVING.match(words) or _SAVING_ZH.match(words.replace(" ", ""))
    return bool(saves or _describes(words))


def _describes(words: str) -> bool:
    """`highest first`, but not a bare `the highest`, which is something to find."""
    return bool(_DESCRIBING.match(words) and _ORDERED.search(words))
