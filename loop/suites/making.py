"""What the tasks of a suite are made of, and the list of their kinds."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

#: A result file's content, a value that a JSON file holds, or figures by group of a table.
Wanted = str | list[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One instance: what is said, the folder, and what must be there at the end.

    `want` is empty where nothing that a tool does is right: then nothing may be delivered.
    """

    said: str
    files: Mapping[str, str]
    want: Mapping[str, Wanted]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of task: makes an instance of a seed."""

    name: str
    group: str
    make: Callable[[Random], Task]

    def instance(self, seed: int) -> Task:
        """The instance of a seed; the same on every machine."""
        return self.make(Random(f"{self.name} {seed}"))  # noqa: S311  no secret


KINDS: list[Kind] = []


def kind(group: str) -> Callable[[Callable[[Random], Task]], Callable[[Random], Task]]:
    """Puts a maker of tasks on the list."""

    def put(make: Callable[[Random], Task]) -> Callable[[Random], Task]:
        KINDS.append(Kind(make.__name__, group, make))
        return make

    return put


FIRST = (
    "Ada Ben Cleo Dan Eva Finn Gina Hugo Iris Jon Kara Leo Mia Ned Olga Paul Quin Rosa Sam Tess"
).split()
LAST = (
    "Archer Baker Cole Dunn Evans Frost Grant Hayes Irwin Jones Kline Lowe Mason North Owens Price "
    "Reed Stone Tate Voss"
).split()
CITIES = "Oslo Lima Turin Cork Bonn Nice Graz Kyoto".split()
FRUIT = "apple pear plum cherry mango grape lemon melon peach quince".split()
WORDS = (
    "the river runs under old stone bridge while quiet birds watch from trees near town market "
    "sells bread cheese honey warm soup every morning children walk to school along narrow "
    "streets and"
).split()
SALES = ["city", "product", "units", "price"]
STAFF = ["id", "name", "age", "dept"]


def lines(items: Iterable[Any]) -> str:
    """A text of one line for each."""
    return "".join(f"{item}\n" for item in items)


def sentence(r: Random, most: int = 6) -> str:
    return " ".join(r.choice(WORDS) for _ in range(r.randint(3, most)))


def names(r: Random, count: int) -> list[str]:
    """Different people, by first and last name."""
    pairs = zip(r.sample(FIRST, count), r.sample(LAST, count), strict=True)
    return [f"{first} {last}" for first, last in pairs]


def mix(r: Random, word: str, count: int = 9, other: str = "") -> list[str]:
    """Sentences of which at least two hold `word` and two do not; two more hold `other`."""
    found = [f"{sentence(r)} {word} {sentence(r, 4)}" for _ in range(r.randint(2, 4))]
    found += [sentence(r) for _ in range(count - 4)]
    found += [f"{sentence(r)} {other}" for _ in range(2)] if other else []
    r.shuffle(found)
    return found


_HAPPENED = (
    "user logged in",
    "disk almost full",
    "cache miss",
    "connection lost",
    "job finished",
    "retrying upload",
    "payment refused",
)


def stamped(
    r: Random,
    count: int,
    levels: Sequence[str] = ("INFO", "WARN", "ERROR", "DEBUG"),
    happened: Sequence[str] = _HAPPENED,
) -> list[str]:
    """Lines of a log of one morning, in their order."""
    at, found = r.randint(7 * 3600, 8 * 3600), []
    for _ in range(count):
        at += r.randint(300, 1500)
        clock = f"{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}"
        found.append(f"2026-04-12 {clock} {r.choice(levels)} {r.choice(happened)}")
    return found


def table(rows: Iterable[Sequence[Any]], head: Sequence[str]) -> str:
    """A CSV text with its heading."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


def sales(r: Random, count: int = 8) -> list[list[Any]]:
    """Rows for `SALES`."""
    return [
        [r.choice(CITIES[:4]), r.choice(FRUIT), r.randint(1, 99), r.randint(2, 400)]
        for _ in range(count)
    ]


def staff(r: Random, count: int = 8) -> list[list[Any]]:
    """Rows for `STAFF`, no two of the same age."""
    people, ages = names(r, count), r.sample(range(20, 64), count)
    departments = ["sales", "IT", "finance"]
    return [[i + 1, people[i], ages[i], r.choice(departments)] for i in range(count)]


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"
