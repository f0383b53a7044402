"""Look over a workspace: which files, of which kind, with which columns. Reads heads only."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

from loop.values import FileInfo, Survey

MAX_FILES = 2000
_HEAD_BYTES = 64 * 1024
_HEAD_CHARS = 2000
_SKIPPED = {".git", ".openry", ".work", "node_modules", "__pycache__", ".venv"}


def survey(root: Path, *, max_files: int = MAX_FILES) -> Survey:
    """The files below `root`, sorted by name; at most `max_files`, and `cut` says if more exist.

    Symbolic links to folders are not followed; unreadable files are listed as `binary`.
    """
    files: list[FileInfo] = []
    folders: list[str] = []
    cut = False
    for folder, names, leaves in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        folders += [_relative(root, Path(folder, name)) for name in names]
        for leaf in sorted(leaves):
            if len(files) >= max_files:
                cut = True
                break
            files.append(_look(root, Path(folder, leaf)))
        if cut:
            break
    return Survey(str(root), tuple(sorted(files, key=lambda file: file.name)), tuple(folders), cut)


def _relative(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _look(root: Path, path: Path) -> FileInfo:
    name = _relative(root, path)
    try:
        size = path.stat().st_size
        if not path.is_file():
            return FileInfo(name, 0, "binary")
        with path.open("rb") as stream:
            start = stream.read(_HEAD_BYTES)
    except OSError:
        return FileInfo(name, 0, "binary")
    if b"\0" in start:
        return FileInfo(name, size, "binary")
    text = start.decode("utf-8", "replace").lstrip("\ufeff")
    whole = size <= _HEAD_BYTES
    kind, columns = _kind(name, text, whole=whole)
    lines = len(text.splitlines()) if whole else -1
    return FileInfo(name, size, kind, text[:_HEAD_CHARS], columns, lines)


def _kind(name: str, text: str, *, whole: bool) -> tuple[str, tuple[str, ...]]:
    if not text.strip():
        return ("csv" if name.endswith((".csv", ".tsv")) else "empty"), ()
    if name.endswith((".json", ".jsonl")) or text.lstrip()[:1] in "[{":
        keys = _json_keys(text, whole=whole)
        if keys is not None:
            return "json", keys
    delimiter = _delimiter(name, text)
    if delimiter:
        rows = list(csv.reader(io.StringIO(text, newline=None), delimiter=delimiter))[:20]
        return "csv", header_of(rows)
    return "text", ()


def _json_keys(text: str, *, whole: bool) -> tuple[str, ...] | None:
    """Keys of the object, or of the first object of a list or of JSON lines; None if not JSON."""
    try:
        value = json.loads(text if whole else text[: text.rfind("\n")])
    except ValueError:
        try:
            value = json.loads(text.splitlines()[0])
        except ValueError:
            return None
    if isinstance(value, list) and value:
        value = value[0]
    return tuple(map(str, value)) if isinstance(value, dict) else ()


def _delimiter(name: str, text: str) -> str:
    """The delimiter of delimited text, or "": the same one, equally often, on each of the lines."""
    if name.endswith(".tsv"):
        return "\t"
    if name.endswith(".csv"):
        first = text.splitlines()[0]
        return max(",;\t", key=first.count) if any(d in first for d in ",;\t") else ","
    lines = [line for line in text.splitlines()[:20] if line.strip()]
    for delimiter in (",", "\t", ";"):
        counts = {line.count(delimiter) for line in lines}
        if len(lines) > 1 and len(counts) == 1 and counts != {0} and ", " not in lines[0]:
            return delimiter
    return ""


def header_of(rows: list[list[str]]) -> tuple[str, ...]:
    """The first row when it is a header: distinct words, none a number, and another row follows.

    It is taken for data when a later row of the same column holds no other kind of value than
    the first, i.e. no column turns from words into numbers, and the words repeat further down
    or look like values. The rule is the one the `data` capabilities state.
    """
    if len(rows) < 2 or not rows[0]:
        return ()
    first = [cell.strip() for cell in rows[0]]
    if any(_is_number(cell) or not cell for cell in first) or len(set(first)) != len(first):
        return ()
    return tuple(first)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").strip().lstrip("$€£"))
    except ValueError:
        return False
    return True
