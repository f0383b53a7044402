"""`openry blackboard`: texts by name that the steps of all sessions of a ledger share."""

from __future__ import annotations

from collections.abc import Sequence

from openry.cli.parser import Parser
from openry.config import load_config, make_home
from openry.errors import StorageError, UsageError
from openry.session.blackboard import COMMON, Blackboard, folder_of, is_name, run

_FORMS = {
    "list": "the names of what stands there",
    "get": "NAME [ELSE]: the text; ELSE where there is none",
    "put": "NAME TEXT|-: put a text there, - reads it from standard input",
    "append": "NAME TEXT|-: add a line",
    "add": "NAME [NUMBER]: add to a number (1), and say what it is now",
    "remove": "NAME",
}


def main(words: Sequence[str]) -> int:
    parser = Parser("openry blackboard", description=__doc__)
    parser.add_argument(
        "form", choices=tuple(_FORMS), help="; ".join(map(": ".join, _FORMS.items()))
    )
    parser.add_argument("words", nargs="*", metavar="NAME", help="what it is about")
    parser.add_argument("--board", default=COMMON, help="which one a step names; else `common`")
    given = parser.parse_args(words)
    if not is_name(given.board):
        raise UsageError(f"`{given.board}` cannot be a blackboard's name")
    config = load_config()
    make_home(config)
    try:
        board = Blackboard(folder_of(config, given.board))
        return run(board, [given.form, *given.words], "openry blackboard")
    except OSError as error:
        raise StorageError(f"the blackboard: {error.strerror}") from error
