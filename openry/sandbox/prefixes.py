"""Where the interpreters are that a command may start: own ones, and those on our PATH.

A virtual environment, pyenv or nvm is a folder of links; what they lead to must be seen as well.
What a workspace names is looked at with suspicion: only what is an interpreter's folder is shown.
"""

from __future__ import annotations

import os
import sys

from openry.sandbox.real import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SYSTEM_PATH = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
)  # fmt: skip
_PROGRAMS = ("python3", "python", "node")
#: In a workspace.
_ENVIRONMENTS = (".venv", "venv")


def interpreter_places(workspace: str = "") -> tuple[str, ...]:
    """Folders that may be read for the interpreters' sake, none within another, none of /usr.

    Our packages and the shipped data are among them: capabilities run in the sandbox too, and
    what may not be used there says so itself.
    """
    own = {sys.base_prefix, sys.prefix, os.path.realpath(sys.executable)}
    found = {*own, *filter(os.path.isdir, our_code()), *_on_path(), *_in_workspace(workspace)}
    outside = {place for place in found if not is_within(place, "/usr")}
    return tuple(
        place
        for place in sorted(outside)
        if not any(is_within(place, other) for other in outside - {place})
    )


def our_code() -> tuple[str, str, str]:
    """The packages of OpenRY, and the shipped data where that lies beside them."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    beside = os.path.dirname(package)
    return package, os.path.join(beside, "loop"), os.path.join(beside, "templates")


def ours(write: Sequence[str]) -> Iterator[str]:
    """What is of OpenRY itself in folders that may be written."""
    for code in our_code():
        for folder in write:
            if is_within(code, folder) and os.path.isdir(code):
                yield code
            elif is_within(folder, code):
                yield folder


def visible_path(places: Sequence[str]) -> str:
    """PATH for the inside: ours as far as it can be seen there, the system's, our interpreter's."""
    ours = [
        folder
        for folder in os.get_exec_path()
        if folder in _SYSTEM_PATH or any(is_within(folder, place) for place in places)
    ]
    return ":".join(dict.fromkeys((*ours, *_SYSTEM_PATH, os.path.join(sys.prefix, "bin"))))


def _on_path() -> Iterator[str]:
    for folder in os.get_exec_path():
        if os.path.isabs(folder) and folder not in _SYSTEM_PATH:
            yield from _prefixes(folder)


def _in_workspace(workspace: str) -> Iterator[str]:
    """What an environment in the workspace leads to; itself is seen anyway.

    A command may have made it, to be shown another folder by it: only a whole interpreter counts.
    """
    for name in _ENVIRONMENTS if workspace else ():
        for program in _PROGRAMS:
            place = _prefix(os.path.realpath(os.path.join(workspace, name, "bin", program)))
            if _has_interpreter(place):
                yield place


def _prefixes(folder: str) -> Iterator[str]:
    """The folders behind a `bin`: its own, if an interpreter's, and what its links lead to."""
    above = os.path.dirname(folder)
    if os.path.basename(folder) == "shims" and os.path.isdir(f"{above}/libexec"):
        yield above  # pyenv, rbenv: scripts that choose among versions
        return
    for name in _PROGRAMS:
        program = f"{folder}/{name}"
        if not os.access(program, os.X_OK):
            continue
        for place in map(_prefix, (program, os.path.realpath(program))):
            if _has_interpreter(place) or os.path.isfile(f"{place}/pyvenv.cfg"):
                yield place


def _prefix(program: str) -> str:
    return os.path.dirname(os.path.dirname(program))


def _has_interpreter(place: str) -> bool:
    """Whether a folder is an interpreter's, and so holds programs and nothing of a person's.

    `~/.local` is none, though it has a `bin` with a `python3`; nor is a home, or `/`.
    """
    if place in ("", "/", os.path.expanduser("~")):
        return False
    try:
        libraries = os.listdir(f"{place}/lib")
    except OSError:
        return False
    return any(
        (name.startswith("python3") and os.path.isfile(f"{place}/lib/{name}/os.py"))
        or (name == "node_modules" and os.path.isdir(f"{place}/lib/node_modules/npm"))
        for name in libraries
    )
