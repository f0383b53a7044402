"""What a word whose text is not known may be, where it names a file.

The reader gives each value that is not known a name: a variable's, or a number for the output of a
substitution, the lines that `read` or `xargs` take, and what `${x%.txt}` makes of another. Here the
names are looked up, once the whole line is read, and what they may hold is put in: every value
that the line gives a variable anywhere. So it does not matter in which order things run.
"""

# ruff: noqa: PTH120
# Paths are compared as text here, many for each command.

from __future__ import annotations

import os
import re
from typing import NamedTuple

from openry.policy.words import (
    CUT,
    DEEP,
    END,
    NAME,
    ONE,
    STAR,
    UNKNOWN,
    VALUE,
    Word,
    marked,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ANY = "*"  #: the name under which is said that any variable may be set
ARGUMENTS = "@"  #: the name of `$1`, `$*` and their like
SURELY = "!"  #: before a variable's name: one of the values that the line gives it
NUMBERS = f"{VALUE}#{END}"  #: the name of what is digits
SAME, SPLIT, SOME = "same", "split", "some"

_MOST = 24
_DEEPEST = 12
#: Names that are being looked up, and whether nothing was changed on the way from there: then what
#: leads back to one of them adds nothing.
_Above = dict[str, bool]
#: What bash sets to a number or a plain name.
_PLAIN = re.compile(
    "#|S?RANDOM|SECONDS|E?UID|PPID|BASHPID|LINENO|EPOCHSECONDS|HOSTNAME|SHLVL|OSTYPE|HOSTTYPE|USER"
    "|LOGNAME"
)
#: What bash sets to something else.
_BY_BASH = re.compile(
    r"_|BASH.*|COMP.*|EPOCH.*|HIST.*|PS[0-4]|OPT(?:ARG|ERR|IND)|GROUPS|IFS|MAPFILE|REPLY|OLDPWD"
    r"|DIRSTACK|FUNCNAME|PIPESTATUS|[0-9*?$!-]"
)
_LONGEST_CONFIG = 65536
#: By settings of `shopt`, what of a pattern finds more names than usual; each more than the last.
WIDER = {
    "globstar": re.compile(f"{STAR}{STAR}"),
    "dotglob": re.compile(f"{STAR}{STAR}|(?:(?<=/)|^)[{STAR}{ONE}]"),
    "nocaseglob": re.compile(f"[^/]*[{STAR}{ONE}][^/]*"),
}
_DASHES = frozenset(("-", STAR, ONE, DEEP))
_PATTERN = re.compile(r"[*?\[]")


class Origin(NamedTuple):
    """Where a value comes from: `how` it is made of `text`, or `how` with an argument.

    A `text` of None is not known.
    """

    text: str | None
    how: str = SAME
    argument: str = ""


class Tracing:
    """Looks values up.

    Attributes:
        values: Under each name, everything that the line gives it.
        arguments: What `$1` and its like may be; None where that is not known.
        environment: The variables there are at the beginning; None where that is not known.
        defaults: What some variables are, whether or not the environment is known.
        here: The folders that `PWD` may be; an empty one is not known.
        path: Where programs are looked for.
        wide: What of a pattern may be anything, by a setting of `shopt`.
    """

    def __init__(
        self,
        values: Mapping[str, list[Origin]],
        arguments: Sequence[str] | None = (),
        environment: Mapping[str, str] | None = None,
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        self.values = values
        self.arguments = arguments
        self.environment = environment
        self.defaults = defaults or {}
        self.here: Sequence[str] = ("",)
        self.path = ""
        self.wide: re.Pattern[str] | None = None

    def texts(self, word: Word) -> tuple[str, ...] | None:
        """Each text that `word`, or a word of it, may be; None where nothing bounds it."""
        if UNKNOWN not in word.text:
            found: tuple[str, ...] | None = (word.text,)
        else:
            found = self._all(word.paths, split=word.splits) if word.paths else None
        if self.wide and found:
            return tuple(self.wide.sub(_widened, text) for text in found)
        return found

    def may_vanish(self, word: Word) -> bool:
        """Whether `word`, which is not quoted, may turn out to be no word at all."""
        texts = self.texts(word._replace(splits=False))
        return texts is None or any(not text.strip() for text in texts)

    def _all(self, paths: Sequence[str], *, split: bool = False) -> tuple[str, ...] | None:
        texts: dict[str, None] = {}
        for path in paths:
            found = self._expand(path, {})
            if found is None:
                return None
            for one in found:
                parts = self._split(one) if split else (one,)
                if parts is None:
                    return None
                texts.update(dict.fromkeys(parts))
        checked = [_joined(one) for one in texts]
        return None if None in checked else tuple(one for one in checked if one is not None)

    def _expand(self, text: str, above: _Above) -> tuple[str, ...] | None:
        if UNKNOWN in text:
            return None
        before, sign, rest = text.partition(VALUE)
        if not sign:
            return (text,)
        name, _, rest = rest.partition(END)
        changed = above if not before and not rest else dict.fromkeys(above, False)
        values = self._value(name, changed)
        after = self._expand(rest, changed) if values is not None else None
        if values is None or after is None or len(values) * len(after) > _MOST:
            return None
        return tuple(f"{before}{value}{more}" for value in values for more in after)

    def _value(self, name: str, above: _Above) -> tuple[str, ...] | None:
        bare = name.removeprefix(SURELY)
        if bare in above:
            return () if above[bare] else None
        return self._look_up(name, {**above, bare: True}) if len(above) < _DEEPEST else None

    def _look_up(self, name: str, above: _Above) -> tuple[str, ...] | None:
        if name == ARGUMENTS:
            return self._arguments(above)
        bare = name.removeprefix(SURELY)
        origins = self.values.get(bare)
        if origins is None and (name != bare or bare.isdigit()):
            return None
        texts: dict[str, None] = {}
        if ANY in self.values and not bare.isdigit():
            return None
        if name == bare and not bare.isdigit():
            begun = self._begun(bare)
            if begun is None:
                return None
            texts.update(dict.fromkeys(begun))
        for origin in origins or ():
            if origin.text is None:
                return None
            same = origin.how == SAME
            found = self._expand(origin.text, above if same else dict.fromkeys(above, False))
            made = None if found is None else self._made(origin, found)
            if made is None:
                return None
            texts.update(dict.fromkeys(made))
        return tuple(texts) if len(texts) <= _MOST else None

    def _made(self, origin: Origin, texts: tuple[str, ...]) -> tuple[str, ...] | None:
        if origin.how == SAME:
            return texts
        if origin.how == "program":
            return tuple(found for text in texts for found in self._found(text))
        if origin.how == "toplevel":
            return _toplevels(self.here)
        if origin.how == SOME:
            return tuple(one for one in texts if one)
        found: dict[str, None] = {}
        for text in texts:
            if origin.how == SPLIT:
                made = self._split(text)
            else:
                made = _MAKERS[origin.how](text, origin.argument)
            if made is None:
                return None
            found.update(dict.fromkeys(made))
        return tuple(found)

    def _found(self, program: str) -> tuple[str, ...]:
        """Where the shell finds a program; its name alone where it is no file."""
        files = [f"{one}/{program}" for one in self.path.split(":") if one.startswith("/")]
        return (next(filter(os.path.lexists, files), ""), program)

    def _split(self, text: str) -> tuple[str, ...] | None:
        """What bash makes of an unquoted value: words, and patterns."""
        if "[" in text or "\\" in text:
            return None
        parts = text.split()
        for origin in self.values.get("IFS", ()):
            if origin.text is None or origin.text.strip():
                return None
            parts = [*parts, text.strip()] if origin.text != " \t\n" else parts
        return tuple(one.replace("*", STAR).replace("?", ONE) for one in parts if one)

    def _begun(self, name: str) -> tuple[str, ...] | None:
        """What a variable holds before the line sets it."""
        if _PLAIN.fullmatch(name):
            return (NAME,)
        if name == "PWD":
            return None if "" in self.here else tuple(self.here)
        if name in self.defaults:
            return (self.defaults[name],)
        if _BY_BASH.fullmatch(name) or self.environment is None:
            return None
        return ("", self.environment.get(name, ""))

    def _arguments(self, above: _Above) -> tuple[str, ...] | None:
        if self.arguments is None:
            return None
        texts: dict[str, None] = {"": None}
        for one in self.arguments:
            found = self._expand(one, above)
            if found is None:
                return None
            texts.update(dict.fromkeys(found))
        return tuple(texts) if len(texts) <= _MOST else None


def _toplevels(folders: Sequence[str]) -> tuple[str, ...] | None:
    """What git may take for the top of the work tree in each folder; None where nobody knows.

    A repository that is damaged is passed over, so those above it count as well.
    """
    found = {"": None}
    for folder in folders:
        top = os.path.realpath(folder) if folder else ""
        if not top:
            return None
        while len(top) > 1:
            if os.path.lexists(f"{top}/.git"):
                if not _is_own_tree(top):
                    return None
                found[top] = None
            top = os.path.dirname(top)
    return tuple(found)


def _is_own_tree(top: str) -> bool:
    """Whether the repository in `top` says nothing of a work tree elsewhere."""
    try:
        with open(f"{top}/.git/config", encoding="utf-8", errors="replace") as file:
            text = file.read(_LONGEST_CONFIG)
    except OSError:
        return False
    return len(text) < _LONGEST_CONFIG and not re.search(r"worktree|include", text, re.I)


def _widened(found: re.Match[str]) -> str:
    return f".{STAR}" if found.group().startswith(".") else DEEP


def _joined(text: str) -> str | None:
    """`text` with its ends cut off where what follows makes them whole; None where it does not."""
    if CUT not in text:
        return text
    if re.search(rf"{CUT}\.*(?:/|$)", text):
        return None
    return text.replace(CUT, DEEP)


# --- what expansions make of a value ----------------------------------------------------------


def _cut_end(text: str, pattern: str) -> tuple[str, ...] | None:
    """`${x%PATTERN}` and, as far as there is no pattern in it, `${x%%PATTERN}`."""
    if pattern == "/*":
        before, slash, after = text.rpartition("/")
        if slash and DEEP not in after:
            return (before,)
        return (
            (text, before, f"{before}/{DEEP}") if slash else (text,) if DEEP not in text else None
        )
    star = pattern == ".*"
    if star:
        before, dot, after = text.rpartition(".")
        if not dot or "/" in after:
            return None if marked(text.rpartition("/")[2]) or dot else (text,)
        if marked(after):
            return None
        return (_end_cut(before),)
    if _PATTERN.search(pattern) or "/" in pattern or not pattern:
        return None
    if text.endswith(pattern):
        return (_end_cut(text[: -len(pattern)]),)
    last = text.rpartition("/")[2]
    return (text, _end_cut(text)) if marked(last[-len(pattern) :]) else (text,)


def _end_cut(text: str) -> str:
    return text[:-1] + CUT if text[-1:] == DEEP else text


def _cut_far(text: str, pattern: str) -> tuple[str, ...] | None:
    """`${x%%PATTERN}`."""
    if pattern != ".*":
        return _cut_end(text, pattern) if not _PATTERN.search(pattern) else None
    if "/" in text or text[:1] in ("", ".", DEEP):
        return None
    return (text.partition(".")[0],)


def _cut_start(text: str, pattern: str) -> tuple[str, ...] | None:
    """`${x#PATTERN}` for a literal one; it may cut itself off again where `##` takes more."""
    if _PATTERN.search(pattern) or not pattern:
        return None
    if text.startswith(pattern):
        return (text[len(pattern) :],)
    return None if marked(text[: len(pattern)]) else (text,)


def _cut_to(text: str, pattern: str) -> tuple[str, ...] | None:
    """`${x##PATTERN}`: all up to the last slash, or to the last dot."""
    if pattern == "*/":
        return (text.rpartition("/")[2],)
    if pattern == "*.":
        after = text.rpartition(".")[2]
        return (after, NAME, "") if marked(after) else (after,)
    return _cut_start(text, pattern)


def _replaced(text: str, argument: str) -> tuple[str, ...] | None:
    """`${x/OLD/NEW}`, and `${x//OLD/NEW}`: names stay names where something stands for OLD."""
    old, _, new = argument.partition("\n")
    if _PATTERN.search(old) or "/" in argument or not old:
        return None
    if not marked(text):
        return (text, text.replace(old, new), text.replace(old, new, 1))
    if not new.strip("."):
        return None
    folder, slash, name = text.rpartition("/")
    if marked(folder):
        return None
    return tuple(
        f"{one}{slash}{DEEP if marked(name) else name.replace(old, new)}"
        for one in (folder, folder.replace(old, new), folder.replace(old, new, 1))
    )


def _upper(text: str, _: str) -> tuple[str, ...]:
    return (text.upper(),)


def _lower(text: str, _: str) -> tuple[str, ...]:
    return (text.lower(),)


def _base(text: str, ending: str) -> tuple[str, ...] | None:
    """`basename`."""
    name = text.rstrip("/").rpartition("/")[2]
    if not name:
        return ("", "/") if text else ("",)
    names = _cut_end(name, ending) if ending else (name,)
    return (*names, "") if names and text[:1] in _DASHES else names


def _folder(text: str, _: str) -> tuple[str, ...] | None:
    """`dirname`."""
    before, slash, name = text.rstrip("/").rpartition("/")
    nothing = ("",) if text[:1] in _DASHES else ()  # it takes what begins with a dash for options
    if DEEP in name:
        return (before or slash or ".", f"{before}{slash}{DEEP}", *nothing)
    return (before or slash or ".", *nothing)


_MAKERS: Mapping[str, Callable[[str, str], tuple[str, ...] | None]] = {
    "%": _cut_end,
    "%%": _cut_far,
    "#": _cut_start,
    "##": _cut_to,
    "/": _replaced,
    "^": _upper,
    ",": _lower,
    "basename": _base,
    "dirname": _folder,
}
