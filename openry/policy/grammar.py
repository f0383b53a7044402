"""Reading a shell line whole: every simple command it may run, however deep.

A reader of our own, stricter than bash: what it does not know for certain is `Opaque`. It reads
what `bash --noprofile --norc -c` reads; general grammars for editors lose commands that bash runs,
such as backquotes inside a here-document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from openry.policy.assignments import DECLARING
from openry.policy.expansion import Words
from openry.policy.moves import MOVING
from openry.policy.numbers import NAMES, POSITIONAL, POSITIONS
from openry.policy.outputs import printed
from openry.policy.redirections import Redirections
from openry.policy.script import Redirect, Script, Shared, Simple, check_characters
from openry.policy.tracing import ARGUMENTS, Origin
from openry.policy.words import END, UNKNOWN, VALUE, Word, expand_braces

#: A further word of a command without anything special in it.
_ARGUMENT = re.compile(
    r"""[ \t]+(?:(?!#)([^\s|&;()<>'"\\$`*?\[{},~]+)|'([^']*)'|"([^"$`\\]*)")(?=[ \t\n|;&)]|\Z)"""
)
_AFTER = frozenset(("", "|", ";", "\n", ")"))  #: signs with which no word and no redirection begins
_ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[0-9A-Za-z_]*\])?\+?=")
_FUNCTION = re.compile(r"([^\s|&;()<>'\"\\$`=]+)[ \t]*\([ \t]*\)")
_KEYWORD = re.compile(r"(?:[a-z]+|[{}!]|\[\[)(?=[ \t\n;|&()<>]|\Z)")
_OPENING = frozenset(
    ("if", "while", "until", "for", "case", "select", "function", "{", "[[", "coproc")
)
_CLOSING = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))
#: One element of a list, e.g. `${a[1]}`.
_ELEMENT = re.compile(r"\$\{([A-Za-z_]\w*)\[(?:[0-9@*]+|\$?[A-Za-z_]\w*)\]\}")
_TIME_OPTIONS = re.compile(r"(?:-p[ \t]+)?(?:--[ \t]+)?")
#: The beginning of most commands: a name, a blank, and no `(` that would make it a function.
_PLAINLY = re.compile(r"([A-Za-z0-9_./-]+)[ \t]+[^\s(]")
_RESERVED = _OPENING | _CLOSING | {"time"}
_NUMERIC_TESTS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))

_NO_FOLDERS: Mapping[str, str] = MappingProxyType({})
_NO_VALUES: Mapping[str, list[Origin]] = MappingProxyType({})


def read_script(
    text: str,
    tainted: frozenset[str] = frozenset(),
    *,
    free_arithmetic: bool = False,
    environment: Container[str] | None = None,
    folders: Mapping[str, str] = _NO_FOLDERS,
    values: Mapping[str, list[Origin]] = _NO_VALUES,
) -> Script:
    """Every simple command of `text`.

    Args:
        tainted: Variables known to hold something else than a number.
        free_arithmetic: What arithmetic may run does not matter.
        environment: The variables there are; None where that is not known. Another one that the
            text does not set is empty.
        folders: What `HOME` and `PWD` are, where that is known.
        values: What the variables may hold that there are already.

    Raises:
        Opaque: It cannot be said for certain what bash would run.
    """
    check_characters(text)
    shared = Shared(text, tainted, free=free_arithmetic)
    reader = _Grammar(text, shared)
    shared.environment = environment
    shared.folders = folders
    shared.values.update({name: list(origins) for name, origins in values.items()})
    reader.list_of_commands("")
    if POSITIONAL in shared.numbers and not all(map(shared.gives_numbers, shared.commands)):
        shared.tainted.add(POSITIONAL)
    clash = shared.numbers & shared.tainted
    if clash and not free_arithmetic:
        raise reader.fail(f"arithmetic with `{min(clash)}`, which may not be a number,")
    if clash := shared.arrays & shared.texts:
        raise reader.fail(f"the list `{min(clash)}`, made of a text,")
    return Script(
        tuple(shared.commands),
        frozenset(shared.functions),
        reader.in_turn and not shared.moves_inside,
        not shared.conditions and not shared.moves_inside,
        frozenset(shared.tainted),
        shared.values,
    )


class _Grammar(Redirections):
    in_turn = False
    #: The stages of the pipeline that was read last; None where one is no simple command.
    stages: list[Simple] | None = None
    made: Simple | None = None

    # --- lists --------------------------------------------------------------------------------

    def script(self, outer: Words, end: str) -> None:
        """The inside of a substitution; `outer` is this reader itself."""
        if self.heredocs:
            raise self.fail("a substitution beside a here-document")
        given, made = self.given, self.made
        self.depth += 1
        self.list_of_commands(end)
        self.depth -= 1
        self.given, self.made = given, made
        if self.heredocs:
            raise self.fail("a here-document that does not end")

    def list_of_commands(self, end: str, closing: frozenset[str] = frozenset()) -> str:
        """Commands up to `end` (a sign, taken) or a word of `closing` (taken and given).

        What it sets for certain is set for certain in the rest of it.
        """
        surely = set(self.shared.surely)
        ended = self._list(end, closing)
        if self.depth:
            self.shared.surely = surely
        return ended

    def _list(self, end: str, closing: frozenset[str]) -> str:
        first = only_and = True
        pipelines: list[list[Simple] | None] = []
        while True:
            self.blanks(newlines=True)
            self.only = pipelines[0] if len(pipelines) == 1 else None
            if self.at >= len(self.text):
                if end or closing or self.heredocs:
                    raise self.fail("a line that does not end")
                self.in_turn = self.in_turn and only_and
                return ""
            if end and self.take(end):
                return end
            if closing:
                if ";;" in closing and (sign := self.match(re.compile(r";;&|;&|;;"))):
                    return sign
                word = self.keyword()
                if word in closing:
                    self.at += len(word)
                    return word
            if not first and self.depth == 0:
                only_and = False
            count = len(self.shared.commands)
            pipelines.append(self._and_or(first=first))
            first = False
            self.blanks()
            if self.ahead(";;") or self.ahead(";&"):
                if ";;" not in closing:
                    raise self.fail("`;;` outside `case`")
            elif self.peek() in (";", "&"):
                if self.peek() == "&":
                    self._forget(count)
                if self.depth == 0 and self.peek() == "&":
                    only_and = False
                self.at += 1
            elif self.peek() == "\n" or self.at >= len(self.text):
                pass
            elif not (end and self.ahead(end)):
                raise self.fail("a sign that is not expected")

    def _and_or(self, *, first: bool) -> list[Simple] | None:
        """Pipelines with `&&` and `||` between; gives the stages where there is but one."""
        self._pipeline(sure=True)
        operators = []
        while True:
            self.blanks()
            if not (self.ahead("&&") or self.ahead("||")):
                break
            operators.append(self.peek(2))
            self.at += 2
            self.blanks(newlines=True)
            self._pipeline(sure=False)
        if operators and self.depth == 0:
            self.shared.conditions = True
        if first and self.depth == 0:
            self.in_turn = "||" not in operators
        return None if operators else self.stages

    def _pipeline(self, *, sure: bool) -> None:
        self._prefixes()
        piped = False
        stages: list[Simple] | None = []
        outer = self.input
        while True:
            count = len(self.shared.commands)
            self.made = None
            self.command(piped=piped, sure=sure and not piped)
            stages = None if stages is None or self.made is None else [*stages, self.made]
            self.blanks()
            if not self.ahead("|") or self.ahead("||"):
                self.stages, self.input = stages, outer
                return
            self.input = printed(stages, self.shared)
            if not piped and sure:
                self._forget(count)
            self.at += 2 if self.ahead("|&") else 1
            self.blanks(newlines=True)
            piped = True
            self._prefixes()

    def _prefixes(self) -> None:
        while (word := self.keyword()) in ("!", "time"):
            self.at += len(word)
            self.blanks()
            self.shared.moves_inside |= word == "!"  # what follows `! cd x &&` is not there
            if word == "time":
                self.match(_TIME_OPTIONS)

    def _forget(self, since: int) -> None:
        """What was set in a pipeline is not set after it, and it moves nobody."""
        for one in self.shared.commands[since:]:
            if one.words and one.words[0].literal in MOVING:
                self.shared.moves_inside = True
            for name, _ in one.assigns:
                self.shared.known.pop(name, None)
                self.shared.surely.discard(name)

    # --- commands -----------------------------------------------------------------------------

    def command(self, *, piped: bool, sure: bool) -> None:
        if (found := _PLAINLY.match(self.text, self.at)) and found[1] not in _RESERVED:
            self.at = found.end(1)
            self._simple(Word(found[1]), piped=piped, sure=sure)
            return
        if self.ahead("(("):
            self.at += 2
            self.arithmetic("))")
            self.redirects_after(piped)
            return
        if self.take("("):
            self._inside(lambda: self.list_of_commands(")"), piped)
            return
        word = self.keyword()
        if word in _CLOSING or word in ("!", "time"):
            raise self.fail(f"`{word}` without its beginning")
        if word in _OPENING:
            self.at += len(word)
            self._inside(lambda: self._compound(word), piped)
            return
        if found := _FUNCTION.match(self.text, self.at):
            self.at = found.end()
            self._function(found.group(1))
            return
        self._simple(piped=piped, sure=sure)

    def _inside(self, read: Callable[[], object], piped: bool) -> None:
        """A compound command and its redirections: they come last, but its input may be theirs."""
        outer, name = self.input, self.shared.named([])
        self.input = (name,)
        self.depth += 1
        read()
        self.depth -= 1
        self.input = outer
        given = self.redirects_after(piped)
        texts: tuple[str | None, ...] = (outer if given is None else given) or (None,)
        self.shared.values[name.strip(VALUE + END)] = [Origin(one) for one in texts]
        self.made = None

    def _compound(self, word: str) -> None:
        if word == "{":
            self.list_of_commands("", frozenset("}"))
        elif word == "if":
            self._if()
        elif word in ("while", "until"):
            self.list_of_commands("", frozenset({"do"}))
            with self._surely(self._names_just_read() if word == "while" else ()):
                self.list_of_commands("", frozenset({"done"}))
        elif word in ("for", "select"):
            self._for()
        elif word == "case":
            self._case()
        elif word == "[[":
            self._test()
        elif word == "function":
            self.blanks()
            name = self.word()
            if name is None or name.literal is None:
                raise self.fail("a function without a name")
            self.match(re.compile(r"[ \t]*\([ \t]*\)"))
            self._function(name.literal)
        else:
            raise self.fail(f"`{word}`, which is not followed,")

    def _names_just_read(self) -> list[str]:
        """The variables of the `read` that was the last command, if it was one."""
        words = self.shared.commands[-1].words if self.shared.commands else ()
        return self.names_read(words) if words and words[0].literal == "read" else []

    @contextmanager
    def _surely(self, names: Iterable[str]) -> Iterator[None]:
        """While this is read, these variables are set by the line."""
        more = set(names) - self.shared.surely
        self.shared.surely |= more
        yield
        self.shared.surely -= more

    def _if(self) -> None:
        ended = "elif"
        while ended == "elif":
            self.list_of_commands("", frozenset({"then"}))
            ended = self.list_of_commands("", frozenset({"elif", "else", "fi"}))
        if ended == "else":
            self.list_of_commands("", frozenset({"fi"}))

    def _function(self, name: str) -> None:
        self.shared.functions.add(name)
        self.blanks(newlines=True)
        if not (self.ahead("(") or self.keyword() in ("{", "(", "if", "for", "while", "case")):
            raise self.fail("a function without a body")
        saved, self.shared.known = self.shared.known, {}
        outer, self.input = self.input, ()
        self._inside(lambda: self.command(piped=True, sure=False), True)
        self.input = outer
        self.shared.known = saved

    def _for(self) -> None:
        self.blanks()
        if self.take("(("):
            for end in (";", ";", "))"):
                self.arithmetic(end)
            name, texts = "", []
        else:
            name = self.match(re.compile(r"[A-Za-z_]\w*"))
            if not name:
                raise self.fail("a loop without a variable")
            texts = self._loop_words()
        self.blanks()
        self.take(";")
        self.blanks(newlines=True)
        self.set_loop(name, texts)
        if name:
            self.shared.commands.append(Simple((), ((name, Word(UNKNOWN)),)))
        self.need_keyword("do")
        with self._surely([name] if name else []):
            self.list_of_commands("", frozenset({"done"}))
        self.shared.known.pop(name, None)

    def _loop_words(self) -> list[Word]:
        self.blanks(newlines=True)
        if self.keyword() != "in":
            return [Word(UNKNOWN, paths=(f"{VALUE}{ARGUMENTS}{END}",))]
        self.at += 2
        return self._words()

    def _words(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self.blanks()
            word = self.word()
            if word is None:
                return words
            if word.text or word.quoted:
                words += expand_braces(word)

    def _case(self) -> None:
        self.blanks()
        if self.word() is None:
            raise self.fail("`case` of nothing")
        self.blanks(newlines=True)
        self.need_keyword("in")
        while True:
            self.blanks(newlines=True)
            if self.keyword() == "esac":
                self.at += 4
                return
            self.take("(")
            while True:
                self.blanks()
                if self.word() is None:
                    raise self.fail("a pattern that is not expected")
                self.blanks()
                if not self.take("|"):
                    break
            self.need(")")
            if self.list_of_commands("", frozenset({";;", "esac"})) == "esac":
                return

    def _test(self) -> None:
        """`[[ … ]]`: its words may hold substitutions, and its numbers are arithmetic."""
        numeric, names_from, before = False, self.at, ""
        unsure = self.shared.unsure
        while True:
            self.blanks(newlines=True)
            if re.compile(r"\]\](?=[\s;|&)]|$)").match(self.text, self.at):
                break
            if not self.peek():
                raise self.fail("a test that does not end")
            if self.peek() in "()<>!&|" and before != "=~":
                before = self.peek()
                self.at += 1
                continue
            word = self.word(regex=before in ("=~", "==", "=", "!="))
            if word is None:
                raise self.fail("a test that is hard to read")
            before = word.text
            numeric = numeric or word.literal in _NUMERIC_TESTS
            if word.literal in ("-v", "-R"):
                raise self.fail("a test of a variable's name")
        inside = _ELEMENT.sub(r" \1 ", self.text[names_from : self.at])
        self.at += 2
        if numeric and not self.shared.free:
            if self.shared.unsure > unsure or "[" in inside:
                raise self.fail("numbers that may run something")
            self.shared.numbers.update(NAMES.findall(inside))
            if POSITIONS.search(inside):
                self.shared.numbers.add(POSITIONAL)

    # --- simple commands ----------------------------------------------------------------------

    def _simple(self, *words_read: Word, piped: bool, sure: bool) -> None:
        """The rest of a command, of which perhaps the first word has been read."""
        start = self.at
        words = [*words_read]
        assigns: list[tuple[str, Word]] = []
        redirects: list[Redirect] = []
        self.given = None
        while True:
            if words and (found := _ARGUMENT.match(self.text, self.at)):
                self.at = found.end()
                plainly, single, double = found.groups()
                if plainly:
                    self.check_unquoted(plainly)
                    words.append(Word(plainly))
                else:
                    words.append(Word(double if single is None else single, quoted=True))
                continue
            self.blanks()
            if self.peek() in _AFTER:
                break
            if self.redirect(redirects):
                continue
            declares = bool(words) and words[0].text in DECLARING
            if (declares or not words) and (found := _ASSIGN.match(self.text, self.at)):
                value = self.assigned(found, declares=declares)
                if declares:
                    paths = tuple(f"{found[1]}={one}" for one in value.paths)
                    text = f"{found[1]}={value.text}"
                    words.append(Word(text, quoted=value.quoted, paths=paths))
                else:
                    assigns.append((found[1], value))
                continue
            word = self.word()
            if word is None:
                break
            if word.text or word.quoted:  # else an expansion of nothing: no word at all
                words += expand_braces(word)
        if not words and not assigns and not redirects and self.at == start:
            raise self.fail("no command")
        given = self.input if self.given is None else self.given
        made = Simple(tuple(words), tuple(assigns), tuple(redirects), piped, given)
        self.made = made
        if (self.depth or piped) and words and words[0].literal in MOVING:
            self.shared.moves_inside = True
        self.shared.commands.append(made)
        self.note_assigned(made, sure=sure)

    # --- small things -------------------------------------------------------------------------

    def keyword(self) -> str:
        found = _KEYWORD.match(self.text, self.at)
        return found.group() if found else ""

    def need_keyword(self, word: str) -> None:
        if self.keyword() != word:
            raise self.fail(f"no `{word}`")
        self.at += len(word)
