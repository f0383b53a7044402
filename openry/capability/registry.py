"""All tools by name, read from packs. One bad file never stops the others."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from openry.capability.cache import DefinitionCache
from openry.capability.definition import ToolDefinition, shortcomings
from openry.data import data_root
from openry.errors import BadFileError, NotFoundError
from openry.models import Problem
from openry.project import places
from openry.texts import bracketed, did_you_mean

#: Describes a pack; every other YAML file of its folder is one tool.
PACK_FILE = "pack.yaml"


class _About(BaseModel):
    """A pack's own file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pack: str = ""
    description: str = ""
    fixtures: dict[str, str] = {}
    everyday: bool = True


@dataclass(frozen=True, slots=True)
class Registered:
    """A tool and where it came from.

    Attributes:
        fixtures: Its pack's, for running the examples.
        everyday: Whether it is among those that a task may be read as asking for; else it is used
            where a workflow, an agent's step or a call names it.
    """

    tool: ToolDefinition
    source: str
    fixtures: Mapping[str, str] = field(default_factory=dict)
    everyday: bool = True


class Registry:
    """Tools by name. `problems` holds what kept a file of a pack from being registered."""

    def __init__(self) -> None:
        self._tools: dict[str, Registered] = {}
        self.problems: list[Problem] = []

    def register(self, entry: Registered) -> None:
        """Add one tool.

        Raises:
            BadFileError: The definition is too poor to be chosen by, or its name is taken.
        """
        missing = tuple(f"{entry.source}: {what}" for _, what in shortcomings(entry.tool))
        if missing:
            raise BadFileError(f"{entry.source} cannot be registered", missing)
        other = self._tools.get(entry.tool.name)
        if other is not None:
            raise BadFileError(
                f"two tools are named `{entry.tool.name}`: {other.source} and {entry.source}"
            )
        self._tools[entry.tool.name] = entry

    def get(self, name: str) -> ToolDefinition:
        """The tool called `name`.

        Raises:
            NotFoundError: No tool has that name; the message offers the nearest.
        """
        return self.entry(name).tool

    def entry(self, name: str) -> Registered:
        """As `get`, with where the tool came from."""
        if name in self._tools:
            return self._tools[name]
        broken = next((str(each) for each in self.problems if Path(each.file).stem == name), "")
        if broken:
            raise NotFoundError(f"`{name}` is defined, but cannot be used: {broken}")
        hint = did_you_mean(name, self._tools, 0.5) or "`openry capability list` shows all"
        raise NotFoundError(f"no capability is called `{name}` ({hint})")

    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def tools(self) -> tuple[ToolDefinition, ...]:
        return tuple(entry.tool for entry in self._tools.values())

    def everyday(self) -> tuple[ToolDefinition, ...]:
        """The tools that a task may be read as asking for."""
        return tuple(entry.tool for entry in self._tools.values() if entry.everyday)

    def matching(self, pattern: str) -> tuple[ToolDefinition, ...]:
        """The tools that `count_lines`, `files.count_files`, `files.*` or `csv_*` means, if any."""
        return tuple(tool for tool in self.tools() if _matches(tool, pattern))

    def scope(self, patterns: Iterable[str]) -> tuple[ToolDefinition, ...]:
        """The tools a step names: `count_lines`, `text.count_lines`, `files.*`, `csv_*`.

        Raises:
            NotFoundError: A pattern matches nothing.
        """
        chosen: dict[str, ToolDefinition] = {}
        for pattern in patterns:
            found = self.matching(pattern) or (self.get(pattern),)
            chosen.update({tool.name: tool for tool in found})
        return tuple(chosen.values())

    def narrowed(self, patterns: Iterable[str]) -> Registry:
        """A registry of those tools alone; the same patterns and errors as `scope`."""
        alone = Registry()
        alone._tools = {tool.name: self._tools[tool.name] for tool in self.scope(patterns)}
        return alone

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[ToolDefinition]:
        return iter(self.tools())

    def __len__(self) -> int:
        return len(self._tools)


def _matches(tool: ToolDefinition, pattern: str) -> bool:
    return any(
        fnmatch.fnmatchcase(name, pattern) for name in (tool.name, f"{tool.pack}.{tool.name}")
    )


def load_registry(
    extra_dirs: Iterable[Path | str] = (), cache: DefinitionCache | None = None
) -> Registry:
    """The shipped packs and those in `extra_dirs`, each a pack or a folder of packs."""
    registry = Registry()
    for root in (data_root() / "templates" / "capabilities", *map(Path, extra_dirs)):
        for pack in _packs(root):
            load_pack(registry, pack, cache)
    return registry


def own_registry(home: Path, start: Path | str = ".") -> Registry:
    """The shipped packs, those in OPENRY_HOME, those of a trusted project at `start`, and those
    that installed packages bring."""
    from openry.capability.packages import load_installed

    cache = DefinitionCache(Path(home) / "cache" / "capabilities.json")
    registry = load_registry(places("capabilities", home, start), cache)
    load_installed(registry, cache)
    cache.save()
    return registry


def _packs(root: Path) -> list[Path]:
    if any(root.glob("*.yaml")):
        return [root]
    return sorted(folder for folder in root.glob("*/") if any(folder.glob("*.yaml")))


def load_pack(registry: Registry, folder: Path, cache: DefinitionCache | None = None) -> None:
    """Register every tool of one pack folder; what is wrong goes to `registry.problems`."""
    cache = cache or DefinitionCache(None)
    about = _read_pack_file(registry, folder / PACK_FILE, cache)
    for path in sorted(folder.glob("*.yaml")):
        if path.name == PACK_FILE:
            continue
        try:
            tool = read_definition(path, pack=about.pack or folder.name, cache=cache)
            registry.register(Registered(tool, str(path), about.fixtures, about.everyday))
        except BadFileError as error:
            registry.problems.extend(_problem(each, path) for each in error.problems)


def _problem(text: str, path: Path) -> Problem:
    """`FILE: what` or `FILE:LINE: what` as a problem of that place."""
    rest = text.removeprefix(f"{path}:")
    line, colon, what = rest.partition(": ")
    if colon and line.isdigit():
        return Problem(str(path), int(line), what)
    return Problem(str(path), 0, rest.strip())


def _read_pack_file(registry: Registry, path: Path, cache: DefinitionCache) -> _About:
    if not path.is_file():
        return _About()
    try:
        known = cache.get(path)
        data = read_mapping(path) if known is None else known
        made = _About.model_validate(data)
        if known is None:
            cache.put(path, data)
        return made
    except ValidationError as error:
        problems = explain(error, path, _About)
    except BadFileError as error:
        problems = error.problems
    registry.problems.extend(_problem(each, path) for each in problems)
    return _About()


def read_definition(
    path: Path, *, pack: str = "", cache: DefinitionCache | None = None
) -> ToolDefinition:
    """Read one tool from a YAML file.

    Args:
        cache: What sound files held; what is found there is not checked again.

    Raises:
        BadFileError: Every problem at once, each as `file:line: message`.
    """
    known = cache.get(path) if cache else None
    read = read_mapping(path) if known is None else known
    data = {"pack": pack, **read}
    if str(data.get("python", "")).startswith("./"):
        data["python"] = str(path.parent.resolve() / data["python"][2:])
    try:
        tool = ToolDefinition.model_validate(data, context={"checked": known is not None})
    except ValidationError as error:
        raise BadFileError(f"{path} is no tool definition", explain(error, path)) from error
    if cache and known is None:
        cache.put(path, read)
    return tool


def read_mapping(path: Path) -> Mapping[str, Any]:
    """A YAML file that holds one map."""
    try:
        data = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # noqa: S506  # a safe loader
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise BadFileError(_explain_syntax(error, path)) from error
    if not isinstance(data, dict):
        raise BadFileError(f"{path}: must hold one map with `name`, `description` and so on")
    return data


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.2: `no`, `10:30`, `012` and `2026-01-02` are texts; a key twice is an error."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            keys = [key.value for key, _ in node.value]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise yaml.MarkedYAMLError(problem=f"`{twice}` twice", problem_mark=node.start_mark)
        return mapping


for _tag, _shape, _first in (
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", "true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", "[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    (
        "float",
        r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?",
        list("-+.0123456789"),
    ),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_shape})$"), _first
    )


def _explain_syntax(error: yaml.YAMLError, path: Path) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "not YAML"
    return f"{path}:{mark.line + 1 if mark else 0}: {problem}"


def explain(
    error: ValidationError, path: Path | str, model: type[BaseModel] = ToolDefinition
) -> tuple[str, ...]:
    """Every problem of a definition, one sentence each, `path` before it unless that is empty."""
    found, start = [], f"{path}: " if path else ""
    for each in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in each["loc"])
        message = each["msg"].removeprefix("Value error, ")
        found.append(f"{start}{_said(each['type'], place, message, model)}")
    return tuple(dict.fromkeys(found))


def _said(kind: str, place: str, message: str, model: type[BaseModel]) -> str:
    if kind == "extra_forbidden":
        hint = did_you_mean(place.rpartition(".")[2], model.model_fields)
        return f"unknown key `{place}`{bracketed(hint)}"
    if kind == "missing":
        return f"missing `{place}`"
    return f"`{place}`: {message[:1].lower()}{message[1:]}" if place else message
