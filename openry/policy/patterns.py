"""Patterns of paths and addresses: `*` within one part, `**` over parts.

What is compared with them may itself hold marks: a shell pattern in a command stands for every
name that fits it. `contains` asks whether all of those fit, `meets` whether any could.
"""

# ruff: noqa: PTH118
# Paths are compared as text here, many for each command.

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import NamedTuple

from openry.policy.words import CUT, DEEP, NAME, ONE, STAR, UNKNOWN, VALUE, marked

_ANY = frozenset((STAR, NAME, DEEP))
_UNBOUND = frozenset((UNKNOWN, VALUE, CUT))
_DOTS = re.compile(f"\\.[{STAR}{ONE}.]+$")


class PathPattern(NamedTuple):
    """An absolute pattern; in parts."""

    parts: tuple[str, ...]

    def contains(self, path: str, *, below: bool = False) -> bool:
        """Whether every name `path` stands for fits. With `below`, the folder itself does not."""
        found = _parts(path)
        if below and len(self.parts) > 1 and self.parts[-1] == "**":
            head = self.parts[:-1]
            if _all(found, head) and any(part != "**" for part in head[-1:]):
                return False
        return _all(found, self.parts)

    def meets(self, path: str, *, tree: bool = False) -> bool:
        """Whether some name `path` stands for fits; with `tree`, also one that lies below it."""
        return _some(_parts(path), self.parts, tree)


def path_pattern(text: str, base: str, home: str = "") -> PathPattern:
    """`text` as a pattern; a relative one starts at `base`.

    >>> from openry.policy.patterns import path_pattern
    >>> path_pattern("./build/**", "/w").contains("/w/build/a/b")
    True
    """
    if home and (text == "~" or text.startswith("~/")):
        text = home + text[1:]
    return _compiled(os.path.normpath(os.path.join(base, text)))


@lru_cache(maxsize=256)
def path_patterns(texts: tuple[str, ...], base: str, home: str) -> tuple[PathPattern, ...]:
    return tuple(path_pattern(text, base, home) for text in texts)


@lru_cache(maxsize=4096)
def _compiled(text: str) -> PathPattern:
    """`**.py` is `**/*.py`."""
    parts: list[str] = []
    for part in _parts(text):
        if part != "**" and part.startswith("**"):
            parts += ["**", part[1:]]
        else:
            parts.append(part)
    return PathPattern(tuple(parts))


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def resolve(text: str, cwd: str, home: str) -> str | None:
    """The absolute path that `text` names, marks kept; None where that cannot be known.

    >>> from openry.policy.patterns import resolve
    >>> resolve("src/../a.txt", "/w", "/h"), resolve("~/x", "/w", "/h")
    ('/w/a.txt', '/h/x')
    """
    if not text.isascii() and _UNBOUND & set(text):
        return None
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    if not text.startswith("/"):
        if not cwd:
            return None
        text = f"{cwd}/{text}"
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            if parts and DEEP in parts[-1]:
                return None  # it may be several folders deep, and one is left
            del parts[-1:]
        elif part[:1] == "." and _DOTS.fullmatch(part) and marked(part):
            return None  # `.*` finds `..` too
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _all(path: tuple[str, ...], pattern: tuple[str, ...], *, anywhere: bool = False) -> bool:
    """With `anywhere`, `**` stood before: it takes the first folders of what is DEEP."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return len(pattern) == 1 or any(
            _all(path[skip:], pattern[1:], anywhere=True) for skip in range(len(path) + 1)
        )
    if not path or (DEEP in path[0] and not (anywhere and pattern[0][:1] == "*")):
        return False
    return _part_in(path[0], pattern[0]) and _all(path[1:], pattern[1:])


@lru_cache(maxsize=8192)
def _some(path: tuple[str, ...], pattern: tuple[str, ...], tree: bool) -> bool:
    if not path and tree:
        return True
    if not pattern:
        return not path
    if path and DEEP in path[0]:
        return _some_deep(path, pattern, tree)
    if pattern[0] == "**":
        deep = next((at for at, part in enumerate(path) if DEEP in part), len(path))
        return (
            len(pattern) == 1
            or any(_some(path[skip:], pattern[1:], tree) for skip in range(deep + 1))
            or (deep < len(path) and _some(path[deep:], pattern, tree))
        )
    return bool(path) and part_meets(path[0], pattern[0]) and _some(path[1:], pattern[1:], tree)


def _some_deep(path: tuple[str, ...], pattern: tuple[str, ...], tree: bool) -> bool:
    """The same where the first part is DEEP, so that it may be several."""
    part, rest = path[0], path[1:]
    first = part[: part.index(DEEP) + 1]
    last = (STAR if part[0] == STAR else "") + part[part.rindex(DEEP) :]
    if pattern[0] == "**":
        return (
            _some((last, *rest), pattern[1:], tree)
            or _some(rest, pattern, tree)
            or _some(rest, pattern[1:], tree)
        )
    if not part_meets(first if len(pattern) > 1 else part, pattern[0]):
        return part_meets(part, pattern[0]) and _some(rest, pattern[1:], tree)
    for taken in range(1, len(pattern) + 1):
        if "**" in pattern[:taken]:
            return True  # near enough: it could
        ends = part if taken == 1 else last
        if part_meets(ends, pattern[taken - 1]) and _some(rest, pattern[taken:], tree):
            return True
    return False


@lru_cache(maxsize=4096)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(
        "".join({"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign)) for sign in pattern), re.S
    )


@lru_cache(maxsize=4096)
def _part_in(part: str, pattern: str) -> bool:
    if pattern == "*" or part == pattern:
        return True
    if not marked(part):
        return _regex(pattern).fullmatch(part) is not None
    before, star, after = pattern.partition("*")
    if not star or "*" in after or "?" in pattern:
        return False
    known = re.split("[\ue000-\ue00f]", part)
    return known[0].startswith(before) and known[-1].endswith(after)


@lru_cache(maxsize=4096)
def part_meets(part: str, pattern: str) -> bool:
    """Whether one name could fit both a shell pattern and one of ours."""
    if not marked(part):
        return _regex(pattern).fullmatch(part) is not None
    if pattern[:1] == "." and part[:1] in (STAR, ONE, NAME):
        return False  # a shell's `*` finds no hidden names
    return _both(part, pattern)


@lru_cache(maxsize=16384)
def _both(part: str, pattern: str) -> bool:
    if part[:1] in _ANY:
        return _both(part[1:], pattern) or (
            bool(pattern) and (_both(part, pattern[1:]) or (pattern[0] == "*" and bool(part[1:])))
        )
    if pattern[:1] == "*":
        return _both(part, pattern[1:]) or (bool(part) and _both(part[1:], pattern))
    if not part or not pattern:
        return part == pattern
    if part[0] == ONE or pattern[0] == "?" or part[0] == pattern[0]:
        return _both(part[1:], pattern[1:])
    return False


# --- addresses --------------------------------------------------------------------------------

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)")
_PORTS = {"http": 80, "https": 443, "ftp": 21, "ftps": 990, "ws": 80, "wss": 443, "ssh": 22}


class Address(NamedTuple):
    """An address as it is compared: scheme and host in lower case, its path in parts."""

    scheme: str
    host: str
    port: int
    path: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"


def read_address(text: str) -> Address | None:
    """`text` as an address, or None where programs could read it in different ways."""
    text = text.replace(ONE, "?")  # begins the query; in a host it fits no rule
    if marked(text) or any(ord(sign) <= 32 or ord(sign) > 126 for sign in text):
        return None
    if "://" not in text:
        text = f"http://{text}"
    found = _URL.match(text)
    if found is None or "\\" in text or "@" in found[2] or "%" in found[2]:
        return None
    if re.search(r"[\[\]{}]", text):
        return None  # curl makes several addresses of these
    host, _, port = found[2].partition(":")
    scheme = found[1].lower()
    if not re.fullmatch(r"[A-Za-z0-9.-]+", host) or not re.fullmatch(r"[0-9]{0,5}", port):
        return None
    parts = found[3].split("/")[1:]
    if any(part in (".", "..") or re.search(r"%(2[eEfF]|5[cC]|00)", part) for part in parts):
        return None
    return Address(
        scheme, host.lower().rstrip("."), int(port or _PORTS.get(scheme, 0)), tuple(parts)
    )


def address_fits(address: Address, pattern: str) -> bool:
    """Whether `address` fits, e.g. `https://api.example.com/v1/**`."""
    found = _URL.match(pattern)
    if found is None:
        return False
    host, _, port = found[2].partition(":")
    scheme = found[1].lower()
    return (
        address.scheme == scheme
        and _regex(host.lower()).fullmatch(address.host) is not None
        and address.port == int(port or _PORTS.get(scheme, 0))
        and _all(address.path, tuple(found[3].split("/")[1:]))
    )
