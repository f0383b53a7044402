"""A small machine of its own for a benchmark's commands: what they call `/` is a folder of ours.

Programs come from the host, read-only; nothing else of it is seen, and everything that a command
does to its file system is found in the folder afterwards.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from loop.kit import Kit
from openry.errors import SandboxError
from openry.forwarder import Hand
from openry.models import Command, RunContext, SandboxSpec
from openry.sandbox.bubblewrap import Bubblewrap
from openry.sandbox.launcher import find_program

#: When files were made that say nothing else: long ago, and the same in every copy.
_MADE = 1_672_531_200.0
_TIMEOUT_S = 15.0
_SANDBOX = SandboxSpec(backend="bubblewrap")
#: What the machine itself is made of; its changes are no command's doing.
_MACHINE = ("bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "run", "sbin",
            "sys", "tmp", "usr", "nix", "work", "root")  # fmt: skip
_MARK = "@@where:"
#: Says at the end in which folder the shell stood.
_SCRIPT = f'trap \'printf "\\n{_MARK}%s" "$PWD"\' EXIT\n'

#: Every path of a machine, with its type, mode and content.
State = Mapping[str, tuple[str, int, str]]


@dataclass(frozen=True, slots=True)
class Shown:
    """What one command printed, and where its shell stood at the end."""

    output: str
    errors: str
    exit_code: int | None
    cwd: str


class Rooted(Bubblewrap):
    """The usual sandbox, with a folder in the place of the empty root."""

    def __init__(self, root: Path) -> None:
        program = find_program("bwrap")
        if not program:
            raise SandboxError("bubblewrap is not installed; run: apt-get install bubblewrap")
        super().__init__(program, _SANDBOX, "", bare=True)
        self._options = ("--bind", str(root), "/", *self._options)


class Machine:
    """One root folder, in which commands follow each other."""

    def __init__(self, kit: Kit, root: Path, files: Iterable[Mapping[str, Any]]) -> None:
        self.root = root
        build(root, files)
        context = RunContext(sandbox=_SANDBOX)
        self._hand = Hand(kit.fast, context, kit.config, launcher=Rooted(root))
        self._cwd = "/"

    def run(self, text: str) -> Shown:
        """Run one line of bash where the one before it ended."""
        self._tidy()
        script = f"cd {shlex.quote(self._cwd)}\n{_SCRIPT}{text}\n"
        stages = (("bash", "-c", script),)
        done = self._hand.forward(Command(stages=stages, cwd="/", timeout_s=_TIMEOUT_S))
        output, found, cwd = done.stdout.rpartition(f"\n{_MARK}")
        if found:
            self._cwd = cwd.strip() or "/"
        return Shown(output if found else done.stdout, done.stderr, done.exit_code, self._cwd)

    def _tidy(self) -> None:
        """Take away what the sandbox makes anew for each command."""
        for name in _MACHINE:
            place = self.root / name
            if place.is_symlink():
                place.unlink()
            elif name == "etc":
                shutil.rmtree(place, ignore_errors=True)

    def state(self) -> State:
        """All that is there, but for what the machine itself is made of."""
        found = {}
        for folder, names, files in os.walk(self.root):
            if folder == str(self.root):
                names[:] = [name for name in names if name not in _MACHINE]
                files = [name for name in files if name not in _MACHINE]
            for name in (*names, *files):
                path = Path(folder, name)
                found[str(path.relative_to(self.root))] = _seen(path)
        return found


def build(root: Path, files: Iterable[Mapping[str, Any]]) -> None:
    """Make what `files` lists (path, type, mode, text, mtime) under `root`."""
    listed = sorted(files, key=lambda each: str(each["path"]))
    for each in listed:
        path = _inside(root, str(each["path"]))
        if each["type"] == "dir":
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(each.get("text", "")), "utf-8")
        path.chmod(int(str(each["mode"]), 8))
    for each in reversed(listed):  # a folder's time changes with what is put into it
        os.utime(_inside(root, str(each["path"])), (_time(each), _time(each)))


def clear(root: Path) -> None:
    """Remove a machine whatever rights its commands left."""
    for folder, names, _ in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(root, ignore_errors=True)


def _inside(root: Path, path: str) -> Path:
    place = root / path.lstrip("/")
    if ".." in place.parts:
        raise ValueError(f"`{path}` leads out of the machine")
    return place


def _time(each: Mapping[str, Any]) -> float:
    told = each.get("mtime")
    return datetime.fromisoformat(str(told)).timestamp() if told else _MADE


def _seen(path: Path) -> tuple[str, int, str]:
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return "link", 0, str(path.readlink())
    if stat.S_ISDIR(found.st_mode):
        return "dir", mode, ""
    if stat.S_ISREG(found.st_mode):
        return "file", mode, sha256(path.read_bytes()).hexdigest()
    return "other", mode, ""
