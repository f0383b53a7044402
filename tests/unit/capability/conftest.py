"""Calls the tools' functions in this process: what a child runs, without its start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openry.capability import complete, load_registry
from openry.capability.builtin.runner import load, replace_file

Call = Callable[..., bytes]


@pytest.fixture(scope="session")
def call(tmp_path_factory: pytest.TempPathFactory) -> Call:
    """`call("tool", content, **arguments)`: the result on a file of that content, named `path`."""
    registry = load_registry()
    folder = tmp_path_factory.mktemp("files")

    def call(name: str, content: bytes | None = None, **arguments: Any) -> bytes:
        tool = registry.get(name)
        if content is not None:
            (folder / "input").write_bytes(content)
            arguments = {"path": str(folder / "input")} | arguments
        for key in ("other", "second"):
            if isinstance(arguments.get(key), bytes):
                (folder / key).write_bytes(arguments[key])
                arguments[key] = str(folder / key)
        function = load(tool.python or "")
        result = function(**complete(tool, arguments))
        return result if isinstance(result, bytes) else b"".join(result or ())

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes], str]:
    def write(name: str, content: bytes) -> str:
        replace_file(str(tmp_path / name), [content])
        return str(tmp_path / name)

    return write
