"""Words made of other words: what `find` names, what `xargs` puts in, where a link leads."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import pairwise

from openry.policy.words import DEEP, STAR, UNKNOWN, VALUE, Word, marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def without(word: Word, count: int) -> Word:
    """`word` without its first characters, which are known."""
    start = word.text[:count]
    paths = [one[count:] if one.startswith(start) else "" for one in word.paths]
    known = UNKNOWN not in start and all(one.startswith(start) for one in word.paths)
    return Word(word.text[count:], word.splits, word.quoted, paths=tuple(paths) if known else ())


def seen_from(target: Word, link: Word) -> Word:
    """Where a symbolic link at `link` leads when it says `target`."""
    folder = link.text.rpartition("/")[0]
    if not folder or target.text.startswith("/"):
        return target
    return Word(f"{folder}/{target.text}", target.splits or link.splits)


def texts_of(words: Iterable[Word]) -> list[str] | None:
    """Every text that the words may be, as in `Word.paths`; None where that is not known."""
    found: list[str] = []
    for word in words:
        some = word.paths if UNKNOWN in word.text else (word.text,)
        if not some:
            return None
        found += some
    return found


def found_below(roots: Iterable[Word], words: Iterable[Word]) -> tuple[str, ...]:
    """What `find` may find below its roots, as in `Word.paths`; empty where that is not known."""
    named = texts_of(roots)
    if named is None:
        return ()
    texts = [word.literal for word in words]
    pairs = list(pairwise(texts))
    names = [after for word, after in pairs if word == "-name"]
    only = len(names) == 1 and not {"-o", "-or", "-not", "!", ",", "("} & set(texts)
    name = names[0] if only else None
    ending = re.split(r"[*?\]]", name)[-1] if name and "\\" not in name else ""
    flat = ("-maxdepth", "1") in pairs and ("-type", "f") in pairs
    below = STAR if flat else DEEP  # no folder is `.git` or the like that is a file
    found: list[str] = []
    for root in named:
        last = root.rstrip("/").rpartition("/")[2]
        folder = ("-type", "f") in pairs and (last in (".", "..") or root.endswith("/"))
        if not folder and (name is None or marked(last) or fnmatchcase(last, name)):
            found.append(root)
        found.append(f"{root.rstrip('/') or '/.'}/{below}{ending}")
    return tuple(found)


def parent(path: str) -> str:
    """The folder in which a path ends, as `find -execdir` takes it."""
    if VALUE in path:
        return UNKNOWN
    before, slash, _ = path.rstrip("/").rpartition("/")
    return before or slash or "."


def replaced(word: Word, marks: list[str], values: tuple[str, ...], *, found: bool = False) -> Word:
    """`word` with what is put in for a mark: one of `values`, where these are known.

    A file that `find` found begins with its root.
    """
    text, paths = word.text, word.paths or (() if UNKNOWN in word.text else (word.text,))
    for mark in marks:
        if mark and mark in text:
            paths = tuple(path.replace(mark, value) for path in paths for value in values)
    for mark in marks:
        if mark and mark in text:
            text = text.replace(mark, f"/{UNKNOWN}" if found and text == mark else UNKNOWN)
    return Word(text, word.splits, word.quoted, paths=paths if UNKNOWN in text else ())
