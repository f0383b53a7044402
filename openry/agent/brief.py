"""Earlier turns in short, so that a conversation fits a model's window. No model is needed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from openry.agent.actions import all_of
from openry.llm import Message

_VARYING = re.compile(r"0x[0-9a-f]+|\d+|[0-9a-f]{8,}")
_TROUBLE = re.compile(r"error|fail|denied|not found|no such|exception|traceback|warn|refused", re.I)
#: A line that is marked like this stays, whatever is left out: `keep: the key is in vault 7`.
_KEPT = re.compile(r"^\W*keep\b\s*[:!]", re.I)
_HEAD = re.compile(r"^\s*exit -?\d+: ")
_COMMAND_CHARS = 120
_LONGEST_LINE = 160


@lru_cache(maxsize=4096)
def brief(answer: str, chars: int, words: tuple[str, ...] = ()) -> str:
    """How a call went and its telling lines, in at most about `chars` characters.

    Telling is what is marked to be kept, then trouble, what the task speaks of, and lines unlike
    the others; of lines that are alike, the first and the last.

    >>> brief('{"exit_code": 1, "stdout": "row 1\\\\nrow 2\\\\n", "stderr": "disk full"}', 20)
    'exit 1: row 1\\n…\\ndisk full'
    """
    head, text = _parts(answer)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen: set[int] = set()
    left, weights = chars, _weights(lines, words)
    for place in sorted(range(len(lines)), key=weights.__getitem__, reverse=True):
        size = min(len(lines[place]), _LONGEST_LINE) + 1
        if size <= left or (chars and not chosen) or _KEPT.match(lines[place]):
            chosen.add(place)
            left -= size
    return head + "\n".join(_in_order(lines, sorted(chosen)))


def _parts(answer: str) -> tuple[str, str]:
    """What stands before, and the text; an answer of the hand, or any other."""
    try:
        said = json.loads(answer)
        return f"exit {said['exit_code']}: ", f"{said['stdout']}\n{said['stderr']}"
    except (ValueError, TypeError, KeyError, RecursionError):
        return "", answer


def _weights(lines: Sequence[str], words: tuple[str, ...]) -> list[float]:
    shapes = [_VARYING.sub("#", line) for line in lines]
    counts = Counter(shapes)
    weights = []
    for place, (line, shape) in enumerate(zip(lines, shapes, strict=True)):
        weight = 4.0 / counts[shape]
        weight += 100.0 * bool(_is_kept(line)) + 5.0 * bool(_TROUBLE.search(line))
        lower = line.lower()
        weight += 2.0 * min(3, sum(word in lower for word in words))
        weight += 1.0 * (place in (0, len(lines) - 1))
        weights.append(weight)
    return weights


def _in_order(lines: Sequence[str], places: Sequence[int]) -> Iterator[str]:
    before = -1
    for place in places:
        if place > before + 1:
            yield "…"
        line = lines[place]
        is_whole = len(line) <= _LONGEST_LINE or _KEPT.match(line)
        yield line if is_whole else f"{line[:_LONGEST_LINE]} …"
        before = place
    if places and places[-1] < len(lines) - 1:
        yield "…"


def digest(turns: Sequence[Message], chars: int, words: tuple[str, ...] = ()) -> str:
    """One message in the place of many: what was done last, and the telling lines of all.

    A line that is unlike all others of all turns is telling; what is marked to be kept is always
    in it. At most about `chars` characters, half of them for what was done.
    """
    lines: list[tuple[int, str]] = []
    done: list[tuple[int, str]] = []
    for place, message in enumerate(turns):
        if message.role == "assistant":
            done += [(place, f"- {_one_line(each)}") for each in deeds(message)]
            lines += [(place, line) for line in kept([message])]
        else:
            head, text = _parts(message.text)
            said = [line.strip() for line in text.splitlines() if line.strip()]
            lines += [(place, f"  {head}{line}") for line in said]
    weights = _weights([line for _, line in lines], words)
    chosen = _fitting(lines, weights, chars // 2)
    chosen += _fitting(done, [float(place) for place, _ in done], chars - chars // 2)
    shown = (line if _is_kept(line) else _cut(line) for _, line in sorted(chosen, key=_place))
    return "\n".join(["[openry] what was done before, in short:", *shown])


def _fitting(
    lines: Sequence[tuple[int, str]], weights: Sequence[float], chars: int
) -> list[tuple[int, str]]:
    """The weightiest lines that fit, in their order; those to be kept whether they fit or not."""
    chosen, left = [], chars
    for place in sorted(range(len(lines)), key=weights.__getitem__, reverse=True):
        size = min(len(lines[place][1]), _LONGEST_LINE) + 1
        if size <= left or _is_kept(lines[place][1]):
            chosen.append(place)
            left -= size
    return [lines[place] for place in sorted(chosen)]


def _place(line: tuple[int, str]) -> int:
    return line[0]


def _is_kept(line: str) -> bool:
    return bool(_KEPT.match(_HEAD.sub("", line)))


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} …"


def kept(turns: Sequence[Message]) -> list[str]:
    """The lines of these turns that are marked to be kept, each once."""
    lines = (line.strip() for turn in turns for line in _parts(turn.text)[1].splitlines())
    return list(dict.fromkeys(line for line in lines if _is_kept(line)))


def deeds(message: Message) -> list[str]:
    """The actions of a turn as they were asked for."""
    if message.tool_calls:
        return [str(call.arguments) for call in message.tool_calls]
    try:
        said = json.loads(message.text)
    except (ValueError, RecursionError):
        return [message.text]
    if not isinstance(said, Mapping):
        return [message.text]
    return [_deed(one) for one in all_of(said)]


def _deed(one: Any) -> str:
    """A command alone, anything else as it was said."""
    command = one.get("command") if isinstance(one, Mapping) else None
    return str(command or json.dumps(one))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _COMMAND_CHARS else f"{line[:_COMMAND_CHARS]} …"
