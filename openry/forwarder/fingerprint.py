"""What an action is, whatever it looks like this time: the same intent, the same fingerprint.

Its first part is of the type and the canonical arguments, its second of the small input files that
the arguments name. Times, names of temporary files and ids of the run are not part of it.
"""

from __future__ import annotations

import os
import re
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.models.command import Command, RunContext

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

#: How much of a fingerprint says what is done; the rest says with which contents.
ACTION_CHARS = 40
_INPUT_CHARS = 24
#: A larger file is told by its size and time; more files than that are not looked at.
_SMALL_BYTES = 64 * 1024
_MOST_FILES = 8
_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T _]?\d\d[:.-]?\d\d(?:[:.-]?\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d{2}:\d{2}:\d{2}(?:[.,]\d+)?"
    r"|\b1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?\b"  # seconds since 1970, or parts of them
    r"|/tmp/[\w./-]*"
    r"|\btmp\.?[A-Za-z0-9_]{6,}"
)
_WORDS = re.compile(r"""[^\s'"`;|&<>()=]+""")
_TARGETS = re.compile(r">>?\s*([^\s'\"`;|&<>()]+)")


def fingerprint(command: Command, context: RunContext, cwd: str) -> str:
    """64 hexadecimal digits. Takes some ten microseconds, and less than 0.2 ms with small files."""
    text = command.text or "\0".join("\1".join(stage) for stage in command.stages)
    kind = command.capability or ("stages" if command.stages else "command")
    said = _VOLATILE.sub("~", _without_ids(text, context))
    if command.stdin is not None:
        said += "\2" + _digest(command.stdin, 32)
    action = _digest(f"{kind}\0{said.strip()}\0{_under(cwd, context)}".encode(errors="replace"), 40)
    return action + _digest(_inputs(text, context, cwd), _INPUT_CHARS)


def action_of(found: str) -> str:
    """The part of a fingerprint that says what is done."""
    return found[:ACTION_CHARS]


def _digest(data: bytes, chars: int) -> str:
    digest: str = blake2b(data, digest_size=chars // 2).hexdigest()
    return digest


def _without_ids(text: str, context: RunContext) -> str:
    for name in (context.workspace, context.run_id, context.instance_id):
        if name and len(name) > 3:
            text = text.replace(name, "@")
    return text


def _under(cwd: str, context: RunContext) -> str:
    return cwd.removeprefix(context.workspace) if context.workspace else cwd


def _inputs(text: str, context: RunContext, cwd: str) -> bytes:
    """What the named files of the workspace hold. What the action writes into is no input."""
    if not context.workspace:
        return b""
    targets = set(_TARGETS.findall(text))
    found: list[bytes] = []
    for word in dict.fromkeys(_WORDS.findall(text)):
        if word not in targets and not word.startswith("-") and len(found) < _MOST_FILES:
            path = os.path.join(cwd, word)
            if path.startswith(f"{context.workspace}/") and ".." not in word:
                seen = _file(path)
                if seen:
                    found.append(word.encode(errors="replace") + b"\0" + seen)
    return b"\1".join(found)


def _file(path: str) -> bytes:
    """A regular file, told by its content or, when it is large, by size and time; else empty."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if status.st_size > _SMALL_BYTES:
            return f"{status.st_size} {status.st_mtime_ns}".encode()
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return _digest(os.read(descriptor, _SMALL_BYTES), 64).encode()
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return b""
