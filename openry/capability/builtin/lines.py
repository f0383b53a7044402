"""Lines of a file as bytes, whatever their ends and encoding.

A line is what stands between line feeds. A carriage return before one belongs to the line end, so
it takes no part in comparing; the end is written back as it was. A last line without an end counts,
and gets the file's own when something follows or the result is lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_BOM = b"\xef\xbb\xbf"
_WIDE = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
Line = tuple[bytes, bytes]


def raw_lines(path: str) -> Iterator[bytes]:
    """Lines with their ends as UTF-8 or the file's own bytes; a byte order mark is left out."""
    with open(path, "rb") as file:
        head = file.read(3)
        file.seek(0)
        wide = _WIDE.get(head[:2])
        if wide:
            import io

            text = io.TextIOWrapper(file, encoding=wide, errors="replace", newline="")
            yield from (line.encode() for line in _split_on_feeds(text))
            return
        if head == _BOM:
            file.read(3)
        yield from file


def _split_on_feeds(text: Iterable[str]) -> Iterator[str]:
    """`newline=""` also ends lines at a lone carriage return; put such lines together again."""
    held = ""
    for line in text:
        held += line
        if line.endswith("\n"):
            yield held
            held = ""
    if held:
        yield held


def lines(path: str) -> Iterator[Line]:
    """(body, line end) of each line; never an empty end."""
    end = b"\n"
    for raw in raw_lines(path):
        if raw.endswith(b"\r\n"):
            end = b"\r\n"
            yield raw[:-2], end
        elif raw.endswith(b"\n"):
            end = b"\n"
            yield raw[:-1], end
        else:
            yield raw, end


def bodies(path: str) -> Iterator[bytes]:
    """Lines without their ends."""
    for body, _ in lines(path):
        yield body


def text_of(body: bytes) -> str:
    """A line as text: UTF-8, else Latin-1, which every byte is."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.decode("latin-1")


def like(body: bytes, text: str) -> bytes:
    """`text`, which came from `body`, in the encoding of `body`."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return text.encode("latin-1", "replace")
    return text.encode()


def folded(body: bytes) -> bytes:
    """What two lines share that differ only in case."""
    return text_of(body).casefold().encode("utf-8", "surrogatepass")


def written(pairs: Iterable[Line]) -> Iterator[bytes]:
    for body, end in pairs:
        yield body + end


def json_line(value: object) -> bytes:
    import json

    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def number_line(count: int) -> bytes:
    return b"%d\n" % count
