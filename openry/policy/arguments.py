"""The words of a call taken apart: options with their values, operands, files and addresses."""

from __future__ import annotations

import re

from openry.policy.calls import Call, Touched
from openry.policy.derived import seen_from, without
from openry.policy.profiles import Profile
from openry.policy.words import UNKNOWN, Word

_DECLARED = re.compile(r"([A-Za-z_]\w*)(?:\+?=.*)?", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
#: What stands before the name of a file in curl's `-d @FILE`, `-F name=@FILE` and their like.
_AT = re.compile(r"@|[^=@<\ue000]*=[@<]|[\w.-]+@")


class Arguments:
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
        self.sets: list[str] = []  #: variables that it sets for what it starts

    def call(self) -> Call:
        """All of it, once options and operands are taken."""
        self._roles()
        return Call(
            self.name, self.file, self.argv, self.profile, tuple(self.sub), tuple(self.options),
            tuple(self.operands), tuple(self.files), tuple(self.urls), self.script, self.unclear,
            tuple(self.hazards), tuple(self.inner), tuple(self.scripts), self._sets(), self.opaque,
            tuple(self.values), self.below, self.fed, self.blind, self.read, self.text,
        )  # fmt: skip

    def take_options(self, *, stop_at_operand: bool = False) -> None:
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
                self.listed(Word("-"))
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
            self.listed(given)
        if option in profile.at:
            self._at(given)
        if option in profile.texts:
            self.text_of(given)
        if option in profile.folders:
            self.below = given.paths if UNKNOWN in given.text else (given.text,)
            self.below = self.below or (UNKNOWN,)
            self.files.append(Touched("read", given))

    def listed(self, given: Word) -> None:
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

    def value_of(self, *options: str) -> list[Word]:
        return [given for option, given in self.values if option in options]

    def text_of(self, given: Word) -> None:
        if given.literal is None:
            self.opaque = "a command text known only at run time"
            self.text = given
        else:
            self.scripts.append(given.literal)

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
            folders = self.value_of("-C") if self.name == "git" else []
            self.files += [Touched("write", one) for one in folders or [Word(".")]]

    def _sets(self) -> tuple[str, ...]:
        """Names of variables that it sets in this shell, or for what it starts."""
        if self.name in ("export", "declare", "typeset", "local", "readonly"):
            names = [_DECLARED.fullmatch(word.text) for word in self.operands]
            if any(found is None for found in names):
                self.opaque = "a variable whose name may run something"
            return tuple(found[1] for found in names if found)
        if self.name in ("read", "mapfile", "readarray", "unset") or self.name == "printf":
            words = self.value_of("-v") if self.name == "printf" else [
                *self.operands, *self.value_of("-a")
            ]  # fmt: skip
            if any(not _IDENTIFIER.fullmatch(word.text) for word in words):
                self.opaque = "a variable whose name may run something"
            return tuple(word.text for word in words)
        if self.name in ("test", "[") and any(one.text in ("-v", "-R") for one in self.argv):
            self.opaque = "a test of a variable's name"
        return tuple(self.sets)
