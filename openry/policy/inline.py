"""Programs in the languages of awk and sed: whether they run commands or write files."""

from __future__ import annotations

import re

_AWK_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|[A-Za-z_]\w*|\+\+|--|\s+|.', re.S)
_AWK_PATTERN = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?[^\]\n]*\])*/")
#: After one of these words a `/` begins a pattern; after any other word it divides.
_AWK_BEFORE_PATTERN = frozenset(
    "print printf return in do else exit delete case and or not".split()
)
_AWK_RUNS = re.compile(r"\bsystem\s*\(|\|&?|@[a-z]|\bgetline\b")
#: The names of files being looked at, and not set.
_AWK_COMPARED = re.compile(
    r"\bFILENAME\s*[!=]=\s*ARGV\s*\[\s*\w+\s*\]|\bARGV\s*\[\s*\w+\s*\]\s*[!=]=\s*FILENAME"
)
_AWK_WRITES = re.compile(r"\bprintf?\b[^;}\n]*>")


def awk_runs(program: str) -> str:
    """What in an awk program reaches outside it, or the empty text.

    >>> from openry.policy.inline import awk_runs
    >>> awk_runs('$2 > 1 {print $1 "|" $2}'), awk_runs('BEGIN{system("id")}')
    ('', '`system`')
    """
    if re.search(r"\\\n", program):
        return "a line that goes on"
    bare = _awk_bare(program).replace("||", " ")
    if found := _AWK_RUNS.search(bare):
        return f"`{found.group().strip(' (')}`"
    if _AWK_WRITES.search(bare):
        return "a file it writes"
    if "ARGV" in _AWK_COMPARED.sub("", bare):
        return "`ARGV`, which names files,"
    return ""


def _awk_bare(program: str) -> str:
    """`program` without texts, comments and patterns; read in one go, as awk does."""
    parts: list[str] = []
    at, before = 0, ""
    while at < len(program):
        divides = before[-1:].isalnum() or before[-1:] in ("_", ")", "]", "$", '"')
        if program[at] == "/" and (
            before in _AWK_BEFORE_PATTERN or not (divides or before in ("++", "--"))
        ):
            found = _AWK_PATTERN.match(program, at)
            piece, shown = (found.group(), " 0 ") if found else ("/", "| a pattern without end")
            before = "0"
        else:
            found = _AWK_TOKEN.match(program, at)
            piece = found.group() if found else program[at]
            shown = ' "" ' if piece[0] == '"' and len(piece) > 1 else piece
            if piece == '"':
                shown = "| a text without end"
            elif piece[0] == "#":
                shown = ""
            elif not piece.isspace():
                before = piece
            elif "\n" in piece:
                before = ""
        parts.append(shown)
        at += len(piece)
    return "".join(parts)


_SED_ADDRESS = re.compile(r"(?:[0-9]+(?:~[0-9]+)?|\$|\+[0-9]+|~[0-9]+)")
_SED_SIMPLE = frozenset("=dDgGhHnNpPxzlFqQ")


def sed_runs(program: str) -> str:
    """What in a sed program runs a command or touches a file, or the empty text.

    >>> from openry.policy.inline import sed_runs
    >>> sed_runs("/e w/p; 1,3p"), sed_runs("1e rm x"), sed_runs("s/a/b/e")
    ('', '`e`', '`s///e`')
    """
    reader = _Sed(program)
    found = reader.read()
    if not found and reader.doubtful and re.search(r"[ew]\s*\S*$|[/;}\n]\s*[ewWrR]\b", program):
        return "a program that is hard to read"
    return found


class _Sed:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.doubtful = False  #: a sign inside a class: some programs end the pattern there

    def read(self) -> str:
        while True:
            self._skip(" \t\n;}")
            if self.at >= len(self.text):
                return ""
            if not self._addresses():
                return "a program that is hard to read"
            self._skip(" \t!")
            if found := self._command():
                return found

    def _skip(self, signs: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in signs:
            self.at += 1

    def _addresses(self) -> bool:
        while True:
            if found := _SED_ADDRESS.match(self.text, self.at):
                self.at = found.end()
            elif self.text[self.at : self.at + 1] == "/":
                if not self._until("/"):
                    return False
                self._skip("IM")
            elif self.text[self.at : self.at + 1] == "\\":
                self.at += 1
                if not self._until(self.text[self.at : self.at + 1]):
                    return False
                self._skip("IM")
            self._skip(" \t")
            if self.text[self.at : self.at + 1] != ",":
                return True
            self.at += 1
            self._skip(" \t")

    def _until(self, sign: str) -> bool:
        """Go behind the next `sign`, starting on one; False when there is none."""
        if not sign or sign in "\n\\":
            return False
        self.at += 1
        in_class = False
        while self.at < len(self.text):
            now = self.text[self.at]
            if now == "\\":
                self.at += 1
            elif now == "[" and not in_class:
                in_class = True
                if self.text[self.at + 1 : self.at + 2] == "^":
                    self.at += 1
                if self.text[self.at + 1 : self.at + 2] == "]":
                    self.at += 1
            elif now == "]" and in_class:
                in_class = False
            elif now == sign:
                if not in_class:
                    self.at += 1
                    return True
                self.doubtful = True
            self.at += 1
        return False

    def _command(self) -> str:
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        if not sign:
            return "a program that is hard to read"
        if sign in "ewWrR":
            return f"`{sign}`"
        if sign == "s":
            return self._substitute()
        if sign == "y":
            delimiter = self.text[self.at : self.at + 1]
            fine = self._until(delimiter)
            self.at -= 1
            return "" if fine and self._until(delimiter) else "a program that is hard to read"
        if sign in "aic":
            return self._text()
        if sign in ":btT":
            found = re.compile(r"[ \t]*[\w.-]*").match(self.text, self.at)
            self.at = found.end() if found else self.at
            return ""
        if sign == "#":
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
            return ""
        if sign in "{}" or sign in _SED_SIMPLE:
            found = re.compile(r"[ \t]*[0-9]*").match(self.text, self.at) if sign in "qQl" else None
            self.at = found.end() if found else self.at
            return ""
        return "a program that is hard to read"

    def _substitute(self) -> str:
        delimiter = self.text[self.at : self.at + 1]
        if not self._until(delimiter):
            return "a program that is hard to read"
        self.at -= 1
        # In the replacement a bracket means nothing.
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != delimiter:
            self.at += 2 if self.text[self.at] == "\\" else 1
        if self.at >= len(self.text):
            return "a program that is hard to read"
        self.at += 1
        while self.at < len(self.text) and (flag := self.text[self.at]) in "gpiImMew0123456789":
            if flag in "ew":
                return f"`s///{flag}`"
            self.at += 1
        return ""

    def _text(self) -> str:
        """The text of `a`, `i` and `c`: to the end of the line, further after a backslash."""
        while self.at < len(self.text) and self.text[self.at] != "\n":
            self.at += 2 if self.text[self.at] == "\\" else 1
        return ""
