"""The options that `openry mcp` and `openry serve` share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from openry.cli.folders import check_folder
from openry.errors import UsageError

if TYPE_CHECKING:
    from openry.service.desk import Desk

_NEEDED = ("fastapi", "mcp", "uvicorn")


def add_desk_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", type=Path, default=Path(), help="folder to work in (default: here)"
    )
    parser.add_argument(
        "--tools",
        action="append",
        metavar="PATTERN",
        help="offer these tools alone, such as `text.*` or `count_lines`; may be repeated",
    )
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help="hold every call to a command policy; may be repeated, all hold",
    )
    parser.add_argument(
        "--sandbox",
        choices=("auto", "bubblewrap", "landlock", "none"),
        default="none",
        help="what surrounds every command (default: none)",
    )


def open_desk(given: argparse.Namespace) -> Desk:
    """The desk that the options ask for.

    Raises:
        UsageError: The folder does not exist, or this install lacks what serving needs.
        NotFoundError: A pattern matches no tool.
        SandboxError: The sandbox cannot be built here.
    """
    from importlib.util import find_spec

    if not all(find_spec(name) for name in _NEEDED):
        raise UsageError("this install cannot serve; run: pip install 'openry[serve]'")
    from openry.cli.tools import registry
    from openry.config import load_config
    from openry.service.desk import Desk

    check_folder(given.dir, "--dir")
    tools = registry()
    if given.tools:
        tools = tools.narrowed(given.tools)
    return Desk(load_config(), tools, given.dir, policy=given.policy, backend=given.sandbox)
