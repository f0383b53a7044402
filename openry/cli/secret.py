"""`openry secret`: values that steps ask for by name, kept out of every answer, row and prompt."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from openry.cli.output import write, write_json, write_table
from openry.cli.parser import Parser
from openry.config import load_config
from openry.errors import UsageError
from openry.secretstore import SecretStore, check

_SAMPLE = "x" * 6


def main(words: Sequence[str]) -> int:
    parser = Parser("openry secret", description=__doc__)
    forms = parser.add_subparsers(dest="form", required=True)
    kept = forms.add_parser("set", help="keep a value, typed unseen or read from standard input")
    kept.add_argument("name", metavar="NAME")
    listed = forms.add_parser("list", help="the names, and where each is kept")
    listed.add_argument("--json", action="store_true", help="as JSON")
    removed = forms.add_parser("remove", help="forget one")
    removed.add_argument("name", metavar="NAME")
    given = parser.parse_args(words)
    store = SecretStore(load_config().home_dir)
    if given.form == "set":
        check(given.name, _SAMPLE)
        write(f"`{given.name}` is kept in the {store.set(given.name, _asked(given.name))}\n")
    elif given.form == "remove":
        store.remove(given.name)
        write(f"`{given.name}` is forgotten\n")
    elif given.json:
        write_json([{"name": name, "kept_in": place} for name, place in store.names().items()])
    else:
        write_table(store.names().items())
    return 0


def _asked(name: str) -> str:
    """The value: never an argument, which every process of this machine could read.

    Raises:
        UsageError: It is not text.
    """
    if sys.stdin.isatty():
        from getpass import getpass

        return getpass(f"value of {name} (not shown): ")
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise UsageError("a secret must be text in UTF-8; encode it, e.g. by base64") from error
