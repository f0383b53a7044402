"""Reading redirections and here-documents."""

from __future__ import annotations

import re

from openry.policy.assignments import Assignments, paths_of
from openry.policy.script import Redirect, Shared, Simple
from openry.policy.tracing import SPLIT, Origin
from openry.policy.words import END, NAME, ONE, UNKNOWN, VALUE, Word, expand_braces, marked, plain

#: Blanks, among them a line's end behind a backslash, and a comment where one may begin.
_BLANKS = re.compile(r"(?:[ \t]|(?<=[ \t])\\\n)*(?:(?<![^ \t\n;&|()`])#[^\n]*)?")
_BLANK = frozenset(" \t\\#")  #: what blanks and comments begin with
_REDIRECT = re.compile(r"(?:[0-9]+|\{[A-Za-z_]\w*\})?(?:<<<|<<-?|<>|<&|>&|>>|>\||<|>)|&>>?")
_REDIRECTING = frozenset("<>&{0123456789")


class Redirections(Assignments):
    #: What the command reads that is being read, as its redirections say; None where it has none.
    given: tuple[str, ...] | None = None

    def __init__(self, text: str, shared: Shared, at: int = 0) -> None:
        super().__init__(text, shared, at)
        self.heredocs: list[tuple[str, bool, bool, str, str]] = []

    def blanks(self, *, newlines: bool = False) -> None:
        """Skip blanks and a comment; with `newlines` line ends too, with their here-documents."""
        while True:
            sign = self.text[self.at : self.at + 1]
            if sign in _BLANK and (found := _BLANKS.match(self.text, self.at)):
                self.at = found.end()
            if not newlines or not self.take("\n"):
                return
            for end, quoted, tabs, whole, lines in self.heredocs:
                body = self._body(end, quoted=quoted, tabs=tabs)
                if quoted or not set("".join(body)) & set("$`\\"):
                    self.shared.values[whole.strip(VALUE + END)] = [Origin("\n".join(body))]
                    origins = [Origin(one) for one in dict.fromkeys(body)]
                    self.shared.values[lines.strip(VALUE + END)] = origins
            self.heredocs.clear()

    def _body(self, end: str, *, quoted: bool, tabs: bool) -> list[str]:
        """The lines of a here-document."""
        lines: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise self.fail("a here-document that does not end")
            stop = self.text.find("\n", self.at)
            line = self.text[self.at : stop if stop >= 0 else len(self.text)]
            self.at = stop + 1 if stop >= 0 else len(self.text)
            line = line.lstrip("\t") if tabs else line
            if line == end:
                break
            if not quoted and (len(line) - len(line.rstrip("\\"))) % 2:
                raise self.fail("a backslash at the end of a line")
            lines.append(line)
        if quoted or not lines:
            return lines
        inner = type(self)("\n".join(lines), self.shared)
        inner.depth = self.depth + 1
        inner.plain_backquotes = True
        inner.quoted_text("", heredoc=True)
        return lines

    def redirect(self, redirects: list[Redirect]) -> bool:
        if self.peek() not in _REDIRECTING or self.peek(2) in ("<(", ">("):
            return False
        found = self.match(_REDIRECT)
        if not found:
            return False
        op = re.sub(r"^(?:[0-9]+|\{\w+\})", "", found)
        if found[0] == "{":  # it gets a number
            self.shared.set(found[1 : found.index("}")], (NAME,))
        self.blanks()
        start = self.at
        target = self.word()
        if target is None:
            raise self.fail("a redirection to nothing")
        if "<" in op:
            self.given = self._given(op, target)
        if op in ("<<", "<<-"):
            if marked(target.text) and not target.quoted:
                raise self.fail("a here-document's end that is hard to read")
            if set(self.text[start : self.at]) & set("$`"):
                raise self.fail("a here-document's end that is hard to read")
            whole, lines = (self.shared.named([Origin(None)]) for _ in "ab")
            self.heredocs.append((plain(target.text), target.quoted, op == "<<-", whole, lines))
            redirects.append(Redirect("<<", Word(UNKNOWN, paths=(whole,))))
            self.given = (lines,)
        else:
            redirects += [Redirect(op, one) for one in expand_braces(target)]
        return True

    def _given(self, op: str, target: Word) -> tuple[str, ...]:
        """What is read from a redirection."""
        if op == "<" and target.text == f"/dev/fd/{ONE}":
            return self.process
        if op == "<<<":
            texts = paths_of(target)
            split = self.shared.values_of(texts, SPLIT)
            return (split, *(one for one in texts if one is not None))
        return ()

    def redirects_after(self, piped: bool) -> tuple[str, ...] | None:
        """The redirections of a compound command; gives what they let it read, if they do."""
        redirects: list[Redirect] = []
        self.given = None
        self.blanks()
        while self.redirect(redirects):
            self.blanks()
        if redirects:
            self.shared.commands.append(Simple((), (), tuple(redirects), piped))
        return self.given
