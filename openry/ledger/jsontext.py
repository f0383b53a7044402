"""Text and JSON as every database takes them. `json` is imported by whoever needs it: 10 ms."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def clean(text: str) -> str:
    """`text` without what UTF-8 or PostgreSQL refuse: lone surrogates and NULs, made visible.

    >>> clean("a\\udcff\\0b")
    'a\\\\udcff␀b'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "␀")


def to_json(value: Any) -> str:
    """`value` as JSON that reads well in any language and always encodes as UTF-8."""
    import json

    return clean(json.dumps(value, ensure_ascii=False))


def from_json(text: str) -> Any:
    """What `to_json` wrote."""
    if text == "{}":
        return {}
    import json

    return json.loads(text)
