"""`openry output`: look into outputs that were too large, and cut or digest files like them.

Whoever asks says what may be opened: a person all, an agent the outputs of its own instance and
the files its step may read.
"""

from __future__ import annotations

import argparse
import os
import re
import stat
import time

from openry.errors import NotFoundError, UsageError
from openry.forwarder.files import open_kept
from openry.forwarder.options import Parser
from openry.output.capture import whole_end, whole_start
from openry.output.digest import digest_of, reads_of
from openry.output.kinds import task_words
from openry.output.tokens import MARGIN, weigh, weigh_single_digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from openry.models.output import StoredOutput
    from openry.output.tokens import Weigh

    #: Takes what is printed.
    Write = Callable[[str], None]

DEFAULT_DIGEST_TOKENS = 2000
#: Longest time one pattern may take over one line, and over all of an output.
_LINE_S, _WHOLE_S = 1.0, 20.0
_LONGEST_LINE = 64 * 1024
_MOST_LINES = 200
_BLOCK = 256 * 1024
_KINDS_SHOWN = 50
#: Of a line that matches, or stands near one, at most so much is shown.
_SHOWN_BYTES = 2000
_LONGEST_PART = 1024 * 1024
_LARGEST_READ = 64 * 1024 * 1024
#: Parts of a pattern for which a line alone is not as it is among others.
_OF_ONE_LINE = re.compile(r"\\[AZzG]|\(\?|[*+?}]\+")


class Shelf:
    """What may be opened and written, by whom. This one is for a person: all that they may.

    Args:
        find: Gives the output of a name; None for one that is not there for who asks.
        newest: Gives the newest of them.
        text: Takes secrets out of what is printed.
        max_tokens: Largest answer; 0 for a person, who gets all of it.
    """

    def __init__(
        self,
        find: Callable[[str], StoredOutput | None],
        newest: Callable[[], Sequence[StoredOutput]],
        *,
        text: Callable[[str], str] = str,
        max_tokens: int = 0,
        single_digits: bool = False,
    ) -> None:
        self.find, self.newest = find, newest
        self.text, self.max_tokens = text, max_tokens
        self.by: Weigh = weigh_single_digits if single_digits else weigh

    def stored(self, name: str) -> StoredOutput:
        """The output of that name.

        Raises:
            NotFoundError: There is none for who asks.
        """
        found = self.find(name)
        if found is None:
            raise NotFoundError(
                f"there is no output `{name}`: it never was, or it was pruned;"
                " see: openry output list"
            )
        return found

    def open(self, name: str) -> BinaryIO:
        """An output by its name, or a file by its path.

        Raises:
            NotFoundError: There is no such output.
            UsageError: There is no such file, or it is no regular one.
            NotAllowedError: It may not be read.
        """
        if not name:
            raise UsageError(
                "the name is empty; name an output (see: openry output list) or a file"
            )
        try:
            file = open_kept(self.stored(name).path) if is_name(name) else self.open_file(name)
        except OSError as error:
            raise UsageError(f"`{name}`: {(error.strerror or str(error)).lower()}") from error
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise UsageError(f"`{name}` is no regular file")
        return file

    def open_file(self, name: str) -> BinaryIO:
        return open_kept(os.path.realpath(name))

    def read_file(self, path: str) -> bytes:
        """A file of a folder that `slice` made."""
        with self.open_file(path) as file:
            return file.read(_LARGEST_READ)

    def write_file(self, path: str, data: bytes) -> None:
        """A file of `slice`; its folder is made."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def is_name(text: str) -> bool:
    """Whether this names an output that the ledger knows: `out-17`, `out-17.stderr`."""
    return bool(re.fullmatch(r"out-[0-9]+(\.stderr|\.stdout)?", text))


def look(words: Sequence[str], shelf: Shelf, write: Write) -> int:
    """Do what `openry output WORDS` says; the exit status.

    Raises:
        UsageError: It says nothing that can be done.
        NotFoundError: It names an output that is not there.
    """
    for word in words:
        _check_word(word)
    given = _parser().parse_args(words)
    said = _Pen(shelf, write)
    status: int = given.act(given, shelf, said)
    said.end()
    return status


def _check_word(word: str) -> None:
    """Words may be a model's, who can write what no command line and no file's name can hold."""
    try:
        held = b"\0" in word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        held = True
    if held:
        said = word.encode("ascii", "backslashreplace").decode()
        raise UsageError(f"`{said}` holds a NUL or half a character; no name or pattern can")


def _parser() -> argparse.ArgumentParser:
    """Its words may be an agent's and this process a worker's: it raises, and never exits."""
    parser = Parser("openry output", add_help=False)
    acts = parser.add_subparsers(required=True, dest="form")

    def add(name: str, act: Callable[..., int]) -> argparse.ArgumentParser:
        one = acts.add_parser(name, add_help=False)
        one.set_defaults(act=act)
        return one

    one = add("list", _list)
    one.add_argument("--json", action="store_true")
    one = add("show", _show)
    one.add_argument("name")
    one.add_argument("--lines", default="", metavar="A:B")
    one = add("grep", _grep)
    one.add_argument("name")
    one.add_argument("pattern")
    one.add_argument("-i", "--ignore-case", action="store_true")
    one.add_argument("--context", "-C", type=_count, default=0)
    one.add_argument("--max", type=_some, default=_MOST_LINES)
    one = add("kinds", _kinds)
    one.add_argument("name")
    one = add("digest", _digest)
    one.add_argument("name")
    one.add_argument("--tokens", type=_some, default=DEFAULT_DIGEST_TOKENS)
    one.add_argument("--task", default="")
    one.add_argument("--as", dest="shown_as", default="")
    one = add("slice", _slice)
    one.add_argument("name")
    one.add_argument("--into", required=True, metavar="DIR")
    one.add_argument("--tokens", type=_some, default=7000)
    one.add_argument("--most", type=_some, default=25)
    one.add_argument("--task", default="")
    one = add("merge", _merge)
    one.add_argument("folder")
    one.add_argument("--tokens", type=_some, default=DEFAULT_DIGEST_TOKENS)
    return parser


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be a whole number, got `{text}`")
    return int(text)


def _some(text: str) -> int:
    if not _count(text):
        raise argparse.ArgumentTypeError(f"must be at least 1, got `{text}`")
    return int(text)


class _Pen:
    """Writes lines as far as who reads may have them, and says what was left out."""

    def __init__(self, shelf: Shelf, write: Write) -> None:
        self._shelf = shelf
        self._write = write
        self._left = shelf.max_tokens / MARGIN - 60 if shelf.max_tokens else float("inf")
        self._left_out = 0

    def line(self, text: str, end: str = "\n") -> bool:
        """Whether there was room for it."""
        if self._left_out:
            self._left_out += 1
            return False
        text = self._shelf.text(text)
        cost = self._shelf.by(f"{text}\n".encode("utf-8", "replace")) if self._limited else 0
        if cost > self._left:
            self._left_out = 1
            return False
        self._left -= cost
        self._write(f"{text}{end}")
        return True

    def whole(self, text: str) -> None:
        self._write(self._shelf.text(text))

    @property
    def _limited(self) -> bool:
        return bool(self._shelf.max_tokens)

    def end(self) -> None:
        if self._left_out:
            self._write(
                f"[openry] {self._left_out:,} more lines are left out here: they are more than"
                " this step allows; ask for fewer\n"
            )


# --- looking ----------------------------------------------------------------------------------


def _list(given: argparse.Namespace, shelf: Shelf, said: _Pen) -> int:
    found = shelf.newest()
    if given.json:
        import json

        items = [_described(one) for one in found]
        said.whole(json.dumps({"schema_version": 1, "outputs": items}, ensure_ascii=False) + "\n")
        return 0
    if not found:
        said.line("no output was too large yet")
    for one in found:
        tokens = f", about {one.tokens:,} tokens" if one.tokens else ""
        command = " ".join(one.command.split())[:100]
        said.line(f"{one.name}  {one.bytes:,} bytes, {one.lines:,} lines{tokens}  {command}")
    return 0


def _described(one: StoredOutput) -> dict[str, object]:
    return {
        "name": one.name,
        "stream": one.stream,
        "bytes": one.bytes,
        "lines": one.lines,
        "tokens": one.tokens,
        "sha256": one.digest,
        "at": one.at,
        "run": one.run_id,
        "step": one.step_id,
        "command": one.command,
    }


def _show(given: argparse.Namespace, shelf: Shelf, said: _Pen) -> int:
    first, last = _range(given.lines)
    number, whole = 0, True
    with shelf.open(given.name) as file:
        while piece := file.readline(_LONGEST_LINE):  # a line may be as long as the output
            number += whole
            whole = piece.endswith(b"\n")
            if number > last:
                break
            if number >= first:
                said.line(_readable(piece), end="\n" if whole else "")
    return 0


def _range(text: str) -> tuple[int, float]:
    """`A:B` as numbers of lines from 1, both included; either may be missing."""
    if not text:
        return 1, float("inf")
    parts = text.split(":")
    if len(parts) > 2 or not all(part.isascii() and (part.isdigit() or not part) for part in parts):
        raise UsageError(f"--lines must be A:B, e.g. 100:120; got `{text}`")
    first = int(parts[0] or 1)
    if len(parts) == 1:
        return first, first
    last = int(parts[1]) if parts[1] else float("inf")
    if not 1 <= first <= last:
        raise UsageError(f"--lines must be A:B, from 1 and A not after B; got `{text}`")
    return first, last


def _grep(given: argparse.Namespace, shelf: Shelf, said: _Pen) -> int:
    """Lines with a match, each with its number; 1 when there is none, as grep does."""
    pattern = _Pattern(given.pattern, ignore_case=given.ignore_case)
    found = shown = 0
    with shelf.open(given.name) as file:
        for number, lines in _hits(file, pattern, given.context):
            found += 1
            if found > given.max:
                continue
            shown += 1
            for place, line in lines:
                mark = ":" if place == number else "-"
                said.line(f"{place}{mark}{_readable(line)}")
    if found > shown:
        said.line(f"[openry] {found - shown:,} more lines match; ask for more with --max")
    return 0 if found else 1


class _Pattern:
    """A regular expression with a bound on its time, for lines that come in blocks."""

    def __init__(self, text: str, *, ignore_case: bool) -> None:
        import regex  # type: ignore[import-untyped]  # it can be told to stop

        try:
            flags = regex.IGNORECASE if ignore_case else 0
            self._regex = regex.compile(
                text.encode("utf-8", "surrogatepass"), flags | regex.MULTILINE
            )
        except (regex.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`{text}` is no regular expression: {error}") from error
        self._text = text
        self._plain = not _OF_ONE_LINE.search(text)
        self._until = time.monotonic() + _WHOLE_S

    def may_match(self, block: bytes) -> bool:
        """Whether a line of `block` may match; cheaper than to ask for each line."""
        if not self._plain:
            return True
        try:
            return self._regex.search(block, timeout=_LINE_S) is not None
        except TimeoutError:
            return True

    def find(self, line: bytes) -> tuple[int, int] | None:
        """Where it is found in `line`.

        Raises:
            UsageError: It takes too long.
        """
        left = self._until - time.monotonic()
        try:
            found = self._regex.search(line, timeout=max(0.001, min(_LINE_S, left)))
        except TimeoutError:
            raise UsageError(
                f"`{self._text}` takes too long; use a simpler pattern, e.g. a plain word"
            ) from None
        return found.span() if found else None


def _hits(
    file: BinaryIO, pattern: _Pattern, context: int
) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
    """Number of each line that matches, with as many lines around it.

    A block without a match is passed over whole.
    """
    before: list[tuple[int, bytes]] = []
    waiting: list[tuple[int, list[tuple[int, bytes]]]] = []
    number, goes_on = 0, False
    for block in _blocks(file):
        lines = block.split(b"\n")
        ends = block.endswith(b"\n")
        if ends:
            lines.pop()
        if not context and not pattern.may_match(block):
            number += len(lines) - goes_on
            lines = []
        for line in lines:
            number += not goes_on
            goes_on = False
            for hit, around in waiting:
                if number <= hit + context:
                    around.append((number, line[:_SHOWN_BYTES]))
            while waiting and number >= waiting[0][0] + context:
                yield waiting.pop(0)
            if found := pattern.find(line):
                waiting.append((number, [*before, (number, _window(line, found))]))
                if not context:
                    yield waiting.pop(0)
            if context:
                before = [*before, (number, line[:_SHOWN_BYTES])][-context:]
        goes_on = not ends
    yield from waiting


def _window(line: bytes, found: tuple[int, int]) -> bytes:
    """The part of a long line that matches, with what stands round it."""
    if len(line) <= _SHOWN_BYTES:
        return line
    first = max(0, found[0] - _SHOWN_BYTES // 4)
    last = min(len(line), first + _SHOWN_BYTES)
    part = whole_end(whole_start(line[first:last]))
    gap = "…".encode()
    return (gap if first else b"") + part + (gap if last < len(line) else b"")


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines, many at once; of a line that is very long, its parts."""
    held = b""
    while data := file.read(_BLOCK):
        held += data
        end = held.rfind(b"\n") + 1
        if not end and len(held) > _LONGEST_PART:
            end = len(held)
        if end:
            yield held[:end]
            held = held[end:]
    if held:
        yield held


def _kinds(given: argparse.Namespace, shelf: Shelf, said: _Pen) -> int:
    """The kinds of lines, the commonest first: how often, first line number, an example."""
    from openry.output.census import Census

    census = Census()
    with shelf.open(given.name) as file:
        for data in reads_of(file.read):
            census.feed(data)
    census.end()
    kinds = sorted(census.kinds.values(), key=lambda kind: (-kind.count, kind.line))
    more = f", and {census.unkept:,} lines like no other" if census.unkept else ""
    said.line(f"{len(kinds):,} kinds in {census.lines:,} lines{more}: times, first line, example")
    for kind in kinds if not shelf.max_tokens else kinds[:_KINDS_SHOWN]:
        if not said.line(f"×{kind.count:,} {kind.line}: {_readable(kind.record[0])[:200]}"):
            break
    return 0


def _digest(given: argparse.Namespace, shelf: Shelf, said: _Pen) -> int:
    name = given.shown_as or (given.name if is_name(given.name) else "")
    with shelf.open(given.name) as file:
        words = task_words(given.task)
        text = digest_of(reads_of(file.read), given.tokens, words=words, by=shelf.by, name=name)
    said.whole(text)
    return 0


def _readable(line: bytes) -> str:
    from openry.output.fold import fold

    return fold(line.rstrip(b"\r\n")).decode("utf-8", "replace")


# --- cutting and putting together -------------------------------------------------------------


def _slice(given: argparse.Namespace, shelf: Shelf, said: _Pen) -> int:
    from openry.output.slices import write_slices

    def write(name: str, data: bytes) -> None:
        try:
            shelf.write_file(os.path.join(given.into, name), data)
        except OSError as error:
            is_file = isinstance(error, FileExistsError | NotADirectoryError)
            why = "a file is in the way" if is_file else (error.strerror or str(error)).lower()
            raise UsageError(f"--into `{given.into}`: {why}; name a folder") from error

    about = {"tokens": given.tokens, "most": given.most, "words": task_words(given.task)}
    with shelf.open(given.name) as file:
        said.whole(write_slices(file, write, by=shelf.by, **about))
    return 0


def _merge(given: argparse.Namespace, shelf: Shelf, said: _Pen) -> int:
    from openry.output.slices import merge_slices

    def read(name: str) -> bytes:
        path = os.path.join(given.folder, name)
        try:
            return shelf.read_file(path)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise UsageError(
                f"`{path}`: {why}; name a folder that openry output slice made"
            ) from error

    said.whole(merge_slices(read, tokens=given.tokens, by=shelf.by))
    return 0
