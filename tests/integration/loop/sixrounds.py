"""A session of six rounds in a process of its own, which kills itself at a record if told to.

    python -m tests.integration.loop.sixrounds HOME FOLDER CALLS RECORD before|after

CALLS is a file that gets a line for each call of the model that was paid; RECORD 0 kills nothing.
Prints the number of records that were written.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

from loop.session import Session
from loop.start import resume
from tests.integration.loop.helpers import Scripts, kit_in, mortal, order_for

SESSION = "six"
#: Rounds 1 to 3 are mended by rule, 4 to 6 by the planner.
SOURCE = """\
# six mistakes
name: six
sub_steps:
  - id: amounts
    kind: capability
    capability: csv_column
    args: {path: sales.csv, column: amuont, output: amounts.txt}
  - id: count
    kind: shell
    command: grep -c ERROR ap.log > count.txt
  - id: order
    kind: shell
    command: srot names.txt > sorted.txt
  - id: words
    kind: shell
    command: wc --wrods < names.txt > words.txt
  - id: regions
    kind: shell
    command: cut -d, -f0 sales.csv > regions.txt
  - id: capitals
    kind: shell
    command: tr a-z < names.txt > capitals.txt
"""
MENDS = {
    "words": "wc -w < names.txt > words.txt",
    "regions": "cut -d, -f1 sales.csv > regions.txt",
    "capitals": "tr a-z A-Z < names.txt > capitals.txt",
}
ACCEPT = (
    {"type": "file_contains", "path": "amounts.txt", "contains": "200"},
    {"type": "file_contains", "path": "count.txt", "contains": "2"},
    {"type": "file_contains", "path": "capitals.txt", "contains": "BOB"},
)
TASK = "Amounts, count, order, words, regions and capitals, each into a file of its own"


def planner(calls: Path) -> Scripts:
    """The planner, whose every paid call leaves a line in `calls`."""

    def answer(request) -> str:
        step = re.search(r"blames step `(\w+)`", request.messages[-1].text)[1]
        with calls.open("a") as file:
            file.write(f"{step}\n")
        return json.dumps({"edits": [{"op": "to_shell", "step": step, "command": MENDS[step]}]})

    return Scripts([answer] * 50)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(home: str, folder: str, calls: str, at: str, when: str) -> int:
    kind = mortal(int(at), before=when == "before", die=die)
    with kit_in(Path(home), scripts=planner(Path(calls))) as kit:
        journal = kind(kit.ledger, SESSION)
        if journal.history() is None:
            order = order_for(
                Path(folder), TASK, planner="openai/scripted", accept=ACCEPT, source=SOURCE,
                name="six",
            )  # fmt: skip
            session = Session(kit, order, SESSION, emit=lambda *e: None, journal=journal)
        else:
            session = resume(kit, SESSION, emit=lambda *e: None)
            session.journal = journal
        finished = session.run()
    print(json.dumps({"records": kind.written, **finished.to_json()}))
    return finished.exit_status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
