"""Reading assignments, and which of the variables they set may be dangerous later.

Bash evaluates some values once more: as arithmetic, in which a subscript may hold a command, and
as a list. What such a variable is given must be known to be harmless.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from openry.policy.expansion import Words, value_text
from openry.policy.numbers import is_number
from openry.policy.programs import read_words
from openry.policy.script import Simple
from openry.policy.tracing import ANY, SAME, SOME, SPLIT, Origin
from openry.policy.words import NAME, NUMBER, STAR, UNKNOWN, Word, expand_braces, plain

#: Commands that set variables in ways that are not followed.
UNTRACKED = re.compile(
    r"\b(?:read|mapfile|readarray|getopts|let|unset|declare|typeset|local|export|readonly|eval"
    r"|source|coproc|select|wait|printf\s+-\w*v)\b|\bIFS\+?=|:=|\{\w+=|\(\(|(?:^|[;&|\s])\.\s|\{\w+\}[<>]"
)
#: A word of a list with its place in it, e.g. `[2]=x`.
_SUBSCRIPTED = re.compile(r"\[([0-9]+|\$?[A-Za-z_][A-Za-z0-9_]*)\]\+?=")
#: What stands for a list's words where the list itself was read.
LIST = f"{UNKNOWN}()"
DECLARING = frozenset(("declare", "typeset", "local", "export", "readonly"))
_READING = frozenset(("read", "mapfile", "readarray"))
_SETTERS = DECLARING | _READING | {"getopts", "printf"}
#: Commands after which any variable may hold anything.
_SETTING_ANY = frozenset(("eval", "source", "."))
_LINES = frozenset(("", "\n"))


def paths_of(word: Word) -> tuple[str | None, ...]:
    """Each text that `word` may be; None stands for any."""
    if UNKNOWN in word.text:
        return word.paths or (None,)
    return (plain(word.text),)


class Assignments(Words, ABC):
    """Reads assignments. `blanks` skips what stands between words; the grammar does it."""

    depth = 0

    @abstractmethod
    def blanks(self, *, newlines: bool = False) -> None:
        """Go past blanks and comments."""

    def set_loop(self, name: str, words: list[Word]) -> None:
        """A loop's variable: known in its body where no other place sets it."""
        if not all(is_number(word) or word.text == NUMBER for word in words):
            self.shared.tainted.add(name)
        if not name:
            return
        for word in words:
            self.shared.set(name, paths_of(word), SPLIT if word.splits else SAME)
        if not self._only_here(name):
            return
        texts = [one.text for one in words if not one.splits and one.text]
        if len(texts) == 1 == len(words):
            text = texts[0]
            known = None if re.search(r"[\s*?\[\\]", text) or UNKNOWN in text else text
        else:
            safe = len(texts) == len(words) and all(
                re.fullmatch(f"[^-/\\s.*?\\[\\\\{UNKNOWN}{STAR}][^/\\s*?\\[\\\\{UNKNOWN}]*", text)
                for text in texts
            )
            known = NAME if safe else None
        if known is not None:
            self.shared.known[name] = known

    def _only_here(self, name: str) -> bool:
        if UNTRACKED.search(self.shared.text):
            return False
        places = re.findall(rf"\b{name}(?:\[[^\]]*\])?\+?=|\bfor\s+{name}\b", self.text)
        return len(places) == 1

    def note_assigned(self, made: Simple, *, sure: bool) -> None:
        shared = self.shared
        first = made.words[0].literal if made.words else ""
        for name, word in made.assigns:
            if first not in _READING:
                shared.set(name, paths_of(word))
                if not first and sure:
                    shared.surely.add(name)
            if not is_number(word):
                self.shared.tainted.add(name)
            text = value_text(word)
            if not made.words and sure and self.depth == 0 and text and self._only_here(name):
                self.shared.known[name] = text
        for place, word in enumerate(made.words[:4]):
            if word.text in _SETTING_ANY and (not place or first in ("command", "builtin")):
                shared.set(ANY, ())
            if word.text == "unset":
                for one in made.words[place + 1 :]:
                    shared.set(one.text, ("",))
            if word.text in _SETTERS:
                self._note_set(word.text, made.words[place + 1 :])
                self._trace_set(word.text, made.words[place:], made, sure=sure)
                return

    def _trace_set(self, setter: str, words: tuple[Word, ...], made: Simple, *, sure: bool) -> None:
        """What a command that sets variables gives them."""
        if setter in DECLARING:
            for word in words[1:]:
                name, equals, _ = word.text.partition("=")
                if equals or setter in ("local", "declare", "typeset"):
                    texts = paths_of(word) if equals else ("",)
                    known = [one.partition("=")[2] for one in texts if one is not None]
                    more = name[-1:] == "+" or len(known) < len(texts)
                    self.shared.set(name.rstrip("+"), () if more else known)
                    if sure and equals:
                        self.shared.surely.add(name)
            return
        names = self.names_read(words)
        lines = [word.text for name, word in made.assigns if name == "IFS"]
        whole = len(names) == 1 and set(lines) <= _LINES and setter in _READING
        for name in names:
            variable = ANY if UNKNOWN in name else name
            self.shared.set(variable, made.input if whole else (), SOME)

    def names_read(self, words: tuple[Word, ...]) -> list[str]:
        """The variables that `read` and its like set."""
        call = read_words(words[0].text, words, ())
        if words[0].text == "printf":
            return [word.text for option, word in call.values if option == "-v"]
        if any(option == "-a" for option, _ in call.values):
            return ["REPLY", *(word.text for option, word in call.values if option == "-a")]
        return [word.text for word in call.operands] or ["REPLY"]

    def _note_set(self, setter: str, words: tuple[Word, ...]) -> None:
        """What a command that sets variables makes of those it names."""
        if setter == "printf" and not (words and words[0].text[:1] in ("-", UNKNOWN)):
            return
        lists = setter not in DECLARING or any(
            word.text[:1] in ("-", UNKNOWN) and set(word.text) & set("aA") for word in words
        )
        for word in words:
            found = re.match(r"[A-Za-z_]\w*", word.text)
            name = found.group() if found else ""
            self.shared.tainted.add(name)
            if lists:
                self.shared.arrays.add(name)
            value = word.text.partition("=")[2]
            if value[:1] == "(":
                raise self.fail("a list made of a text")
            if value[:1] == UNKNOWN and value != LIST:
                self.shared.texts.add(name)

    def assigned(self, found: re.Match[str], *, declares: bool = False) -> Word:
        """The value after `NAME=` or `NAME[…]=`, which `found` is."""
        self.at = found.end()
        subscript = found[2] or ""
        if subscript:
            self.arithmetic_text(subscript[1:-1])
            self.shared.arrays.add(found[1])
        if self.take("("):
            self.shared.arrays.add(found[1])
            return self._listed()
        word = self.word() or Word("")
        if declares and len(expand_braces(word)) > 1:
            raise self.fail("braces in what is declared")
        text = UNKNOWN if subscript else plain(word.text)
        more = found.group().endswith("+=")
        paths = () if more else tuple(filter(None, paths_of(word)))
        if more and not subscript and text:
            text = UNKNOWN
        return Word(text, quoted=word.quoted, number=is_number(word), paths=paths)

    def _listed(self) -> Word:
        """A list, to its `)`; a number where all in it are. A place in it is arithmetic."""
        numbers = True
        origins: list[Origin] = []
        while True:
            self.blanks(newlines=True)
            if self.take(")"):
                return Word(LIST, number=numbers, paths=(self.shared.named(origins),))
            start = self.at
            word = self.word()
            if word is None:
                raise self.fail("a list that is hard to read")
            numbers = numbers and is_number(word)
            source = self.text[start : self.at]
            if source[0] == "[" and "=" in source:
                found = _SUBSCRIPTED.match(source)
                if found is None:
                    raise self.fail("a subscript that may run something")
                self.arithmetic_text(found[1])
            how = SPLIT if word.splits else SAME
            text = word.text.partition("=")[2] if source[0] == "[" else ""
            for one in expand_braces(word):
                origins += [Origin(text or path, how) for path in paths_of(one)]
