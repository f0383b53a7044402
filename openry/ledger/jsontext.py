"""Text and JSON as every database takes them. `json` is imported by whoever needs it: 10 ms."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_encode: Callable[[Any], str] | None = None


def clean(text: str) -> str:
    """`text` without what UTF-8 or PostgreSQL refuse: lone surrogates and NULs, made visible.

    >>> clean("a\\udcff\\0b")
    'a\\\\udcff␀b'
    """
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "␀")


def to_json(value: Any) -> str:
    """`value` as JSON that reads well in any language and always encodes as UTF-8."""
    global _encode
    if _encode is None:  # made once: that takes longer than most values do
        from json import JSONEncoder

        _encode = JSONEncoder(ensure_ascii=False).encode
    return clean(_encode(value))


def from_json(text: str) -> Any:
    """What `to_json` wrote."""
    if text == "{}":
        return {}
    import json

    return json.loads(text)
