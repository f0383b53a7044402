"""A simple command as a call of one program: its options, files, addresses, and what it starts."""

# ruff: noqa: PTH110, PTH118, PTH119, PTH120
# Paths are compared as text here, many for each command.

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from openry.policy.derived import found_below, parent, replaced, seen_from, without
from openry.policy.inline import awk_runs, sed_runs
from openry.policy.profiles import Profile, profile_of
from openry.policy.words import DEEP, UNKNOWN, Opaque, Word

_SYSTEM = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin")
_MORE = ("/opt/homebrew/bin", "/usr/games", "/usr/local/games", "/snap/bin")
_DECLARED = re.compile(r"([A-Za-z_]\w*)(?:\+?=.*)?", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
#: What stands before the name of a file in curl's `-d @FILE`, `-F name=@FILE` and their like.
_AT = re.compile(r"@|[^=@<\ue000]*=[@<]|[\w.-]+@")
#: Tests of `find` whose value is a file.
_COMPARED = re.compile(r"-(?:[ac]?newer|samefile|newer[aBcm][aBcm])")
#: What programs leave behind. `find -delete` by such a name spares every protected file.
_LEFTOVERS = re.compile(
    r"\*?\.(?:py[co]|te?mp|log|bak|old|orig|rej|sw[op]|o|obj|class|pid|cache|DS_Store)|\*~"
)
_STDIN = frozenset(("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
_HARMLESS_FILES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty"))


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
    return _Options(name, file, argv, profile, given).call()


class _Options:
    """Takes options and operands apart."""

    def __init__(
        self,
        name: str,
        file: str,
        argv: tuple[Word, ...],
        profile: Profile,
        given: tuple[str, ...],
    ) -> None:
        self.name, self.file, self.argv, self.given = name, file, argv, given
        self.profile = profile
        self.rest = list(argv[1:])
        self.options: list[str] = []
        self.operands: list[Word] = []
        self.files: list[Touched] = []
        self.urls: list[Word] = []
        self.hazards: list[tuple[str, str]] = []
        self.unclear = ""
        self.sub: list[Word] = []
        self.values: list[tuple[str, Word]] = []
        self.inner: list[tuple[Word, ...]] = []
        self.scripts: list[str] = []
        self.opaque = ""
        self.script: Word | None = None
        self.below: tuple[str, ...] = ()
        self.fed = False
        self.blind = ""
        self.read: Word | None = None
        self.text: Word | None = None

    def call(self) -> Call:
        profile = self.profile
        if profile.runs == "find":
            self._find()
        elif profile.runs == "later":
            self._later()
        elif profile.runs == "source":
            self._source()
        elif profile.runs == "evaluated":
            self._evaluated()
        elif profile.runs in ("env", "wrapper", "xargs", "command"):
            self._wrapper()
        else:
            self._options(stop_at_operand=profile.script or profile.runs == "shell")
            self.operands += self.rest  # what follows a script is the script's
            if profile.runs == "shell":
                self._shell()
            elif profile.script:
                self._interpreter()
            elif profile.program:
                self._program()
        self._roles()
        return Call(
            self.name, self.file, self.argv, self.profile, tuple(self.sub), tuple(self.options),
            tuple(self.operands), tuple(self.files), tuple(self.urls), self.script, self.unclear,
            tuple(self.hazards), tuple(self.inner), tuple(self.scripts), self._sets(), self.opaque,
            tuple(self.values), self.below, self.fed, self.blind, self.read, self.text,
        )  # fmt: skip

    # --- options ------------------------------------------------------------------------------

    def _options(self, *, stop_at_operand: bool = False) -> None:
        only_operands = False
        if self.profile.bare_first and self.rest and self.rest[0].text[:1] not in ("-", ""):
            self._bare_cluster(self.rest.pop(0))
        while self.rest:
            word = self.rest.pop(0)
            if only_operands or word.text == "-":
                self.operands.append(word)
            elif word.text == "--" and not word.splits:
                only_operands = True
            elif word.literal is None and word.may_be_option and not word.text.startswith("-"):
                self._maybe_option(word)
                self.operands.append(word)
            elif word.text.startswith("-") or (word.text[:1] == "+" and self._plus(word)):
                self._option(word)
            elif stop_at_operand:
                self.rest.insert(0, word)
                return
            elif self.profile.has_subcommands:
                self._subcommand(word)
            else:
                self.operands.append(word)

    def _plus(self, word: Word) -> bool:
        """`+…` of vim and shells runs a command or sets an option."""
        return self.profile.name in ("vim", "sh", "less", "view")

    def _maybe_option(self, word: Word) -> None:
        if self.profile.executes or self.profile.code or self.profile.runs:
            self.unclear = self.unclear or (
                f"`{word.shown}` may become an option; put `--` or `./` before it"
            )
        if self.profile.has_subcommands and not self.sub:
            self.sub.append(Word(UNKNOWN))

    def _subcommand(self, word: Word) -> None:
        self.sub.append(word)
        self.profile = self.profile.after(word.literal or "")

    def _option(self, word: Word) -> None:
        text = word.text
        if text.startswith("+"):
            self._note(text[:2], Word(text[2:]))
            self.hazards.append((text, f"`{word.shown}` runs a command"))
        elif self.profile.words or text.startswith("--"):
            self._long(word)
        else:
            self._cluster(word)

    def _long(self, word: Word) -> None:
        name, equals, _ = word.text.partition("=")
        if UNKNOWN in name or (word.literal is None and not equals):
            self.unclear = self.unclear or f"`{word.shown}` is an option known only at run time"
        full = self._full_name(name)
        if equals:
            self._note(full, without(word, len(name) + 1))
        elif full in self.profile.pairs and len(self.rest) > 1:
            self.rest.pop(0)
            self._note(full, self.rest.pop(0))
        elif self.profile.takes_value(full) and self.rest:
            self._note(full, self.rest.pop(0))
        else:
            self._note(full, None)

    def _full_name(self, name: str) -> str:
        """An abbreviation as the option it stands for; a dangerous one where several fit."""
        known = self.profile.long_known
        if name in known or self.profile.words or len(name) < 3:
            return name
        fitting = sorted(one for one in known if one.startswith(name))
        risky = [one for one in fitting if one in self.profile.executes | self.profile.code]
        return (risky or fitting or [name])[0]

    def _cluster(self, word: Word) -> None:
        text = word.text
        if UNKNOWN in text[:2] or (word.literal is None and len(text) == 1):
            self.unclear = self.unclear or f"`{word.shown}` is an option known only at run time"
        place = 1
        while place < len(text):
            option = f"-{text[place]}"
            rest = text[place + 1 :]
            if option in self.profile.attached:
                self._note(option, without(word, place + 1) if rest else None)
                if option in ("-E", "-r", "-n", "-s", "-u", "-z", "-q", "-j"):
                    place += 1
                    continue
                return
            if self.profile.takes_value(option):
                if rest:
                    self._note(option, without(word, place + 1))
                elif self.rest:
                    self._note(option, self.rest.pop(0))
                else:
                    self._note(option, None)
                return
            if text[place] >= "\ue000":
                self.unclear = self.unclear or f"`{word.shown}` is known only at run time"
            self._note(option, None)
            place += 1

    def _bare_cluster(self, word: Word) -> None:
        """The options of `tar cf a.tar b`: their values are the next words, one after the other."""
        if word.literal is None:
            self.unclear = f"`{word.shown}` is known only at run time"
        for sign in word.text:
            option = f"-{sign}"
            takes = self.profile.takes_value(option) and self.rest
            self._note(option, self.rest.pop(0) if takes else None)

    def _note(self, option: str, given: Word | None) -> None:
        self.options.append(option)
        profile = self.profile
        if option in profile.executes:
            self.hazards.append((option, f"`{self.name} {option}` runs or loads something"))
        if given is None:
            if option in profile.lists:
                self._listed(Word("-"))
            return
        self.values.append((option, given))
        if option in profile.reads:
            self.files.append(Touched("read", given))
        if option in profile.writes:
            self.files.append(Touched("write", given))
        if option in profile.urls:
            self.urls.append(given)
        if option in profile.lists and given.text != "-":
            self.files.append(Touched("read", given))
        if option in profile.lists:
            self._listed(given)
        if option in profile.at:
            self._at(given)
        if option in profile.texts:
            self._text_of(given)
        if option in profile.folders:
            self.below = given.paths if UNKNOWN in given.text else (given.text,)
            self.below = self.below or (UNKNOWN,)
            self.files.append(Touched("read", given))

    def _listed(self, given: Word) -> None:
        """What the lines of a file name: known only where these are the standard input's."""
        named = self.given if given.text == "-" else ()
        word = Word(UNKNOWN, paths=tuple(one for one in named if one))
        if self.profile.operands[:1] == ("url",):
            self.urls.append(word)
        else:
            self.files.append(Touched("read", word))

    def _at(self, given: Word) -> None:
        """A value like `@FILE`, `name=@FILE`, `name=<FILE` or `name@FILE`: then it is read."""
        found = _AT.match(given.text)
        if found:
            file = without(given, found.end())
            ended = file.text.partition(";")[0]
            self.files.append(Touched("read", file if UNKNOWN in file.text else Word(ended)))
        elif given.text[:1] == UNKNOWN:
            self.files.append(Touched("read", given))

    def _value_of(self, *options: str) -> list[Word]:
        return [given for option, given in self.values if option in options]

    # --- programs that start others -----------------------------------------------------------

    def _later(self) -> None:
        """`trap TEXT SIGNALS`: the text is run when one comes. `eval WORDS`: at once."""
        self._options()
        if self.name == "eval" and all(word.literal is not None for word in self.operands):
            self.scripts.append(" ".join(word.text for word in self.operands))
        elif self.name == "eval":
            self.opaque = "`eval` of a text known only at run time"
        elif len(self.operands) > 1 and self.operands[0].text not in ("-", ""):
            self._text_of(self.operands[0])
        self.operands = []

    def _evaluated(self) -> None:
        """`let TEXT`: arithmetic, and a command in it is run."""
        self.operands, self.rest = self.rest, []
        for word in self.operands:
            if set(word.text) & set("$`"):
                self._text_of(word._replace(text=f"(({word.text}))"))

    def _wrapper(self) -> None:
        runs = self.profile.runs
        self._options(stop_at_operand=True)
        for option, given in list(self.values):
            if runs == "env" and option in ("-S", "--split-string"):
                self._text_of(given)
        if runs == "env":
            self._env()
        if self.operands and not self.rest:  # words after `--`
            self.rest = self.operands
        elif self.operands:
            self.opaque = "which words are the command is known only at run time"
        self.operands = []
        for _ in range(self.profile.skip):
            if self.rest and (self.rest[0].splits or self.rest[0].may_be_option):
                self.opaque = "which words are the command is known only at run time"
            self.rest = self.rest[1:]
        if runs == "command" and {"-v", "-V"} & set(self.options):
            return
        if self.rest:
            known = () if {"-a", "--arg-file"} & set(self.options) else self.given
            lines = tuple(one for one in known if one)
            added = Word(UNKNOWN, splits=True, paths=lines)
            more = (added,) if runs == "xargs" else ()
            rest = self.rest
            if runs == "xargs" and {"-I", "-i", "--replace"} & set(self.options):
                marks = [one.text for one in self._value_of("-I", "-i", "--replace")] or ["{}"]
                rest = [replaced(word, marks, lines) for word in rest]
                more = ()
            self.inner.append((*rest, *more))
        elif runs == "env" and not self.scripts:
            return
        self.rest = []

    def _env(self) -> None:
        """`env A=1 -S 'text' cmd`: assignments, then a command."""
        text_options = ("-S", "--split-string")
        for place, word in enumerate(self.argv[1:]):
            text = word.text
            if text in text_options and place + 2 < len(self.argv):
                self._text_of(self.argv[place + 2])
                self.rest, self.operands = [], []
                return
            if text.startswith(("-S", "--split-s")) or re.match(r"-[iv0]*S", text):
                self._text_of(Word(re.sub(r"^-[iv0]*S|^--split-\w*=?", "", text), word.splits))
                self.rest, self.operands = [], []
                return
            if not text.startswith("-"):
                break
        if not self.rest:
            self.rest, self.operands = self.operands, []
        while self.rest and (found := re.match(r"([A-Za-z_]\w*)=", self.rest[0].text)):
            self.sub.append(Word(found.group(1)))
            self.env_set = [*getattr(self, "env_set", []), found.group(1)]
            self.rest.pop(0)
        if self.rest and UNKNOWN in self.rest[0].text:
            self.opaque = "which words are the command is known only at run time"
        self.sub = []

    def _text_of(self, given: Word) -> None:
        if given.literal is None:
            self.opaque = "a command text known only at run time"
            self.text = given
        else:
            self.scripts.append(given.literal)

    def _find(self) -> None:
        """`find`: what it starts, writes and removes."""
        start = True
        roots: list[Word] = []
        words = self.rest
        self.rest = []
        place = 0
        while place < len(words):
            word = words[place]
            text = word.text
            unknown = word.literal is None and word.may_be_option and not start
            if unknown and not words[place - 1].text.startswith("-"):
                self.unclear = f"`{word.shown}` may become an action of `find`"
            if text.startswith(("-", "(", "!")) and text not in ("-L", "-H", "-P", "-"):
                start = False
            if text in ("-exec", "-execdir", "-ok", "-okdir"):
                end = next(
                    (
                        at
                        for at in range(place + 1, len(words))
                        if words[at].text == ";"
                        or (words[at].text == "+" and words[at - 1].text == "{}")
                    ),
                    len(words),
                )
                below = found_below(roots or [Word(".")], words)
                if text.endswith("dir"):
                    self.below = tuple(dict.fromkeys((*below, *map(parent, below))))
                    below = (f"./{DEEP}",)
                command = [
                    replaced(one, ["{}"], below, found=True) for one in words[place + 1 : end]
                ]
                self.options.append(text)
                if command:
                    self.inner.append(tuple(command))
                place = end
            elif text in ("-fprint", "-fprint0", "-fls", "-fprintf"):
                self.options.append(text)
                self.files += [Touched("write", one) for one in words[place + 1 : place + 2]]
                place += 1
            elif text == "-files0-from" or _COMPARED.fullmatch(text):
                self.files += [Touched("read", one) for one in words[place + 1 : place + 2]]
                if text == "-files0-from":
                    self._listed(words[place + 1] if place + 1 < len(words) else Word("-"))
                self.options.append(text)
                place += 1
            elif text.startswith("-"):
                self.options.append(text)
            elif start:
                if word.may_be_option:
                    self.unclear = (
                        f"`{word.shown}` may become an action of `find`; put `./` before it"
                    )
                roots.append(word)
            place += 1
        self.operands = roots or [Word(".")]
        if "-delete" in self.options:
            how = "write" if self._spares_protected(words) else "remove"
            self.files += [Touched(how, root) for root in self.operands]

    def _spares_protected(self, words: list[Word]) -> bool:
        """Whether `find` looks for what programs leave behind, and for nothing else."""
        names = [after.literal or "" for word, after in pairwise(words) if word.text == "-name"]
        turned = {word.text for word in words} & {"-o", "-or", "-not", "!", ",", "("}
        return len(names) == 1 and not turned and bool(_LEFTOVERS.fullmatch(names[0]))

    def _shell(self) -> None:
        wide = [one for one in self.options if one not in ("-c", "-e", "-u", "-x", "-f", "-o")]
        if "-c" in self.options:
            self._text_of(self.operands[0] if self.operands else Word(UNKNOWN))
            if wide:
                self.opaque = f"`{self.name} {wide[0]}` changes how the text is read"
        elif self.operands and "-s" not in self.options:
            self._file_run(self.operands[0])
        else:
            self.opaque = f"`{self.name}` runs what it reads from standard input"
            self.fed = True
        self.operands = self.operands[1:]

    def _source(self) -> None:
        """`source FILE`."""
        self._options()
        if self.operands:
            self._file_run(self.operands[0])
        self.operands = []

    def _file_run(self, word: Word) -> None:
        """A file whose text the shell runs; of `<(…)` it is what the command prints."""
        if word.text in _STDIN:
            self.opaque, self.fed = f"`{self.name}` runs what it reads from standard input", True
        elif not word.text.startswith("/dev/fd/"):
            self.script = word
        elif not word.paths:
            self.blind = f"`{self.name}` runs what a command prints"
        else:
            names = tuple(one.removeprefix(word.text) for one in word.paths)
            self.read = Word(UNKNOWN, paths=names)

    def _interpreter(self) -> None:
        profile = self.profile
        used = [one for one in self.options if one in profile.code]
        if used:
            self.hazards.append(
                (used[0], f"`{self.name} {used[0]}` runs code that is not analysed")
            )
        elif {"-m"} & set(self.options):
            pass
        elif self.operands and self.operands[0].text != "-":
            self.script = self.operands[0]
        elif not {"--version", "-V", "-v", "--help", "-h"} & set(self.options):
            self.opaque = f"`{self.name}` runs what it reads from standard input"
        self.operands = self.operands[1:]

    def _program(self) -> None:
        inline = self._value_of("-e", "--expression") if self.profile.program == "sed" else []
        if not inline and not {"-f", "--file"} & set(self.options):
            inline = self.operands[:1]
        check = sed_runs if self.profile.program == "sed" else awk_runs
        texts = [text for word in inline if (text := word.literal) is not None]
        if len(texts) < len(inline):
            self.opaque = f"a program of `{self.name}` known only at run time"
        elif inline and (found := check("\n".join(texts))):
            self.hazards.append(("program", f"{found} in a program of `{self.name}`"))

    # --- what the operands are ----------------------------------------------------------------

    def _roles(self) -> None:
        profile = self.profile
        roles = list(profile.operands)
        if roles[:1] == ["text"] and profile.pattern_options & set(self.options):
            roles = roles[1:]
        for word in self.operands[: 1 if profile.risky else 0]:
            if word.literal is None and word.may_be_option:
                self.hazards.append((word.shown, f"`{word.shown}` is known only at run time"))
        for word in self.operands if profile.risky else ():
            if profile.risky and profile.risky.fullmatch(word.text):
                self.hazards.append((word.shown, f"`{word.shown}` may run something"))
        symbolic = self.name == "ln" and {"-s", "--symbolic"} & set(self.options)
        in_place = profile.program == "sed" and {"-i", "--in-place"} & set(self.options)
        into = {"-t", "--target-directory"} & profile.writes & set(self.options)
        for place, word in enumerate(self.operands):
            if self.name == "dd" and word.text[:3] in ("if=", "of="):
                how = "read" if word.text[0] == "i" else "write"
                self.files.append(Touched(how, without(word, 3)))
            role = roles[min(place, len(roles) - 1)] if roles else "any"
            if profile.last and place == len(self.operands) - 1 and place > 0 and not into:
                role = profile.last
            if role == "text" and profile.risky_text and profile.risky_text.fullmatch(word.text):
                self.hazards.append((word.shown, f"`{word.shown}` reads or runs what it names"))
            if symbolic and 0 < len(self.operands) - 1 > place:
                word = self.operands[place] = seen_from(word, self.operands[-1])
            if in_place and role == "read":
                self.files.append(Touched("write", word))
            if role in ("read", "write", "remove", "any") and word.text != "-":
                self.files.append(Touched(role, word))
            elif role == "url":
                self.urls.append(word)
        if self.script is not None:
            self.files.append(Touched("read", self.script))
        if profile.makes & {"always", *self.options} and not profile.unless & set(self.options):
            folders = self._value_of("-C") if self.name == "git" else []
            self.files += [Touched("write", one) for one in folders or [Word(".")]]

    def _sets(self) -> tuple[str, ...]:
        """Names of variables that it sets in this shell, or for what it starts."""
        if self.name in ("export", "declare", "typeset", "local", "readonly"):
            names = [_DECLARED.fullmatch(word.text) for word in self.operands]
            if any(found is None for found in names):
                self.opaque = "a variable whose name may run something"
            return tuple(found[1] for found in names if found)
        if self.name in ("read", "mapfile", "readarray", "unset") or self.name == "printf":
            words = self._value_of("-v") if self.name == "printf" else [
                *self.operands, *self._value_of("-a")
            ]  # fmt: skip
            if any(not _IDENTIFIER.fullmatch(word.text) for word in words):
                self.opaque = "a variable whose name may run something"
            return tuple(word.text for word in words)
        if self.name in ("test", "[") and any(one.text in ("-v", "-R") for one in self.argv):
            self.opaque = "a test of a variable's name"
        return tuple(getattr(self, "env_set", ()))
