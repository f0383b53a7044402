"""What is known of programs' options: the data files of `templates/policies/programs/`."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from openry.data import data_root
from openry.models.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LISTS = ("values", "attached", "executes", "reads", "writes", "urls", "pattern_options", "code",
          "makes", "unless", "prints_unless", "lists", "optional", "pairs", "at", "texts",
          "folders", "flags")  # fmt: skip
_FLAGS = ("everywhere", "words", "script", "harmless", "bare_first")
_TAKING = (
    "values",
    "executes",
    "reads",
    "writes",
    "urls",
    "code",
    "lists",
    "pairs",
    "at",
    "texts",
    "folders",
)
_OTHERS = ("names", "like", "operands", "last", "subcommands", "runs", "skip", "program", "always",
           "risky", "risky_text", "prints")  # fmt: skip
_NAMES = frozenset((*_LISTS, *_FLAGS, *_OTHERS))


@value
class Profile:
    """One program's options; see the README beside the data."""

    name: str = ""
    values: frozenset[str] = frozenset()
    attached: frozenset[str] = frozenset()
    executes: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()
    pattern_options: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    makes: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
    prints_unless: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    at: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    operands: tuple[str, ...] = ()
    last: str = ""
    everywhere: bool = False
    words: bool = False
    has_subcommands: bool = False
    subcommands: Mapping[str, Profile] = {}
    runs: str = ""
    skip: int = 0
    program: str = ""
    script: bool = False
    always: str = ""
    risky: re.Pattern[str] | None = None
    risky_text: re.Pattern[str] | None = None
    harmless: bool = False
    bare_first: bool = False
    prints: str = ""
    known: bool = True
    taking: frozenset[str] = frozenset()  #: every option with a value, whatever the value is
    long_known: frozenset[str] = frozenset()  #: every long option; others may abbreviate one

    def takes_value(self, option: str) -> bool:
        return option in self.taking

    def after(self, sub: str) -> Profile:
        """What is known once a subcommand is: options then mean another thing."""
        found = self.subcommands.get(sub) or self.subcommands.get("*")
        return found or _bare(self.name, self.always)


_UNKNOWN = Profile(known=False)


@lru_cache(maxsize=4096)
def profile_of(name: str) -> Profile:
    """The profile of a program, an empty one for those not described.

    Only the files that hold the name are read for it: to read them all takes as long as a command.
    """
    named = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    for file, text in _files():
        if named.search(text) and name in _described(file):
            own, given = _described(file)[name]
            return _profile(own, given, file)
    return _UNKNOWN


def canonical(name: str) -> str:
    """The name under which a program is described: `gawk` is `awk`."""
    return profile_of(name).name or name


@lru_cache(maxsize=256)
def _bare(name: str, always: str) -> Profile:
    return Profile(name=name, always=always)


@cache
def _files() -> tuple[tuple[str, str], ...]:
    """Name and text of each file of descriptions."""
    folder = data_root() / "templates/policies/programs"
    return tuple((path.name, path.read_text("utf-8")) for path in sorted(folder.glob("*.yaml")))


@cache
def _described(file: str) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """What a file says of each program it names, with the name that program goes by."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for name, given in yaml.load(dict(_files())[file], loader).items():  # noqa: S506
        if str(name).startswith("."):  # what others share
            continue
        for one in (str(name), *map(str, given.get("names", ())), *given.get("like", ())):
            if one in found:
                raise ValueError(f"{file}: `{one}` is described twice")
            found[one] = (one if one in given.get("like", ()) else str(name), given)
    return found


def _profile(name: str, given: Mapping[str, Any], file: str) -> Profile:
    if wrong := set(given) - _NAMES:
        raise ValueError(f"{file}: unknown key `{min(wrong)}` of `{name}`")
    subcommands = given.get("subcommands") or {}
    if given.get("everywhere"):
        subcommands = _with_own(given, subcommands if isinstance(subcommands, dict) else {})
    fields: dict[str, Any] = {key: frozenset(map(str, given.get(key, ()))) for key in _LISTS}
    flags: dict[str, Any] = {key: bool(given.get(key, False)) for key in _FLAGS}
    return Profile(
        name=name,
        **fields,
        taking=frozenset().union(*(fields[key] for key in _TAKING)) - fields["optional"],
        long_known=frozenset(
            one for some in fields.values() for one in some if one.startswith("--")
        ),
        operands=tuple(given.get("operands", ())),
        last=given.get("last", ""),
        **flags,
        has_subcommands=bool(subcommands),
        subcommands={
            str(sub): _profile(name, {"always": given.get("always", ""), **own}, file)
            for sub, own in (subcommands.items() if isinstance(subcommands, dict) else ())
        },
        runs=given.get("runs", ""),
        skip=given.get("skip", 0),
        program=given.get("program", ""),
        always=given.get("always", ""),
        prints=given.get("prints", ""),
        risky=_pattern(given.get("risky")),
        risky_text=_pattern(given.get("risky_text")),
    )


def _with_own(given: Mapping[str, Any], subcommands: Mapping[str, Any]) -> dict[str, Any]:
    """Subcommands with the options of their program; `*` is each that is not described."""
    own = {key: given[key] for key in (*_LISTS, "words") if key in given}
    both = [key for key in own if key != "words"]
    return {
        sub: {**own, **more, **{key: [*own[key], *more[key]] for key in both if key in more}}
        for sub, more in {"*": {}, **subcommands}.items()
    }


def _pattern(texts: list[str] | None) -> re.Pattern[str] | None:
    return re.compile("|".join(texts), re.IGNORECASE | re.DOTALL) if texts else None


@cache
def _variables() -> tuple[re.Pattern[str], re.Pattern[str]]:
    path = data_root() / "templates/policies/programs/variables.txt"
    loaded: list[str] = []
    harmless: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern = re.escape(line.removeprefix("!")).replace(r"\*", ".*")
            (harmless if line.startswith("!") else loaded).append(pattern)
    return re.compile("|".join(loaded)), re.compile("|".join(harmless))


@lru_cache(maxsize=1024)
def is_loaded(variable: str) -> bool:
    """Whether programs load or execute what this variable says."""
    loaded, harmless = _variables()
    return loaded.fullmatch(variable) is not None and harmless.fullmatch(variable) is None
