"""`python -m bench.ablation [SUITE]`: what each part of reading a task by likeness is worth.

Each row adds one part to the row above. The tasks are those of a suite with hidden results, by
default the everyday cases; prints a Markdown table with 95 % intervals (Wilson). The word-for-word
reader is off but for the last row.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.choosing import first_sentence, share, without_cues
from loop.bench import Case, first_difference, own_suite, read_suite
from loop.binding import WORK, Filled, Scene
from loop.choosing import Chooser
from loop.kit import Kit
from loop.mentions import find_mentions
from loop.reading import Reader
from loop.survey import survey
from loop.values import Candidate, Survey
from openry.capability import Example, Registry, ToolDefinition, invoke
from openry.config import load_config
from openry.errors import BadArgumentsError
from openry.forwarder import Hand
from openry.ledger.fast import FastLedger
from openry.models import RunContext
from openry.orchestrator.validation import check_rules, parse_rules

_EVERYDAY = Path(__file__).resolve().parents[2] / "shared" / "cases" / "everyday.jsonl"
#: Readings of one task that are run.
_TRIED = 12

#: What a reader makes of a task in a folder, likeliest first.
Read = Callable[[str, Survey], Sequence[Candidate]]


class _First(Reader):
    """Takes the likeliest tool alone, whether its arguments are told or not."""

    def _ways(self, scene: Scene) -> list[tuple[float, ToolDefinition, Filled, float]]:
        scores, names = self._chooser.scores([scene.asked])[0], self._chooser.names
        likeliest = names[int(scores.argmax())]
        return [way for way in super()._ways(scene) if way[1].name == likeliest]

    def _pairs_once(self, *_: Any) -> list[Any]:
        return []


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a task.

    Attributes:
        delivered: Whether there was a result.
        right: Whether it is as the hidden one.
        weak: Whether another reading gives another result that passes the person's rules too.
    """

    delivered: bool = False
    right: bool = False
    weak: bool = False


def by_likeness(reader: Reader) -> Read:
    """Likeness alone: nothing of what the second reader makes of the words."""

    def read(task: str, looked: Survey) -> Sequence[Candidate]:
        return reader._guessed(task, find_mentions(task, looked), looked, (), _TRIED)

    return read


def described(tool: ToolDefinition) -> ToolDefinition:
    """The tool with what it is described as for its only wording."""
    told = Example(request=first_sentence(tool), arguments={})
    return without_cues(tool).model_copy(update={"examples": [told]})


class Trial:
    """Runs readings of tasks, each in a folder of its own."""

    def __init__(self, registry: Registry, ledger: FastLedger, home: Path) -> None:
        self._registry, self._ledger = registry, ledger
        self._config = load_config(home, env={})

    def first(self, case: Case, read: Read) -> Found:
        """The likeliest reading, delivered as it comes."""
        with _folder(case) as folder:
            readings = read(case.task, survey(folder))
            if not readings or not self._run(readings[0], folder):
                return Found()
            return Found(delivered=True, right=not first_difference(case.expect, folder))

    def tested(self, case: Case, read: Read) -> Found:
        """The likeliest reading that the person's rules let pass, and what its rivals give."""
        with _folder(case) as folder:
            readings = read(case.task, survey(folder))
        passed: dict[tuple[str, ...], bool] = {}
        for reading in readings[:_TRIED]:
            with _folder(case) as folder:
                if self._run(reading, folder) and self._accepted(case, folder):
                    there = tuple(_text(folder / name) for name in case.expect)
                    passed.setdefault(there, not first_difference(case.expect, folder))
        if not passed:
            return Found()
        return Found(delivered=True, right=next(iter(passed.values())), weak=len(passed) > 1)

    def _run(self, reading: Candidate, folder: Path) -> bool:
        (folder / WORK).mkdir(exist_ok=True)
        hand = self._hand(folder)
        try:
            return all(
                invoke(self._registry.get(goal.tool), goal.args, hand.forward, folder).success
                for goal in reading.goals
            )
        except BadArgumentsError:
            return False

    def _accepted(self, case: Case, folder: Path) -> bool:
        rules, problems = parse_rules([*case.accept])
        assert not problems, (case.id, problems)
        run = self._hand(folder).forward
        found = check_rules(rules, workspace=folder, payload={}, run=run)
        return all(each.passed for each in found)

    def _hand(self, folder: Path) -> Hand:
        return Hand(self._ledger, RunContext(workspace=str(folder)), self._config)


@contextmanager
def _folder(case: Case) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="openry-ablation-") as place:
        for name, text in case.files.items():
            (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(place) / name).write_text(text, "utf-8")
        yield Path(place)


def _text(file: Path) -> str:
    return " ".join(file.read_text("utf-8", "replace").split()) if file.is_file() else ""


def table(cases: Sequence[Case], home: Path) -> Mapping[str, list[Found]]:
    """What came of each task, by strategy."""
    kit = Kit(load_config(home, env={}))
    tools = kit.registry.everyday()
    plain, learned = Chooser([*map(described, tools)]), Chooser(tools)
    likely = by_likeness(Reader(tools, lambda: learned))
    firsts = {
        "embeddings of descriptions alone": by_likeness(_First(tools, lambda: plain)),
        "+ example wordings and cues": by_likeness(_First(tools, lambda: learned)),
        "+ feasibility": likely,
    }
    whole = Reader(tools, lambda: learned)
    with FastLedger(home / "openry.db") as ledger:
        trial = Trial(kit.registry, ledger, home)
        found = {name: [trial.first(case, read) for case in cases] for name, read in firsts.items()}
        found["+ rival test"] = [trial.tested(case, likely) for case in cases]
        found["+ reading word for word"] = [
            trial.tested(case, lambda task, looked: whole.read(task, looked).candidates)
            for case in cases
        ]
    kit.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ablation", description=__doc__)
    parser.add_argument("suite", nargs="?", type=Path, default=_EVERYDAY, help="JSONL of tasks")
    given = parser.parse_args()
    cases = read_suite(given.suite) if given.suite.is_file() else own_suite()
    cases = tuple(case for case in cases if case.expect)
    with tempfile.TemporaryDirectory(prefix="openry-ablation-home-") as home:
        found = table(cases, Path(home))
    print(f"| {len(cases)} tasks | right | wrong | wrong, and not called weak | no result |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, all_of_it in found.items():
        wrong = [each for each in all_of_it if each.delivered and not each.right]
        unnoticed, none = (
            sum(not each.weak for each in wrong),
            sum(not e.delivered for e in all_of_it),
        )
        right = share([each.right for each in all_of_it])
        print(f"| {name} | {right} | {len(wrong)} | {unnoticed} | {none} |")


if __name__ == "__main__":
    main()
