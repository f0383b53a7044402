"""Where the shipped data folders are: inside the wheel, else beside the source tree."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def data_root() -> Path:
    """The folder that holds `templates/`, `overflow_workflows/` and `workflows/`."""
    packed = Path(__file__).parent / "_data"
    return packed if packed.is_dir() else Path(__file__).parent.parent
