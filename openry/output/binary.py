"""What is no text: its type, its size, and what can be read in it."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LOOKED_AT = 64 * 1024
_STRINGS = re.compile(rb"[\x20-\x7e]{6,}")
_MAGIC = (
    (b"\x7fELF", "an ELF program or library"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a document that is one)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"),
    (b"MZ", "a Windows program"),
    (b"GGUF", "a GGUF model"),
    (b"\x80\x04", "a Python pickle"),
    (b"RIFF", "RIFF data (sound, video or WebP)"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\x0b\x0c\x08\x1b"))
#: A text may hold some NULs and control characters, not so many.
_MOST_CONTROLS = 0.02
_MOST_STRINGS = 400


def is_binary(data: bytes) -> bool:
    """Whether `data`, the beginning of an output, is no text."""
    start = data[:_LOOKED_AT]
    if not start:
        return False
    # What redaction or a pipe made of it must not hide it: replacement characters count as well.
    odd = len(start) - len(start.translate(None, _CONTROLS)) + start.count(b"\xef\xbf\xbd")
    if odd > len(start) * _MOST_CONTROLS:
        return True
    if any(start.startswith(sign) for sign, _ in _MAGIC if len(sign) > 2 and sign[0] & 0x80):
        return True
    broken = len(start.decode("utf-8", "ignore").encode())
    return len(start) - broken > len(start) * 0.15 + 3 and len(start) > 64


def describe_binary(first: bytes, more: Iterator[bytes], tokens: int) -> str | None:
    """Type, size and readable parts of a binary output; None when it is text."""
    if not is_binary(first):
        return None
    kind = next((name for sign, name in _MAGIC if first.startswith(sign)), "binary data")
    size, found = len(first), _strings(first)
    for chunk in more:
        size += len(chunk)
        if len(found) < _MOST_STRINGS:
            found += _strings(chunk)
    lines = [f"{kind}, {size:,} bytes; readable parts:", *_spread(found, max(4, tokens // 12))]
    return "\n".join(lines)


def _strings(data: bytes) -> list[str]:
    return [match.group()[:120].decode() for match in _STRINGS.finditer(data)][:_MOST_STRINGS]


def _spread(texts: list[str], most: int) -> list[str]:
    """Different texts, evenly over all of them."""
    texts = list(dict.fromkeys(texts))
    step = max(1, len(texts) // most)
    return texts[::step][:most]
