"""A large output in a few thousand tokens, made without a model: trouble, rarities, the usual."""

from __future__ import annotations

from math import log

from openry.output.binary import describe_binary
from openry.output.census import Census, Kind, Scores
from openry.output.fold import fold
from openry.output.tokens import MARGIN, weigh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from openry.output.tokens import Weigh

_READ = 1024 * 1024
#: Parts of the budget. What one part leaves, the ones after it may use.
_COMMON, _ENDS = 0.10, 0.10
#: What a word of trouble is worth beside rarity, in nats.
_TROUBLE_WORTH = 1.0
#: What is seen e times is worth so much less, in nats.
_REPEATED = 1.5
#: A kind that is seen more often is told by its count, not as something rare.
_RARE = 0.001
_LINE_CHARS = 240
_TIGHT_CHARS = 120
_TIGHT_TOKENS = 1200
_COMMON_SHOWN = 12
_ENDS_SHOWN = 8
_ALIKE = 0.4


def digest_of(
    reads: Iterable[bytes],
    tokens: int,
    *,
    words: Iterable[str] = (),
    by: Weigh = weigh,
    name: str = "",
) -> str:
    """A digest of at most `tokens` estimated tokens, as plain text that ends in a line end.

    Args:
        words: Of the task; they count as words of trouble.
        name: By which the output can be looked into, for the hint.
    """
    chunks = iter(reads)
    first = next(chunks, b"")
    about = describe_binary(first, chunks, tokens)
    if about is not None:
        return _within([about], tokens, by)
    census = Census(words)
    census.feed(first)
    for chunk in chunks:
        census.feed(chunk)
    return render(census.end(), tokens, by=by, name=name)


def reads_of(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Everything that `read` gives, in large pieces."""
    while data := read(_READ):
        yield data


def render(census: Census, tokens: int, *, by: Weigh = weigh, name: str = "") -> str:
    """The digest of what was counted."""
    return _Digest(census, tokens, by, name).text()


class _Digest:
    """One digest, part by part, each line weighed before it is taken."""

    def __init__(self, census: Census, tokens: int, by: Weigh, name: str) -> None:
        self.census = census
        self.by = by
        self.name = name
        self.tokens = tokens
        self.left = tokens / MARGIN
        self.longest = _LINE_CHARS if tokens >= _TIGHT_TOKENS else _TIGHT_CHARS
        self.score = Scores(census.kinds.values(), census.families.values(), census.lines)
        self.shown: set[int] = set()
        self.usual: dict[int, Kind] = {}  #: of each family the kind that is seen most
        for kind in census.kinds.values():
            most = self.usual.get(id(kind.family))
            if most is None or kind.count > most.count:
                self.usual[id(kind.family)] = kind

    def text(self) -> str:
        title = self._taken([self._title()])
        hint = self._taken(self._hint())
        whole = self.left
        ends = self._ends(whole * _ENDS)
        common = self._common(whole * _COMMON)
        trouble, rare = self._notable()
        parts = [title, hint, trouble, rare, common, *ends]
        return _within([line for part in parts for line in part], self.tokens, self.by)

    def _title(self) -> str:
        census = self.census
        kinds = f"{len(census.kinds):,} kinds of lines"
        if census.unkept:
            kinds += f" and {census.unkept:,} lines like no other"
        return f"{census.lines:,} lines, {census.bytes:,} bytes, {kinds}; number: line ×times"

    def _hint(self) -> list[str]:
        singles = self.census.unkept + sum(k.count == 1 for k in self.census.kinds.values())
        if self.census.lines < 100 or singles < self.census.lines * _ALIKE:
            return []
        look = f"openry output grep {self.name or 'ID'} REGEX"
        return [f"most lines here differ from each other, so what is rare says little; use: {look}"]

    # --- what stands out ------------------------------------------------------------------------

    def _notable(self) -> tuple[list[str], list[str]]:
        """Trouble and rarities, the most telling first as far as there is room, each in order."""
        most = max(3, self.census.lines * _RARE)
        worth = {
            kind: self.score(kind) - _REPEATED * log(kind.count) + _TROUBLE_WORTH * kind.trouble
            for kind in self.census.kinds.values()
            if kind.trouble or kind.count <= most
        }
        taken: dict[bool, list[tuple[int, list[str]]]] = {True: [], False: []}
        for kind in sorted(worth, key=lambda kind: (-worth[kind], kind.line)):
            if kind.line in self.shown:
                continue
            lines = self._taken(self._record(kind), stop=False)
            if lines:
                taken[kind.trouble].append((kind.line, lines))
                self.shown.update(range(kind.first, kind.last + 1))
            if self.left < 8:
                break
        return (
            self._section("trouble", taken[True], sum(k.trouble for k in worth)),
            self._section("rare", taken[False], sum(not k.trouble for k in worth)),
        )

    def _section(self, title: str, taken: list[tuple[int, list[str]]], of: int) -> list[str]:
        if not taken:
            return []
        missing = of - len(taken)
        more = f" ({missing:,} more kinds)" if missing > 0 else ""
        return [f"{title}{more}", *(line for _, lines in sorted(taken) for line in lines)]

    def _record(self, kind: Kind) -> list[str]:
        times = f" ×{kind.count:,}" if kind.count > 1 else ""
        first, *more = kind.record
        odd = _first_odd_word(kind.key, self.usual[id(kind.family)].key) if not more else 0
        lines = [f"{kind.first}:{times} {_shown(first, self.longest, odd)}"]
        return lines + [f"  {_shown(line, self.longest)}" for line in more]

    # --- the usual, and both ends -----------------------------------------------------------------

    def _common(self, budget: float) -> list[str]:
        kinds = sorted(self.census.kinds.values(), key=lambda kind: (-kind.count, kind.line))
        lines = []
        for kind in kinds[:_COMMON_SHOWN]:
            if kind.count < max(3, self.census.lines * _RARE):
                break
            text = _shown(kind.record[0], self.longest * 2 // 3)
            lines.append(f"{kind.line}: ×{kind.count:,} {text}")
        return self._within_budget("common", lines, budget)

    def _ends(self, budget: float) -> list[list[str]]:
        census = self.census
        head = [_shown(line, self.longest * 2 // 3) for line in census.head[:_ENDS_SHOWN]]
        tail = [_shown(line, self.longest * 2 // 3) for line in census.tail[-_ENDS_SHOWN:]]
        if census.lines <= len(head):
            tail = []
        first = self._within_budget("first lines", head, budget / 2)
        last = self._within_budget("last lines", tail[::-1], budget / 2)
        return [first, last[:1] + last[:0:-1]]

    def _within_budget(self, title: str, lines: list[str], budget: float) -> list[str]:
        taken: list[str] = []
        for line in lines:
            cost = self._cost([line])
            if cost > budget or cost > self.left:
                break
            budget -= cost
            self.left -= cost
            taken.append(line)
        return [title, *taken] if taken else []

    def _taken(self, lines: list[str], *, stop: bool = True) -> list[str]:
        """`lines` if there is room for them."""
        cost = self._cost(lines)
        if cost > self.left:
            return []
        self.left -= cost
        return lines

    def _cost(self, lines: list[str]) -> float:
        return self.by("".join(f"{line}\n" for line in lines).encode())


def _first_odd_word(key: bytes, usual: bytes) -> int:
    """Which word of a line is not as in the usual line of its family; 0 when none is.

    >>> _first_odd_word(b"job Kbcd took  ms", b"job  took  ms")
    1
    """
    words = zip(key.split(b" "), usual.split(b" "), strict=False)
    return next((place for place, (one, other) in enumerate(words) if one != other), 0)


def _shown(line: bytes, longest: int, odd: int = 0) -> str:
    """A line as it may be read: folded, whole characters, parts left out when it is long.

    Args:
        odd: A word that must not be left out, counted from 0.
    """
    text = fold(line).decode("utf-8", "replace").replace("\r", "").replace("\n", " ").rstrip()
    if len(text) <= longest:
        return text
    part = (longest - 3) // 3
    words = text.split(" ", odd + 1)[:odd]
    place = sum(map(len, words)) + len(words)
    if place <= 2 * part - 24 or place >= len(text) - part:
        return f"{text[: 2 * part]} … {text[-part:]}"
    return f"{text[: part // 2]} … {text[place - part // 2 :][: 2 * part]} …"


def _within(lines: list[str], tokens: int, by: Weigh) -> str:
    """As many of `lines` as are surely not more than `tokens`, from the first."""
    text = "".join(f"{line}\n" for line in lines)
    while text and by(text.encode()) * MARGIN > tokens:
        keep = text.rstrip("\n").rfind("\n") + 1
        half = text[: len(text) // 2].rstrip("\n")
        text = text[:keep] if keep else f"{half}\n" if len(half) > 2 else ""
    return text
