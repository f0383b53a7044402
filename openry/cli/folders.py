"""Folders that a person names."""

from __future__ import annotations

import os

from openry.errors import UsageError


def check_folder(folder: str | os.PathLike[str], option: str) -> None:
    """Say what is wrong with a folder that must be there.

    Args:
        option: What it is given with, e.g. `--cwd`.

    Raises:
        UsageError: It is not there, or is a file.
    """
    if os.path.isdir(folder):
        return
    named = os.fspath(folder)
    if os.path.exists(folder):
        raise UsageError(f"`{named}` is a file, not a folder; name a folder with {option}")
    raise UsageError(f"folder `{named}` does not exist; name one that does with {option}")
