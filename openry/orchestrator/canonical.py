"""Workflows written the one way we write them: stable key order, block style, one key a line.

The loop writes a file so at its birth; from then on `editing` touches only what an edit changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from openry.orchestrator import yaml12
from openry.orchestrator.spec import BigStep, Composition, SubStep, WorkflowSpec

WIDTH = 96
_PLAIN_START = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`]|[-?:](?=[^\s,\[\]{}])")
_WORDS_ELSEWHERE = re.compile(r"(?i:y|n|yes|no|on|off)|[-+]?\d[\d:._-]*|<<|=")
_CONTROL = re.compile(
    "[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U000effff]"
)


def _order(model: Any) -> dict[str, int]:
    return {name: place for place, name in enumerate(model.model_fields)}


_STEP_ORDER = _order(SubStep)
_TOP_ORDER = _order(WorkflowSpec) | {"big_steps": 1000}
_BIG_STEP_ORDER = _order(BigStep)
_COMPOSITION_ORDER = _order(Composition)


def dump(workflow: Mapping[str, Any]) -> str:
    """A workflow or composition as canonical text. Reading it back gives equal data."""
    order = _COMPOSITION_ORDER if "big_steps" in workflow else _TOP_ORDER
    lines: list[str] = []
    for key, value in ordered(workflow, order).items():
        if key in ("sub_steps", "big_steps") and isinstance(value, list | tuple) and value:
            lines.append(f"{key}:")
            for place, step in enumerate(value):
                lines += [""] if place else []
                lines += item_lines(ordered_step(step), 2)
        else:
            lines += entry_lines(str(key), value, 0)
    return "\n".join(lines) + "\n"


def ordered(data: Mapping[str, Any], order: Mapping[str, int]) -> dict[str, Any]:
    """`data` with known keys in their order, then the others as they stand."""
    return dict(sorted(data.items(), key=lambda item: order.get(str(item[0]), 999)))


def ordered_step(step: Any) -> Any:
    if not isinstance(step, Mapping):
        return step
    return ordered(step, _BIG_STEP_ORDER if "ref" in step else _STEP_ORDER)


def step_rank(key: str) -> int:
    """Where a sub step's key belongs among the others."""
    return _STEP_ORDER.get(key, 999)


def entry_lines(key: str, value: Any, indent: int) -> list[str]:
    """`key: value` at `indent`, over as many lines as it takes."""
    head = " " * indent + scalar(key, key=True) + ":"
    inline = inline_text(value, WIDTH - len(head))
    if inline is not None:
        return [f"{head} {inline}"]
    if isinstance(value, str):
        marker, *body = literal(value, indent + 2)
        return [f"{head} {marker}", *body]
    return [head, *block_lines(value, indent + 2)]


def item_lines(value: Any, indent: int) -> list[str]:
    """`- value` at `indent`."""
    head = " " * indent + "-"
    inline = inline_text(value, WIDTH - len(head), flow=not isinstance(value, list | tuple))
    if inline is not None:
        return [f"{head} {inline}"]
    if isinstance(value, str):
        marker, *body = literal(value, indent + 2)
        return [f"{head} {marker}", *body]
    first, *rest = block_lines(value, indent + 2)
    return [f"{head} {first[indent + 2 :]}", *rest]


def block_lines(value: Any, indent: int) -> list[str]:
    """A mapping or list that is not empty, in block style. A `type` stands first."""
    if isinstance(value, Mapping):
        value = ordered(value, {"type": 0})
        return [
            line for key, inner in value.items() for line in entry_lines(str(key), inner, indent)
        ]
    return [line for inner in value for line in item_lines(inner, indent)]


def inline_text(value: Any, room: int, *, flow: bool = True) -> str | None:
    """`value` on one line, or None when it belongs on several."""
    if isinstance(value, Mapping):
        return "{}" if not value else None
    if isinstance(value, list | tuple):
        return flow_list(value, room) if flow or not value else None
    return None if isinstance(value, str) and _wants_block(value) else scalar(value)


def flow_list(items: Sequence[Any], room: int) -> str | None:
    """`[a, b]` for a short list of scalars; an empty one always fits."""
    if not items:
        return "[]"
    if any(isinstance(item, Mapping | list | tuple) for item in items):
        return None
    text = "[" + ", ".join(scalar(item, flow=True) for item in items) + "]"
    return text if len(text) < room and "\n" not in text else None


def scalar(value: Any, *, key: bool = False, flow: bool = False) -> str:
    """A scalar on one line, quoted only where it must be."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return _float(float(value))
    text = _whole(str(value))
    if _is_plain(text, key=key, flow=flow):
        return text
    if "\n" not in text and not _CONTROL.search(text):
        return "'" + text.replace("'", "''") + "'" if '"' in text or "\\" in text else f'"{text}"'
    return _escaped(text)


def _whole(text: str) -> str:
    """Lone surrogates cannot be written to a file."""
    return text.encode("utf-8", "replace").decode() if re.search("[\ud800-\udfff]", text) else text


def _float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    text = repr(value)
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


def _is_plain(text: str, *, key: bool, flow: bool) -> bool:
    if not text or text != text.strip() or _CONTROL.search(text) or "\n" in text:
        return False
    if not _PLAIN_START.match(text) or ": " in text or " #" in text or text.endswith(":"):
        return False
    if (flow or key) and any(c in ",[]{}" for c in text):
        return False
    if flow and ":" in text:
        return False
    ours = isinstance(yaml12.resolve(text), str)
    return ours and not _WORDS_ELSEWHERE.fullmatch(text) and not text.startswith(("---", "..."))


def _escaped(text: str) -> str:
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    parts = []
    for c in text:
        if c in named:
            parts.append(named[c])
        elif _CONTROL.match(c):
            parts.append(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}")
        else:
            parts.append(c)
    return '"' + "".join(parts) + '"'


def _wants_block(text: str) -> bool:
    """Whether a text reads better, and can be written, as a `|` block."""
    body = text.removesuffix("\n")
    if "\n" not in text or not body or _CONTROL.search(text) or _whole(text) != text:
        return False
    if body.endswith("\n"):  # blank lines behind it would count: no block can part from the next
        return False
    lines = body.split("\n")
    return lines[0][:1] not in ("", " ") and not any(line and not line.strip() for line in lines)


def literal(text: str, indent: int) -> list[str]:
    """`|` or `|-`, and the indented lines."""
    body = text.removesuffix("\n")
    pad = " " * indent
    lines = [pad + line if line else "" for line in body.split("\n")]
    return ["|" if body != text else "|-", *lines]
