"""Hostile values in every quoting context, run through real shells: printed, never run.

`make test` takes a seeded sample; `make long` all of the values in all of the contexts.
"""

from __future__ import annotations

import random
import subprocess

import pytest

from openry.orchestrator.templates import render_command

ATOMS = (
    "$(touch pwned)", "`touch pwned`", "; touch pwned;", "| touch pwned", "&& touch pwned", "\n",
    "touch pwned", "> pwned", ">> pwned", "<(touch pwned)", "$((a[$(touch pwned)]))", "${IFS}",
    "'", '"', "\\", "\\'", '\\"', "'\\''", "$'\\x27'", "$", "$$", "$@", "$*", "$1", "${", "}", "{",
    "((", "))", ")", "(", "*", "?", "[a]", "~", "~root", "!", "!!", "#", " # ", "%s", "%n", "-n",
    "-e", "--", "-rf /", "EOF", "\nEOF\n", "<<EOF", ";;", "esac", "done", "fi", "\t", "  ", "é",
    "漢字", "\U0001f600", "\r", "\x01", "\x1b[31m", "\x7f", "\u2028", "\u200b", "{{ payload.v }}",
    "${payload.v}", "{% raw %}", "RY_VALUE_1", "${RY_VALUE_1}", "a[$(touch pwned)]", "x=1",
    "PATH=.", "/etc/passwd", "0", "1", "", "&", "touch${IFS}pwned", "$(printf '\\164ouch pwned')",
    "\x0b", "\udc80",
)  # fmt: skip
#: A command, and what it prints for a value.
CONTEXTS = {
    "printf %s @": str,
    "printf %s '@'": str,
    'printf %s "@"': str,
    "printf %s a@b": "a{}b".format,
    "printf %s a'b@c'\"d@e\"f": lambda v: f"ab{v}cd{v}ef",
    "printf %s 'it'\\''s @'": "it's {}".format,
    'printf %s "say \\"@\\""': 'say "{}"'.format,
    "printf %s \"$(printf %s '@'.)\"": "{}.".format,
    'printf %s "$(printf %s "$(printf \'%s.\' @)")"': "{}.".format,
    'x=@; printf %s "$x"': str,
    "x='@'y; printf %s \"$x\"": "{}y".format,
    "X=@ sh -c 'printf %s \"$X\"'": str,
    "sh -c 'printf %s \"$1\"' _ @": str,
    "printf %s @ | cat": str,
    "{ printf %s '@'; } 2>/dev/null": str,
    '(printf %s "@")': str,
    'for i in @; do printf %s "$i"; done': str,
    "case @ in '@') printf %s \"@\";; *) printf no;; esac": str,
    'f() { printf %s "$1"; }; f "@"': str,
    "if [ x@ = 'x@' ]; then printf %s @; fi": str,
    "# it's @ \"\nprintf %s @": str,
    "cat <<'E' >/dev/null\nit's \"\nE\nprintf %s '@'": str,
    "set -- @ '@'; printf '%s|%s' \"$1\" \"$2\"": "{0}|{0}".format,
    "printf %s \\\n  '@'": str,
}
BASH = {
    "printf %s $'a\\t@'": "a\t{}".format,
    "[[ @ == \"@\" && '@' = @ ]] && printf %s @": str,
    "a=('@' @); printf %s \"${a[1]}\"": str,
    "cat <<< @": "{}\n".format,
    "cat <(printf %s @)": str,
    'read -r -d "" x < <(printf "%s\\0" "@"); printf %s.': lambda v: ".",
    'local_() { local x=@; printf %s "$x"; }; local_': str,
}


def hostile_values(count: int) -> list[str]:
    """Every atom alone, then mixtures of up to six, the same in every run."""
    dice = random.Random(20260301)
    mixed = ("".join(dice.choices(ATOMS, k=dice.randint(2, 6))) for _ in range(count))
    return [*ATOMS, *mixed][:count]


def check(value: str, contexts: dict, shell: str, folder) -> None:
    for command, expected in contexts.items():
        for form in ("{{ payload.v }}", "${payload.v}"):
            text, env = render_command(command.replace("@", form), {"payload": {"v": value}})
            run = subprocess.run(
                [shell, "-c", text], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **env}, timeout=20,
            )  # fmt: skip
            assert run.stdout.decode("utf-8", "surrogateescape") == expected(value), (
                command,
                value,
            )
    assert list(folder.iterdir()) == [], value


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_hostile_value_is_printed_and_not_run(shell, tmp_path):
    """A seeded sample: each context sees some of the values, each value some of the contexts."""
    contexts = CONTEXTS | (BASH if shell == "bash" else {})
    values = hostile_values(1000)
    dice = random.Random(7)
    for context in contexts.items():
        for value in dice.sample(values, 10):
            check(value, dict([context]), shell, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_every_hostile_value_in_every_context(shell, tmp_path):
    """1,000 values × all contexts."""
    contexts = CONTEXTS | (BASH if shell == "bash" else {})
    for value in hostile_values(1000):
        check(value, contexts, shell, tmp_path)
