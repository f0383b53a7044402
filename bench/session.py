"""Snapshots beside a shadow repository of git; a million rows of a ledger asked and verified."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import Case, Row
from openry.forwarder.fingerprint import fingerprint
from openry.ledger.chain import ENDED_COLUMNS, STARTED_COLUMNS, link
from openry.ledger.commands import find
from openry.ledger.db import Ledger
from openry.ledger.search import search
from openry.ledger.verify import verify
from openry.ledger.words import Words
from openry.models import Command, RunContext
from openry.session.snapshot import SnapshotStore

ROWS = 1_000_000
FILES, BYTES = 5000, 41_000_000
_GIT = ("git", "-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0")


def snapshots(place: Path) -> list[Row]:
    """First, unchanged, three files changed, and back again; the best of three for each."""
    found: dict[str, list[tuple[float, float]]] = {}
    for number in range(3):
        here = place / f"{number}"
        for what, ours, theirs in _round(here):
            found.setdefault(what, []).append((ours, theirs))
        shutil.rmtree(here)
    targets = {"first": 1000, "unchanged": 80, "three files changed": 100, "rolled back": 1000}
    rows = []
    for what, pairs in found.items():
        ours, theirs = (min(pair[side] for pair in pairs) for side in (0, 1))
        most = targets[what]
        said = (f"<= {most} ms", ours <= most)
        rows.append(Row(f"{FILES:,} files, 41 MB: {what}", ours, "ms", "shadow git", theirs, *said))
    return rows


def _round(place: Path) -> list[tuple[str, float, float]]:
    tree = place / "tree"
    _grow(tree)
    store = SnapshotStore(place / "store")
    env = {"PATH": os.environ["PATH"], "GIT_DIR": str(place / "git"), "GIT_WORK_TREE": str(tree)}

    def git(*words: str) -> None:
        subprocess.run((*_GIT, *words), env=env, cwd=tree, check=True, capture_output=True)

    def commit() -> None:
        git("add", "-A")
        git("commit", "-q", "--allow-empty", "-m", "s")

    git("init", "-q")
    time.sleep(0.1)  # what was written this very moment is read once more, by both
    rows = []
    kept: list[str] = []

    def create() -> None:
        kept.append(store.create(tree).id)

    rows.append(("first", _ms(create), _ms(commit)))
    rows.append(("unchanged", _ms(create), _ms(commit)))
    for number in range(3):
        (tree / f"{number}" / "0").write_text(f"changed {number}")
    rows.append(("three files changed", _ms(create), _ms(commit)))
    ours = _ms(lambda: store.restore(kept[0], tree))
    rows.append(("rolled back", ours, _ms(lambda: git("checkout", "-f", "HEAD~2", "--", "."))))
    return rows


def _ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _grow(tree: Path) -> None:
    """Text files of many sizes in fifty folders; the same ones each time."""
    dice = random.Random(5)  # noqa: S311 - nobody's secret
    words = [dice.randbytes(3).hex() for _ in range(4000)]
    for number in range(FILES):
        folder = tree / str(number % 50)
        folder.mkdir(parents=True, exist_ok=True)
        size = min(200_000, int(dice.expovariate(FILES / BYTES)) + 1)
        text = " ".join(dice.choices(words, k=size // 7 + 1))
        (folder / str(number // 50)).write_text(text[:size])


def ledger_rows(place: Path) -> list[Row]:
    """A million commands: one run's, a text, all hashes. The index is made beforehand."""
    path = place / "openry.db"
    Ledger(path).close()
    _fill(path)
    with Ledger(path) as ledger, ledger.read() as connection:
        with Words(str(path)) as words:
            indexing = _ms(lambda: words.add(connection, most=ROWS))
        find(connection, run_id="run 1")
        run = median(_ms(partial(find, connection, run_id=f"run {n}")) for n in range(500, 520))
        texts = ("app123456.log", "654321 lines", "no such text at all")
        grep = max(_ms(partial(_grep, connection, text, str(path))) for text in texts)
        began, spent = time.perf_counter(), sum(os.times()[:4])
        found = verify(connection)
        rate = found.rows / (time.perf_counter() - began)
        cost_us = (sum(os.times()[:4]) - spent) / found.rows * 1e6
    assert found.ok, found.problems
    return [
        Row("1,000,000 rows: --run", run, "ms", target="<= 50 ms", met=run <= 50),
        Row("1,000,000 rows: --grep, the slowest", grep, "ms", target="<= 1 s", met=grep <= 1000),
        Row("1,000,000 rows: the index, once", indexing / 1000, "s"),
        Row("log verify", rate, "rows/s", target=">= 200,000", met=rate >= 200_000),
        Row("log verify, processor time of all its processes", cost_us, "us"),
    ]


def _grep(connection: Any, text: str, ledger: str) -> None:
    list(islice(search(connection, re.compile(text), ledger=ledger), 100))


def _fill(path: Path) -> None:
    """Commands in runs of fifty, as the hand writes them."""
    names = (*STARTED_COLUMNS, "started_hash", "timestamp", *ENDED_COLUMNS, "ended_hash")
    marks = ", ".join("?" for _ in names)
    insert = f"INSERT INTO commands_log ({', '.join(names)}) VALUES ({marks})"  # noqa: S608
    with sqlite3.connect(path) as ledger:
        ledger.execute("PRAGMA synchronous = OFF")
        ledger.executemany(insert, _rows())


def _rows() -> Iterator[tuple[Any, ...]]:
    at, before = "2026-03-01T09:00:00.000Z", ""
    for number in range(ROWS):
        run, seq = divmod(number, 50)
        before = before if seq else ""
        whose = (f"run {run}", "w", "step", f"instance {run // 10}")
        asked = (f"grep -c ERROR logs/app{number}.log", "", "/bin/sh", "/home/ann/in", "allow", "")
        begun = (*whose, *asked, at, 4242, "boot/ns/1", "host", seq + 1)
        before = link(before, *begun)
        over = ("exited", 0, f"{number} lines found\n", "", "", 20, 0, "", "", "", 12, at)
        yield (*begun, before, at, *over, link(before, *over))


def fingerprints(place: Path) -> list[Row]:
    """What one costs, with a small input file among the arguments."""
    (place / "a.log").write_text("x" * 4000)
    about = RunContext(run_id="r" * 12, instance_id="i" * 12, workspace=str(place))
    command = Command("grep -c ERROR a.log | sort > out.txt")
    cost = median(_ms(lambda: fingerprint(command, about, str(place))) for _ in range(2000))
    return [Row("a fingerprint", cost, "ms", target="<= 0.2 ms", met=cost <= 0.2)]


CASES: dict[str, Case] = {
    "snapshots": snapshots,
    "ledger_rows": ledger_rows,
    "fingerprints": fingerprints,
}
