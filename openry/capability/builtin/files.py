"""The `files` pack."""

# Importing pathlib costs more than most calls take.
# ruff: noqa: PTH103, PTH105, PTH110, PTH112, PTH113, PTH116, PTH121, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from openry.capability.builtin.failure import ToolFailure, note
from openry.capability.builtin.lines import number_line
from openry.capability.builtin.runner import replace_file

_READ_LIMIT = 1024 * 1024
_TRASH = ".trash"
_CHUNK = 1024 * 1024


# --- looking ------------------------------------------------------------------------------


def list_directory(path: str, kind: str, hidden: bool, output: str = "") -> Iterator[bytes]:
    names = []
    with os.scandir(path) as entries:
        for entry in entries:
            folder = entry.is_dir()
            unwanted = kind == ("folders" if not folder else "files")
            ours = output and os.path.normpath(entry.path) == os.path.normpath(output)
            if not (unwanted or ours or (entry.name.startswith(".") and not hidden)):
                names.append(entry.name + ("/" if folder else ""))
    return (_name_line(name) for name in sorted(names))


def find_files(
    pattern: str, path: str, recursive: bool, names_only: bool, output: str = ""
) -> Iterator[bytes]:
    found = _found(pattern, path, recursive, output)
    if names_only:
        found = [os.path.basename(name) for name in found]
    return (_name_line(name) for name in sorted(found))


def count_files(pattern: str, path: str, recursive: bool, output: str = "") -> bytes:
    return number_line(len(_found(pattern, path, recursive, output)))


def _name_line(name: str) -> bytes:
    """A name on one line, whatever it holds."""
    shown = name.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in name else name
    return os.fsencode(shown) + b"\n"


def _found(pattern: str, path: str, recursive: bool, output: str) -> list[str]:
    """Paths relative to `path`; neither hidden ones, unless asked for, nor the result itself."""
    if not os.path.isdir(path):
        kind = "is a file; name a folder" if os.path.exists(path) else "no such folder"
        raise ToolFailure(
            "not_found" if "no such" in kind else "bad_arguments", f"`{path}`: {kind}"
        )
    matches = _glob(pattern)
    whole_path = "/" in pattern
    show_hidden = pattern.lstrip("./").startswith(".") or pattern.startswith(".")
    result = []
    for folder, folders, files in os.walk(path):
        folders[:] = (
            sorted(f for f in folders if not f.startswith(".") or show_hidden)
            if recursive or whole_path
            else []
        )
        for name in files:
            place = os.path.normpath(os.path.join(os.path.relpath(folder, path), name))
            if name.startswith(".") and not show_hidden:
                continue
            if output and os.path.normpath(os.path.join(path, place)) == os.path.normpath(output):
                continue
            if matches.fullmatch(place if whole_path else name):
                result.append(place)
    return result


def _glob(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stay within a name, `**/` passes folders, `[ab]` and `{a,b}` choose."""
    text = pattern.removeprefix("./")
    out, place = "", 0
    while place < len(text):
        rest = text[place:]
        if rest.startswith("**/"):
            out, place = out + "(?:.*/)?", place + 3
        elif rest.startswith("**"):
            out, place = out + ".*", place + 2
        elif rest[0] in "*?":
            out, place = out + ("[^/]*" if rest[0] == "*" else "[^/]"), place + 1
        elif choice := re.match(r"\[(!?)([^\]/]+)\]", rest):
            inside = choice[2].replace("\\", "\\\\").replace("[", r"\[").replace("^", r"\^")
            out, place = f"{out}[{'^' if choice[1] else ''}{inside}]", place + choice.end()
        elif choice := re.match(r"\{([^{}]*,[^{}]*)\}", rest):
            inside = "|".join(_glob(each).pattern for each in choice[1].split(","))
            out, place = f"{out}(?:{inside})", place + choice.end()
        else:
            out, place = out + re.escape(rest[0]), place + 1
    try:
        return re.compile(out, re.DOTALL)
    except re.error as error:
        raise ToolFailure("bad_arguments", f"bad pattern `{pattern}`: {error}") from None


def read_file(path: str) -> bytes:
    size = os.stat(path).st_size
    if size > _READ_LIMIT:
        raise ToolFailure(
            "resource",
            f"`{path}` has {size} bytes, more than the 1 MiB this tool reads; "
            "take a part with first_lines, line_range or filter_lines",
        )
    with open(path, "rb") as file:
        return file.read(_READ_LIMIT + 1)


def file_size(path: str) -> bytes:
    if not os.path.isdir(path):
        return number_line(os.stat(path).st_size)
    sizes = (
        os.lstat(os.path.join(folder, name)).st_size
        for folder, _, files in os.walk(path)
        for name in files
    )
    return number_line(sum(sizes))


# --- changing -----------------------------------------------------------------------------


def write_text(output: str, text: str, final_newline: bool) -> None:
    if final_newline and text and not text.endswith("\n"):
        text += "\n"
    replace_file(output, [text.encode("utf-8", "surrogateescape")])


def append_text(path: str, text: str, output: str | None = None) -> None:
    line = text if text.endswith("\n") else f"{text}\n"
    new = line.encode("utf-8", "surrogateescape")
    replace_file(output or path, [*_content(path), new])


def _content(path: str) -> Iterator[bytes]:
    """The file, with a line end at its end; nothing when it is missing."""
    if not os.path.lexists(path):
        return
    last = b"\n"
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            last = chunk[-1:]
            yield chunk
    if last != b"\n":
        yield b"\n"


def copy(path: str, output: str, overwrite: bool) -> bytes:
    import shutil

    target = _target(path, output, overwrite)
    if os.path.isdir(path):
        if _is_below(target, path):
            raise ToolFailure("bad_arguments", f"`{path}` cannot be copied into itself")
        shutil.copytree(path, target, symlinks=True, dirs_exist_ok=overwrite)
    else:
        shutil.copy2(path, target)
    return _said(f"copied to {target}")


def move(path: str, output: str, overwrite: bool) -> bytes:
    import shutil

    target = _target(path, output, overwrite)
    if os.path.isdir(path) and _is_below(target, path):
        raise ToolFailure("bad_arguments", f"`{path}` cannot be moved into itself")
    if os.path.isfile(target) and not os.path.isdir(path):
        os.replace(path, target)
    else:
        shutil.move(path, target)
    return _said(f"moved to {target}")


def _target(path: str, output: str, overwrite: bool) -> str:
    """Where `path` goes: `output`, or into it when that is a folder; folders above it are made."""
    if not os.path.lexists(path):
        raise ToolFailure("not_found", f"`{path}`: no such file")
    into = os.path.isdir(output) or output.endswith("/")
    target = os.path.join(output, os.path.basename(path.rstrip("/"))) if into else output
    if os.path.exists(target) and os.path.samefile(path, target):
        raise ToolFailure("conflict", f"`{path}` and `{target}` are the same file")
    if os.path.lexists(target) and not overwrite:
        raise ToolFailure("conflict", f"`{target}` exists; give another name or `overwrite`")
    if os.path.isdir(target) and not os.path.isdir(path):
        raise ToolFailure("conflict", f"`{target}` is a folder")
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    return target


def _is_below(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)


def delete(path: str) -> bytes:
    import shutil

    here = os.path.realpath(os.curdir)
    there = os.path.join(
        os.path.realpath(os.path.dirname(path.rstrip("/")) or "."),
        os.path.basename(path.rstrip("/")),
    )
    if not os.path.lexists(path):
        raise ToolFailure("not_found", f"`{path}`: no such file")
    if (
        os.path.normpath(there) == here
        or here.startswith(os.path.realpath(path) + os.sep)
        or os.path.realpath(path) == here
    ):
        raise ToolFailure("refused", "the workspace itself cannot be deleted")
    if _is_below(os.path.join(there, "x"), _TRASH):
        raise ToolFailure("refused", f"`{path}` is in the trash already")
    os.makedirs(_TRASH, exist_ok=True)
    name = os.path.basename(there)
    target, number = os.path.join(_TRASH, name), 1
    while os.path.lexists(target):
        number += 1
        target = os.path.join(_TRASH, f"{name}.{number}")
    shutil.move(path.rstrip("/"), target)
    note(f"it can be found at {target}")
    return _said(target)


def _said(text: str) -> bytes:
    return os.fsencode(text) + b"\n"
