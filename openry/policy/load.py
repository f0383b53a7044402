"""Reading policies: by name, from a file, or from a map; every problem at once."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from openry.data import data_root
from openry.errors import BadFileError, NotFoundError
from openry.files import must_be_file
from openry.policy.policy import Policy
from openry.policy.reading import is_map, parsed, read_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PRESETS = ("strict", "moderate", "permissive")
_KEPT_MAPS = 64
_maps: dict[str, Policy] = {}


def load_policy(
    source: str | Path | Mapping[str, Any],
    *,
    parent: Policy | None = None,
    folders: Sequence[Path] = (),
) -> Policy:
    """The policy of that name, in that file, or said by that map.

    Args:
        parent: Holds as well: a step's policy can only narrow it.
        folders: Where files of that name are looked for, after the shipped ones.

    Raises:
        NotFoundError: No policy has that name.
        BadFileError: It is not what it must be; every problem with its line and a fix.
    """
    policy = _of_map(source) if is_map(source) else _named(source, folders)
    if parent is None:
        return policy
    return with_parent(policy, parent)


def with_parent(policy: Policy, parent: Policy) -> Policy:
    """`policy` under `parent`: never more than either allows."""
    return replace(policy, parents=(*policy.parents, parent, *parent.parents))


def _of_map(source: Any) -> Policy:
    """What a map says; the same one is asked for with each command of each step under it."""
    said = repr(source)
    if said not in _maps:
        if len(_maps) >= _KEPT_MAPS:
            _maps.clear()
        _maps[said] = read_map(source, "policy", {})
    return _maps[said]


def _named(source: Any, folders: Sequence[Path]) -> Policy:
    if source in PRESETS:
        return _preset(source)
    path = _path_of(source, folders)
    return _shipped(path) if path.parent == data_root() / "templates/policies" else load_file(path)


def _path_of(source: Any, folders: Sequence[Path]) -> Path:
    """The file of a policy, given by name or path."""
    text = os.fspath(source)
    if "/" in text or text.endswith((".yaml", ".yml")) or isinstance(source, Path):
        path = Path(text)
        if not path.exists():
            raise NotFoundError(f"no policy file `{text}`")
        return path
    for folder in (data_root() / "templates/policies", *folders):
        for ending in (".yaml", ".yml"):
            path = folder / f"{text}{ending}"
            if path.is_file():
                return path
    from openry.texts import bracketed, did_you_mean

    hint = bracketed(did_you_mean(text, PRESETS)) or f"; there are {', '.join(PRESETS)}"
    raise NotFoundError(f"no policy `{text}`{hint}")


def policy_data(
    source: str | Path | Mapping[str, Any], *, folders: Sequence[Path] = ()
) -> str | dict[str, Any]:
    """What `load_policy` would read, as a map that needs no file; a shipped one stays a name.

    Its own tests are left out: they have been made.

    Raises:
        NotFoundError: No policy has that name.
        BadFileError: It is not what it must be.
    """
    load_policy(source, folders=folders)
    if not is_map(source):
        path = _path_of(source, folders)
        if path.parent == data_root() / "templates/policies":
            return path.stem
        source = {"name": path.stem, **_data_of(path)}
    return {key: one for key, one in source.items() if key != "tests"}  # type: ignore[union-attr]


def preset_with(name: str, *, read: Sequence[str], write: Sequence[str]) -> dict[str, Any]:
    """A shipped policy as a map, with these absolute folders or files among its own."""
    data = dict(_preset_data(name))
    files = dict(data["files"])
    for key, more in (("read", read), ("write", write)):
        below = [text for place in more for text in (place, f"{place.rstrip('/')}/**")]
        files[key] = [*files[key], *below]
    return {**data, "name": name, "files": files, "tests": None}


def _data_of(path: Path) -> dict[str, Any]:
    return parsed(path.read_text("utf-8"), path.name)[0]


@cache
def _preset_data(name: str) -> dict[str, Any]:
    return _data_of(data_root() / "templates/policies" / f"{name}.yaml")


@cache
def _preset(name: str) -> Policy:
    return _shipped(data_root() / "templates/policies" / f"{name}.yaml")


@lru_cache(maxsize=16)
def _shipped(path: Path) -> Policy:
    return load_file(path, tried=False)  # its tests are part of our own suite


def load_file(path: Path, *, tried: bool = True) -> Policy:
    """The policy that a file holds.

    Args:
        tried: Make the file's own tests too.

    Raises:
        BadFileError: It cannot be read, or is not what it must be.
    """
    try:
        must_be_file(path)
        text = path.read_text("utf-8")
    except OSError as error:
        raise BadFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadFileError(f"{path.name}: is no text in UTF-8") from error
    data, lines, twice = parsed(text, path.name)
    return read_map({"name": path.stem, **data}, path.name, lines, twice, tried=tried)
