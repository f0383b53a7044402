"""Which program a word names, and what a command asks of it."""

# ruff: noqa: PTH110, PTH118, PTH119, PTH120
# Paths are compared as text here, many for each command.

from __future__ import annotations

import os
from functools import lru_cache

from openry.policy.arguments import Arguments
from openry.policy.calls import Call, Place
from openry.policy.finding import read_find
from openry.policy.profiles import Profile, profile_of
from openry.policy.shells import (
    read_evaluated,
    read_interpreter,
    read_later,
    read_program,
    read_set,
    read_shell,
    read_shopt,
    read_source,
)
from openry.policy.words import Opaque, Word
from openry.policy.wrappers import read_wrapper

_SYSTEM = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin")
_MORE = ("/opt/homebrew/bin", "/usr/games", "/usr/local/games", "/snap/bin")
_READERS = {
    "find": read_find, "later": read_later, "source": read_source, "evaluated": read_evaluated,
    "set": read_set, "shopt": read_shopt,
    **dict.fromkeys(("env", "wrapper", "xargs", "command"), read_wrapper),
}  # fmt: skip


def program_name(word: str, place: Place) -> str:
    """The program that `word` starts, when it lies in a trusted folder; else the empty text.

    A bare word is looked up as the shell does; one that is nowhere is taken by its name.
    """
    if "/" not in word:
        return word if _found_in_trust(word, place) else ""
    if not place.cwd and not word.startswith("/"):
        return ""
    real = os.path.realpath(os.path.join(place.cwd, word))
    folder = os.path.dirname(real)
    trusted = (*_SYSTEM, *_MORE, *(os.path.realpath(one) for one in _folders(place)))
    if folder in trusted or folder.startswith("/usr/lib/"):
        direct = os.path.realpath(os.path.dirname(os.path.join(place.cwd, word)))
        return os.path.basename(word) if direct in trusted else os.path.basename(real)
    return ""


def _folders(place: Place) -> list[str]:
    found = place.path.split(":")
    inside = (place.workspace.rstrip("/") or "/nowhere") + "/"
    return [one for one in found if one.startswith("/") and not f"{one}/".startswith(inside)]


def _found_in_trust(word: str, place: Place) -> bool:
    trusted = _folders(place)
    for folder in place.path.split(":"):
        if folder in trusted:
            if os.path.exists(f"{folder}/{word}"):
                return True
        elif os.path.exists(os.path.join(place.cwd, folder, word)):
            return False
    return True


def read_call(
    argv: tuple[Word, ...],
    place: Place,
    names: dict[str, str] | None = None,
    given: tuple[str, ...] = (),
) -> Call:
    """What `argv` asks of its program.

    Args:
        names: Keeps what was found of programs' files.
        given: What the lines of its standard input may be, where that is known.

    Raises:
        Opaque: Which program runs cannot be known.
    """
    names = {} if names is None else names
    file = argv[0].literal
    if file is None or not file:
        raise Opaque(f"the program `{argv[0].shown}` is known only at run time")
    if file not in names:
        names[file] = program_name(file, place)
    return _read(names[file], file, argv, given)


def read_words(name: str, argv: tuple[Word, ...], given: tuple[str, ...]) -> Call:
    """The same of a program that is known by its name, wherever it lies."""
    return _read(name, name, argv, given)


@lru_cache(maxsize=64)  # of one line it is asked for what a command prints, and for the verdict
def _read(name: str, file: str, argv: tuple[Word, ...], given: tuple[str, ...]) -> Call:
    profile = profile_of(name) if name else Profile(known=False)
    args = Arguments(name, file, argv, profile, given)
    if read := _READERS.get(profile.runs):
        read(args)
    else:
        args.take_options(stop_at_operand=profile.script or profile.runs == "shell")
        args.operands += args.rest  # what follows a script is the script's
        if profile.runs == "shell":
            read_shell(args)
        elif profile.script:
            read_interpreter(args)
        elif profile.program:
            read_program(args)
    return args.call()
