"""The `text` pack: lines kept, dropped, counted, ordered and rewritten."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.lines import (
    Line,
    bodies,
    folded,
    like,
    lines,
    number_line,
    raw_lines,
    text_of,
    written,
)
from openry.capability.builtin.matching import compiled, matcher


def _is_blank(body: bytes) -> bool:
    return not body.strip()


def _key(body: bytes, ignore_case: bool) -> bytes:
    return folded(body) if ignore_case else body


# --- choosing lines -----------------------------------------------------------------------


def filter_lines(
    path: str, needle: str, where: str, ignore_case: bool, regex: bool
) -> Iterator[bytes]:
    test = matcher(needle, where=where, regex=regex, ignore_case=ignore_case)
    return written(line for line in lines(path) if test(line[0]))


def remove_lines(
    path: str, needle: str, where: str, ignore_case: bool, regex: bool
) -> Iterator[bytes]:
    test = matcher(needle, where=where, regex=regex, ignore_case=ignore_case)
    return written(line for line in lines(path) if not test(line[0]))


def remove_empty_lines(path: str, spaces_count_as_empty: bool) -> Iterator[bytes]:
    if spaces_count_as_empty:
        return written(line for line in lines(path) if not _is_blank(line[0]))
    return written(line for line in lines(path) if line[0])


def line_range(
    path: str, start: int, end: int | None = None, step: int | None = None
) -> Iterator[bytes]:
    if end is not None and end < start:
        raise ToolFailure("bad_arguments", f"`end` ({end}) lies before `start` ({start})")
    last = start if end is None and step is None else end
    return written(islice(lines(path), start - 1, last, step))


def skip_lines(path: str, count: int, where: str) -> Iterator[bytes]:
    if where == "start":
        return written(islice(lines(path), count, None))
    return written(_all_but_last(path, count))


def _all_but_last(path: str, count: int) -> Iterator[Line]:
    waiting: deque[Line] = deque()
    for line in lines(path):
        waiting.append(line)
        if len(waiting) > count:
            yield waiting.popleft()


def unique_lines(path: str, sorted: bool, ignore_case: bool) -> Iterator[bytes]:
    once = _once(path, ignore_case)
    return written(_in_order(once) if sorted else once)


def _in_order(some: Iterator[Line]) -> list[Line]:
    return sorted(some, key=lambda line: line[0])


def _once(path: str, ignore_case: bool) -> Iterator[Line]:
    seen: set[bytes] = set()
    for line in lines(path):
        key = _key(line[0], ignore_case)
        if key not in seen:
            seen.add(key)
            yield line


def repeated_lines(path: str, ignore_case: bool) -> Iterator[bytes]:
    counts = _tally(path, ignore_case)
    return written((body, end) for count, body, end in counts.values() if count > 1)


def lines_only_in_first(path: str, other: str, ignore_case: bool) -> Iterator[bytes]:
    there = {_key(body, ignore_case) for body in bodies(other)}
    return written(line for line in lines(path) if _key(line[0], ignore_case) not in there)


def common_lines(path: str, other: str, ignore_case: bool) -> Iterator[bytes]:
    there = {_key(body, ignore_case) for body in bodies(other)}
    return written(line for line in _once(path, ignore_case) if _key(line[0], ignore_case) in there)


def diff(path: str, other: str) -> bytes:
    """The unified diff that the program `diff` makes; it exits with 1 where files differ."""
    import subprocess

    names = ("--label", path, "--label", other, "--", _no_option(path), _no_option(other))
    made = subprocess.run(("diff", "-u", "-a", *names), capture_output=True, check=False)
    if made.returncode > 1:
        why = made.stderr.decode(errors="replace").strip()
        raise ToolFailure("not_found" if "No such file" in why else "bad_arguments", why)
    return made.stdout


def _no_option(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path


def longest_line(path: str) -> Iterator[bytes]:
    best: Line | None = None
    length = -1
    for line in lines(path):
        this = len(text_of(line[0]))
        if this > length:
            best, length = line, this
    return written([best] if best else [])


def shortest_line(path: str, skip_empty: bool) -> Iterator[bytes]:
    best: Line | None = None
    length = -1
    for line in lines(path):
        this = len(text_of(line[0]))
        if not (skip_empty and _is_blank(line[0])) and (best is None or this < length):
            best, length = line, this
    return written([best] if best else [])


# --- counting -----------------------------------------------------------------------------


def count_lines(path: str, skip_empty: bool) -> bytes:
    if skip_empty:
        return number_line(sum(not _is_blank(body) for body in bodies(path)))
    return number_line(sum(1 for _ in raw_lines(path)))


def count_matching_lines(
    path: str, needle: str, where: str, ignore_case: bool, regex: bool
) -> bytes:
    test = matcher(needle, where=where, regex=regex, ignore_case=ignore_case)
    return number_line(sum(test(body) for body in bodies(path)))


def count_occurrences(
    path: str, needle: str, ignore_case: bool, regex: bool, whole_word: bool
) -> bytes:
    pattern = needle if regex else re.escape(needle)
    if whole_word:
        pattern = rf"(?<!\w)(?:{pattern})(?!\w)"
    find = compiled(pattern, ignore_case=ignore_case).finditer
    hits = (hit for body in bodies(path) for hit in find(text_of(body)) if hit.group())
    return number_line(sum(1 for _ in hits))


def count_words(path: str) -> bytes:
    return number_line(sum(len(text_of(body).split()) for body in bodies(path)))


def count_characters(path: str, line_ends: bool) -> bytes:
    if line_ends:
        return number_line(sum(len(text_of(raw)) for raw in raw_lines(path)))
    return number_line(sum(len(text_of(body)) for body in bodies(path)))


def count_unique_lines(path: str, ignore_case: bool, skip_empty: bool) -> bytes:
    different = {
        _key(body, ignore_case) for body in bodies(path) if not (skip_empty and _is_blank(body))
    }
    return number_line(len(different))


def count_each_line(
    path: str, descending: bool, ignore_case: bool, count: int | None = None
) -> Iterator[bytes]:
    found = list(_tally(path, ignore_case).values())
    found.sort(key=lambda each: (-each[0] if descending else 0, each[1]))
    for number, body, end in found[:count]:
        yield b"%d %s%s" % (number, body, end)


def _tally(path: str, ignore_case: bool) -> dict[bytes, tuple[int, bytes, bytes]]:
    """key → (count, the line as first written, its end), in order of first appearance."""
    counts: dict[bytes, tuple[int, bytes, bytes]] = {}
    for body, end in lines(path):
        key = _key(body, ignore_case)
        number, first, first_end = counts.get(key, (0, body, end))
        counts[key] = (number + 1, first, first_end)
    return counts


# --- rewriting ----------------------------------------------------------------------------


Replacement = str | Callable[[re.Match[str]], str]


def replace_text(
    path: str, needle: str, replacement: str, ignore_case: bool, regex: bool, whole_word: bool
) -> Iterator[bytes]:
    pattern = needle if regex else re.escape(needle)
    if whole_word:
        pattern = rf"(?<!\w)(?:{pattern})(?!\w)"
    find = compiled(pattern, ignore_case=ignore_case)
    new: Replacement = _template(find, replacement) if regex else lambda _: replacement
    if "\n" in needle or (regex and r"\n" in needle):
        whole = b"".join(raw_lines(path))
        return iter([like(whole, find.sub(new, text_of(whole)))])
    return _replaced(path, find, new)


def _replaced(path: str, find: re.Pattern[str], new: Replacement) -> Iterator[bytes]:
    for raw in raw_lines(path):
        body = raw.rstrip(b"\r\n")
        old = text_of(body)
        text = find.sub(new, old)
        yield raw if text == old else like(body, text) + raw[len(body) :]


def _template(find: re.Pattern[str], replacement: str) -> str:
    """`\\1` and `\\g<name>` mean groups; `$1` does too, as in other tools."""
    template = re.sub(r"(?<!\\)\$(\d)", r"\\\1", replacement)
    try:  # an empty alternative makes the template count on the empty text
        re.compile(f"{find.pattern}|").sub(template, "")
    except (re.error, IndexError) as error:
        raise ToolFailure("bad_arguments", f"bad replacement `{replacement}`: {error}") from None
    return template


def upper_case(path: str) -> Iterator[bytes]:
    return (like(raw, text_of(raw).upper()) for raw in raw_lines(path))


def lower_case(path: str) -> Iterator[bytes]:
    return (like(raw, text_of(raw).lower()) for raw in raw_lines(path))


def reverse_lines(path: str) -> Iterator[bytes]:
    return written(reversed(list(lines(path))))


def number_lines(path: str, start: int, separator: str) -> Iterator[bytes]:
    between = separator.encode()
    for number, (body, end) in enumerate(lines(path), start):
        yield b"%d%s%s%s" % (number, between, body, end)


def trim_lines(path: str, side: str) -> Iterator[bytes]:
    strip = {"both": bytes.strip, "start": bytes.lstrip, "end": bytes.rstrip}[side]
    return written((strip(body), end) for body, end in lines(path))


def add_to_lines(path: str, text: str, where: str) -> Iterator[bytes]:
    more = text.encode()
    if where == "start":
        return written((more + body, end) for body, end in lines(path))
    return written((body + more, end) for body, end in lines(path))


def join_files(paths: list[str]) -> Iterator[bytes]:
    return written(line for path in paths for line in lines(path))


def join_lines(path: str, delimiter: str, skip_empty: bool) -> Iterator[bytes]:
    between, first = delimiter.encode(), True
    for body in bodies(path):
        if skip_empty and _is_blank(body):
            continue
        yield body if first else between + body
        first = False
    if not first:
        yield b"\n"


def split_lines(path: str, delimiter: str, trim: bool) -> Iterator[bytes]:
    for body, end in lines(path):
        for piece in body.split(delimiter.encode() if delimiter else None):
            kept = piece.strip() if trim else piece
            if kept or not trim:
                yield kept + end


def text_column(path: str, column: int, delimiter: str) -> Iterator[bytes]:
    if column == 0:
        raise ToolFailure("bad_arguments", "`column` counts from 1; -1 is the last")
    place = column - 1 if column > 0 else column
    for body, end in lines(path):
        fields = body.split(delimiter.encode() if delimiter else None)
        there = -len(fields) <= place < len(fields)
        yield (fields[place].strip() if there else b"") + end


# --- taking pieces out --------------------------------------------------------------------

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_BYTE = r"(?:25[0-5]|2[0-4]\d|[01]?\d?\d)"
_IN_URL = r"[^\s<>\"'`|\\^{}\[\]，。、（）]"
_KINDS = {
    "email": r"(?<![\w.+-])[\w.+%-]+@[A-Za-z0-9](?:[\w-]*\w)?(?:\.[A-Za-z0-9](?:[\w-]*\w)?)+",
    "url": rf"\b(?:https?|ftp)://{_IN_URL}*(?![().,;:!?]){_IN_URL}",
    "ip": rf"(?<![\d.])(?:{_BYTE}\.){{3}}{_BYTE}(?![\d.]*\d)",
    "number": r"(?<![\w.:/-])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w:/]|[-.,]\d)",
    "date": "|".join(
        (
            r"(?<![\d-])\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)",
            r"(?<![\d/.])\d{1,2}[/.]\d{1,2}[/.]\d{2,4}(?!\d)",
            rf"\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH} \d{{4}}\b",
            rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b",
            r"\d{4}年\d{1,2}月\d{1,2}日",
        )
    ),
    "hashtag": r"(?<!\w)#\w+",
}


def extract_matches(
    path: str, kind: str, unique: bool, needle: str | None = None
) -> Iterator[bytes]:
    if kind == "regex" and not needle:
        raise ToolFailure(
            "bad_arguments", "`kind` is `regex`, so `needle` must hold the expression"
        )
    find = compiled(needle if kind == "regex" and needle else _KINDS[kind])
    seen: set[str] = set()
    for body, end in lines(path):
        for match in find.finditer(text_of(body)):
            piece = match.group(1 if find.groups else 0)
            if piece and not (unique and piece in seen):
                seen.add(piece)
                yield like(body, piece) + end
