"""Numbers, switches and choices: what a parameter's own cues and the input's look decide."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from loop.binding.needles import sign_or_word
from loop.binding.scene import Choice, Slot, is_number
from loop.choosing import veiled
from loop.mentions import Kind
from openry.capability.definition import Parameter

#: What a condition becomes where the rows that meet it are to go.
OPPOSITE = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "contains": "not_contains",
    "not_contains": "contains",
    "empty": "not_empty",
    "not_empty": "empty",
}
_DROPPING = re.compile(
    r"""(?ix)\b(?:drop|discard|remove|delete|exclude|throw\ (?:away|out)|leave\ out|get\ rid\ of
    |filter\ out|take\ out|without)\b|删除|去掉|移除|剔除"""
)
_SINGLE = re.compile(
    r"(?i)\b(?:first|last|top|final|bottom|closing|opening)\s+(?:line|row|entry|record|one)\b"
    r"|第一行|最后一行|首行|末行"
)


def counts(slot: Slot) -> Iterator[Choice]:
    """Whole numbers that are said and allowed, then the one of `first line`."""
    most = slot.parameter.maximum
    for mention in slot.scene.of(Kind.NUMBER):
        allowed = isinstance(mention.value, int) and mention.value > 0
        if allowed and (most is None or float(mention.value) <= most):
            yield Choice(mention.value, frozenset({mention.start}))
    single = _SINGLE.search(slot.scene.text)
    if single:
        counted = slot.scene.of(Kind.ORDINAL, Kind.NUMBER)
        start, end = single.span()
        yield Choice(1, frozenset(m.start for m in counted if start <= m.start < end))


def flag(slot: Slot) -> Iterator[Choice]:
    """A switch, when a cue asks for it; sorting looks at the input for numbers."""
    parameter = slot.parameter
    if _compares_numbers(parameter) and _only_numbers(slot):
        yield Choice(True)
        yield Choice(None, cost=0.2)
        return
    said = _said(slot)
    for value in ("true", "false"):
        if any(re.search(cue, said, re.IGNORECASE) for cue in parameter.cues.get(value, [])):
            if (value == "true") is not bool(parameter.default):
                yield Choice(value == "true")
                yield Choice(None, cost=0.25)
            return


def _said(slot: Slot) -> str:
    """What a flag's cues look at: remarks on form count only for flags about form."""
    cues = [cue for cues in slot.parameter.cues.values() for cue in cues]
    about_form = any(re.search(r"header|heading", cue) for cue in cues)
    return veiled(slot.scene.text) if about_form else slot.scene.veiled


def _compares_numbers(parameter: Parameter) -> bool:
    """Whether a flag switches from letters to numbers, by its own cue."""
    cues = parameter.cues.get("true", [])
    return any(re.search(cue, "numerically", re.IGNORECASE) for cue in cues)


def _only_numbers(slot: Slot) -> bool:
    lines = [line for line in slot.heads.split("\n") if line.strip()]
    return bool(lines) and all(map(is_number, lines))


def choice(slot: Slot) -> Iterator[Choice]:
    """One of several, by the cues that the text matches, the first said first."""
    parameter, said = slot.parameter, slot.scene.veiled
    values = _cued(parameter, said)
    turned = set(OPPOSITE) <= {str(each) for each in parameter.enum or ()}
    turned = turned and bool(_DROPPING.search(said))
    if turned and not values:
        values = [str(parameter.default)]
    for rank, value in enumerate(values):
        meant = OPPOSITE.get(value, value) if turned else value
        yield Choice(_typed(parameter, meant), cost=0.1 * rank)


def _cued(parameter: Parameter, said: str) -> list[str]:
    """The values whose cues match, as they stand in the text; of overlapping ones the longest."""
    spans = {
        value: m.span()
        for value, cues in parameter.cues.items()
        for cue in reversed(cues)
        if (m := re.search(cue, said, re.IGNORECASE))
    }

    def outdone(start: int, end: int) -> bool:
        return any(start < e and end > s and e - s > end - start for s, e in spans.values())

    kept = [(span, value) for value, span in spans.items() if not outdone(*span)]
    return [value for _, value in sorted(kept)]


def _typed(parameter: Parameter, value: str) -> Any:
    return next((each for each in parameter.enum or () if str(each) == value), value)


def delimiter(slot: Slot) -> Iterator[Choice]:
    """A quoted sign, a sign by its name, or what the cues say."""
    for m in slot.scene.of(Kind.LITERAL):
        if len(m.text) <= 3 and not m.text.isalnum():
            yield Choice(m.text, frozenset({m.start}))
    yield from choice(slot)
    if not slot.parameter.cues:
        for word in re.findall(r"[a-z]+|[逗分]号|空格|制表符", slot.scene.veiled.casefold()):
            if sign_or_word(word) != word:
                yield Choice(sign_or_word(word), cost=0.02)
