"""Count the kinds of lines of an output in one pass and in bounded memory.

A line without its digits is looked up in a table; only what is not in there is looked at more
closely. So a log of a few thousand kinds goes through at memory speed, and text in which each line
is new at that of a few patterns. What is kept: 20,000 kinds, each with its first line as it was.
"""

from __future__ import annotations

from collections import Counter, deque
from math import log

from openry.output.fold import fold
from openry.output.kinds import (
    DIGITS,
    families_of,
    kinds_of,
    signs_of_trouble,
    trace_around,
    troubled,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_KINDS = 20_000
#: Lines held back so that a record that goes on in the next block is seen whole.
_AHEAD = 64
_BLOCK = 1024 * 1024
#: A line longer than this is no line but a document: it is cut at its records.
_LONGEST_LINE = 256 * 1024
_KEPT_BYTES = 1000
_TRACE_ENDS = 4
#: Bytes of the table of lines without digits; when it is full, it begins anew.
_KNOWN_BYTES = 8 * 1024 * 1024
#: A family of so many kinds, nearly all of them seen once, tells nothing by a new one.
_EXPLODED = 300
_ENDS_KEPT = 40
_CODES = (b"\r", b"\x1b", b"\x08", b"\x00")
_CUTS = (b"},", b"],", b"; ", b"> ", b", ", b" ")


class Family:
    """Kinds that differ only in words that hold digits."""

    __slots__ = ("exploded", "kinds", "total", "unkept")

    def __init__(self) -> None:
        self.exploded = False  #: no more of its kinds are kept: one more tells nothing
        self.total = 0  #: lines, those of kinds that are not kept as well
        self.kinds = 0  #: kinds kept
        self.unkept = 0  #: lines of kinds not kept; each a kind of its own as far as we know

    def add_unkept(self, count: int) -> None:
        self.total += count
        self.unkept += count


class Kind:
    """One kind of line.

    Attributes:
        line: Number of its first line, from 1.
        record: That line, or the stitched record around it, as it was; cut when long.
        first, last: Numbers of the record's lines.
        trouble: It holds a word of trouble, or of the task.
    """

    __slots__ = ("count", "family", "first", "key", "last", "line", "record", "trouble")

    def __init__(self, key: bytes, family: Family) -> None:
        self.key, self.family = key, family
        self.count = self.line = self.first = self.last = 0
        self.trouble = False
        self.record: tuple[bytes, ...] = ()


class Census:
    """Feed it the bytes of an output, then `end` it."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self.bytes = 0
        self.lines = 0
        self.kinds: dict[bytes, Kind] = {}
        self.families: dict[bytes, Family] = {}
        self.head: list[bytes] = []
        self._last: deque[bytes] = deque(maxlen=_ENDS_KEPT)
        self._known: dict[bytes, Kind] = {}
        self._room = _KNOWN_BYTES
        self._noisy = False  #: most lines are like no other: one more such line tells nothing
        self._noise = 0  #: lines of families that are not kept
        self._held = b""
        self._before: list[bytes] = []
        self._signs = signs_of_trouble(words)

    @property
    def unkept(self) -> int:
        """Lines whose kinds are not kept."""
        return self._noise + sum(family.unkept for family in self.families.values())

    @property
    def tail(self) -> list[bytes]:
        return list(self._last)

    def feed(self, data: bytes) -> None:
        self.bytes += len(data)
        self._held += data
        if len(self._held) >= _BLOCK:
            self._take(_cut(self._held, _AHEAD))

    def end(self) -> Census:
        if self._held:
            whole = self._held if self._held.endswith(b"\n") else self._held + b"\n"
            self._held = whole
            self._take(len(whole))
        return self

    # --- one block ----------------------------------------------------------------------------

    def _take(self, end: int) -> None:
        """Count the lines before `end`; the rest waits, but is looked at by what goes on in it."""
        if end > 0:
            block, self._held = self._held[:end], self._held[end:]
            self._count(block, self._held)
        elif len(self._held) > _LONGEST_LINE:
            self._take_document()

    def _take_document(self) -> None:
        """A line without end, cut into its records, which all have its number."""
        data = self._held
        cut = next((c for c in _CUTS if data.rfind(c) > len(data) // 2), b"")
        end = data.rfind(cut) + len(cut) if cut else len(data)
        records, self._held = data[:end], data[end:]
        if cut:
            records = records.replace(cut, cut + b"\n")
        lines = self.lines
        self._count(records.replace(b"\r", b"\n") + b"\n", b"")
        self.lines = lines

    def _count(self, block: bytes, ahead: bytes) -> None:
        if any(code in block for code in _CODES):
            block = fold(block)
        masked = block.translate(None, DIGITS).split(b"\n")
        masked.pop()
        fresh = []
        known = self._known
        for key, count in Counter(masked).items():
            kind = known.get(key)
            if kind is None:
                fresh.append((key, count))
            else:
                kind.count += count
                kind.family.total += count
        lines = None
        if fresh or len(self.head) < _ENDS_KEPT or not ahead:
            lines = block.split(b"\n")
            lines.pop()
        if fresh and lines is not None:
            self._look_closer(fresh, masked, lines, ahead)
        self._keep_ends(block, lines)
        self.lines += len(masked)

    def _keep_ends(self, block: bytes, lines: list[bytes] | None) -> None:
        if lines is None:
            tail = block[-_ENDS_KEPT * _KEPT_BYTES :].split(b"\n")[:-1][-_ENDS_KEPT:]
        else:
            tail = lines[-_ENDS_KEPT:]
            wanted = _ENDS_KEPT - len(self.head)
            self.head += [line[:_KEPT_BYTES] for line in lines[:wanted]]
        self._last.extend(line[:_KEPT_BYTES] for line in tail)
        self._before = tail

    def _look_closer(
        self,
        fresh: Sequence[tuple[bytes, int]],
        masked: Sequence[bytes],
        lines: list[bytes],
        ahead: bytes,
    ) -> None:
        """Find or make the kinds of lines that are new without their digits."""
        firsts = _first_places(masked, fresh)
        news = lines if len(firsts) == len(lines) else [lines[place] for place in firsts]
        keys = kinds_of(news)
        unknown = []
        for number, key in enumerate(keys):
            kind = self.kinds.get(key)
            if kind is None:
                unknown.append(number)
            else:
                self._add(kind, *fresh[number])
        if not unknown:
            return
        starts = [news[number][:_KEPT_BYTES] for number in unknown]
        trouble = troubled(starts, self._signs)
        context = _Context(self._before, lines, ahead)
        for place, name in enumerate(families_of(starts)):
            family = self.families.get(name)
            plain, count = fresh[unknown[place]]
            if family is not None and family.exploded:
                family.add_unkept(count)
            elif family is None and self._noisy and place not in trouble:
                self._noise += count
            else:
                key = keys[unknown[place]]
                kind = self.kinds.get(key) or self._new_kind(key, name, family)
                if not kind.record:
                    kind.trouble = place in trouble
                    self._keep_record(kind, context, firsts[unknown[place]])
                self._add(kind, plain, count)

    def _add(self, kind: Kind, plain: bytes, count: int) -> None:
        kind.count += count
        kind.family.total += count
        self._room -= len(plain) + 150
        if self._room < 0:
            self._known.clear()
            self._room = _KNOWN_BYTES
        self._known[plain] = kind

    def _new_kind(self, key: bytes, name: bytes, family: Family | None) -> Kind:
        if len(self.kinds) >= MAX_KINDS:
            self._forget_most()
        if family is None or name not in self.families:
            family = self.families[name] = family or Family()
        kind = self.kinds[key] = Kind(key, family)
        family.kinds += 1
        family.exploded = family.kinds >= _EXPLODED and family.kinds * 2 > family.total
        return kind

    def _keep_record(self, kind: Kind, context: _Context, place: int) -> None:
        kind.line = kind.first = kind.last = self.lines + place + 1
        if kind.trouble:
            first, record = context.around(place)
            kind.first = kind.line - (place - first)
            kind.last = kind.first + len(record) - 1
        else:
            record = [context.lines[place]]
        if len(record) > 2 * _TRACE_ENDS:
            left_out = len(record) - 2 * _TRACE_ENDS
            gap = f"      … {left_out} more lines".encode()
            record = [*record[:_TRACE_ENDS], gap, *record[-_TRACE_ENDS:]]
        kind.record = tuple(line[:_KEPT_BYTES] for line in record)

    def _forget_most(self) -> None:
        """Make room: what is most like the rest goes, what tells of trouble goes last."""
        self._noisy = self._single_lines() * 2 > self.lines
        score = Scores(self.kinds.values(), self.families.values(), self.lines)
        ordered = sorted(self.kinds.values(), key=lambda kind: (kind.trouble, score(kind)))
        for kind in ordered[: -(MAX_KINDS // 4)]:
            del self.kinds[kind.key]
            kind.family.kinds -= 1
            kind.family.unkept += kind.count
        self._known.clear()
        self._room = _KNOWN_BYTES
        gone = [name for name, family in self.families.items() if not family.kinds]
        for name in gone:
            self._noise += self.families.pop(name).total

    def _single_lines(self) -> int:
        """Lines that are like no other, so far."""
        return self._noise + sum(f.total for f in self.families.values() if f.total == 1)


def _first_places(masked: Sequence[bytes], fresh: Sequence[tuple[bytes, int]]) -> Sequence[int]:
    """Where each of `fresh` stands first. They are in the order of their first places."""
    if len(fresh) == len(masked):
        return range(len(masked))
    places = dict(zip(reversed(masked), range(len(masked) - 1, -1, -1), strict=True))
    return [places[plain] for plain, _ in fresh]


class _Context:
    """The lines of a block with some of those before and after it."""

    def __init__(self, before: list[bytes], lines: list[bytes], ahead: bytes) -> None:
        self.lines = lines
        self._before = before
        self._ahead = ahead
        self._all: list[bytes] = []

    def around(self, place: int) -> tuple[int, list[bytes]]:
        """Where the record of the line at `place` begins, and its lines."""
        if not self._all:
            after = self._ahead[: 64 * 1024].split(b"\n")[:_AHEAD]
            self._all = [*self._before, *self.lines, *after]
        moved = place + len(self._before)
        first, last = trace_around(self._all, moved)
        return place - (moved - first), self._all[first : last + 1]


def _cut(data: bytes, lines: int) -> int:
    """Where so many whole lines from the end begin; 0 when there are not so many."""
    end = data.rfind(b"\n") + 1
    for _ in range(lines):
        before = data.rfind(b"\n", 0, max(0, end - 1)) + 1
        if len(data) - before > len(data) // 2:
            break
        end = before
    return end


class Scores:
    """How much a kind tells, in nats: how unlikely its family is, and it among its family.

    By Good and Turing: in a family where every line is of a new kind, one more new kind tells
    nothing; where a thousand lines share three kinds, a fourth one tells a lot.
    """

    def __init__(self, kinds: Iterable[Kind], families: Iterable[Family], lines: int) -> None:
        self._lines = max(lines, 1)
        self._families: Counter[int] = Counter()
        for family in families:
            self._families[family.total] += family.total
        self._within: Counter[tuple[int, int]] = Counter()
        for kind in kinds:
            self._within[id(kind.family), kind.count] += kind.count

    def __call__(self, kind: Kind) -> float:
        family = kind.family
        alike = self._within[id(family), kind.count] + (family.unkept if kind.count == 1 else 0)
        among_all = self._lines / max(self._families[family.total], 1)
        among_family = family.total / max(alike, 1)
        return log(max(among_all, 1.0)) + log(max(among_family, 1.0))
