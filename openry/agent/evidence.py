"""What a task's words and its workspace offer as arguments: the enumerations of a small model.

A model that may only pick among things that exist cannot misspell a file name.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

_T = TypeVar("_T")
_NOTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})

MAX_FILES = 200
MAX_COLUMNS = 50
MAX_KEYS = 50
_MOST_JSON_BYTES = 256 * 1024
_KEY_DEPTH = 4
_HEAD_BYTES = 16 * 1024
_TABLES = {".csv": ",", ".tsv": "\t"}
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})

_QUOTED = re.compile(
    r"""
      (?<!\w) ' ( [^'\n]+ ) ' (?!\w)
    | " ( [^"\n]+ ) "
    | ` ( [^`\n]+ ) `
    | “ ( [^”\n]+ ) ”
    | ‘ ( [^’\n]+ ) ’
    | 「 ( [^」\n]+ ) 」
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w]|\.\d)")
_FILE_NAME = re.compile(
    r"(?<![\w./])[A-Za-z0-9_][\w.+-]*(?:/[\w.+-]+)*\.[A-Za-z][A-Za-z0-9]{0,7}\b"
)
_URL = r"https?://[^\s，。、'\"“”<>]*[\w/]"
_ADDRESS = r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
#: Two dots at least and the ending of a domain: `a.b` is rather a file.
_HOST = (
    r"\blocalhost\b|(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|(?<![\w.-])(?:[a-z0-9-]+\.){2,}"
    r"(?:com|org|net|edu|gov|io|de|fr|uk|eu|nl|se|no|ch|at|it|es|pl|cn|jp|in|info|local|lan|internal)\b"
)
#: What an argument of a role looks like that is said as it stands. Dates and time zones are not
#: among them: they are worked out as often as said. Each is taken out of the text before the next
#: is looked for, so that no part of an address is a server.
SHAPES = {
    "url": re.compile(_URL, re.ASCII),
    "address": re.compile(_ADDRESS, re.ASCII),
    "revision": re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b|\bHEAD(?:[~^]\d*)*", re.ASCII),
    "host": re.compile(_HOST, re.ASCII),
}
#: Where the whole is no file: addresses and servers that are named like one.
_NO_FILES = re.compile(f"{_URL}|{_ADDRESS}|{_HOST}", re.ASCII)
_GLOB = re.compile(r"[\w./-]*[*?][\w./*?-]*")
_NUMBER_WORDS = {
    word: value
    for value, words in enumerate(
        (
            "zero",
            "one first single",
            "two second twice",
            "three third",
            "four fourth",
            "five fifth",
            "six sixth",
            "seven seventh",
            "eight eighth",
            "nine ninth",
            "ten tenth",
            "eleven eleventh",
            "twelve twelfth dozen",
        )
    )
    for word in words.split()
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Candidates for arguments, the likeliest first.

    Attributes:
        files: Files of the workspace, relative; those the text names come first.
        new_files: File names in the text that the workspace does not have.
        globs: Patterns the text names, then one for each extension in the workspace.
        literals: What stands in quotes.
        numbers: Figures and number words, whole ones as int.
        columns: Column names of the workspace's tables; those the text names come first.
        keys: Dotted paths of the workspace's JSON files, `*` for every element of a list; those
            the text names come first.
        typed: Role (`url`, `address`, `host`, `revision`) to what looks like it.
    """

    files: tuple[str, ...] = ()
    new_files: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    numbers: tuple[int | float, ...] = ()
    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    typed: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)


def gather(text: str, workspace: Path) -> Evidence:
    """Read the words of `text` and the names and table heads of `workspace`."""
    found = tuple(_workspace_files(workspace))
    named = unique(match.group(0) for match in _FILE_NAME.finditer(_NO_FILES.sub(" ", text)))
    files = _named_first(found, text)
    return Evidence(
        files=files,
        new_files=tuple(name for name in named if name not in found),
        globs=unique((*_GLOB.findall(text), *_extension_globs(found))),
        literals=literals_in(text),
        numbers=numbers_in(text),
        columns=_named_first(unique(_columns(workspace, files)), text)[:MAX_COLUMNS],
        keys=_keys_named_first(unique(_keys(workspace, files)), text)[:MAX_KEYS],
        typed=_typed(text),
    )


def literals_in(text: str) -> tuple[str, ...]:
    """What stands in quotes, in the order of the text.

    >>> literals_in("replace 'it is' by \\"it's\\" in a.txt")
    ('it is', "it's")
    """
    return unique(next(filter(None, match.groups())) for match in _QUOTED.finditer(text))


def numbers_in(text: str) -> tuple[int | float, ...]:
    """Figures, then number words.

    >>> numbers_in("the first three lines of the 2 files above 1.5")
    (2, 1.5, 1, 3)
    """
    figures = [_number(match.group(0)) for match in _NUMBER.finditer(text)]
    words = [_NUMBER_WORDS[w] for w in re.findall(r"[a-z]+", text.lower()) if w in _NUMBER_WORDS]
    return unique((*figures, *words))


def unique(items: Iterable[_T]) -> tuple[_T, ...]:
    """Each item once, where it first stood."""
    return tuple(dict.fromkeys(items))


def _typed(text: str) -> Mapping[str, tuple[str, ...]]:
    found = {}
    for role, shape in SHAPES.items():
        found[role] = unique(shape.findall(text))
        text = shape.sub(" ", text)
    return found


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _named_first(names: tuple[str, ...], text: str) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: name not in text))


def _extension_globs(files: tuple[str, ...]) -> Iterator[str]:
    for name in files:
        folder, _, last = name.rpartition("/")
        suffix = Path(last).suffix
        if suffix:
            yield f"{folder}/*{suffix}" if folder else f"*{suffix}"


def _workspace_files(workspace: Path) -> Iterator[str]:
    """Up to MAX_FILES relative names, sorted within each folder, hidden ones left out."""
    left = MAX_FILES
    for folder, folders, names in os.walk(workspace):
        folders[:] = sorted(f for f in folders if f[0] != "." and f not in _SKIPPED_FOLDERS)
        for name in sorted(names):
            if name.startswith("."):
                continue
            if not left:
                return
            left -= 1
            yield Path(folder, name).relative_to(workspace).as_posix()


def _columns(workspace: Path, files: tuple[str, ...]) -> Iterator[str]:
    for name in files:
        delimiter = _TABLES.get(Path(name).suffix.lower())
        if delimiter:
            yield from _header(workspace / name, delimiter)


def _keys(workspace: Path, files: tuple[str, ...]) -> Iterator[str]:
    for name in files:
        path = workspace / name
        if path.suffix.lower() != ".json":
            continue
        try:
            if path.stat().st_size <= _MOST_JSON_BYTES:
                yield from _paths(json.loads(path.read_text("utf-8-sig")))
        except (OSError, ValueError, RecursionError):
            continue


def _paths(value: object, before: str = "", depth: int = _KEY_DEPTH) -> Iterator[str]:
    if isinstance(value, list):
        inner: Iterable[tuple[str, object]] = [("*", each) for each in value[:1]]
    else:
        inner = value.items() if isinstance(value, dict) else ()
    for key, below in inner:
        path = f"{before}.{key}" if before else str(key)
        if key != "*":
            yield path
        if depth > 1:
            yield from _paths(below, path, depth - 1)


def _keys_named_first(paths: tuple[str, ...], text: str) -> tuple[str, ...]:
    """The more of a path's keys stand in the text the earlier, the shorter of them first."""
    said = text.casefold()

    def rank(path: str) -> tuple[int, int]:
        keys = [key for key in path.casefold().split(".") if key != "*"]
        return -sum(key in said for key in keys), len(keys)

    return tuple(sorted(paths, key=rank))


def _header(path: Path, delimiter: str) -> list[str]:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return []
    line = head.decode("utf-8-sig", "replace").split("\n", 1)[0].rstrip("\r")
    if ";" in line and delimiter not in line:
        delimiter = ";"
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), []) if cell]
