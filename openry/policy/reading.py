"""From what a person wrote to a policy: every problem at once, with its line and a fix."""

from __future__ import annotations

import re

from openry.errors import BadFileError
from openry.models.command import LAYERS
from openry.policy.old_form import is_old_form, translate
from openry.policy.policy import Policy
from openry.policy.profiles import profile_of
from openry.policy.rules import Rule
from openry.policy.values import Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_DECISIONS = {"allow": Decision.ALLOW, "confirm": Decision.CONFIRM, "deny": Decision.DENY}
_KEYS = ("name", "description", "default", "opaque", "commands", "tests", "files", "network",
         "env", "limits", "require")  # fmt: skip
_RULE_LISTS = ("sub", "not_sub", "script", "paths", "urls", "options")
_RULE_KEYS = (*_DECISIONS, *_RULE_LISTS, "runs", "regex", "message", "instead")
_FILE_KEYS = ("read", "write", "protect")
_NETWORK_KEYS = ("hosts", "per_minute")
_ENV_KEYS = ("pass", "set")
_LIMITS = ("time_s", "cpu_s", "memory_mb", "procs", "disk_mb", "output_mb")
#: Never to be written, whatever a policy says.
PROTECTED = (
    ".git/hooks", ".git/config", ".openry", ".vscode",
    "**/.git/hooks", "**/.git/config", "**/.openry", "**/.vscode",
)  # fmt: skip
#: A program: its name, a path pattern, or `*` for every one.
_PROGRAM = re.compile(r"\*|[\w.+@:\[\]!-]+|~?/?[\w.+@*~ -]+(?:/[\w.+@* -]*)+")
_HOST = re.compile(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?(?::([0-9]{1,5}))?")
#: Where a policy's own tests are thought to run.
TRIED_IN: dict[str, Any] = {"cwd": "/workspace", "workspace": "/workspace", "home": "/home/agent",
            "path": "/usr/bin:/bin"}  # fmt: skip


def is_map(given: object) -> bool:
    return hasattr(given, "items")


def read_map(
    data: Any,
    file: str,
    lines: Mapping[tuple[Any, ...], int],
    twice: Sequence[tuple[Any, ...]] = (),
    *,
    tried: bool = True,
) -> Policy:
    """The policy that a map says, once its own tests are as they should be.

    Args:
        twice: Places of keys that stand a second time in their map.
        tried: Make the policy's own tests.

    Raises:
        BadFileError: It is not what it must be.
    """
    reader = _Reader(file, lines)
    for place in twice:
        reader.problem(place, f"`{place[-1]}` stands twice; keep one of them")
    policy = reader.policy(data)
    tests = reader.tests(data)
    if tried and not reader.problems:
        reader.tried(policy, tests)
    if reader.problems:
        told = sorted(reader.problems, key=lambda one: one[0])
        raise BadFileError("", tuple(sentence for _, sentence in told))
    return policy


def parsed(
    text: str, file: str
) -> tuple[dict[str, Any], dict[tuple[Any, ...], int], list[tuple[Any, ...]]]:
    """A YAML document, the line of every key and item of it, and the keys that stand twice.

    Raises:
        BadFileError: It is no map.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        lines, twice = _lines(yaml.compose(text, Loader=loader))
        data = yaml.load(text, Loader=loader)  # noqa: S506  # a safe one
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{file}:{mark.line + 1}" if mark else file
        raise BadFileError(f"{place}: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(error).split()) if isinstance(error, yaml.YAMLError) else "too deep"
        raise BadFileError(f"{file}: {said}") from error
    if not isinstance(data, dict):
        raise BadFileError(f"{file}: must be a map, e.g. `default: deny`")
    return data, lines, twice


def _lines(root: Any) -> tuple[dict[tuple[Any, ...], int], list[tuple[Any, ...]]]:
    """The line of every key and item, and the keys that stand twice in one map."""
    found: dict[tuple[Any, ...], int] = {}
    twice: list[tuple[Any, ...]] = []
    todo: list[tuple[tuple[Any, ...], Any, frozenset[int]]] = [((), root, frozenset())]
    while todo:
        where, node, above = todo.pop()
        if node is None or id(node) in above:  # an anchor that holds itself
            continue
        found.setdefault(where, node.start_mark.line + 1)
        within = above | {id(node)}
        if node.id == "mapping":
            for key, item in node.value:
                place = (*where, key.value)
                if place in found:
                    twice.append(place)
                found[place] = key.start_mark.line + 1
                todo.append((place, item, within))
        elif node.id == "sequence":
            todo += [((*where, number), one, within) for number, one in enumerate(node.value)]
    return found, twice


class _Reader:
    """Reads one map; collects its problems."""

    def __init__(self, file: str, lines: Mapping[tuple[Any, ...], int]) -> None:
        self.file, self.lines = file, lines
        self.problems: list[tuple[int, str]] = []

    def problem(self, where: tuple[Any, ...], message: str) -> None:
        line = next(
            (self.lines[where[:n]] for n in range(len(where), 0, -1) if where[:n] in self.lines), 0
        )
        place = f"{self.file}:{line}" if line else self.file
        self.problems.append((line, f"{place}: {message}"))

    def keys(self, where: tuple[Any, ...], data: Any, known: Sequence[str]) -> bool:
        if not is_map(data):
            self.problem(where, f"`{where[-1] if where else self.file}` must be a map")
            return False
        from openry.texts import bracketed, did_you_mean

        for key in data:
            if key not in known:
                hint = bracketed(did_you_mean(str(key), known))
                self.problem((*where, key), f"unknown key `{key}`{hint}")
        return True

    def policy(self, data: Any) -> Policy:
        if is_old_form(data):
            data = translate(data, self.problem)
            known: Sequence[str] = (*_KEYS, "_unrestricted")
        else:
            known = _KEYS
        if not self.keys((), data, known):
            return Policy()
        free = data.get("_unrestricted") is True
        files = self._section(data, "files", _FILE_KEYS)
        network = self._section(data, "network", _NETWORK_KEYS)
        env = self._section(data, "env", _ENV_KEYS)
        limits = self._section(data, "limits", _LIMITS)
        for key, given in limits.items():
            self._check_number(("limits", key), given)
        if "per_minute" in network:
            self._check_number(("network", "per_minute"), network["per_minute"])
        settings = env.get("set") or {}
        if not is_map(settings):
            self.problem(("env", "set"), "`set` must be a map like `{NAME: text}`")
            settings = {}
        opaque = Decision.ALLOW if free else self._decision(data, "opaque", ("confirm", "deny"))
        passed = self.texts(("env", "pass"), env.get("pass"))
        return Policy(
            name=str(data.get("name", "policy")),
            default=self._decision(data, "default", tuple(_DECISIONS)),
            opaque=opaque,
            rules=self._rules(data.get("commands")),
            read=self._patterns(files, "read"),
            write=self._patterns(files, "write"),
            protect=tuple(dict.fromkeys((*PROTECTED, *(self._patterns(files, "protect") or ())))),
            hosts=self._hosts(network),
            env=frozenset((*passed, *map(str, settings))),
            sections={
                "limits": dict(limits),
                "require": self._layers(data.get("require")),
                "network": dict(network),
                "env": dict(env),
            },
        )

    def _section(self, data: Any, name: str, known: Sequence[str]) -> Mapping[str, Any]:
        given = data.get(name)
        if given is None:
            return {}
        return given if self.keys((name,), given, known) else {}

    def _decision(self, data: Any, key: str, words: Sequence[str]) -> Decision:
        word = data.get(key, "deny")
        if word not in words:
            told = " or ".join(f"`{one}`" for one in words)
            self.problem((key,), f"`{key}` must be {told}, got `{word}`")
            return Decision.DENY
        return _DECISIONS[word]

    def texts(self, where: tuple[Any, ...], given: Any) -> tuple[str, ...]:
        if given is None:
            return ()
        if isinstance(given, str):
            return (given,)
        if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
            said = f"`{where[-1]}` must be a text or a list of texts, got `{given}`"
            flags = given if isinstance(given, list | tuple) else [given]
            if any(isinstance(one, bool) for one in flags):
                said += "; YAML takes words like `true` and `yes` for more than words: quote them"
            self.problem(where, said)
            return ()
        return tuple(given)

    def _check_number(self, where: tuple[Any, ...], given: Any) -> None:
        if isinstance(given, bool) or not isinstance(given, int | float) or given <= 0:
            self.problem(where, f"`{where[-1]}` must be a number above 0, got `{given}`")

    def _layers(self, given: Any) -> tuple[str, ...]:
        named = self.texts(("require",), given)
        for number, one in enumerate(named):
            if one not in LAYERS:
                known = ", ".join(f"`{layer}`" for layer in LAYERS)
                self.problem(("require", number), f"`{one}` is no layer; there are {known}")
        return named

    def _patterns(self, files: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
        if key not in files:
            return None
        patterns = self.texts(("files", key), files[key])
        for number, one in enumerate(patterns):
            self._check_path(("files", key, number), one)
        return patterns

    def _check_path(self, where: tuple[Any, ...], pattern: str) -> None:
        if not pattern or "\0" in pattern:
            self.problem(where, f"`{pattern!r:.40}` is no path; `**` means all of the workspace")

    def _hosts(self, network: Mapping[str, Any]) -> tuple[str, ...] | None:
        if "hosts" not in network:
            return None
        hosts = self.texts(("network", "hosts"), network["hosts"])
        for number, one in enumerate(hosts):
            found = _HOST.fullmatch(one)
            if found is None or int(found[1] or 1) not in range(1, 65536):
                said = f"`{one}` is no host; write it like `api.example.com:443`, without a path"
                self.problem(("network", "hosts", number), said)
        return tuple(one.lower() for one in hosts)

    # --- rules --------------------------------------------------------------------------------

    def _rules(self, given: Any) -> tuple[Rule, ...]:
        if given is None:
            return ()
        if not isinstance(given, list | tuple):
            self.problem(("commands",), "`commands` must be a list of rules")
            return ()
        rules: list[Rule] = []
        same: dict[str, list[Rule]] = {}  #: by their program
        for number, one in enumerate(given):
            where = ("commands", number)
            for rule in self._rule(where, one):
                earlier = same.setdefault(rule.program, [])
                opposite = next((old for old in earlier if _contradict(old, rule)), None)
                if opposite:
                    said = f"`{rule.shown}` contradicts `{opposite.shown}`; keep one of them"
                    self.problem(where, said)
                rules.append(rule)
                earlier.append(rule)
        return tuple(rules)

    def _rule(self, where: tuple[Any, ...], given: Any) -> list[Rule]:
        if is_map(given) and "_where" in given:  # translated from the older form
            where = given["_where"]
            given = {key: one for key, one in given.items() if key != "_where"}
        if not is_map(given):
            self.problem(where, f"a rule must be a map like `{{allow: git}}`, got `{given}`")
            return []
        self.keys(where, given, _RULE_KEYS)
        kinds = [key for key in given if key in _DECISIONS]
        if len(kinds) != 1:
            self.problem(where, "a rule needs exactly one of `allow`, `confirm` and `deny`")
            return []
        kind = kinds[0]
        lists: dict[str, tuple[str, ...]] = {}
        for key in _RULE_LISTS:
            lists[key] = self.texts((*where, key), given.get(key))
            if key in given and not lists[key]:
                self.problem(
                    (*where, key), f"`{key}` names nothing; leave it out or name something"
                )
        regex = given.get("regex", "")
        self._check_regex((*where, "regex"), regex)
        self._check_urls((*where, "urls"), lists["urls"])
        for one in lists["options"]:
            if one[:1] not in ("-", "+"):
                said = f"`{one}` is no option; options begin with `-`, subcommands go into `sub`"
                self.problem((*where, "options"), said)
        for key in ("paths", "script"):
            for number, one in enumerate(lists[key]):
                self._check_path((*where, key, number), one)
        for key in ("message", "instead"):
            if not isinstance(given.get(key, ""), str):
                self.problem((*where, key), f"`{key}` must be a text")
        if not isinstance(given.get("runs", True), bool):
            self.problem((*where, "runs"), "`runs` must be `true` or `false`")
        rules = []
        for program in self.texts((*where, kind), given[kind]):
            if not _PROGRAM.fullmatch(program) or " " in program.partition("/")[0]:
                said = f"`{program}` is no program; subcommands go into `sub`"
                self.problem((*where, kind), said)
                continue
            if lists["script"] and not _runs_scripts(program):
                said = f"`{program}` runs no scripts; `script` would fit nothing, use `paths`"
                self.problem((*where, "script"), said)
            rules.append(
                Rule(
                    _DECISIONS[kind],
                    program,
                    sub=tuple(tuple(one.split()) for one in lists["sub"]),
                    not_sub=tuple(tuple(one.split()) for one in lists["not_sub"]),
                    script=lists["script"],
                    paths=lists["paths"],
                    urls=lists["urls"],
                    options=lists["options"],
                    runs=given.get("runs") is True,
                    regex=str(regex),
                    message=str(given.get("message", "")),
                    instead=str(given.get("instead", "")),
                )
            )
        return rules

    def _check_regex(self, where: tuple[Any, ...], regex: Any) -> None:
        if not isinstance(regex, str):
            self.problem(where, f"`regex` must be a text, got `{regex}`")
            return
        try:
            re.compile(regex)
        except re.error as error:
            self.problem(where, f"`{regex}` is no regular expression: {error}")

    def _check_urls(self, where: tuple[Any, ...], urls: tuple[str, ...]) -> None:
        for url in urls:
            if "://" not in url or "@" in url:
                self.problem(where, f"`{url}` is no address; write it like `https://host/path/**`")

    # --- a policy's own tests -------------------------------------------------------------------

    def tests(self, data: Any) -> dict[str, tuple[str, ...]]:
        """The commands that must be allowed, asked about, and denied."""
        given = data.get("tests") if is_map(data) else None
        if given is None or not self.keys(("tests",), given, tuple(_DECISIONS)):
            return {}
        return {
            word: self.texts(("tests", word), given[word]) for word in given if word in _DECISIONS
        }

    def tried(self, policy: Policy, tests: Mapping[str, Sequence[str]]) -> None:
        for word, commands in tests.items():
            for number, command in enumerate(commands):
                verdict = policy.decide(command, **TRIED_IN)
                if verdict.decision is not _DECISIONS[word]:
                    said = f"`{command}` should be {word}, but is {verdict.decision.word}"
                    self.problem(("tests", word, number), f"{said}: {verdict.reason}")


def _runs_scripts(program: str) -> bool:
    profile = profile_of(program)
    return not profile.known or profile.script or profile.runs == "shell" or program == "*"


def _contradict(one: Rule, other: Rule) -> bool:
    """Whether both say different things of exactly the same calls."""
    kept = [name for name in Rule.__slots__ if name not in ("decision", "message", "instead")]  # type: ignore[attr-defined]
    return one.decision is not other.decision and all(
        getattr(one, name) == getattr(other, name) for name in kept
    )
