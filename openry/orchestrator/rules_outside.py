"""Rules that ask something outside payload and files: a command, the ledger, the network."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from openry.models import Command, CommandResult, Ending
from openry.orchestrator import rules as R  # noqa: N812 - the shapes, by one letter
from openry.orchestrator.rules_scene import CannotEvaluate, Finding, Scene, shown

_NOTHING: Mapping[str, str] = MappingProxyType({})


def rule_command(
    text: str, timeout_s: float, env: Mapping[str, str] = _NOTHING, label: str = ""
) -> Command:
    """A rule's command line: bash, because any failing stage of a pipeline must fail the rule."""
    argv = ("bash", "--noprofile", "--norc", "-o", "pipefail", "-c", text)
    return Command(stages=(argv,), timeout_s=timeout_s, env=env, label=label or text)


def command(rule: R.CommandRule, scene: Scene) -> Finding:
    result = _run(scene, rule.run, rule.timeout_seconds)
    said = result.stderr.strip() or result.stdout.strip()
    actual = f"exit {result.exit_code}" + (f": {said}" if said and not result.ok else "")
    vacuous = result.ok and "No such file or directory" in result.stderr
    return Finding(result.ok, "exit 0", shown(actual), f"`{shown(rule.run)}` failed", vacuous)


def command_output_contains(rule: R.CommandOutputContains, scene: Scene) -> Finding:
    result = _run(scene, rule.run, rule.timeout_seconds)
    passed = rule.contains in result.stdout
    if not passed and result.spill:
        raise CannotEvaluate(f"the output of `{shown(rule.run)}` is too large to be searched")
    said = result.stdout.strip() or result.stderr.strip() or "nothing"
    message = f"the output of `{shown(rule.run)}` does not contain the text"
    return Finding(passed, shown(rule.contains), shown(said), message)


def _run(scene: Scene, text: str, timeout_s: float) -> CommandResult:
    if scene.run is None:
        raise CannotEvaluate("commands cannot be run here")
    line, env = scene.command(text)
    result = scene.run(rule_command(line, timeout_s, env, text))
    if result.ending is Ending.TIMEOUT:
        raise CannotEvaluate(f"`{shown(text)}` took longer than {timeout_s:g} s")
    if result.ending not in (Ending.EXITED, Ending.SIGNALLED) or result.exit_code == 125:
        why = result.note or result.stderr.strip() or str(result.ending)
        raise CannotEvaluate(f"`{shown(text)}` was not run: {shown(why)}")
    return result


def db_query(rule: R.DbQuery, scene: Scene) -> Finding:
    if scene.query is None:
        raise CannotEvaluate("the ledger cannot be asked here")
    passed = scene.query(rule.query)
    actual = "a row" if passed else "no row"
    return Finding(passed, "a row", actual, "the query returned no row")


def http_status(rule: R.HttpStatus, scene: Scene) -> Finding:
    if scene.fetch is None:
        raise CannotEvaluate("the network cannot be reached from here")
    status = scene.fetch(rule.method.upper(), rule.url, rule.timeout_seconds)
    message = f"{rule.url} answered {status}"
    return Finding(status == rule.expected_status, str(rule.expected_status), str(status), message)


def unchanged(rule: R.Unchanged, scene: Scene) -> Finding:
    if scene.changed is None:
        raise CannotEvaluate("there is no snapshot from before the step")
    touched = [path for path in scene.changed() if matches(path, rule.glob)]
    message = f"{len(touched)} files were changed that had to stay as they were"
    return Finding(not touched, "no change", shown(", ".join(touched)) or "no change", message)


def matches(path: str, pattern: str) -> bool:
    """Whether a relative path matches: `*` within one part, `**` over parts.

    >>> [matches("a/b.txt", p) for p in ("a/*.txt", "*.txt", "**", "**/*.txt", "a/**")]
    [True, False, True, True, True]
    """
    return _match(path.split("/"), pattern.removeprefix("./").split("/"))


def _match(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        rest = pattern[1:]
        return any(_match(parts[skip:], rest) for skip in range(len(parts) + 1)) if rest else True
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _match(parts[1:], pattern[1:])
