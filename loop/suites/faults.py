"""Mistakes planted into what a person wrote: the workflows that the loop has to mend.

Three are noticed at once (a misspelt file, program or result); the fourth loses the first line of
the result and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

#: A command with the mistake; None where it has no place for it.
Planted = str | None
_PROGRAM = re.compile(r"\b(awk|cat|cut|find|grep|head|paste|python3|sed|sort|tail|tr|wc)\b")


def misspelt_file(command: str, files: Iterable[str]) -> Planted:
    """The first file that is read loses a letter.

    >>> misspelt_file("grep x app.log > out.txt", ["app.log"])
    'grep x ap.log > out.txt'
    """
    for name in sorted(files, key=command.find):
        if name in command and len(name.rpartition("/")[2].partition(".")[0]) > 2:
            stem = name.rpartition("/")[2]
            return command.replace(name, name.replace(stem, stem[:1] + stem[2:]))
    return None


def misspelt_program(command: str, files: Iterable[str]) -> Planted:
    """The first program has two letters the wrong way round.

    >>> misspelt_program("LC_ALL=C sort a > b", [])
    'LC_ALL=C srot a > b'
    """
    found = _PROGRAM.search(command)
    if found is None or len(found[0]) < 3:
        return None
    word = found[0]
    swapped = word[0] + word[2] + word[1] + word[3:]
    return command[: found.start()] + swapped + command[found.end() :]


def misspelt_result(command: str, files: Iterable[str]) -> Planted:
    """The last result gets a name that nobody asked for.

    >>> misspelt_result("sort a > sorted.txt", [])
    'sort a > srted.txt'
    """
    head, arrow, name = command.rpartition(" > ")
    if not arrow or len(name.partition(".")[0]) < 3:
        return None
    return f"{head}{arrow}{name[:1]}{name[2:]}"


def lost_line(command: str, files: Iterable[str]) -> Planted:
    """The last result lacks its first line.

    >>> lost_line("sort a > b", [])
    '(sort a) | tail -n +2 > b'
    """
    before, both, last = command.rpartition(" && ")
    head, arrow, name = last.rpartition(" > ")
    return f"{before}{both}({head}) | tail -n +2 > {name}" if arrow else None


FAULTS: tuple[Callable[[str, Iterable[str]], Planted], ...] = (
    misspelt_file, misspelt_program, misspelt_result, lost_line,
)  # fmt: skip


def plant(command: str, files: Iterable[str], number: int) -> tuple[str, str]:
    """(name of the mistake, command with it): the `number`-th, or the next that has a place."""
    listed = list(files)
    for turn in range(len(FAULTS)):
        fault = FAULTS[(number + turn) % len(FAULTS)]
        planted = fault(command, listed)
        if planted is not None and planted != command:
            return fault.__name__, planted
    return "", command
