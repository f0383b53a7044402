"""Edits of a workflow's text that leave every other line as it was.

An edit is cut into the text where the value stands, found by its id and keys, and the result is
read again: it must say exactly what was asked, else nothing is changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from openry.errors import BadFileError, NotFoundError
from openry.orchestrator import yaml12
from openry.orchestrator.keypaths import KeyPath, at, parts, put
from openry.orchestrator.splice import Splice
from openry.orchestrator.yaml12 import Document, plain


def load_document(text: str, file: str = "<text>") -> Document:
    """The text with the place of every value.

    Raises:
        BadFileError: It is no YAML, or has no list of `sub_steps`.
    """
    document = yaml12.compose(text, file)
    if document.root is None or document.problems:
        raise BadFileError("", tuple(map(str, document.problems)))
    steps = yaml12.child(document.root, "sub_steps")
    if steps is None or steps.items is None:
        raise BadFileError(f"{file}: no list of `sub_steps`")
    return document


def set_value(text: str, step_id: str, key_path: KeyPath, value: Any) -> str:
    """Give a step's key a value. A new key goes where its place is among the others.

    `key_path` is a key, or keys and list places: `("agent", "model")`, `("validation", 0, "path")`.
    A list place one past the end appends.
    """
    path = parts(key_path)

    def change(step: dict[str, Any]) -> None:
        put(step, path, value)

    return _edit_step(text, step_id, change, lambda splice, here: splice.put(here, path, value))


def remove_value(text: str, step_id: str, key_path: KeyPath) -> str:
    """Take a step's key, or one item of a list, away. What is not there is left alone."""
    path = parts(key_path)
    if not _has(_step_data(load_document(text), step_id), path):
        return text

    def change(step: dict[str, Any]) -> None:
        holder = at(step, path[:-1])
        del holder[path[-1]]

    return _edit_step(text, step_id, change, lambda splice, here: splice.drop(here, path))


def insert_step(text: str, after_id: str | None, step: dict[str, Any]) -> str:
    """Put a step after another one, or first."""
    document = load_document(text)
    steps = _steps(document)
    place = 0 if after_id is None else _place(document, after_id) + 1
    wanted = _with_steps(document, [*steps[:place], step, *steps[place:]])
    splice = Splice(document, text)
    try:
        return _checked(splice.insert(place, step), wanted, document)
    except BadFileError:  # a blank line would belong to a text that keeps its line ends (`|+`)
        return _checked(splice.insert(place, step, parted=False), wanted, document)


def replace_step(text: str, step_id: str, step: dict[str, Any]) -> str:
    """Write a step anew. Comments above it stay."""
    document = load_document(text)
    place = _place(document, step_id)
    steps = _steps(document)
    wanted = _with_steps(document, [*steps[:place], step, *steps[place + 1 :]])
    return _checked(Splice(document, text).replace(place, step), wanted, document)


def remove_step(text: str, step_id: str) -> str:
    """Take a step away, with the comments right above it. Routes are not followed up."""
    document = load_document(text)
    place = _place(document, step_id)
    steps = _steps(document)
    if len(steps) == 1:
        raise BadFileError(f"{document.file}: `{step_id}` is the only step")
    wanted = _with_steps(document, [*steps[:place], *steps[place + 1 :]])
    return _checked(Splice(document, text).remove(place), wanted, document)


def _edit_step(
    text: str,
    step_id: str,
    change: Callable[[dict[str, Any]], None],
    cut: Callable[[Splice, int], str],
) -> str:
    """The smallest cut that says what `change` makes of the step; else the step written anew."""
    document = load_document(text)
    place = _place(document, step_id)
    steps = _steps(document)
    step = copy.deepcopy(steps[place])
    change(step)
    wanted = _with_steps(document, [*steps[:place], step, *steps[place + 1 :]])
    try:
        return _checked(cut(Splice(document, text), place), wanted, document)
    except BadFileError:
        return _checked(Splice(document, text).replace(place, step), wanted, document)


def _checked(text: str, wanted: dict[str, Any], before: Document) -> str:
    """`text`, if it says what it was made to say."""
    after = yaml12.compose(text, before.file)
    if after.problems or not _equal(plain(after.data), wanted):
        why = str(after.problems[0]) if after.problems else "anchors stand in the way"
        raise BadFileError(f"{before.file}: the edit cannot be made here: {why}")
    return text


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def _steps(document: Document) -> list[Any]:
    steps = plain(document.data).get("sub_steps")
    return steps if isinstance(steps, list) else []


def _with_steps(document: Document, steps: list[Any]) -> dict[str, Any]:
    data: dict[str, Any] = plain(document.data)
    return plain({**data, "sub_steps": steps})  # type: ignore[no-any-return]


def _place(document: Document, step_id: str) -> int:
    root = document.root
    steps = yaml12.child(root, "sub_steps")
    for place, item in enumerate((steps.items if steps else None) or ()):
        named = yaml12.child(item, "id")
        if named is not None and str(getattr(named.value, "text", named.value)) == step_id:
            return place
    raise NotFoundError(f"{document.file}: no step is called `{step_id}`")


def _step_data(document: Document, step_id: str) -> Any:
    return _steps(document)[_place(document, step_id)]


def _has(data: Any, path: Sequence[str | int]) -> bool:
    try:
        at(data, path)
    except (KeyError, IndexError, TypeError):
        return False
    return True
