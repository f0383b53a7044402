"""`openry log`: what was asked of the hand, and what came of it."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import islice

from openry.cli.moments import time_since
from openry.cli.output import write, write_json
from openry.cli.parser import Parser
from openry.config import Config, load_config, make_home
from openry.errors import NotFoundError, StorageError, UsageError
from openry.ledger.commands import CommandRecord, find, newest_names
from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.ledger.journal import Transaction
from openry.ledger.place import sqlite_path
from openry.ledger.search import search
from openry.texts import did_you_mean, one_line

_EPILOG = (
    "`openry log --changes STEP` says what a step changed; `openry log export [FILE]` writes all"
    " rows as JSON lines; `openry log verify [--anchor HASH]` says whether the ledger is what was"
    " written."
)
_TOLD_EVERY = 50_000


def main(words: Sequence[str]) -> int:
    if words[:1] == ["verify"]:
        from openry.cli import verify

        return verify.main(words[1:])
    if words[:1] == ["export"] or any(word.startswith("--changes") for word in words):
        from openry.cli import changes

        return (changes.export_rows if words[0] == "export" else changes.main)(words)
    parser = Parser("openry log", description=__doc__, epilog=_EPILOG)
    parser.add_argument("--run", default="", metavar="ID", help="of one run")
    parser.add_argument("--step", default="", metavar="ID", help="of one step")
    parser.add_argument("--fingerprint", default="", metavar="F", help="the same action")
    parser.add_argument("--failed", action="store_true", help="only what ended badly")
    parser.add_argument(
        "--since", default="", metavar="1h", help="at most this old: 30s 5m 1h 2d 1w, or a date"
    )
    parser.add_argument("--grep", default="", metavar="RE", help="command or output has RE")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="the last N (100)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(words)
    wanted = _expression(given.grep)
    since = time_since(given.since) if given.since else ""
    if given.limit < 1:
        raise UsageError(f"--limit must be at least 1, got `{given.limit}`")
    config = load_config()
    make_home(config)
    _recover(config)
    with Ledger(config.ledger) as ledger, ledger.read() as connection:
        found = _fitting(connection, given, since, wanted, sqlite_path(config.ledger))
        records = tuple(islice(found, given.limit))[::-1]
        if not records:
            _explain(connection, given)
    if given.json:
        write_json([asdict(record) for record in records])
    else:
        write("".join(map(_line, records)) or _nothing(given))
    return 0


def _recover(config: Config) -> None:
    """What was started by a process that is gone is shown as lost, where that can be written."""
    if sqlite_path(config.ledger) is not None:
        with suppress(StorageError), FastLedger(config.ledger) as ledger:
            ledger.recover_lost()


def _fitting(
    connection: Transaction,
    given: Namespace,
    since: str,
    wanted: re.Pattern[str],
    ledger: str | None,
) -> Iterator[CommandRecord]:
    """Every command to which all that is given applies, the newest first."""
    about = {
        "run_id": given.run,
        "step_id": given.step,
        "fingerprint": given.fingerprint,
        "since": since,
        "failed": given.failed,
    }
    if given.grep:
        return search(connection, wanted, ledger=ledger, progress=_progress, **about)
    return iter(find(connection, **about, limit=given.limit)[::-1])


def _progress(seen: int) -> None:
    """Who searches long is told that it goes on."""
    if seen % _TOLD_EVERY == 0:
        sys.stderr.write(f"openry: {seen:,} rows looked through\n")


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"--grep `{text}` is no regular expression: {error}") from error


def _explain(connection: Transaction, given: Namespace) -> None:
    """Name a run or step that asked for nothing because there is none of that name.

    Raises:
        NotFoundError: That is so.
    """
    for word, column, name in (("run", "run_id", given.run), ("step", "step_id", given.step)):
        if not name or find(connection, **{column: name}, limit=1):
            continue
        known = newest_names(connection, column)
        last = f"the last ones are {', '.join(known[:5])}" if known else ""
        hint = did_you_mean(name, known, 0.5) or last or "nothing was asked of the hand yet"
        raise NotFoundError(f"no command of a {word} `{name}` is in the ledger ({hint})")


def _nothing(given: Namespace) -> str:
    asked = given.failed or given.since or given.grep or given.run or given.step
    return "nothing fits\n" if asked else "nothing was asked of the hand yet\n"


def _line(record: CommandRecord) -> str:
    code = "-" if record.exit_code is None else str(record.exit_code)
    took = "" if record.duration_ms is None else f"{record.duration_ms} ms"
    whose = f"{record.step_id or record.run_id}#{record.seq}"
    short = one_line(record.command, 100)
    return f"{record.started_at}  {whose:<14} {record.ending:<11} {code:>3} {took:>9}  {short}\n"
