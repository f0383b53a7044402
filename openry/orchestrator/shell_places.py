"""Putting values into a shell line so that they stay values.

The line holds markers where values belong. Each becomes a reference to a shell variable, written
for the quoting it stands in; where no quoting can keep a value from being read as program text,
the line is refused and the way out named.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from openry.orchestrator.shell_programs import Word, program_words

#: Round a value's number. Nothing else may contain them.
OPEN, CLOSE = "\U0010fff8", "\U0010fff9"
_MARKER = re.compile(f"{OPEN}(\\d+){CLOSE}")
_WAY_OUT = 'give it a name under `env:` and use "$NAME" there'
_RESERVED = frozenset(
    "if then elif else fi do done while until for in case esac { } ! time function select".split()
)
_SPACE, _BREAK = " \t\r", "\n;&|()<>"
_ASSIGNS = re.compile(r"[A-Za-z_]\w*\+?=")
MAX_NESTING = 50


def marker(number: int) -> str:
    return f"{OPEN}{number}{CLOSE}"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Value `number` stands where it could become program text."""

    number: int
    where: str
    way_out: str = _WAY_OUT


@dataclass(slots=True)
class Placed:
    """The line with its markers replaced, and what is wrong with it."""

    text: str
    troubles: list[Trouble]
    closed: bool  #: every quote and bracket is
    programs: list[int]  #: values that stand where a program's name does


def place(text: str, variable: str = "RY_VALUE_") -> Placed:
    """Replace each marker of `text` by `$variable<number>`, quoted for its place."""
    scan = _Scan(text, variable)
    try:
        scan.commands("")
    except _TooDeepError:
        numbers = [int(number) for number in _MARKER.findall(text)]
        scan.troubles += [Trouble(number, "in a line nested too deep") for number in numbers]
    return Placed("".join(scan.out), scan.troubles, scan.closed, scan.programs)


class _TooDeepError(Exception):
    pass


@dataclass(slots=True)
class _Line:
    """One list of commands: the words of the current one, and what its pipeline carried so far."""

    words: list[Word] = field(default_factory=list)
    word: Word | None = None
    expect: str = ""  #: what the next word is, when it is no argument: a redirection's target
    piped: list[int] = field(default_factory=list)
    cases: int = 0
    heredocs: list[tuple[str, bool]] = field(default_factory=list)
    test: list[Word] | None = None  #: the words since `[[`


@dataclass(slots=True)
class _Scan:
    text: str
    variable: str
    at: int = 0
    depth: int = 0
    closed: bool = True
    out: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    programs: list[int] = field(default_factory=list)

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.text[place] if place < len(self.text) else ""

    def copy(self, count: int = 1) -> str:
        piece = self.text[self.at : self.at + count]
        self.out.append(piece)
        self.at += len(piece)
        return piece

    def take(self) -> int:
        """The number of the marker that stands here."""
        match = _MARKER.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return int(match.group(1))

    def refuse(self, number: int, where: str, way_out: str = _WAY_OUT) -> None:
        self.troubles.append(Trouble(number, where, way_out))

    def name(self, number: int) -> str:
        return f"${{{self.variable}{number}}}"

    # -- lists of commands ------------------------------------------------------------------

    def commands(self, closer: str) -> list[int]:
        """Scan commands up to `closer`, and return the values that stand in them."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise _TooDeepError
        line = _Line()
        seen: list[int] = []
        while self.at < len(self.text):
            c = self.peek()
            if c == ")" and closer == ")":
                self._end_word(line)  # it may be the `esac` that ends a case
                if line.cases <= 0:
                    break
            if c in _BREAK or c in _SPACE:
                self._break(c, line, seen)
            elif c == "#" and line.word is None:
                self._comment()
            else:
                self._word_part(line)
        self._end_command(line, seen)
        if closer:
            if self.peek() == closer:
                self.copy()
            else:
                self.closed = False
        self.depth -= 1
        return seen

    def _break(self, c: str, line: _Line, seen: list[int]) -> None:
        """A character that ends a word, and perhaps a command."""
        if c in "<>" or (c == "&" and self.peek(1) == ">"):
            self._redirection(line, seen)
        elif c == "(":
            self._group(line, seen)
        elif c in _SPACE:
            self._end_word(line)
            self.copy()
        elif c == "|" and self.peek(1) != "|":
            self._end_command(line, seen, piped=True)
            self.copy(2 if self.peek(1) == "&" else 1)
        else:
            self._end_command(line, seen)
            if self.copy() == "\n":
                self._heredocs(line)
            elif self.peek() == c:
                self.copy()

    def _comment(self) -> None:
        while self.at < len(self.text) and self.peek() != "\n":
            if self.peek() == OPEN:
                self.out.append(self.name(self.take()))
            else:
                self.copy()

    def _group(self, line: _Line, seen: list[int]) -> None:
        """`( … )`, an array, a function's parentheses, or `(( … ))`."""
        after_for = bool(line.words) and line.words[-1].text == "for"
        if self.peek(1) == "(" and line.word is None and (not line.words or after_for):
            seen += self._verbatim(_arithmetic_end, "in arithmetic")
            self._word(line).text += "(())"
            return
        inner_word = line.word
        if inner_word is None or not inner_word.text.endswith(("=", "?", "*", "+", "@", "!")):
            self._end_word(line)
        self.copy()
        values = self.commands(")")
        seen += values
        if inner_word is not None:
            inner_word.values += values

    def _redirection(self, line: _Line, seen: list[int]) -> None:
        ahead = self.text[self.at : self.at + 3]
        if ahead[:2] in ("<(", ">("):
            word = self._word(line)
            self.copy(2)
            values = self.commands(")")
            seen += values
            word.values += values
            word.text += "\0" * len(values) + "<()"
            word.substitution = True
            return
        if line.word is not None and line.word.text.isdigit() and not line.word.values:
            line.word = None  # a descriptor: 2>file
        self._end_word(line)
        if ahead == "<<<":
            self.copy(3)
            line.expect = "herestring"
        elif ahead[:2] == "<<":
            self._heredoc_start(line)
        else:
            while self.peek() and self.peek() in "<>&|":
                self.copy()
            line.expect = "target"

    def _heredoc_start(self, line: _Line) -> None:
        self.copy(2)
        dash = self.peek() == "-"
        if dash:
            self.copy()
        while self.peek() and self.peek() in _SPACE:
            self.copy()
        start = self.at
        quote = ""
        while self.at < len(self.text):
            c = self.peek()
            if c == OPEN:
                self.refuse(self.take(), "as the end mark of a heredoc")
                continue
            if not quote and (c in _SPACE or c in _BREAK):
                break
            if c == "\\" and quote != "'":
                self.copy()
            elif c in "'\"" and quote in ("", c):
                quote = "" if quote else c
            self.copy()
        mark = re.sub(r"\\(.)|['\"]", r"\1", self.text[start : self.at])
        line.heredocs.append((mark, dash))

    def _heredocs(self, line: _Line) -> None:
        """The bodies that follow a line with `<<`."""
        for mark, dash in line.heredocs:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                row = self.text[self.at : end if end >= 0 else len(self.text)]
                if (row.lstrip("\t") if dash else row) == mark:
                    self.copy(len(row))
                    break
                for number in _MARKER.findall(row):
                    self.refuse(int(number), "in a heredoc")
                self.copy(len(row) + 1)
        line.heredocs.clear()

    # -- words --------------------------------------------------------------------------------

    def _word(self, line: _Line) -> Word:
        if line.word is None:
            line.word = Word()
        return line.word

    def _word_part(self, line: _Line) -> None:
        word, c = self._word(line), self.peek()
        if c == OPEN:
            number = self.take()
            if re.search(r"(?:^|=)?[A-Za-z_]\w*\[[^\]]*$", word.text):
                self.refuse(number, "as an array's index")
            self.out.append(f'"{self.name(number)}"')
            word.add_value(number)
        elif c == "'":
            self._single(word)
        elif c == '"':
            self.copy()
            self._double(word)
        elif c == "\\":
            self._escape(word)
        elif c == "`":
            self._backtick(word)
        elif c == "$":
            self._dollar(word, quoted=False)
        else:
            word.text += self.copy()

    def _escape(self, word: Word) -> None:
        self.copy()
        if self.peek() == OPEN:
            number = self.take()
            self.refuse(number, "after a backslash", "leave out the backslash")
            word.add_value(number)
        elif self.peek() == "\n":
            self.copy()
        else:
            word.text += self.copy()

    def _single(self, word: Word) -> None:
        self.copy()
        while self.at < len(self.text):
            if self.peek() == OPEN:
                number = self.take()
                self.out.append(f"'\"{self.name(number)}\"'")
                word.add_value(number)
            elif self.peek() == "'":
                self.copy()
                return
            else:
                word.text += self.copy()
        self.closed = False

    def _double(self, word: Word) -> None:
        while self.at < len(self.text):
            c = self.peek()
            if c == OPEN:
                number = self.take()
                self.out.append(self.name(number))
                word.add_value(number)
            elif c == "\\":
                self._escape(word)
            elif c == "$":
                self._dollar(word, quoted=True)
            elif c == "`":
                self._backtick(word)
            elif c == '"':
                self.copy()
                return
            else:
                word.text += self.copy()
        self.closed = False

    def _ansi(self, word: Word) -> None:
        r"""`$'…'`, where a backslash escapes."""
        self.copy(2)
        while self.at < len(self.text):
            c = self.peek()
            if c == OPEN:
                number = self.take()
                self.out.append(f"'\"{self.name(number)}\"$'")
                word.add_value(number)
            elif c == "\\":
                self._escape(word)
            elif c == "'":
                self.copy()
                return
            else:
                word.text += self.copy()
        self.closed = False

    def _dollar(self, word: Word, *, quoted: bool) -> None:
        after = self.peek(1)
        if after == OPEN:
            self.copy()
            number = self.take()
            self.refuse(number, "after a `$`", "write `{{ … }}` without the `$`")
            word.add_value(number)
        elif self.text.startswith("$((", self.at):
            word.values += self._verbatim(_arithmetic_end, "in arithmetic")
            word.text += "$"
        elif after == "(":
            self.copy(2)
            values = self.commands(")")
            word.values += values
            word.text += "\0" * len(values) + "$"
        elif after == "{":
            word.values += self._verbatim(
                _quoted_brace_end if quoted else _brace_end, "inside `${…}`"
            )
            word.text += "$"
        elif after == "[" and not quoted:
            word.values += self._verbatim(_square_end, "in arithmetic")
            word.text += "$"
        elif after == "'" and not quoted:
            self._ansi(word)
        elif after == '"' and not quoted:
            self.copy(2)
            self._double(word)
        else:
            word.text += self.copy()

    def _backtick(self, word: Word) -> None:
        word.values += self._verbatim(_backtick_end, "in backticks", "use $(…) instead")
        word.text += "$"

    def _verbatim(
        self, end_of: Callable[[str, int], int], where: str, way_out: str = _WAY_OUT
    ) -> list[int]:
        """Copy a construct that no value may stand in."""
        end = end_of(self.text, self.at)
        if end < 0:
            self.closed, end = False, len(self.text)
        numbers = [int(number) for number in _MARKER.findall(self.text, self.at, end)]
        for number in numbers:
            self.refuse(number, where, way_out)
        self.copy(end - self.at)
        return numbers

    # -- ends -------------------------------------------------------------------------------

    def _end_word(self, line: _Line) -> None:
        word, line.word = line.word, None
        if word is None:
            return
        kind, line.expect = line.expect, ""
        if kind:
            word.role = kind
        self._note_reserved(line, word)
        if word.text == "[[" and not line.words:
            line.test = []
        elif word.text == "]]" and line.test is not None:
            self._end_test(line.test)
            line.test = None
        elif line.test is not None:
            line.test.append(word)
        if line.words or kind or word.values or word.text not in _RESERVED:
            line.words.append(word)

    def _note_reserved(self, line: _Line, word: Word) -> None:
        if not line.words and not word.values:
            line.cases += {"case": 1, "esac": -1}.get(word.text, 0)

    def _end_test(self, words: list[Word]) -> None:
        numeric = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"}
        if numeric & {word.text for word in words}:
            for number in (n for word in words for n in word.values):
                self.refuse(number, "in a numeric test of `[[ ]]`", "use `[ … ]` instead")

    def _end_command(self, line: _Line, seen: list[int], *, piped: bool = False) -> None:
        self._end_word(line)
        for number, where, way_out in program_words(line.words, line.piped):
            self.refuse(number, where, way_out or _WAY_OUT)
        first = next((w for w in line.words if not w.role and not _ASSIGNS.match(w.text)), None)
        if first is not None and first.text.startswith("\0"):
            self.programs += first.values[:1]
        values = [number for word in line.words for number in word.values]
        seen += [number for number in values if number not in seen]
        line.piped = [*line.piped, *values] if piped else []
        line.words = []
        line.expect = ""


def _arithmetic_end(text: str, at: int) -> int:
    return _matching(text, text.index("(", at), "(", ")", quotes="'\"")


def _brace_end(text: str, at: int) -> int:
    return _matching(text, at + 1, "{", "}", quotes="'\"")


def _quoted_brace_end(text: str, at: int) -> int:
    return _matching(text, at + 1, "{", "}", quotes='"')  # here an apostrophe is an apostrophe


def _square_end(text: str, at: int) -> int:
    return _matching(text, at + 1, "[", "]", quotes="'\"")


def _backtick_end(text: str, at: int) -> int:
    return _matching(text, at, "", "`", quotes="")


def _matching(text: str, at: int, opening: str, closing: str, *, quotes: str) -> int:
    """The place after the bracket that closes the one at `at`; -1 when nothing does."""
    depth, quote, here = 1, "", at + 1
    while here < len(text):
        c = text[here]
        if c == "\\" and quote != "'":
            here += 1
        elif quote:
            quote = "" if c == quote else quote
        elif c in quotes:
            quote = c
        elif c == closing:
            depth -= 1
            if not depth:
                return here + 1
        elif c == opening:
            depth += 1
        here += 1
    return -1
