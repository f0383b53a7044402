"""Reading one word: quotes, expansions and substitutions, as bash does."""

from __future__ import annotations

import re

from openry.policy.numbers import ARITHMETIC, NAMES, POSITIONAL, POSITIONS, prints_numbers
from openry.policy.outputs import printed
from openry.policy.script import NAME_AT, Cursor, Shared, Simple
from openry.policy.tracing import ARGUMENTS, NUMBERS, SURELY
from openry.policy.words import (
    CLOSE,
    COMMA,
    END,
    NAME,
    ONE,
    OPEN,
    STAR,
    UNKNOWN,
    VALUE,
    Opaque,
    Word,
    marked,
    plain,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_ENDS = frozenset(" \t\n|&;()<>")
_PLAIN = re.compile(r"""[^\s|&;()<>'"\\$`*?\[{},~]+""")
#: A whole word without anything special in it.
_SIMPLE = re.compile(r"""[^\s|&;()<>'"\\$`*?\[{},~]+(?=[ \t\n|;&)]|\Z)""")
_QUOTED = re.compile(r'[^$`\\"]+')
_CLASS = re.compile(r"""\[[!^]?\]?[^\]\s'"$`\\|&;()<>/]*\]""")
_LATER = re.compile(r"[^\s|&;<>]*\]|[^\s|&;<>]*['\"$`\\]")
_SPECIAL = re.compile(r"[0-9@*#?$!-]")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_SUBSCRIPT = re.compile(r"\[(?:[@*]|\$?[0-9]+|\$?[A-Za-z_][A-Za-z0-9_]*)\]")
#: The places of a list, or the names that begin so: nothing is looked up by them.
_KEYS = re.compile(r"![A-Za-z_][A-Za-z0-9_]*(?:\[[@*]\]|[@*])\}")
#: Commands that set any variable without its name standing in the line.
_SETS_ANY = re.compile(r"\b(?:eval|source|coproc|getopts|let|trap|alias)\b|(?:^|[;&|({\s])\.\s")
#: Commands that go to another folder.
_MOVES = re.compile(r"\b(?:cd|pushd|popd)\b")
#: Variables that bash itself sets.
_BY_BASH = re.compile(
    r"_|BASH.*|COMP.*|READLINE.*|EPOCH.*|HIST.*|histchars|auto_resume|PS[0-4]|OPT(?:ARG|ERR|IND)"
    r"|E?UID|PPID|GROUPS|HOST(?:NAME|TYPE)|MACHTYPE|OSTYPE|IFS|LINENO|LINES|COLUMNS|MAPFILE|COPROC"
    r"|(?:OLD)?PWD|PATH|HOME|TERM|S?RANDOM|REPLY|SECONDS|SHELL|SHELLOPTS|SHLVL|DIRSTACK|FUNCNAME"
    r"|PIPESTATUS|TIMEFORMAT|TMOUT|FIGNORE|GLOBIGNORE|LC_.*|LANG|CDPATH|MAIL.*|INPUTRC|POSIXLY.*"
)
_OPERATOR = re.compile(r":[-=+?]|[-=+?]|##?|%%?|//?[#%]?|\^\^?|,,?")
_HARMLESS_AT = re.compile(r"@[QULEu]")
_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{1,4})"
    r"|U([0-9a-fA-F]{1,8})|c(.))",
    re.DOTALL,
)
_NAMED = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_DEEPEST = 40
_BARE_NAME = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
#: The name of a value, and the mark that stands before it in what is read.
_SET_HERE = re.compile(
    r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\])?\s*(?:\+\+|--|[-+*/%&|^]?=(?!=)|<<=|>>=)|(?:\+\+|--)\s*([A-Za-z_]\w*)"
)
_VALUE_NAME = re.compile(f"{VALUE}[^{END}]*{END}")
_BEFORE_VALUE = re.compile(f"{UNKNOWN}(?={VALUE})")
_GIVEN = f"{VALUE}{ARGUMENTS}{END}"


class Words(Cursor):
    """Reads words. `script` reads the inside of a substitution; the grammar sets it."""

    script: Callable[[Words, str], None]
    #: In a here-document and in `"${x:-…}"` a `\\"` in backquotes is not what it is in quotes.
    plain_backquotes = False
    #: The stages of the one pipeline that the last substitution is made of.
    only: list[Simple] | None = None
    #: What the lines of the standard input may be, where they are names of files.
    input: tuple[str, ...] = ()
    #: What the process substitution that was read last prints.
    process: tuple[str, ...] = ()

    def __init__(self, text: str, shared: Shared, at: int = 0) -> None:
        super().__init__(text, shared, at)
        self.numeric: dict[int, int] = {}  #: where expansions that give digits begin and end

    def word(self, *, regex: bool = False) -> Word | None:
        """The word that starts here, or None where none does."""
        start = self.at
        if simple := self.match(_SIMPLE):
            self.check_unquoted(simple)
            return Word(simple)
        parts: list[str] = []
        splits = quoted = blurred = False
        while self.at < len(self.text):
            sign = self.text[self.at]
            if run := self.match(_PLAIN):
                self.check_unquoted(run)
                parts.append(run)
            elif sign in _ENDS:
                if sign in "<>" and self.peek(2)[1:] == "(" and not regex:
                    parts.append(self._process())
                elif regex and sign in "()|<>&;":
                    self.at += 1
                else:
                    break
            elif sign == "'":
                parts.append(self._single())
                quoted = True
            elif sign == '"':
                parts.append(self._double())
                quoted = True
            elif sign == "\\":
                parts.append(self._escaped())
                quoted = True
            elif sign in "$`":
                before = self.at
                text, splitting, is_quoted = self._dollar(in_quotes=False)
                if self._name_goes_on(before, parts):
                    text, splitting = UNKNOWN, True
                parts.append(text)
                splits, quoted = splits or splitting, quoted or is_quoted
            elif sign == "~":
                self.at += 1
                parts.append(self._tilde(first=self.at == start + 1, before="".join(parts)))
            elif sign == "[":
                text, blur = self._bracket()
                parts.append(text)
                blurred = blurred or blur
            elif sign in "*?{,}":
                marks = {"*": STAR, "?": ONE, "{": OPEN, ",": COMMA, "}": CLOSE}
                parts.append(marks[sign])
                self.at += 1
            else:  # other white space: to bash an ordinary character
                self.check_unquoted(sign)
                parts.append(sign)
                self.at += 1
        if self.at == start:
            return None
        text = "".join(parts)
        number = bool(self.numeric) and self._number_since(start)
        text = f"{text}{UNKNOWN}" if blurred else text
        if VALUE not in text:
            return Word(text, splits, quoted, number)
        paths = (_BEFORE_VALUE.sub("", text),)
        return Word(_VALUE_NAME.sub("", text), splits, quoted, number, paths)

    def _name_goes_on(self, start: int, parts: list[str]) -> bool:
        """Whether braces, which bash expands first, may make another name of `$x`: `$x{a,b}`."""
        after = self.peek()
        if after != "{" and not (after in (",", "}") and OPEN in parts):
            return False
        return _BARE_NAME.fullmatch(self.text, start, self.at) is not None

    def _number_since(self, start: int) -> bool:
        """Whether the word from there to here is digits, and expansions that give some."""
        at, end = start, self.at
        if end - at > 1 and self.text[at] == self.text[end - 1] == '"':
            at, end = at + 1, end - 1
        while at < end:
            if at not in self.numeric and not self.text[at].isdigit():
                return False
            at = self.numeric.get(at, at + 1)
        return at == end

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise self.fail("a quote that does not end")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        return text

    def _escaped(self) -> str:
        pair = self.peek(2)
        self.check_unquoted(pair)
        if len(pair) < 2:
            raise self.fail("a backslash at the end")
        self.at += 2
        return pair[1]

    def _bracket(self) -> tuple[str, bool]:
        """A `[`: a pattern of one character, or itself; blurred where that is hard to say."""
        if self.match(_CLASS):
            return ONE, False
        self.at += 1
        return (UNKNOWN, True) if _LATER.match(self.text, self.at) else ("[", False)

    def _tilde(self, *, first: bool, before: str) -> str:
        at_start = first or (before[-1:] in (":", "=") and NAME_AT.match(before) is not None)
        if not at_start:
            return "~"
        if self.ahead("+") and self.peek(2)[1:] in ("", "/", *_ENDS):
            self.at += 1
            return self._variable("PWD", in_quotes=True)[0]
        if self.peek() in ("", "/", *_ENDS):
            return self._variable("HOME", in_quotes=True)[0]
        return UNKNOWN

    def _double(self) -> str:
        self.at += 1
        return self.quoted_text('"')

    def quoted_text(self, end: str, *, heredoc: bool = False) -> str:
        """The text up to `end`, in which only `$`, backquotes and backslashes mean something."""
        parts: list[str] = []
        specials = '$`\\"'
        while True:
            if self.at >= len(self.text):
                if end:
                    raise self.fail("a quote that does not end")
                return "".join(parts)
            sign = self.text[self.at]
            if run := self.match(_QUOTED):
                parts.append(run)
            elif end and sign == end:
                self.at += 1
                return "".join(parts)
            elif sign == "\\":
                after = self.peek(2)[1:]
                if after == "\n":
                    pass
                elif after and after in specials and not (heredoc and after == '"'):
                    parts.append(after)
                else:
                    parts.append("\\" + after)
                self.at += 2
            elif sign in "$`":
                parts.append(self._dollar(in_quotes=True)[0])
            else:
                parts.append(sign)
                self.at += 1

    def _dollar(self, *, in_quotes: bool) -> tuple[str, bool, bool]:
        """A `$` or backquote: its text, whether it splits, whether it was a quote."""
        start, count = self.at, len(self.shared.commands)
        if self.ahead("`"):
            self._backquotes(in_quotes=in_quotes)
            return self._output(start, count), not in_quotes, False
        self.at += 1
        after = self.peek()
        if after == "'" and not in_quotes:
            return self._ansi(), False, True
        if after == '"' and not in_quotes:
            return self._double(), False, True
        if after == "[":
            raise self.fail("old arithmetic")
        if self.take("(("):
            self.arithmetic("))")
            self.numeric[start] = self.at
            return f"{UNKNOWN}{NUMBERS}", False, False
        if self.take("("):
            self._substitution(")")
            return self._output(start, count), not in_quotes, False
        if self.take("{"):
            text = self._braced(in_quotes=in_quotes)
            if text == ONE:
                self.numeric[start] = self.at
            return text, not in_quotes and text[:1] == UNKNOWN, False
        if name := self.match(NAME_AT):
            return self._variable(name, in_quotes=in_quotes)
        if special := self.match(_SPECIAL):
            if special in "#?$!":
                self.numeric[start] = self.at
            return self._special(special), not in_quotes and special not in "#?$!", False
        return "$", False, False

    def _special(self, name: str) -> str:
        """`$1` and its like, `$#` and its like."""
        if name == "0":
            return UNKNOWN
        return f"{UNKNOWN}{_GIVEN if name in '@*' or name.isdigit() else NUMBERS}"

    def _output(self, start: int, count: int) -> str:
        """What the substitution from `start` to here, of the commands since, gives."""
        if prints_numbers(self.shared.commands[count:]):
            self.numeric[start] = self.at
        else:
            self.shared.unsure += 1
        paths = printed(self.only, self.shared)
        if paths == (NAME,):
            return NAME
        return f"{UNKNOWN}{self.shared.values_of(paths) if paths else ''}"

    def arithmetic(self, end: str) -> None:
        """Skip arithmetic up to `end`. What it takes from elsewhere must be numbers."""
        unsure, depth, parts = self.shared.unsure, 0, [""]
        while depth or not self.ahead(end):
            sign = self.peek()
            if not sign:
                raise self.fail("unfinished arithmetic")
            if sign == "`" or self.ahead("$("):
                self._dollar(in_quotes=True)
                parts.append("0")
                continue
            if sign in "({":
                depth += 1
            elif sign in ")}":
                if depth == 0:
                    raise self.fail("arithmetic that is hard to read")
                depth -= 1
            parts.append(sign)
            self.at += 1
        self.arithmetic_text("".join(parts))
        if self.shared.unsure > unsure and not self.shared.free:
            raise self.fail("arithmetic with what a command prints, which may not be a number,")
        self.at += len(end)

    def arithmetic_text(self, text: str) -> None:
        """Note what arithmetic looks at."""
        if not ARITHMETIC.fullmatch(text) or any(one in text for one in ("${!", "$[", "$-")):
            raise self.fail("arithmetic that may run something")
        self.shared.numbers.update(NAMES.findall(text))
        for name in _SET_HERE.findall(text):
            self.shared.set("".join(name), (NAME, f"-{NAME}"))
        if POSITIONS.search(text):
            self.shared.numbers.add(POSITIONAL)

    def _variable(self, name: str, *, in_quotes: bool) -> tuple[str, bool, bool]:
        known = self.shared.known.get(name)
        if known is None and name in self.shared.folders and self._is_left_alone(name):
            known = self.shared.folders[name]
        if known is None and self.shared.environment is not None and self._is_unset(name):
            known = ""
        if known is not None:
            return known, False, False
        return f"{UNKNOWN}{self._named(name)}", not in_quotes, False

    def _named(self, name: str) -> str:
        return f"{VALUE}{SURELY if name in self.shared.surely else ''}{name}{END}"

    def _is_unset(self, name: str) -> bool:
        """Whether nothing gives it a value: not the environment, not bash, no word of the text."""
        if name in (self.shared.environment or ()) or _BY_BASH.fullmatch(name):
            return False
        return self._is_left_alone(name)

    def _is_left_alone(self, name: str) -> bool:
        """Whether nothing in the text can give it another value."""
        if _SETS_ANY.search(self.shared.text):
            return False
        if name == "PWD" and _MOVES.search(self.shared.text):
            return False
        named = rf"(?<![\w${{]){name}\b|-\w*{name}\b|\{{{name}(?:\[[^\]]*\])?(?::?=|\}}[<>])"
        return re.search(named, self.shared.text) is None

    def _substitution(self, end: str) -> None:
        self.shared.nesting += 1
        if self.shared.nesting > _DEEPEST:
            raise self.fail("substitutions too deep")
        self.script(self, end)
        self.shared.nesting -= 1

    def _process(self) -> str:
        outer = self.input
        if self.peek() == ">":
            self.input = ()
        self.at += 2
        self._substitution(")")
        self.input = outer
        self.process = printed(self.only, self.shared)
        name = self.shared.values_of(self.process) if self.process else ""
        return f"/dev/fd/{ONE}{name}"

    def _backquotes(self, *, in_quotes: bool) -> None:
        self.at += 1
        parts: list[str] = []
        while not self.ahead("`"):
            sign = self.peek()
            if not sign:
                raise self.fail("a backquote that does not end")
            after = self.peek(2)[1:]
            if self.plain_backquotes and sign == "\\" and after == '"':
                raise self.fail("an escaped quote in backquotes")
            if sign == "\\" and (after in ("`", "\\", "$") or (in_quotes and after == '"')):
                sign = after
                self.at += 1
            parts.append(sign)
            self.at += 1
        self.at += 1
        inner = type(self)("".join(parts), self.shared)
        inner._substitution("")
        self.only = inner.only

    def _ansi(self) -> str:
        self.at += 1
        parts: list[str] = []
        while not self.take("'"):
            found = _ESCAPE.match(self.text, self.at)
            if found:
                parts.append(_ansi_character(found))
                self.at = found.end()
            elif sign := self.peek():
                parts.append(sign)
                self.at += 1
            else:
                raise self.fail("a quote that does not end")
        return "".join(parts)

    def _braced(self, *, in_quotes: bool) -> str:
        """`${…}`. Nothing in it may be run later, by bash's reading a value once more."""
        if self.match(_KEYS):
            return UNKNOWN
        if self.ahead("!"):
            raise self.fail("a name that is found at run time")
        if self.take("#") and not self.ahead("}"):
            self.match(_PARAMETER)
            self._subscript()
            self.need("}")
            return ONE
        name = self.match(_PARAMETER) or "#"
        self._subscript()
        if self.take("}"):
            if name[0].isalpha() or name[0] == "_":
                return self._variable(name, in_quotes=in_quotes)[0]
            return self._special(name)
        if self.match(_HARMLESS_AT):
            self.need("}")
            return UNKNOWN
        operator = self.match(_OPERATOR)
        if operator in ("=", ":="):
            self.shared.tainted.add(name)
            if not name.islower():
                raise self.fail("a variable set on the way")
        if operator:
            before = self.plain_backquotes
            self.plain_backquotes = before or in_quotes
            inner, quoted = self._inner(in_quotes=in_quotes)
            self.plain_backquotes = before
            return f"{UNKNOWN}{self._made(name, operator, inner, quoted=quoted)}"
        if self.take(":"):
            self.arithmetic("}")
        else:
            raise self.fail("an expansion that is not known")
        return UNKNOWN

    def _subscript(self) -> None:
        if found := self.match(_SUBSCRIPT):
            self.arithmetic_text(found.strip("[]@*"))
        elif self.ahead("["):
            raise self.fail("a subscript that may run something")

    def _made(self, name: str, operator: str, inner: str, *, quoted: bool) -> str:
        """The name of what an operator makes of a variable."""
        shared = self.shared
        if (name.isalnum() and not name.isdigit()) or "_" in name:
            before = self._variable(name, in_quotes=True)[0].lstrip(UNKNOWN)
        else:
            before = self._special(name).lstrip(UNKNOWN)
        inner = UNKNOWN if inner[:1] == "~" else _BEFORE_VALUE.sub("", inner)
        kind = operator.lstrip(":")
        if kind == "=":
            shared.set(name, [inner])
        if kind in ("-", "="):
            return shared.values_of((before, inner) if name != "0" else (None,))
        if kind == "+":
            return shared.values_of(("", inner))
        if kind == "?":
            return before
        if not before or marked(inner) or (quoted and kind[0] in "%#/"):
            return ""
        if kind[0] == "/":
            return shared.value(before, "/", inner.replace("/", "\n", 1))
        if kind[0] in "^,":
            return shared.value(before, kind[0]) if not inner else ""
        return shared.value(before, kind, inner)

    def _inner(self, *, in_quotes: bool) -> tuple[str, bool]:
        """The word after an operator of `${…}`, to its `}`, and whether some of it was quoted."""
        parts: list[str] = []
        quoted = False
        while not self.take("}"):
            sign = self.peek()
            if not sign:
                raise self.fail("an expansion that does not end")
            if sign == "'":
                if in_quotes:
                    raise self.fail("a quote inside a quoted expansion")
                parts.append(self._single())
                quoted = True
            elif sign == '"':
                if in_quotes:
                    raise self.fail("a quote inside a quoted expansion")
                parts.append(self._double())
                quoted = True
            elif sign == "\\":
                parts.append(self._escaped())
                quoted = True
            elif sign in "$`":
                parts.append(self._dollar(in_quotes=in_quotes)[0])
            elif sign in "<>" and self.peek(2)[1:] == "(":
                parts.append(self._process())
            else:
                self.check_unquoted(sign)
                parts.append(sign)
                self.at += 1
        return "".join(parts), quoted


def _ansi_character(found: re.Match[str]) -> str:
    named, in_hex, octal, short, long, control = found.groups()
    if named:
        return _NAMED.get(named, named)
    if control:
        raise Opaque("a control character in a quote")
    code = int(in_hex or short or long, 16) if not octal else int(octal, 8)
    if code == 0 or (code > 127 and (in_hex or octal)) or code > 0x10FFFF:
        raise Opaque("a byte in a quote that is no character")
    return chr(code)


def value_text(word: Word) -> str | None:
    """What a variable set to `word` gives where it is used, or None where that is not known."""
    text = plain(word.text)
    if UNKNOWN in text or re.search(r"[\s*?\[\]~\\]", text) or word.splits or not text:
        return None
    return text
