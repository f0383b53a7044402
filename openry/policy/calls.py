"""A simple command as a call of one program: its options, files, addresses, and what it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from openry.policy.profiles import Profile
from openry.policy.words import Word


def _own_text(word: Word) -> tuple[str, ...] | None:
    return None if word.splits else (word.text,)


class Place(NamedTuple):
    """Where a command is run.

    Attributes:
        path: Folders in which the shell finds programs.
        cwds: Where it may be by the time a command is reached; an empty one is not known.
        texts: Gives each text that a word may be; None where nothing bounds it.
    """

    cwd: str
    workspace: str
    home: str
    path: str
    cwds: tuple[str, ...] = ()
    texts: Callable[[Word], tuple[str, ...] | None] = _own_text


class Touched(NamedTuple):
    """A file that a command names. `how`: `read`, `write`, or `remove` (with all below it)."""

    how: str
    word: Word


class Call(NamedTuple):
    """One call of one program, as far as its words say.

    Attributes:
        name: The program; empty where the file is in no trusted folder.
        file: The word that named it.
        options: Every option, short ones apart, abbreviations as they were written.
        unclear: Words that may be an option, or a subcommand, that only the run will tell.
        hazards: Options used that run or load something, with why.
        inner: Commands it starts with words of its own.
        scripts: Texts it gives to a shell.
        values: Options with the words that they were given.
        below: Where it starts other commands, if not where it runs itself.
        fed: It is a shell that runs what it reads from its standard input.
        blind: Text it runs that nobody can know, whatever the rules allow.
        read: Text it runs that a command prints.
        text: Text it is given that is not known as it stands.
    """

    name: str
    file: str
    argv: tuple[Word, ...]
    profile: Profile
    sub: tuple[Word, ...] = ()
    options: tuple[str, ...] = ()
    operands: tuple[Word, ...] = ()
    files: tuple[Touched, ...] = ()
    urls: tuple[Word, ...] = ()
    script: Word | None = None
    unclear: str = ""
    hazards: tuple[tuple[str, str], ...] = ()
    inner: tuple[tuple[Word, ...], ...] = ()
    scripts: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    opaque: str = ""
    values: tuple[tuple[str, Word], ...] = ()
    below: tuple[str, ...] = ()
    fed: bool = False
    blind: str = ""
    read: Word | None = None
    text: Word | None = None
