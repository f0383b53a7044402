"""`openry mcp`: the hand for an agent that speaks the Model Context Protocol, over stdio."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from openry.cli.desk import add_desk_options, open_desk
from openry.cli.parser import Parser
from openry.errors import UsageError


def main(words: Sequence[str]) -> int:
    parser = Parser("openry mcp", description=__doc__)
    add_desk_options(parser)
    parser.add_argument("--no-shell", action="store_true", help="offer the tools alone")
    given = parser.parse_args(words)
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("standard input or output is closed; a client speaks to it over both")
    desk = open_desk(given)

    import anyio

    from openry.service.mcp import serve

    try:
        anyio.run(lambda: serve(desk, shell=not given.no_shell))
    except KeyboardInterrupt:
        return 130
    return 0
