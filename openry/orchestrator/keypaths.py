"""Paths of keys and list places into plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openry.errors import BadFileError

KeyPath = Sequence[str | int] | str


def parts(key_path: KeyPath) -> tuple[str | int, ...]:
    path = (key_path,) if isinstance(key_path, str) else tuple(key_path)
    if not path:
        raise ValueError("an edit names a key")
    return path


def at(data: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        data = data[part]
    return data


def put(data: Any, path: Sequence[str | int], value: Any) -> None:
    """Set `value` at `path`; mappings on the way are made, list places must be next in line."""
    for here, part in enumerate(path[:-1]):
        inner = data.get(part) if isinstance(data, dict) else _item(data, part)
        if not isinstance(inner, dict | list):
            inner = [] if isinstance(path[here + 1], int) else {}
            _store(data, part, inner)
        data = inner
    _store(data, path[-1], value)


def _item(data: Any, place: str | int) -> Any:
    fits = isinstance(data, list) and isinstance(place, int) and 0 <= place < len(data)
    return data[place] if fits else None


def _store(data: Any, part: str | int, value: Any) -> None:
    if isinstance(data, dict) and isinstance(part, str):
        data[part] = value
    elif isinstance(data, list) and isinstance(part, int) and 0 <= part <= len(data):
        data[part : part + 1] = [value]
    else:
        raise BadFileError(f"there is no place `{part}` to put a value at")
