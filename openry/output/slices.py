"""Cut a large output where a reader would, pick what to read, and put summaries of it together."""

from __future__ import annotations

import hashlib
import json
import os
import re
from bisect import bisect

from openry.errors import BadFileError, UsageError
from openry.models.value import value
from openry.output.capture import whole_start
from openry.output.census import Census, Scores
from openry.output.digest import reads_of
from openry.output.tokens import MARGIN, SAMPLE_BYTES, estimate_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO

    from openry.output.tokens import Weigh

    Write = Callable[[str, bytes], None]
    Read = Callable[[str], bytes]

INDEX = "slices.json"
SUMMARIES = "summaries.json"
#: A slice is at least so much of the size asked for, unless the output ends.
_LEAST = 0.4
#: The same before a line that begins a test, a file or a hunk: these stay whole.
_LEAST_PART = 0.1
_RULER = re.compile(rb"[=_*#-]{8,}|diff --git |@@ |commit [0-9a-f]{7,}|--- .*\t|={3,} ")
_CLOSERS = (b"}", b"]", b")", b"</", b"+++ ")
_GOES_ON = (b"Caused by", b"at ", b"... ", b"Suppressed:")
_DIFF = re.compile(rb"^(?:diff --git |@@ -\d)", re.MULTILINE)
_SEPARATORS = (b",", b"\t", b";", b"|")
_QUOTED_CELL = re.compile(rb'"[^"]*"')
_NOTABLE = 400
_LEAST_TOKENS = 100


@value
class Slice:
    """A part of an output. `body` of all slices one after the other is the output.

    Attributes:
        header: What a table's head says, repeated in each slice but the first.
        first: Number of the first line, from 1.
    """

    body: bytes
    header: bytes
    first: int
    lines: int

    @property
    def text(self) -> bytes:
        return self.header + self.body


def cut(reads: Iterable[bytes], size: int) -> Iterator[Slice]:
    """Cut into slices of at most `size` bytes, headers aside, where records end.

    Never inside a character, and not inside a line, a traceback, a record of JSON, a test's report
    or a hunk of a diff, unless that alone is larger.
    """
    held, header, first = b"", b"", 1
    for read in reads:
        held += read
        if first == 1 and not header and len(held) >= min(size, SAMPLE_BYTES):
            header = table_header(held)
        while len(held) > size:
            part, held = _parted(held, size, is_table=bool(header))
            yield _slice(part, header, first)
            first += part.count(b"\n")
    if held:
        yield _slice(held, header or (table_header(held) if first == 1 else b""), first)


def _slice(part: bytes, header: bytes, first: int) -> Slice:
    lines = part.count(b"\n") + (not part.endswith(b"\n"))
    return Slice(part, b"" if first == 1 else header, first, lines)


def _parted(data: bytes, size: int, *, is_table: bool) -> tuple[bytes, bytes]:
    end = _place(data[:size], data[size : size + 200], is_table=is_table)
    return data[:end], data[end:]


def _place(data: bytes, ahead: bytes, *, is_table: bool) -> int:
    """Where to cut `data`: before the line that begins a record most clearly."""
    best: tuple[int, int] = (1 << 30, 0)
    is_diff = _DIFF.search(data) is not None
    quotes, at, in_trace, blank = 0, 0, False, False
    lines = data.split(b"\n")
    lines[-1] += ahead.partition(b"\n")[0]
    for number, line in enumerate(lines):
        begins = at > 0 and not in_trace and quotes % 2 == 0
        if begins and at >= len(data) * _LEAST_PART:
            rank = _rank(line, is_diff=is_diff, blank=blank)
            if rank >= 0 and (rank == 0 or at >= len(data) * _LEAST):
                best = min(best, (rank, -at))
        if is_table:
            quotes += line.count(b'"')
        in_trace = _is_trace(line, in_trace)
        blank = not line.strip()
        at += len(line) + (number < len(lines) - 1)
    if best[1]:
        return -best[1]
    end = data.rfind(b"\n") + 1
    if end:
        return end
    return len(whole_start(data)) or len(data)


def _is_trace(line: bytes, before: bool) -> bool:
    """Whether the line after this one belongs to the same traceback."""
    if line.startswith(b"Traceback (most recent"):
        return True
    return before and line.startswith((b" ", b"\t"))


def _rank(line: bytes, *, is_diff: bool, blank: bool) -> int:
    """How clearly a record begins with this line: 0 is clearest; -1 where none does."""
    if _RULER.match(line):
        return 0
    if is_diff or line.startswith((*_CLOSERS, *_GOES_ON)):
        return -1
    indent = len(line) - len(line.lstrip(b" \t"))
    if indent and line[indent:].startswith((*_CLOSERS, *_GOES_ON)):
        return -1
    if not line.strip():
        return -1
    return 1 if blank and not indent else 2 + indent


def table_header(data: bytes) -> bytes:
    """The first line of a table of separated values, with its line end; empty for other texts.

    >>> table_header(b"name,size\\na.txt,3\\nb.txt,4\\n")
    b'name,size\\n'
    >>> table_header(b"Hello, world\\nno table, this, is\\n")
    b''
    """
    lines = _rows(data[: 64 * 1024].split(b"\n")[:40])
    if len(lines) > 2:
        lines.pop()
    if len(lines) < 2 or not lines[0] or any(byte in lines[0] for byte in b"0123456789{<["):
        return b""
    for separator in _SEPARATORS:
        counts = {_QUOTED_CELL.sub(b"", line).count(separator) for line in lines if line.strip()}
        named = all(name.strip(b'" \r') for name in lines[0].split(separator))
        if len(counts) == 1 and counts != {0} and named:
            return lines[0] + b"\n"
    return b""


def _rows(lines: Sequence[bytes]) -> list[bytes]:
    """Rows of a table: a line end in quotes is none."""
    rows: list[bytes] = []
    for line in lines:
        if rows and rows[-1].count(b'"') % 2:
            rows[-1] += b"\n" + line
        else:
            rows.append(line)
    return rows


# --- slices in a folder -----------------------------------------------------------------------


def write_slices(
    file: BinaryIO, write: Write, *, tokens: int, most: int, words: Iterable[str], by: Weigh
) -> str:
    """Write the slices worth reading; what was made, as one line of JSON.

    Args:
        write: Takes the name of a file and what it is to hold.
        words: Of the task; what has them is worth reading.

    Raises:
        UsageError: The slices would be too small.
    """
    if tokens < _LEAST_TOKENS:
        raise UsageError(f"--tokens must be at least {_LEAST_TOKENS}, got {tokens}")
    census = Census(words)
    sample = bytearray()
    for data in reads_of(file.read):
        census.feed(data)
        sample += data[:SAMPLE_BYTES]
    census.end()
    density = len(sample) / max(1.0, float(estimate_bytes(bytes(sample), by)))
    size = max(200, int(tokens * density / MARGIN))
    file.seek(0)
    starts = _starts(file, size)
    wanted = set(range(len(starts)) if len(starts) <= most else _best(starts, census, most))
    file.seek(0)
    chunks: list[dict[str, Any]] = []
    seen: set[str] = set()
    for number, one in enumerate(cut(reads_of(file.read), size)):
        sha = hashlib.sha256(one.text).hexdigest() if number in wanted else ""
        if not sha or sha in seen:
            continue
        seen.add(sha)
        name = f"chunk-{len(chunks) + 1:03d}.txt"
        write(name, one.text)
        chunks.append({"file": name, "first": one.first, "lines": one.lines, "sha256": sha})
    made = {
        "schema_version": 1,
        "bytes": census.bytes,
        "lines": census.lines,
        "slices": len(starts),
        "nonce": os.urandom(8).hex(),
        "chunks": chunks,
    }
    text = json.dumps(made, ensure_ascii=False) + "\n"
    write(INDEX, text.encode())
    return text


def _starts(file: BinaryIO, size: int) -> list[int]:
    """Number of each slice's first line."""
    return [one.first for one in cut(reads_of(file.read), size)]


def _best(starts: Sequence[int], census: Census, most: int) -> list[int]:
    """At most `most` slices: both ends, those with what stands out, the rest spread evenly."""
    most = max(1, most)
    score = Scores(census.kinds.values(), census.families.values(), census.lines)
    rare = (kind for kind in census.kinds.values() if kind.count <= max(3, census.lines // 1000))
    ranked = sorted(rare, key=lambda kind: (-(score(kind) + 2 * kind.trouble), kind.line))
    ends = [0, len(starts) - 1]
    notable: dict[int, int] = {}
    for kind in ranked[:_NOTABLE]:
        place = max(0, bisect(starts, kind.line) - 1)
        notable[place] = notable.get(place, 0) + 1
    telling = sorted(notable, key=lambda place: (-notable[place], place))
    even = [round(n * (len(starts) - 1) / max(1, most - 1)) for n in range(most)]
    spread = max(1, most // 6)
    order = dict.fromkeys([*ends[:most], *telling[: most - spread - 2], *even[1:-1], *telling])
    return list(order)[:most]


# --- summaries --------------------------------------------------------------------------------

#: What a summary must have from its slice word for word: what is quoted, numbers, paths, names
#: with digits or signs in them.
_QUOTED = re.compile(r"""`([^`\n]+)`|"([^"\n]+)"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)""")
_HARD = re.compile(r"[\w./:@%+-]*\d[\w./:@%+-]*|(?:/[\w.@+-]+){2,}|\w+(?:_\w+)+")
_LARGEST_PART = 0.7


def merge_slices(read: Read, *, tokens: int, by: Weigh) -> str:
    """The summaries of slices, checked, as a text of at most so many tokens.

    A line that names something its slice does not hold is dropped, and so is a summary that is
    not a third shorter than its slice.

    Args:
        read: Gives what the file of a name holds.

    Raises:
        BadFileError: The files do not hold what `slice` and the summarising left.
    """
    index = _read_json(read, INDEX)
    try:
        summaries = _summaries(_read_json(read, SUMMARIES))
        chunks = [
            (str(each["file"]), int(each["first"]), int(each["lines"])) for each in index["chunks"]
        ]
        title = f"{index['lines']:,} lines, {index['bytes']:,} bytes"
    except (KeyError, TypeError, ValueError) as error:
        raise BadFileError(f"{INDEX}: not as `slice` left it ({error!r})") from error
    lines: list[str] = []
    dropped = 0
    for number, (name, first, count) in enumerate(chunks):
        summary = summaries[number] if number < len(summaries) else ""
        chunk = read(os.path.basename(name)).decode("utf-8", "replace")
        kept, lost = checked(summary, chunk, by)
        dropped += lost
        if kept:
            lines += [f"lines {first}–{first + count - 1}:", *(f"  {line}" for line in kept)]
    if not lines:
        raise BadFileError("no summary says what its part bears out")
    said = f"{title}; summaries of {len(chunks)} of its {index.get('slices', len(chunks))} parts"
    note = f", {dropped} lines dropped that said what is not there" if dropped else ""
    return _within([f"{said}{note}", *lines], tokens, by)


def checked(summary: str, chunk: str, by: Weigh) -> tuple[list[str], int]:
    """The lines of `summary` that `chunk` bears out, and how many it does not."""
    if by(summary.encode("utf-8", "replace")) > _LARGEST_PART * by(
        chunk.encode("utf-8", "replace")
    ):
        return [], len(summary.splitlines())
    kept, lost = [], 0
    for line in summary.splitlines():
        if not line.strip():
            continue
        if all(word in chunk for word in _named(line)):
            kept.append(line.strip())
        else:
            lost += 1
    return kept, lost


def _named(line: str) -> Iterator[str]:
    """What a line of a summary takes from its source: quotations, numbers, paths, ids."""
    body = re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line)
    for match in _QUOTED.finditer(body):
        yield next(group for group in match.groups() if group is not None)
    for match in _HARD.finditer(_QUOTED.sub(" ", body)):
        word = match.group().strip(".,:;%+-")
        if len(word) > 1 and not (word.isdigit() and len(word) < 3):
            yield word


def _summaries(data: Any) -> list[str]:
    """One text for each slice, of what a `for_each` step left: payloads, or texts."""
    items = data.get("items", data) if isinstance(data, dict) else data
    found = []
    for item in items if isinstance(items, list) else []:
        text = item.get("summary", "") if isinstance(item, dict) else item
        found.append(text if isinstance(text, str) else "")
    return found


def _read_json(read: Read, name: str) -> Mapping[str, Any]:
    try:
        data: Mapping[str, Any] = json.loads(read(name))
    except ValueError as error:
        raise BadFileError(f"{name}: not JSON: {error}") from error
    return data


def _within(lines: Sequence[str], tokens: int, by: Weigh) -> str:
    taken, left = [], tokens / MARGIN
    for line in lines:
        left -= by(f"{line}\n".encode("utf-8", "replace"))
        if left < 0:
            break
        taken.append(f"{line}\n")
    return "".join(taken)
