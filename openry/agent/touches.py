"""What an action touches, and whether two actions may change places.

By the policy's reading of a command line, or by what the arguments of a capability name. What
that reading cannot tell conflicts with everything.
"""

# ruff: noqa: PTH118
# Paths are compared as text here, many for each action.

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from openry.capability import ToolDefinition, complete, prepare
from openry.errors import BadArgumentsError
from openry.policy import Policy, load_policy

Places = frozenset[str]

#: Programs whose files the policy's reading tells, all of them.
_TOLD = (
    "cat tac head tail wc nl od cut paste join comm diff cmp uniq sort tr rev fold fmt expand"
    " column grep sed awk jq base64 iconv md5sum sha1sum sha256sum sha512sum cksum basename dirname"
    " expr echo printf seq date sleep tee touch mkdir rmdir rm cp mv cd"
).split()
#: Those that look at more than they name: into folders, or whether something is there.
_LOOKING = "ls find du stat file readlink realpath test".split()
#: Those that may put a link where none was.
_MOVING = {"cp", "mv"}
#: Options with which a program touches more than is told are not among these.
_OPTIONS = {
    "cp": re.compile(r"-[rRfvpn]+"),
    "mv": re.compile(r"-[fvn]+"),
    "rmdir": re.compile(r"-v|--verbose|--ignore-fail-on-non-empty"),
    "sed": re.compile(r"-[nErsuz]*[ie]?|--in-place|--quiet|--regexp-extended"),
}
#: What may be a pattern of the shell, a test, or the option of `grep` that goes into folders.
_LOOKS = re.compile(r"[*?\[]|\bgrep\b.*\s(?:-[a-zA-Z]*[rRd]|--(?:dereference-)?rec|--dir)", re.S)
#: In a path of a verdict: what only the run will tell.
_UNSURE = re.compile(r"[*?…]")
#: Entries of a folder that are looked through for links.
_MOST_ENTRIES = 20_000


@dataclass(frozen=True, slots=True)
class Touch:
    """What one action reads and writes.

    Attributes:
        reads: Absolute paths, each with all that lies below it, and `//HOST`.
        opaque: Nobody can tell what it touches.
    """

    reads: Places = frozenset()
    writes: Places = frozenset()
    opaque: bool = False


ANYTHING = Touch(opaque=True)


def waits(touches: Sequence[Touch]) -> list[frozenset[int]]:
    """For each action the earlier ones that must have ended before it begins."""
    sure = [_sure(place, touches) for place in range(len(touches))]
    return [
        frozenset(earlier for earlier in range(place) if conflict(sure[earlier], sure[place]))
        for place in range(len(sure))
    ]


def conflict(one: Touch, other: Touch) -> bool:
    """Whether it may make a difference which of the two comes first.

    >>> a, b = Touch(frozenset({"/w/a"})), Touch(frozenset({"/w/b"}), frozenset({"/w/a/x"}))
    >>> conflict(a, a), conflict(a, b), conflict(b, b), conflict(a, ANYTHING)
    (False, True, True, True)
    """
    if one.opaque or other.opaque:
        return True
    return _meet(one.writes, other.reads | other.writes) or _meet(one.reads, other.writes)


def _meet(some: Places, others: Places) -> bool:
    return any(_inside(a, b) or _inside(b, a) for a in some for b in others)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _sure(place: int, touches: Sequence[Touch]) -> Touch:
    """Where a name leads below something that another action writes, nobody can tell before."""
    own = touches[place]
    written = [one for at, each in enumerate(touches) if at != place for one in each.writes]
    below = any(
        name != folder and _inside(name, folder)
        for name in own.reads | own.writes
        for folder in written
    )
    return ANYTHING if below else own


# --- reading an action ------------------------------------------------------------------------


def of_line(text: str, workspace: Path) -> Touch:
    """What a command line touches that is run in `workspace`."""
    root = os.path.realpath(workspace)
    verdict = _reading().decide(text, cwd=root, workspace=root)
    if not verdict.allowed or any(_touches_more(part.argv) for part in verdict.parts):
        return ANYTHING
    programs = {part.argv[0] for part in verdict.parts}
    if programs & _MOVING and not _holds_no_links(root):
        return ANYTHING  # what it copies may be a link, which then leads elsewhere
    looks = programs & {"[", *_LOOKING}
    reads = {root} if looks or _LOOKS.search(text) else set(verdict.reads)
    return _touch(root, reads, verdict.writes)


def of_call(tool: ToolDefinition, given: Mapping[str, Any], workspace: Path) -> Touch:
    """What a call of a capability touches, as far as its definition is true."""
    try:
        values = complete(tool, given)
        command = prepare(tool, given, workspace)
    except BadArgumentsError:
        return ANYTHING  # an earlier action may put it right
    asks = tool.requires_confirmation or tool.auth_check is not None
    elsewhere = tool.side_effects == "irreversible" or (tool.network and not command.urls)
    if asks or elsewhere or (tool.side_effects == "writes" and not command.writes):
        return ANYTHING
    root = os.path.realpath(workspace)
    hosts = [f"//{urlsplit(url).hostname}" for url in command.urls]
    reads = [*command.reads, *(hosts if tool.may_repeat(values) else ())]
    writes = [*command.writes, *(() if tool.may_repeat(values) else hosts)]
    return _touch(root, reads, [*writes, *filter(None, (command.output_file,))])


@cache
def _reading() -> Policy:
    """A policy that allows what it can tell all files of."""
    return load_policy(
        {
            "name": "touches",
            "default": "deny",
            "opaque": "deny",
            "commands": [{"allow": [*_TOLD, *_LOOKING]}],
            "files": {"read": ["**"], "write": ["**"]},
            "network": {"hosts": []},
        }
    )


def _touches_more(argv: Sequence[str]) -> bool:
    """Whether an option may have it make links, or touch files beside those that it names."""
    known = _OPTIONS.get(argv[0])
    options = (word for word in argv[1:] if word.startswith("-"))
    return known is not None and not all(map(known.fullmatch, options))


def _touch(root: str, reads: Iterable[str], writes: Iterable[str]) -> Touch:
    read, written = ([_place(root, path) for path in paths] for paths in (reads, writes))
    if None in read or None in written:
        return ANYTHING
    return Touch(frozenset(filter(None, read)), frozenset(filter(None, written)))


def _place(root: str, path: str) -> str | None:
    """What is touched where a path is named; None where links make that unsure.

    Of a pattern it is the folder; of what is not there, what would have to be made first. Names
    that some file system takes for the same are the same.
    """
    if path.startswith("//"):
        return path
    folder = os.path.normpath(os.path.join(root, path))
    unsure = _UNSURE.search(folder, len(root))
    if unsure:
        folder = folder[: folder.rindex("/", 0, unsure.end())]
    if folder == root:
        return _same(root)
    if not _inside(folder, root):
        return _same(folder)  # of the system; nothing there is written
    here = root
    for name in folder[len(root) + 1 :].split("/"):
        here = f"{here}/{name}"
        try:
            status = os.lstat(here)
        except OSError:
            return _same(here)
        if not _is_plain(status):
            return None
    return _same(here) if not stat.S_ISDIR(status.st_mode) or _holds_no_links(here) else None


def _same(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _is_plain(status: os.stat_result) -> bool:
    """Whether it is reached by this name alone."""
    is_file = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    return is_file or stat.S_ISDIR(status.st_mode)


def _holds_no_links(folder: str) -> bool:
    left = _MOST_ENTRIES
    for above, folders, files in os.walk(folder):
        left -= len(folders) + len(files)
        try:
            plain = all(_is_plain(os.lstat(f"{above}/{name}")) for name in (*folders, *files))
        except OSError:
            return False
        if left < 0 or not plain:
            return False
    return True
