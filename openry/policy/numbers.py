"""Numbers: what bash evaluates as arithmetic must be one, or it may run a command.

A value like `a[$(rm x)]` runs `rm` wherever arithmetic looks at it: in `$((x))`, `[[ x -eq 1 ]]`,
`${y:x}`, and in the place of a list. So it is kept in mind which variables may hold anything.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from openry.policy.script import Redirect, Simple
    from openry.policy.words import Word

#: Arithmetic that can be read: no quotes, and no way to run something but a subscript's value.
ARITHMETIC = re.compile(r"[\w\s+\-*/%<>=!&|^~?:,()${}#\[\]]*")
NAMES = re.compile(r"(?<![\w#])[A-Za-z_]\w*")
#: `$1`, `$*` and their like; they are kept in mind as one variable named POSITIONAL.
POSITIONS = re.compile(r"\$\{?[0-9@*]")
POSITIONAL = "1"
#: Variables whose new values bash evaluates as arithmetic.
INTEGERS = frozenset(
    ("RANDOM", "SRANDOM", "OPTIND", "HISTCMD", "SECONDS", "BASHPID", "LINENO", "EPOCHSECONDS")
)
#: Variables that bash itself sets to texts of others.
TEXTS = frozenset(
    "_ REPLY MAPFILE OPTARG BASH_REMATCH BASH_COMMAND BASH_ARGV BASH_ARGV0 BASH_SOURCE FUNCNAME"
    " BASH_EXECUTION_STRING DIRSTACK PWD OLDPWD PS1 PS2 PS3 PS4 IFS COMP_LINE COMP_WORDS".split()
)
_DIGITS = re.compile(r"-?[0-9]*")
_WC = re.compile(r"-[lwcmL]+|--(?:lines|words|bytes|chars)")
_GREP = re.compile(r"-[civEFwx]*c[civEFwx]*")
_DATE = re.compile(r"\+(?:%[-_]?[smdHMSNujVyYC])+")
_STAT = re.compile(r"(?:-c|--format=|--printf=)?%[sYXZWugha]")


def is_number(word: Word) -> bool:
    """Whether `word` is a number, or nothing, whatever the run brings."""
    return word.number or _DIGITS.fullmatch(word.text) is not None


def arguments_are_numbers(words: Iterable[Word]) -> bool:
    return all(is_number(word) for word in words)


def prints_numbers(commands: Sequence[Simple]) -> bool:
    """Whether a substitution of `commands`, all there is in it, gives nothing but numbers."""
    if not commands or not all(one.piped for one in commands[1:]):
        return False
    last = commands[-1]
    if not last.words or any(speaks_otherwise(redirect) for redirect in last.redirects):
        return False
    words = [word.literal for word in last.words]
    if words[0] == "tr" and words[1:2] == ["-d"] and len(words) == 3 and words[2]:
        return prints_numbers(commands[:-1])
    known = [word for word in words[1:] if word is not None]
    if words[0] == "seq" and known and re.fullmatch(r"[0-9]+", known[0]) and words[1] is not None:
        return True  # after a number `seq` knows no options
    if len(known) != len(words) - 1:
        return False
    if words[0] == "wc":
        return bool(known) and all(_WC.fullmatch(word) for word in known)
    if words[0] == "grep":
        return len(known) in (2, 3) and _GREP.fullmatch(known[0]) is not None and not any(
            word.startswith("-") for word in known[1:]
        )  # fmt: skip
    if words[0] == "date":
        return len(known) == 1 and _DATE.fullmatch(known[0]) is not None
    if words[0] == "stat":
        return known[0:1] == ["-c"] and len(known) == 3 and bool(_STAT.fullmatch(known[1]))
    return words in (["nproc"], ["id", "-u"], ["id", "-g"])


def speaks_otherwise(redirect: Redirect) -> bool:
    """Whether it may bring other output than the command's own into a substitution."""
    op, target = redirect.op, redirect.target
    return op not in ("<", "<<", "<<<") and not (op == ">" and target.text == "/dev/null")
