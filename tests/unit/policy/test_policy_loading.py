"""Policies as people write them: both forms, every mistake at once, and only ever narrower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openry.data import data_root
from openry.errors import BadFileError, NotFoundError
from openry.policy import Decision, load_policy
from openry.policy.commands import test_file as tried
from openry.policy.load import PRESETS

PLACE = {"cwd": "/w", "workspace": "/w", "home": "/h", "path": "/usr/bin:/bin"}
ALLOW, CONFIRM, DENY = Decision.ALLOW, Decision.CONFIRM, Decision.DENY


def decided(policy: Any, line: str) -> Decision:
    return load_policy(policy).decide(line, **PLACE).decision


@pytest.mark.parametrize("name", PRESETS)
def test_a_shipped_policy_passes_its_own_tests(name: str) -> None:
    """Each preset carries commands with the verdict they must get."""
    assert "tests as they should be" in tried(data_root() / f"templates/policies/{name}.yaml")
    assert load_policy(name).name == name


def test_the_presets_are_ordered() -> None:
    """What `strict` allows `moderate` does, and what that does `permissive` does."""
    for line in ("git status && git diff", "grep -c a f | head", "find . -name a"):
        assert [decided(name, line) for name in PRESETS] == [ALLOW] * 3
    assert [decided(name, "touch a") for name in PRESETS] == [DENY, ALLOW, ALLOW]
    assert [decided(name, "sudo ls; eval $x") for name in PRESETS] == [DENY, DENY, ALLOW]


def test_every_mistake_is_told_at_once_with_its_line_and_a_fix(tmp_path: Path) -> None:
    """One round trip mends a file, whatever is wrong with it."""
    path = tmp_path / "own.yaml"
    path.write_text(
        "default: perhaps\nopaque: allow\ncomands: []\ncommands:\n  - {allow: git, subs: [x]}\n"
        "  - {allow: rm -rf}\n  - {allow: ls, deny: ls}\n  - {deny: '*', regex: '('}\n"
        "  - {allow: cat}\n  - {deny: cat}\n  - {allow: curl, urls: [api.test]}\n"
        "limits: {time_s: -1}\n"
    )

    with pytest.raises(BadFileError) as caught:
        load_policy(path)

    told = "\n".join(caught.value.problems)
    for words in (
        "own.yaml:1: `default` must be",
        "own.yaml:2: `opaque` must be",
        "own.yaml:3: unknown key `comands` (did you mean `commands`?)",
        "own.yaml:5: unknown key `subs` (did you mean `sub`?)",
        "own.yaml:6: `rm -rf` is no program; subcommands go into `sub`",
        "own.yaml:7: a rule needs exactly one of",
        "own.yaml:8: `(` is no regular expression",
        "own.yaml:10: `deny cat` contradicts `allow cat`",
        "own.yaml:11: `api.test` is no address",
        "own.yaml:12: `time_s` must be a number above 0",
    ):
        assert words in told, words


def test_whatever_has_the_wrong_form_is_told_with_the_right_one(tmp_path: Path) -> None:
    """Lists, texts, numbers, hosts, layers and programs: each mistake has its line and its fix."""
    path = tmp_path / "own.yaml"
    path.write_text(
        "default: deny\ndefault: allow\ncommands:\n- {allow: 7}\n- {allow: git, options: [x]}\n"
        "- {allow: cat, script: [a.py]}\n- {allow: 'a;b'}\n- {deny: ls, runs: 3}\n"
        "- {deny: ls, regex: [a]}\n- {deny: rm, message: [1]}\n- {allow: mv, paths: ['']}\n- {}\n"
        "files: {write: [3]}\n"
        "network: {hosts: ['https://api.test/x', 'a.test:99999'], per_minute: no}\n"
        "env: {set: [A]}\nrequire: [net, flying]\ntests: {maybe: [x]}\n"
    )

    with pytest.raises(BadFileError) as caught:
        load_policy(path)

    told = list(caught.value.problems)
    assert [int(one.split(":")[1]) for one in told] == [
        2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14, 14, 15, 16, 17
    ]  # fmt: skip
    for words in (
        "`default` stands twice",
        "`allow` must be a text or a list of texts, got `7`",
        "`x` is no option; options begin with `-`",
        "`cat` runs no scripts",
        "`a;b` is no program",
        "`https://api.test/x` is no host; write it like `api.example.com:443`",
        "`flying` is no layer; there are `fs_read`",
        "unknown key `maybe`",
    ):
        assert any(words in one for one in told), words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default: [", "own.yaml:"),
        ("- a", "own.yaml: must be a map"),
        ("", "own.yaml: must be a map"),
        ("a: !!python/object:os.system x", "own.yaml:1: could not determine a constructor"),
        ("commands: &a [*a]", "own.yaml:1: a rule must be a map"),
    ],
)
def test_what_is_no_policy_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    """A file that is something else entirely is refused in words, at its line."""
    path = tmp_path / "own.yaml"
    path.write_text(text)

    with pytest.raises(BadFileError) as caught:
        load_policy(path)

    assert str(caught.value).startswith(said)


def test_a_mistake_in_the_older_form_is_told_at_its_own_line(tmp_path: Path) -> None:
    """The translation does not move a problem to another line."""
    path = tmp_path / "own.yaml"
    path.write_text("mode: blocklist\ncommands: [rm]\npatterns:\n  - {regex: '('}\n")

    with pytest.raises(BadFileError, match=r"own.yaml:4: `\(` is no regular expression"):
        load_policy(path)


def test_a_policy_whose_own_tests_fail_is_not_loaded(tmp_path: Path) -> None:
    """A rule that does not mean what its author thought is found before any command is."""
    path = tmp_path / "own.yaml"
    path.write_text("default: allow\ntests:\n  deny:\n    - rm x\n")

    with pytest.raises(BadFileError, match=r"own.yaml:4: `rm x` should be deny, but is allow"):
        load_policy(path)


def test_a_file_that_is_right_says_so(tmp_path: Path) -> None:
    """`openry policy test FILE` counts what it looked at."""
    path = tmp_path / "own.yaml"
    path.write_text("commands: [{allow: ls}]\ntests: {allow: [ls], deny: [rm x, cat f]}\n")

    assert tried(path) == f"{path}: 1 rule, 3 of 3 tests as they should be"


def test_an_unknown_name_offers_the_nearest() -> None:
    """A slip in a name costs one look, not a search."""
    with pytest.raises(NotFoundError, match="did you mean `moderate`"):
        load_policy("moderat")


@pytest.mark.parametrize(
    ("old", "line", "decision"),
    [
        ({"mode": "allowlist", "commands": ["ls", "git status"]}, "ls; git status", ALLOW),
        ({"mode": "allowlist", "commands": ["ls", "git status"]}, "git push", DENY),
        ({"mode": "blocklist", "commands": ["rm", "git push"]}, "git status", ALLOW),
        ({"mode": "blocklist", "commands": ["rm", "git push"]}, "ls; git push", DENY),
        ({"mode": "blocklist", "patterns": [{"regex": "--force"}]}, "git x --force", DENY),
        ({"mode": "allowlist", "patterns": [{"regex": "^ls( -l)?$"}]}, "ls -l", ALLOW),
        ({"mode": "allowlist", "patterns": [{"regex": "^ls( -l)?$"}]}, "ls -l; rm x", DENY),
        ({"mode": "unrestricted"}, "eval $x", ALLOW),
        ({"params": [{"command": "git", "blocked_subcommands": ["push"]}]}, "git push", DENY),
        ({"params": [{"command": "git", "blocked_subcommands": ["push"]}]}, "git log", ALLOW),
        ({"params": [{"command": "rm", "blocked_flags": ["-r"]}]}, "rm -fr x", DENY),
        ({"params": [{"command": "rm", "blocked_flags": ["--recursive"]}]}, "rm --recur x", DENY),
        ({"params": [{"command": "git", "allowed_subcommands": ["log"]}]}, "git push", DENY),
        ({"params": [{"command": "git", "allowed_subcommands": ["log"]}]}, "git log", ALLOW),
    ],
)
def test_the_older_form_means_what_it_meant(old: Any, line: str, decision: Decision) -> None:
    """Policies written for older versions load, and decide as their author meant."""
    assert decided(old, line) is decision


def test_a_step_can_only_narrow() -> None:
    """Under a parent the stricter verdict holds, whatever the step says."""
    wide, narrow = {"default": "allow"}, {"commands": [{"allow": "ls"}]}

    policy = load_policy(wide, parent=load_policy(narrow))

    assert policy.decide("ls", **PLACE).decision is ALLOW
    assert policy.decide("cat f", **PLACE).decision is DENY


def test_confirm_stands_between() -> None:
    """deny > confirm > allow > default, whatever the order."""
    rules = [{"allow": "rm"}, {"confirm": "rm", "options": ["-r"]}, {"deny": "rm", "paths": ["a"]}]

    for given in (rules, rules[::-1]):
        policy = {"default": "deny", "commands": given}
        assert decided(policy, "rm b") is ALLOW
        assert decided(policy, "rm -r b") is CONFIRM
        assert decided(policy, "rm -r a") is DENY


def test_a_map_is_read_once_and_another_is_another_policy():
    """What a map says is kept; a value of another type, or a mistake, is never taken for it."""
    allowing = {"default": "deny", "commands": [{"allow": "ls"}]}

    assert load_policy(allowing) is load_policy(dict(allowing))
    assert load_policy({**allowing, "default": "allow"}) != load_policy(allowing)
    for _ in range(2):
        with pytest.raises(BadFileError):
            load_policy({**allowing, "default": True})
