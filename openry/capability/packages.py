"""Packs that Python packages bring, by the entry point `openry.capabilities`.

    [project.entry-points."openry.capabilities"]
    mine = "mine.tools"             # a package: the YAML files in its folder
    more = "mine.more:definitions"  # a function: gives folders of packs, or definitions as maps

`importlib.metadata` finds them, and a package of YAML files is not even imported. What one brings
amiss is a problem of that package; the others load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from openry.capability.cache import DefinitionCache
from openry.capability.definition import ToolDefinition
from openry.capability.registry import Registered, Registry, explain, load_pack
from openry.errors import BadFileError
from openry.models import Problem

GROUP = "openry.capabilities"


def load_installed(registry: Registry, cache: DefinitionCache) -> None:
    """Register what installed packages bring; what is wrong goes to `registry.problems`."""
    points = entry_points(group=GROUP) if _is_named_somewhere() else ()
    for point in sorted(points, key=lambda each: (each.name, each.value)):
        try:
            _load(registry, point, cache)
        except BadFileError as error:
            registry.problems.extend(Problem(_source(point), 0, each) for each in error.problems)
        except Exception as error:  # a stranger's code
            said = f"cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())}"
            registry.problems.append(Problem(_source(point), 0, said))


def _is_named_somewhere() -> bool:
    """Whether any package's entry points speak of ours: to have all of them read takes ten times
    as long, and mostly there are none."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208  # a hundred paths would take longer
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and _speaks_of_us(folder, name):
                return True
    return False


def _speaks_of_us(folder: str, name: str) -> bool:
    try:
        with open(f"{folder or '.'}/{name}/entry_points.txt", "rb") as file:
            return GROUP.encode() in file.read()
    except OSError:
        return False


def _source(point: EntryPoint) -> str:
    """The package and the entry point, for whoever must mend it."""
    package = f"{point.dist.name} " if point.dist else ""
    return f"{package}(entry point `{point.name} = {point.value}`)"


def _load(registry: Registry, point: EntryPoint, cache: DefinitionCache) -> None:
    if not point.attr:
        load_pack(registry, _folder_of(point), cache)
        return
    found = point.load()
    for brought in _several(found() if callable(found) else found):
        if isinstance(brought, str | Path):
            load_pack(registry, Path(brought), cache)
        else:
            registry.register(Registered(_definition(brought, point), _source(point)))


def _several(found: Any) -> Iterator[Any]:
    if isinstance(found, str | Path | Mapping | ToolDefinition):
        yield found
    else:
        yield from found


def _folder_of(point: EntryPoint) -> Path:
    """Where the package's files are.

    Raises:
        BadFileError: There is no such package, or no tool is defined in it.
    """
    spec = find_spec(point.module)
    places = list(spec.submodule_search_locations or ()) if spec else []
    folder = next((place for each in places if any((place := Path(each)).glob("*.yaml"))), None)
    if folder is None:
        raise BadFileError(f"`{point.module}` is no package with YAML files in it")
    return folder


def _definition(brought: Any, point: EntryPoint) -> ToolDefinition:
    if isinstance(brought, ToolDefinition):
        return brought
    try:
        return ToolDefinition.model_validate({"pack": point.name, **brought})
    except ValidationError as error:
        raise BadFileError("", explain(error, "")) from error
