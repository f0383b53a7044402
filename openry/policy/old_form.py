"""The older form of policies (`mode`, `commands`, `patterns`, `params`) in the words of the new."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    #: Is told of a problem, and at which place of the data it is.
    Report = Callable[[tuple[Any, ...], str], None]

_OLD = frozenset(("mode", "params", "patterns"))
_MODES = ("allowlist", "blocklist", "unrestricted")
_PARAMS = ("command", "blocked_flags", "blocked_subcommands", "allowed_subcommands",
           "allowed_flags", "description")  # fmt: skip
_KEPT = ("name", "description", "opaque", "tests", "files", "network", "env", "limits", "require")


def is_old_form(data: Any) -> bool:
    if not hasattr(data, "items"):
        return False
    commands = data.get("commands")
    plain = isinstance(commands, list) and any(isinstance(one, str) for one in commands)
    return bool(_OLD & set(data)) or plain


def translate(data: Mapping[str, Any], problem: Report) -> dict[str, Any]:
    """The same policy in the new form.

    >>> translate({"mode": "blocklist", "commands": ["rm"]}, print)["commands"]
    [{'deny': 'rm', '_where': ('commands', 0)}]
    """
    mode = data.get("mode") or ("blocklist" if data.get("params") else "allowlist")
    if mode not in _MODES:
        problem(("mode",), f"`mode` must be one of {', '.join(_MODES)}, got `{mode}`")
        mode = "allowlist"
    for key in data:
        if key not in (*_OLD, *_KEPT, "commands", "default"):
            problem((key,), f"unknown key `{key}`")
    rules = []
    if mode != "unrestricted":
        word = "allow" if mode == "allowlist" else "deny"
        rules += _commands(_listed(data, "commands"), word, problem)
        rules += _patterns(_listed(data, "patterns"), word, problem)
    rules += _params(_listed(data, "params"), problem)
    made = {key: data[key] for key in _KEPT if key in data}
    made["default"] = "deny" if mode == "allowlist" else "allow"
    made["commands"] = rules
    if mode == "unrestricted":
        made["_unrestricted"] = True
    return made


def _listed(data: Mapping[str, Any], key: str) -> list[Any]:
    given = data.get(key) or []
    return given if isinstance(given, list) else [given]


def _commands(commands: list[Any], word: str, problem: Report) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    for number, one in enumerate(commands):
        if not isinstance(one, str) or not one.split():
            problem(("commands", number), f"a command must be a text, got `{one}`")
            continue
        program, *sub = one.split()
        narrowed = {"sub": [" ".join(sub)]} if sub and sub != ["*"] else {}
        rules.append({word: program, **narrowed, "_where": ("commands", number)})
    return rules


def _patterns(patterns: list[Any], word: str, problem: Report) -> list[dict[str, Any]]:
    rules = []
    for number, one in enumerate(patterns):
        regex = one.get("regex") if hasattr(one, "get") else one
        if not isinstance(regex, str) or not regex:
            problem(("patterns", number), "a pattern needs `regex`")
            continue
        message = str(one.get("description", "")) if hasattr(one, "get") else ""
        rule = {word: "*", "regex": regex, "message": message, "_where": ("patterns", number)}
        rules.append(rule)
    return rules


def _params(params: list[Any], problem: Report) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    for number, one in enumerate(params):
        where = ("params", number)
        if not hasattr(one, "items") or not isinstance(one.get("command"), str):
            problem(where, "an entry of `params` needs `command`")
            continue
        for key in one:
            if key not in _PARAMS:
                problem((*where, key), f"unknown key `{key}`")
        program = one["command"]
        message: dict[str, Any] = {"_where": where}
        if one.get("description"):
            message["message"] = str(one["description"])
        if flags := one.get("blocked_flags"):
            rules.append({"deny": program, "options": flags, **message})
        if subs := one.get("blocked_subcommands"):
            rules.append({"deny": program, "sub": subs, **message})
        if subs := one.get("allowed_subcommands"):
            rules.append({"allow": program, "sub": subs, "_where": where})
            rules.append({"deny": program, "not_sub": subs, **message})
        if flags := one.get("allowed_flags"):
            rules.append({"allow": program, "options": flags, "_where": where})
    return rules
