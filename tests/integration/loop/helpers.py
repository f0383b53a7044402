"""What the tests of sessions share: files, orders, kits, scripted models, a journal that dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from loop.journal import Journal
from loop.kit import Kit
from loop.order import Order
from loop.values import Reading
from openry.config import load_config
from openry.llm import ScriptedModel
from openry.llm.cassette import Cassetted

#: Nothing reads this; only what a person states can judge it.
ODD = "Say how app.log went, in a few words of your own, in count.txt"
TWO = "Save the amount column of sales.csv to amounts.txt and count the ERROR lines into count.txt"
#: Carries out TWO but for a mistake in each step.
FAULTY = """\
# Every Monday.
name: two-faults
sub_steps:
  # the figures
  - id: pick
    kind: capability
    capability: csv_column
    args:
      path: sales.csv
      column: amuont
      output: amounts.txt
    validation:
      - type: file_exists
        path: amounts.txt

  - id: count
    kind: shell
    command: grep -c ERROR ap.log > count.txt
"""


def fill(made: Path) -> Path:
    """A log, a table, some names."""
    made.mkdir(parents=True)
    (made / "app.log").write_text("09:00 INFO start\n09:01 ERROR disk\n09:02 ERROR net\n")
    (made / "sales.csv").write_text("region,amount\nnorth,10\nsouth,9\nwest,200\n")
    (made / "names.txt").write_text("bob\nal\ncy\n")
    return made


def tree(folder: Path) -> dict[str, str]:
    """Everything below a folder, for comparison."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def order_for(folder: Path, task: str, **values: Any) -> Order:
    """An order for a folder, with the embedded model for all that is not said otherwise."""
    local = {"planner": "local/smollm2", "model": "local/smollm2"}
    return Order(task, str(folder), **{**local, **values})


class Scripts:
    """Opens scripted models, each behind the session's own cassette, and counts their calls."""

    def __init__(self, replies=()) -> None:
        self.model = ScriptedModel(replies, name="openai/scripted")

    def __call__(self, name, *, cassette=None, **rest):
        return self.model if cassette is None else Cassetted(self.model, cassette)

    @property
    def calls(self) -> int:
        return len(self.model.requests)


class NoReader:
    """Reads nothing: the workflow is given, or the planner drafts it."""

    def read(self, task, survey):
        return Reading(task, (), ())


def kit_in(home: Path, reader=None, scripts: Scripts | None = None) -> Kit:
    """A kit whose reader is loaded already, or reads nothing; its models may be scripted."""
    config = load_config(home, env={})
    kit = Kit(config, open_model=scripts) if scripts else Kit(config)
    kit.reader = reader or NoReader()
    return kit


class Mortal(Journal):
    """A journal that calls `die` at its `at`-th record, before or after that is on disk.

    It counts on the class: a session that begins makes another journal of the same one.
    """

    at, before, written = 0, True, 0
    die: Callable[[], None]

    def _write(self, name, *args, **values):
        kind = type(self)
        kind.written += 1
        if kind.written == kind.at and kind.before:
            kind.die()
        getattr(super(), name)(*args, **values)
        if kind.written == kind.at:
            kind.die()

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


def mortal(at: int, *, before: bool, die: Callable[[], None]) -> type[Mortal]:
    """A kind of journal that dies at one record; 0 is none of them."""
    return type("MortalAt", (Mortal,), {"at": at, "before": before, "die": staticmethod(die)})
