"""What an agent reads of an output: all of it, or a notice that says where the rest is.

Above the limit it reads the first lines, how large the output is, a digest of it, the last lines,
and what to call; all of that together stays within the limit.
"""

from __future__ import annotations

from math import ceil

from openry.models.value import value
from openry.output.answer import decoded, ends, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from openry.output.capture import Captured
    from openry.output.redact import Redactor
    from openry.output.tokens import Weigh

    #: Reads a captured output from its beginning to its end.
    ReadWhole = Callable[[Captured], Iterable[bytes]]

#: Share of the limit that goes to the first lines, to the last ones, and to the digest.
_ENDS, _DIGEST = 0.2, 0.25
#: The same of what a notice leaves of a small limit.
_ENDS_LEFT = 0.3
#: Least that is answered when a step's outputs together are too large.
_LEAST = 0.125


@value
class Reader:
    """Who reads, and how much of it.

    Attributes:
        max_tokens: Largest answer.
        step_tokens: Largest sum of the answers of this run; 0 means no limit.
        said_tokens: That sum so far.
        single_digits: Its tokenizer makes a token of each digit.
        may_look: It may call `openry output`.
        words: Of its task.
    """

    max_tokens: int
    step_tokens: int = 0
    said_tokens: int = 0
    single_digits: bool = False
    may_look: bool = True
    words: tuple[str, ...] = ()

    @property
    def limit(self) -> int:
        """What this answer may take."""
        if not self.step_tokens:
            return self.max_tokens
        left = max(self.step_tokens - self.said_tokens, int(self.max_tokens * _LEAST))
        return min(self.max_tokens, left)

    @property
    def by(self) -> Weigh:
        from openry.output.tokens import weigh, weigh_single_digits

        return weigh_single_digits if self.single_digits else weigh


@value
class Told:
    """What is answered. `out_tokens` and `err_tokens` are estimates of the whole streams."""

    stdout: str
    stderr: str
    tokens: int = 0
    out_tokens: int = 0
    err_tokens: int = 0
    large: bool = False


def told(
    out: Captured, err: Captured, redactor: Redactor, reader: Reader, read: ReadWhole, name: str
) -> Told:
    """The answer to an agent: both streams count together.

    Standard error may have a quarter of the limit, or what standard output leaves.

    Args:
        name: By which the whole may be asked for.
    """
    size = len(out.head) + len(err.head)
    whole = not (out.left_out or err.left_out)
    if whole and size <= reader.limit and not reader.step_tokens:  # no token is less than a byte
        return Told(decoded(out.head, redactor), decoded(err.head, redactor))
    from openry.output.tokens import MARGIN

    out_tokens, err_tokens = tokens_of(out, reader.by), tokens_of(err, reader.by)
    together, limit = out_tokens + err_tokens, reader.limit
    if whole and together * MARGIN <= limit:
        texts = decoded(out.head, redactor), decoded(err.head, redactor)
        return Told(*texts, together, out_tokens, err_tokens)
    for_err = max(limit // 4, limit - ceil(out_tokens * MARGIN))
    for_out = limit - min(ceil(err_tokens * MARGIN), for_err)
    stdout = _text(out, out_tokens, redactor, reader, for_out, name, read)
    both = f"{name}.stderr" if out.head else name
    stderr = _text(err, err_tokens, redactor, reader, for_err, both, read)
    said = round(reader.by(stdout.encode()) + reader.by(stderr.encode()))
    return Told(stdout, stderr, said, out_tokens, err_tokens, large=True)


def tokens_of(captured: Captured, by: Weigh) -> int:
    """Estimated tokens of the whole output; of a spilled one by samples of its file."""
    from openry.output.tokens import estimate_bytes

    if not captured.left_out:
        return estimate_bytes(captured.head, by)
    sample = _sample(captured.spill) or captured.head + captured.tail
    return round(estimate_bytes(sample, by) * captured.shown / max(len(sample), 1))


def _sample(spill: str) -> bytes:
    """Blocks spread over the file; nothing where it cannot be read here and there."""
    from openry.output.tokens import SAMPLE_BYTES, SAMPLES

    if not spill or spill.endswith(".gz"):
        return b""
    try:
        with open(spill, "rb") as file:
            step = max(1, (file.seek(0, 2) - SAMPLE_BYTES) // (SAMPLES - 1))
            parts = []
            for number in range(SAMPLES):
                file.seek(number * step)
                parts.append(file.read(SAMPLE_BYTES))
    except OSError:
        return b""
    return b"".join(parts)


def _text(
    captured: Captured,
    tokens: int,
    redactor: Redactor,
    reader: Reader,
    share: int,
    name: str,
    read: ReadWhole,
) -> str:
    """One stream within `share` tokens."""
    from openry.output.digest import digest_of
    from openry.output.tokens import MARGIN

    if tokens * MARGIN <= share and not captured.left_out:
        return decoded(captured.head, redactor)
    by = reader.by
    said, call = _said(captured, tokens, reader, name), _call(reader, name)
    left = max(0.0, share - MARGIN * by(f"{said}\n{call}\n".encode()))
    part = min(share * _ENDS, left * _ENDS_LEFT)
    density = captured.shown / max(tokens, 1)
    head, tail = ends(captured, int(part * density), int(part * density))
    head, tail = _narrowed(head, part, by, first=True), _narrowed(tail, part, by, first=False)
    room = int(min(share * _DIGEST, left - 2 * part))
    about = digest_of(read(captured), room, words=reader.words, by=by, name=name)
    middle = (said, *redactor.text(about).splitlines()) if room > 0 else (said,)
    text = joined(head, middle, tail, redactor)
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{call}\n"


def _narrowed(data: bytes, tokens: float, by: Weigh, *, first: bool) -> bytes:
    """The beginning or the end of `data`, of at most so many tokens."""
    from openry.output.capture import whole_end, whole_start
    from openry.output.tokens import MARGIN

    while data and (weight := by(data) * MARGIN) > tokens:
        size = int(len(data) * tokens / weight * 0.95)
        data = whole_start(data[:size]) if first else whole_end(data[len(data) - size :])
    return data


def _said(captured: Captured, tokens: int, reader: Reader, name: str) -> str:
    """How large it is, in one line."""
    if reader.limit < reader.max_tokens:
        what = (
            f"comes on top of about {_short(reader.said_tokens)} before it, which is more than"
            f" this step allows in all ({reader.step_tokens:,})"
        )
    else:
        what = f"is larger than this step allows ({reader.max_tokens:,})"
    kept = f" It is kept as {name}." if not captured.trouble else " It could not be kept."
    return (
        f"[openry] output of {captured.size:,} bytes in {captured.lines:,} lines (about"
        f" {_short(tokens)} tokens) {what}.{kept}"
    )


def _call(reader: Reader, name: str) -> str:
    look = f"   or look inside: openry output grep {name} REGEX" if reader.may_look else ""
    return f"[openry] call: openry --status overflow{look}"


def _short(tokens: int) -> str:
    return f"{tokens / 1e6:.1f} M" if tokens >= 1_000_000 else f"{tokens:,}"
