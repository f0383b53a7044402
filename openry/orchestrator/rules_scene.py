"""What a rule may look at: the payload, files of the workspace, and a hand for commands.

Every read is bounded: regular files only, no way out of the readable folders, a limit in bytes
and, for regexes, in seconds.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from openry.errors import TemplateError
from openry.models import RunCommand
from openry.orchestrator.templates import render_command, render_text
from openry.texts import shortened

MAX_READ_BYTES = 64 * 1024 * 1024
MAX_GLOB_FILES = 100_000
REGEX_TIMEOUT_S = 1.0  #: of processor time
_SHOWN_CHARS = 200


class CannotEvaluate(Exception):  # noqa: N818 - a verdict on its way up, not a mistake of ours
    """A rule's question has no answer here; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule saw."""

    passed: bool
    expected: str = ""
    actual: str = ""
    message: str = ""
    vacuous: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """Where rules are evaluated.

    Attributes:
        readable: Folders beside the workspace that rules may read.
        run: Runs a command under the step's policy and sandbox; None where nothing can be run.
        query: Says whether a SELECT on the run's own views returns a row.
        fetch: Status of (method, url, timeout), through the sandbox's proxy.
        changed: Paths, relative to the workspace, that differ from the snapshot before the step.
        scope: What templates in paths and commands see; None means the payload alone.
    """

    workspace: Path
    payload: Mapping[str, Any]
    run: RunCommand | None = None
    readable: tuple[Path, ...] = ()
    query: Callable[[str], bool] | None = None
    fetch: Callable[[str, str, float], int] | None = None
    changed: Callable[[], Iterable[str]] | None = None
    scope: Mapping[str, Any] | None = None

    def fill(self, text: str) -> str:
        """`text` with `{{ … }}` and `${payload.K}` filled in."""
        return _rendered(lambda: render_text(text, self._scope, references=True))

    def command(self, text: str) -> tuple[str, dict[str, str]]:
        """A command line with its values handed over as variables."""
        return _rendered(lambda: render_command(text, self._scope))

    @property
    def _scope(self) -> Mapping[str, Any]:
        return self.scope if self.scope is not None else {"payload": self.payload}

    def path(self, name: str) -> Path:
        """The real path of `name`, which may not lead out of the readable folders."""
        if "\0" in name:
            raise CannotEvaluate("the path has a NUL in it")
        real = Path(os.path.realpath(self.workspace / name))
        roots = [Path(os.path.realpath(root)) for root in (self.workspace, *self.readable)]
        if not any(real.is_relative_to(root) for root in roots):
            raise CannotEvaluate(f"`{name}` leaves the workspace")
        return real

    def read(self, name: str, *, limit: int = MAX_READ_BYTES) -> str:
        """Text of a regular file. Bytes that are not UTF-8 survive as surrogates."""
        raw = self.read_bytes(name, limit=limit)
        return raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")

    def read_bytes(self, name: str, *, limit: int = MAX_READ_BYTES) -> bytes:
        real = self.path(name)
        try:
            # Non-blocking, so that a pipe put in the file's place cannot hang the rule.
            descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise CannotEvaluate(f"`{name}` is not a regular file")
                raw = stream.read(limit + 1)
        except FileNotFoundError:
            raise CannotEvaluate(f"`{name}` does not exist") from None
        except OSError as error:
            raise CannotEvaluate(f"`{name}`: {(error.strerror or str(error)).lower()}") from None
        if len(raw) > limit:
            raise CannotEvaluate(f"`{name}` is larger than {limit // 1024 // 1024} MiB")
        return raw

    def lines(self, name: str) -> list[str]:
        """Lines of a file without their ends; a final newline ends the last line."""
        return split_lines(self.read(name))

    def glob(self, pattern: str) -> list[str]:
        """Regular files of the workspace that match, as sorted relative paths."""
        if pattern.startswith("/") or ".." in pattern.split("/"):
            raise CannotEvaluate(f"`{pattern}` leaves the workspace")
        root = Path(os.path.realpath(self.workspace))
        found: list[str] = []
        try:
            for count, path in enumerate(root.glob(pattern.removeprefix("./"))):
                if count >= MAX_GLOB_FILES:
                    raise CannotEvaluate(f"`{pattern}` matches more than {MAX_GLOB_FILES} paths")
                relative = path.relative_to(root)
                inside = Path(os.path.realpath(path)).is_relative_to(root)
                if inside and path.is_file() and relative.parts[:1] != (".openry",):
                    found.append(relative.as_posix())
        except (ValueError, NotImplementedError, OSError) as error:
            raise CannotEvaluate(f"bad glob `{pattern}`: {error}") from None
        return sorted(found)

    def value(self, key: str) -> Any:
        """The payload's value at a dotted key. A literal key of that name wins."""
        found = look_up(self.payload, key)
        if found is MISSING:
            raise CannotEvaluate(f"the payload has no `{key}`{_near(self.payload, key)}")
        return found


_T = TypeVar("_T")


def _rendered(render: Callable[[], _T]) -> _T:
    try:
        return render()
    except TemplateError as error:
        raise CannotEvaluate(str(error)) from None


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


def look_up(data: Any, key: str) -> Any:
    """The value at `key`, `MISSING` when there is none.

    >>> look_up({"a": {"b": [5]}, "a.b": {"0": 7}}, "a.b.0")
    7
    >>> look_up({"a": {"b": [5]}}, "a.b.0")
    5
    """
    if isinstance(data, Mapping):
        if key in data:
            return data[key]
        parts = key.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            head = ".".join(parts[:cut])
            if head in data:
                found = look_up(data[head], ".".join(parts[cut:]))
                if found is not MISSING:
                    return found
    elif isinstance(data, list | tuple):
        head, _, rest = key.partition(".")
        if head.isascii() and head.isdigit() and int(head) < len(data):
            item = data[int(head)]
            return look_up(item, rest) if rest else item
    return MISSING


def _near(payload: Mapping[str, Any], key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, [str(name) for name in payload], 1, 0.6)
    if near:
        return f" (it has `{near[0]}`)"
    names = ", ".join(f"`{name}`" for name in list(payload)[:6])
    return f" (it has {names})" if names else " (it is empty)"


def split_lines(text: str) -> list[str]:
    """Lines without their ends; the last one's newline may be missing, also that of `\\r\\n`.

    >>> split_lines("a\\r\\n\\r"), split_lines("")
    (['a', ''], [])
    """
    text += "\n" if text.endswith("\r") else ""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def search(pattern: str, text: str, *, deadline: float | None = None) -> bool:
    """Whether `pattern` is found in `text`, within a bounded time."""
    import regex  # type: ignore[import-untyped]  # 10 ms, for who has a pattern

    left = REGEX_TIMEOUT_S if deadline is None else deadline - time.monotonic()
    try:
        if left <= 0:
            raise TimeoutError
        return regex.search(pattern, text, timeout=left) is not None
    except TimeoutError:
        raise CannotEvaluate(f"regex `{shown(pattern)}` took too long") from None
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise CannotEvaluate(f"bad regex `{shown(pattern)}`: {error}") from None


def line_test(pattern: str | None, contains: str | None) -> Callable[[str], bool]:
    """A test of one line; all calls together stay within the bound on time."""
    if pattern is None:
        return lambda line: (contains or "") in line
    deadline = time.monotonic() + REGEX_TIMEOUT_S
    return lambda line: search(pattern, line, deadline=deadline)


def shown(value: Any) -> str:
    """A value for a message: JSON for data, bounded, on one line."""
    text = value if isinstance(value, str) else as_json(value)
    text = text[: _SHOWN_CHARS * 2].encode("utf-8", "replace").decode()
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return shortened(text, _SHOWN_CHARS)


def as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
