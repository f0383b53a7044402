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

from loop.journal import Journal
from loop.kit import Kit
from loop.order import Order
from loop.session import Session
from loop.start import resume
from loop.values import Reading
from openry.config import load_config
from openry.llm import ScriptedModel
from openry.llm.cassette import Cassetted

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


class Reader:
    """Reads nothing: the workflow is given, and the planner is another."""

    def read(self, task, survey):
        return Reading(task, (), ())


def opener(calls: Path):
    """Opens the planner, whose every paid call leaves a line in `calls`."""

    def answer(request) -> str:
        step = re.search(r"blames step `(\w+)`", request.messages[-1].text)[1]
        with calls.open("a") as file:
            file.write(f"{step}\n")
        return json.dumps({"edits": [{"op": "to_shell", "step": step, "command": MENDS[step]}]})

    model = ScriptedModel([answer] * 50, name="openai/scripted")
    return lambda name, *, cassette=None, **rest: (
        model if cassette is None else Cassetted(model, cassette)
    )


class Mortal(Journal):
    """Kills the whole process at its `at`-th record, before or after it is on disk."""

    at, before, written = 0, True, 0

    def _write(self, name, *args, **values):
        kind = type(self)
        kind.written += 1
        if kind.written == kind.at and kind.before:
            os.kill(os.getpid(), signal.SIGKILL)
        getattr(super(), name)(*args, **values)
        if kind.written == kind.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def note(self, **values):
        self._write("note", **values)

    def attempt(self, attempt):
        self._write("attempt", attempt)

    def round(self, round_, **values):
        self._write("round", round_, **values)

    def judged(self, attempt, verdict, **values):
        self._write("judged", attempt, verdict, **values)

    def certified(self, number, gates, runs):
        self._write("certified", number, gates, runs)

    def end(self, state, **values):
        self._write("end", state, **values)


def main(home: str, folder: str, calls: str, at: str, when: str) -> int:
    Mortal.at, Mortal.before = int(at), when == "before"
    with Kit(load_config(Path(home), env={}), open_model=opener(Path(calls))) as kit:
        kit.__dict__["reader"] = Reader()
        journal = Mortal(kit.ledger, SESSION)
        if journal.history() is None:
            order = Order(
                TASK, folder, planner="openai/scripted", model="local/smollm2", accept=ACCEPT,
                source=SOURCE, name="six",
            )  # fmt: skip
            session = Session(kit, order, SESSION, emit=lambda *e: None, journal=journal)
        else:
            session = resume(kit, SESSION, emit=lambda *e: None)
            session.journal = journal
        finished = session.run()
    print(json.dumps({"records": Mortal.written, **finished.to_json()}))
    return finished.exit_status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
