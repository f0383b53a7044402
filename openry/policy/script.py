"""Values that reading a shell line gives, and the readers' common ground: a place in a text."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from openry.policy.numbers import INTEGERS, TEXTS, arguments_are_numbers
from openry.policy.prefilter import hidden_anywhere, hidden_unquoted, is_suspicious
from openry.policy.tracing import SAME, Origin
from openry.policy.words import END, VALUE, Opaque, Word

NAME_AT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Redirect(NamedTuple):
    """`op` with its target; a here-document's body is the target of `<<`."""

    op: str
    target: Word


class Simple(NamedTuple):
    """One simple command.

    Attributes:
        words: Program and arguments; empty when only variables are set or files opened.
        assigns: Variables set before the program, or for good when `words` is empty.
        piped: Its standard input is another command's output.
        input: What the lines of its standard input may be, where they are names of files.
    """

    words: tuple[Word, ...]
    assigns: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    piped: bool = False
    input: tuple[str, ...] = ()


class Script(NamedTuple):
    """Everything that a line may run, in the order of the text.

    Attributes:
        functions: Names of the functions it defines; their bodies are among `commands`.
        in_turn: Nothing but `&&` stands between its commands, so what follows a `cd` runs there.
        straight: Each `cd` of it is run, one after the other.
        tainted: Variables that may hold something else than a number.
        values: What the line gives each variable, and each value that has a number for a name.
    """

    commands: tuple[Simple, ...]
    functions: frozenset[str] = frozenset()
    in_turn: bool = False
    straight: bool = False
    tainted: frozenset[str] = frozenset()
    values: Mapping[str, list[Origin]] = {}

    def arguments(self, functions: Container[str]) -> Iterator[Word]:
        """Every word that may become `$1` or its like: by a function's call, or by `set`."""
        for simple in self.commands:
            for place, word in enumerate(simple.words[:3]):
                if word.text == "set" or (place == 0 and word.literal in functions):
                    yield from simple.words[place + 1 :]
                    break


class Shared:
    """What the parts of one text have in common while it is read.

    `numbers` are the names used in arithmetic, `tainted` those of values that are no numbers, and
    `unsure` counts the substitutions that may print something else than a number. `arrays` are
    names of lists, and `texts` those that `declare` gives a text: to a list, bash reads that text
    as a list of its own. `suspicious` says whether the whole text holds a sign that must not stand
    outside quotes.
    """

    def __init__(self, text: str, tainted: frozenset[str], *, free: bool) -> None:
        self.free = free  #: arithmetic may do what it likes
        self.text = text
        self.suspicious = is_suspicious(text)
        self.commands: list[Simple] = []
        self.functions: set[str] = set()
        self.numbers: set[str] = set(INTEGERS)
        self.tainted: set[str] = {*TEXTS, *tainted}
        self.unsure = 0
        self.arrays: set[str] = set()
        self.texts: set[str] = set()
        self.known: dict[str, str] = {}
        self.environment: Container[str] | None = None
        self.folders: Mapping[str, str] = {}
        self.nesting = 0
        self.values: dict[str, list[Origin]] = {}
        self.conditions = False  #: `&&` or `||` stands outside of compound commands
        self.moves_inside = False  #: a `cd` stands inside a compound command or a pipeline
        self.surely: set[str] = set()  #: variables that the line has set by now, whatever happens

    def value(self, text: str | None, how: str = SAME, argument: str = "") -> str:
        """The name, as it stands in `Word.paths`, of a value made of `text`."""
        return self.values_of((text,), how, argument)

    def values_of(self, texts: Iterable[str | None], how: str = SAME, argument: str = "") -> str:
        return self.named([Origin(text, how, argument) for text in texts])

    def named(self, origins: list[Origin]) -> str:
        name = str(len(self.values))
        self.values[name] = origins
        return f"{VALUE}{name}{END}"

    def set(self, variable: str, texts: Iterable[str | None], how: str = SAME) -> None:
        """Note that the line may give `variable` these values; none of them: any."""
        origins = [Origin(text, how) for text in texts] or [Origin(None)]
        self.values.setdefault(variable, []).extend(origins)

    def gives_numbers(self, simple: Simple) -> bool:
        """Whether `simple` sets `$1` and its like, if it does, to nothing but numbers."""
        for place, word in enumerate(simple.words[:3]):
            if word.text == "set" or (place == 0 and word.literal in self.functions):
                return arguments_are_numbers(
                    one for one in simple.words[place + 1 :] if one.text[:1] not in ("-", "+")
                )
        return True


class Cursor:
    """A place in a text, and the characters from there on."""

    def __init__(self, text: str, shared: Shared, at: int = 0) -> None:
        self.text = text
        self.at = at
        self.shared = shared

    def fail(self, what: str) -> Opaque:
        return Opaque(f"{what} near `{self.text[max(0, self.at - 12) : self.at + 12].strip()}`")

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def ahead(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found.group()

    def check_unquoted(self, text: str) -> None:
        """Refuse `text`, which no quotes surround, when it may look other than it is."""
        if self.shared.suspicious and (what := hidden_unquoted(text)):
            raise Opaque(f"{what} outside quotes, which could hide what is run")

    def need(self, text: str) -> None:
        if not self.take(text):
            raise self.fail(f"no `{text}`")


def check_characters(text: str) -> None:
    if what := hidden_anywhere(text):
        raise Opaque(f"{what}, which could hide what is run")
