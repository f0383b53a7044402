"""What a word may name, against a real bash: no file outside is named by a line that is allowed."""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path

import pytest

from openry.policy import Policy, load_policy

#: Files of the folder, some with names that are easily cut or joined to `..`.
FILES = ("a.txt", "b.log", "a.", "..x", "...", "sub/c.txt", "sub/deep/d.txt", "-n", "x_y.TXT")
PIECES = (
    "a.txt", "b", "sub", "..", ".", "/", "/etc", "./", "../", "*", "*.txt", ".*", "?", "a.", "..x",
    "x", "$x", "${x}", "${y}", "$1", "$@", "$PWD", "$HOME", "$OLDPWD", "~", "~/", "~root", "~+",
    "${x%.txt}", "${x%/*}", "${x##*/}", "${x##*.}", "${x%%.*}", "${x%.*}", "${x#./}", "${x:-..}",
    "${x:-a}", "${x/a/b}", "${x//x/.}", "${x^^}", "${PWD%/*}", "${x:0:1}", "${y:+..}", "{a,..}",
    "{sub,/etc}/", "$(echo ..)", "$(echo sub)", "$(pwd)", "$(ls | head -1)", "$(dirname \"$x\")",
    "$(dirname sub/a)", "$(basename \"$x\")", "$(basename \"$PWD\")", "$(date +%Y)", "$((1+1))",
    "`echo /etc`", "$(find . -name '*.txt' | head -1)", "$(printf %s ..)", "${#x}", "$(echo $y)",
    "$(ls -d sub)", "$(echo \"$x\" | tr a .)", "$(echo \"$x\" | sed 's/a/b/')", "passwd", "-n",
)  # fmt: skip
#: `§` is a word, `¶` a command.
SHAPES = (
    "cat §", "cat §", "cat § §", "cat \"§\"", "x=§; ¶", "x=§ y=§; ¶", "y=§; x=$y; ¶", "x=\"§\"; ¶",
    "for x in § §; do ¶; done", "for x in §; do ¶; done", "for x in *; do ¶; done; ¶", "x+=§; ¶",
    "for x in $(ls); do ¶; done", "for x in $(find .); do ¶; done", "set -- § §; ¶", "cd § && ¶",
    "for x in *.txt; do y=§; ¶; done", "f() { ¶; }; f §", "f() { local x=$1; ¶; }; f §", "cd §; ¶",
    "ls | while read -r x; do ¶; done", "find . | while read -r x; do ¶; done", "(cd §; ¶)",
    "find . -name '*.txt' | xargs cat", "find § -type f | xargs cat", "echo § | xargs cat",
    "ls | xargs -I{} cat §{}", "find . -exec cat {} \\;", "find § -exec cat § {} \\;", "x=(§ §); ¶",
    "find sub -execdir cat § {} \\;", "while read -r x; do ¶; done <<< §", "read -r x <<< §; ¶",
    "while read -r x; do ¶; done <<'E'\n§\nE", "cat < §", "cat <<< §", "echo \"$(cat §)\"", "¶ & ¶",
    "x=§ | ¶", "(x=§); ¶", "true && x=§; ¶", "false && x=§; ¶", "x=§ || ¶", "unset x; ¶", "¶; ¶",
    ": ${x:=§}; ¶", "declare x=§; ¶", "export x=§; ¶", "printf -v x %s §; ¶", "{ x=§; }; ¶",
    "sh -c 'cat \"$1\"' _ §", "sh -c 'cat §'", "bash -c 'x=$1; ¶' _ §", "trap 'cat §' EXIT; ¶",
    "case § in *) x=§;; esac; ¶", "if true; then x=§; fi; ¶", "IFS=/; x=§; ¶", "x=§; x=§; ¶",
    "mapfile -t x < <(ls); ¶", "cat $(ls -d §)", "ls -d § | xargs cat", "x=§; f() { ¶; }; x=§; f",
    "printf '%s\\n' § | xargs cat", "env -C § cat §", "cat -- §", "cat §/§", "cat §.§",
    "git ls-files | xargs cat", "grep -rl x § | xargs cat",
    "du -a § | awk '{print $2}' | xargs cat",
    "for x; do ¶; done", "set -- §; for x; do ¶; done", "find . | sed 's|^\\./||' | xargs cat",
    "find . -printf '%s %p\\n' | awk '{print $2}' | xargs cat",
)  # fmt: skip
SEEING = """#!/bin/sh
for one in "$@"; do
    case $one in -*) continue ;; esac
    [ -n "$one" ] && realpath -m -- "$one" >> "$SEEN"
done
exit 0
"""


def word(dice: random.Random) -> str:
    return "".join(dice.choice(PIECES) for _ in range(dice.choice((1, 1, 1, 2, 2, 3))))


def line(dice: random.Random, depth: int = 0) -> str:
    shape = dice.choice(SHAPES[:4] if depth > 1 else SHAPES)
    while "¶" in shape:
        shape = shape.replace("¶", line(dice, depth + 1), 1)
    while "§" in shape:
        shape = shape.replace("§", word(dice), 1)
    return shape


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("files")
    (base / "bin").mkdir()
    (base / "bin/cat").write_text(SEEING)
    (base / "bin/cat").chmod(0o755)
    for name in FILES:
        file = base / "home/work" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return base


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy({"default": "allow", "files": {"read": ["**"], "write": ["**"]}})


def named_outside(text: str, policy: Policy, base: Path) -> set[str] | None:
    """The files outside that `cat` is given; None where the line is refused."""
    work, seen = base / "home/work", base / "seen"
    env = {"PATH": f"{base}/bin:/usr/bin:/bin", "HOME": str(base / "home"), "SEEN": str(seen)}
    verdict = policy.decide(text, cwd=str(work), home=env["HOME"], path=env["PATH"], inherited=env)
    if not verdict.allowed:
        return None
    seen.write_text("")
    subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", text],
        env=env, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False,
    )  # fmt: skip
    system = re.compile(r"/(?:usr|bin|sbin|lib|lib64|opt|nix|dev|proc/\d+/fd)(?:/|$)")
    lines = [one for one in seen.read_text().splitlines() if not system.match(one)]
    return {one for one in lines if one != str(work) and not one.startswith(f"{work}/")}


def check(count: int, policy: Policy, base: Path) -> int:
    """Try `count` lines; how many were allowed. OPENRY_SEED, a number, makes others."""
    dice, allowed = random.Random(int(os.environ.get("OPENRY_SEED", count))), 0
    for _ in range(count):
        text = line(dice)
        outside = named_outside(text, policy, base)
        assert not outside, (text, outside)
        allowed += outside is not None
    return allowed


def test_no_file_outside_is_named_in_a_sample(policy: Policy, folder: Path) -> None:
    """250 generated lines: a program that reads is given no file outside of the folder."""
    assert check(250, policy, folder) > 25


@pytest.mark.long
def test_no_file_outside_is_named(policy: Policy, folder: Path) -> None:
    """10,000 generated lines."""
    assert check(10_000, policy, folder) > 1_000
