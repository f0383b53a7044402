"""What is measured. Each case is given a scratch place and returns its rows."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from bench import beside, engine, hand, service, session
from bench.measure import BIN, Case, Row, environment, middle, run, timed
from bench.overflow import overflow
from bench.policy import decisions

SAMPLE = Path(__file__).parent.parent / "demo" / "files"


def chain(place: Path, steps: int = 200) -> list[Row]:
    """Tiny shell steps one after another, by the full path, beside a bare loop of the same."""
    env = environment(place)
    lines = ["name: chain", "workspace: shared", "sub_steps:"]
    lines += [f"  - {{id: s{number}, kind: shell, command: 'true'}}" for number in range(steps)]
    (place / "chain.yaml").write_text("\n".join(lines) + "\n")
    start = (str(BIN / "openry-orchestrator"), "start", "chain.yaml", "--wait", "--json")
    spent = run(start, cwd=place, env=env)
    with sqlite3.connect(place / "home" / "openry.db") as ledger:
        query = "SELECT started_at, ended_at FROM commands_log ORDER BY id"
        times = [tuple(map(datetime.fromisoformat, row)) for row in ledger.execute(query)]
    assert len(times) == steps, f"{len(times)} of {steps} steps ran"
    gaps = [(after[0] - before[1]).total_seconds() * 1000 for before, after in pairwise(times)]
    each = (times[-1][1] - times[0][0]).total_seconds() * 1000 / steps

    bare = timed(lambda: subprocess.run(("sh", "-c", "true"), cwd=place, check=True))
    peer = "sh -c true in a bare loop"
    loop = sum(bare() for _ in range(steps)) / steps
    return [
        Row(f"{steps} chained steps: gap", round(median(gaps), 2), "ms"),
        Row(f"{steps} chained steps: each", round(each, 2), "ms", peer, round(loop, 2)),
        Row(f"{steps} chained steps: whole command", round(spent.wall_ms / 1000, 2), "s"),
    ]


_LOADS = {
    "MiniLM (English)": "from openry.llm.embed import open_embedder as o; "
    "o('english').embed(['count the lines'])",
    "Universal Sentence Encoder (multilingual)": "from openry.llm.embed import open_embedder as o; "
    "o('multilingual').embed(['count the lines'])",
    "SmolLM2-135M": "from openry.llm import ChatRequest, user; "
    "from openry.llm.local import open_local; "
    "open_local('local/smollm2').complete(ChatRequest((user('Hi'),), max_tokens=1))",
}


def models(place: Path) -> list[Row]:
    """Each embedded model in a process of its own: from the start to the first answer."""
    env = environment(place)
    rows = []
    for name, code in _LOADS.items():
        spent = [run((sys.executable, "-c", code), cwd=place, env=env) for _ in range(3)]
        peak = round(max(s.peak_mib for s in spent))
        rows.append(Row(f"{name}: first answer", middle([s.wall_ms for s in spent]), "ms"))
        rows.append(Row(f"{name}: peak memory", peak, "MiB"))
    return rows


def task(place: Path) -> list[Row]:
    """A task of one goal with the embedded model: in a new home, and in one that was used."""
    env = environment(place)
    sentence = "Find the lines of app.log that contain ERROR and save them to errors.txt"
    rows = []
    for number, home in enumerate(("a new home", "a used home")):
        folder = place / f"files{number}"
        shutil.copytree(SAMPLE, folder)
        argv = (str(BIN / "openry-loop"), "new", sentence, "--dir", str(folder), "--yes", "-q")
        spent = run(argv, cwd=place, env=env)
        seconds, peak = round(spent.wall_ms / 1000, 2), round(spent.peak_mib)
        what = f"one-goal task, {home}"
        rows.append(Row(f"{what}: wall", seconds, "s", target="<= 20 s", met=seconds <= 20))
        met = peak <= 1.2 * 1024
        rows.append(Row(f"{what}: peak memory", peak, "MiB", target="<= 1.2 GiB", met=met))
    return rows


CASES: dict[str, Case] = {
    **hand.CASES,
    "chain": chain,
    "long_chain": engine.long_chain,
    "many_instances": engine.many_instances,
    "patrol_history": engine.patrol_history,
    "standing_by": engine.standing_by,
    "start_one": engine.start_one,
    "beside_engines": beside.beside_engines,
    "models": models,
    "task": task,
    "overflow": overflow,
    "policy": decisions,
    **session.CASES,
    **service.CASES,
}
