"""Runs one tool in a child process: arguments as JSON on standard input, result on standard output.

The result goes to a file instead when the call names one, written whole or not at all. Failures
are one line `error[CLASS]: message` on standard error and exit code 1, never a traceback.
"""

# Importing pathlib costs more than most calls take.
# ruff: noqa: PTH101, PTH103, PTH105, PTH108, PTH110, PTH112, PTH114, PTH116, PTH118

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable

from openry.capability.builtin.failure import ToolFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

_CLASSES = (
    (FileNotFoundError, "not_found"),
    (PermissionError, "permission"),
    (FileExistsError, "conflict"),
    ((IsADirectoryError, NotADirectoryError), "bad_arguments"),
    ((MemoryError, RecursionError), "resource"),
)
# As numbers, for `import errno` costs more.
_NO_SPACE = {27, 28, 122}  # EFBIG, ENOSPC, EDQUOT
_NO_NAME = {36, 40, 62, 63}  # ENAMETOOLONG and ELOOP, on Linux and elsewhere


def main(target: str) -> int:
    """Run `module:function`; the exit code."""
    try:
        request = json.loads(sys.stdin.buffer.read())
        function = load(target)
        _limit_memory(function)
        _run(function, request["args"], request.get("output") or "")
    except BrokenPipeError:
        return 141
    except ToolFailure as failure:
        return _fail(failure.error_class, str(failure))
    except OSError as error:
        return _fail(_class_of(error), _os_message(error))
    except (MemoryError, RecursionError):
        return _fail("resource", "the input is too large or too deeply nested for this tool")
    except Exception as error:
        return _fail("internal", f"{type(error).__name__}: {error}")
    return 0


def load(target: str) -> Callable[..., Any]:
    """The function that `module:function` or `/path/file.py:function` names."""
    place, _, name = target.rpartition(":")
    if place.endswith(".py"):
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location("openry_tool", place)
        if spec is None or spec.loader is None:
            raise ToolFailure("internal", f"cannot load `{place}`")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        __import__(place)
        module = sys.modules[place]
    function: Callable[..., Any] = getattr(module, name)
    return function


def _limit_memory(function: Callable[..., Any]) -> None:
    """Take at most the MEMORY_BYTES that the function's module names, if it names any."""
    most = getattr(function, "__globals__", {}).get("MEMORY_BYTES", 0)
    if not most:
        return
    import resource

    try:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (OSError, ValueError):
        return


def _run(function: Callable[..., Any], args: dict[str, Any], output: str) -> None:
    code = getattr(function, "__code__", None)
    if (
        output
        and code
        and "output" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    ):
        args = {**args, "output": output}
    result = function(**args)
    if result is None and not output:
        return
    pieces: Iterable[bytes] = () if result is None else result
    if isinstance(result, bytes):
        pieces = (result,)
    if output:
        replace_file(output, pieces)
    else:
        _write(sys.stdout.buffer, pieces)


def _write(file: BinaryIO, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        file.write(piece)
    file.flush()


def replace_file(path: str, pieces: Iterable[bytes]) -> None:
    """Write a file whole or not at all, with the folders above it; its mode stays."""
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        raise ToolFailure("bad_arguments", f"`{path}` is a folder; name a file")
    rest = iter(pieces)
    first = next(rest, b"")  # most failures show here, before anything is made
    if folder:
        os.makedirs(folder, exist_ok=True)
    start = os.fsdecode(os.fsencode(name)[:100])
    part = os.path.join(folder, f".{start}.{os.getpid()}.part")
    try:
        with open(part, "xb") as file:
            file.write(first)
            _write(file, rest)
        if os.path.exists(path):
            os.chmod(part, os.stat(path).st_mode & 0o7777)
        os.replace(part, os.path.realpath(path) if os.path.islink(path) else path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def _fail(error_class: str, message: str) -> int:
    sys.stderr.write(f"error[{error_class}]: {' '.join(message.split())}\n")
    return 1


def _class_of(error: OSError) -> str:
    if error.errno in _NO_SPACE:
        return "resource"
    if error.errno in _NO_NAME:
        return "bad_arguments"
    return next((name for kind, name in _CLASSES if isinstance(error, kind)), "internal")


def _os_message(error: OSError) -> str:
    what = (error.strerror or str(error)).lower()
    if isinstance(error, FileNotFoundError):
        what = "no such file"
    elif isinstance(error, IsADirectoryError):
        what = "is a folder; name a file"
    if not error.filename:
        return what
    shown = str(error.filename)
    return f"`{shown if len(shown) <= 200 else f'{shown[:100]}…'}`: {what}"
