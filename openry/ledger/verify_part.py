"""Some of a ledger's commands, their hashes made again: as a program of its own, one of several.

Imports nothing heavy: it is started once for each processor.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

from openry.ledger.chain import ENDED_COLUMNS, STARTED_COLUMNS, link

_BATCH = 2000
#: Where things stand in the rows that are read: this is a loop over a million of them.
_BEGUN = 3
_OVER = _BEGUN + len(STARTED_COLUMNS)
_COMMANDS = (
    f"SELECT id, started_hash, ended_hash, {', '.join((*STARTED_COLUMNS, *ENDED_COLUMNS))}"  # noqa: S608
    " FROM commands_log WHERE id > {0} AND id <= {0} ORDER BY id"
)
_BEFORE = (
    "SELECT started_hash FROM commands_log WHERE run_id = {0} AND seq < {0}"
    " ORDER BY seq DESC LIMIT 1"
)


@dataclass(slots=True)
class Part:
    """What was found in a part of the commands."""

    rows: int = 0
    unhashed: int = 0
    anchored: bool = False
    problems: list[tuple[int, str]] = field(default_factory=list)


def part_of(cursor: Any, mark: str, low: int, high: int, old: int, anchor: str) -> Part:
    """The commands with ids above `low`, up to `high`."""
    found, last = Part(), _Last(cursor.connection.cursor(), mark)
    cursor.execute(_COMMANDS.format(mark), (low, high))
    while batch := cursor.fetchmany(_BATCH):
        found.rows += len(batch)
        for row in batch:
            number, started, ended = row[:_BEGUN]
            run_id, seq, ending = row[_BEGUN], row[_OVER - 1], row[_OVER]
            if started != link(last.of(run_id, seq), *row[_BEGUN:_OVER]):
                if not started and number <= old:
                    found.unhashed += 1
                    continue
                what = "it was changed, or the command before it was changed or removed"
                found.problems.append((number, f"{what} (run {run_id}, #{seq})"))
            if ended != (link(started, *row[_OVER:]) if ending != "started" else ""):
                what = f"how it ended was changed (run {run_id}, #{seq})"
                found.problems.append((number, what))
            last[run_id] = started
            if anchor and anchor in (started, ended):
                found.anchored = True
    return found


class _Last(dict[str, str]):
    """The hash of the newest command of each run; looked up where another part has it."""

    def __init__(self, cursor: Any, mark: str) -> None:
        super().__init__()
        self._cursor = cursor
        self._query = _BEFORE.format(mark)

    def of(self, run_id: str, seq: int) -> str:
        known = self.get(run_id)
        if known is not None or seq == 1:
            return known or ""
        self._cursor.execute(self._query, (run_id, seq))
        row = self._cursor.fetchone()
        return row[0] if row else ""


def main(path: str, low: str, high: str, old: str, anchor: str) -> None:
    """Print what was found in a part of the ledger's file."""
    with closing(sqlite3.connect(path)) as connection:
        found = part_of(connection.cursor(), "?", int(low), int(high), int(old), anchor)
    json.dump(asdict(found), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
