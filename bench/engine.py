"""What the orchestrator costs: gaps between steps, steps a second, history, standing by."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from bench.measure import BIN, Row, environment, in_turns, middle, run, timed
from openry.config import load_config
from openry.ledger.db import Ledger
from openry.ledger.schema import task_state, workflow_instances
from openry.orchestrator.engine import Engine

HISTORY = int(os.environ.get("OPENRY_BENCH_HISTORY", "1000000"))
_PART = 20_000
IDLE_S = 20.0


def _workflow(place: Path, name: str, steps: int) -> None:
    lines = [f"name: {name}", "workspace: shared", "sandbox: none", "sub_steps:"]
    lines += [f"  - {{id: s{number}, kind: shell, command: 'true'}}" for number in range(steps)]
    (place / f"{name}.yaml").write_text("\n".join(lines) + "\n")


def _times(place: Path) -> list[tuple[str, datetime, datetime]]:
    with sqlite3.connect(place / "home" / "openry.db") as ledger:
        query = "SELECT instance_id, started_at, ended_at FROM commands_log ORDER BY id"
        return [
            (instance, datetime.fromisoformat(began), datetime.fromisoformat(ended))
            for instance, began, ended in ledger.execute(query)
        ]


def long_chain(place: Path, steps: int = 1000) -> list[Row]:
    """Tiny shell steps one after another: claim, run, validate, route, ledger with full sync."""
    _workflow(place, "chain", steps)
    start = (str(BIN / "openry-orchestrator"), "start", "./chain.yaml", "--wait", "--json")
    spent = run(start, cwd=place, env=environment(place))
    times = _times(place)
    assert len(times) == steps, f"{len(times)} of {steps} steps ran"
    gaps = [(b[1] - a[2]).total_seconds() * 1000 for a, b in pairwise(times)]
    wall_s = (times[-1][2] - times[0][1]).total_seconds()
    bare = timed(lambda: subprocess.run(("sh", "-c", "true"), cwd=place, check=True))
    loop = sum(bare() for _ in range(200)) / 200
    peer = "sh -c true in a bare loop"
    return [
        Row(f"{steps} steps in a chain: median gap", round(median(gaps), 2), "ms"),
        Row(f"{steps} steps in a chain: steps a second", round(steps / wall_s, 1), "/s"),
        Row("the same: each", round(wall_s * 1000 / steps, 2), "ms", peer, round(loop, 2)),
        Row("the same: CPU per step", round(spent.cpu_ms / steps, 2), "ms"),
        Row("the same: peak memory", round(spent.peak_mib), "MiB"),
    ]


def many_instances(place: Path, instances: int = 100, steps: int = 10) -> list[Row]:
    """Many instances at once, eight slots, one process."""
    _workflow(place, "small", steps)
    env, program = environment(place), str(BIN / "openry-orchestrator")
    config = load_config(place / "home", env=env)
    (place / "home").mkdir(mode=0o700)
    from openry.orchestrator.loader import load

    with Engine(config) as engine:
        loaded = load(place / "small.yaml")
        for _ in range(instances):
            engine.submit(loaded, workspace=place)
    spent = run((program, "run", "--once", "--workers", "8"), cwd=place, env=env)
    times = _times(place)
    assert len(times) == instances * steps, f"{len(times)} steps ran"
    wall_s = (max(t[2] for t in times) - min(t[1] for t in times)).total_seconds()
    bare = timed(lambda: subprocess.run(("sh", "-c", "true"), cwd=place, check=True))
    loop = 1000 / (sum(bare() for _ in range(200)) / 200)
    what = f"{instances} instances x {steps} steps, 8 slots"
    rate = round(instances * steps / wall_s, 1)
    return [
        Row(f"{what}: steps a second", rate, "/s", "sh -c true in a bare loop", round(loop, 1)),
        Row(f"{what}: CPU per step", round(spent.cpu_ms / (instances * steps), 2), "ms"),
        Row(f"{what}: peak memory", round(spent.peak_mib), "MiB"),
    ]


def patrol_history(place: Path, history: int = HISTORY) -> list[Row]:
    """One scan over a ledger full of finished runs, beside one over an empty ledger."""
    engines = []
    for name in ("empty", "full"):
        home = place / name
        home.mkdir(mode=0o700)
        engines.append(Engine(load_config(home, env={})))
    empty, full = engines
    _fill(full.ledger, history)

    def scan(engine: Engine) -> float:
        return timed(lambda: engine.patrol.scan(None))()

    ours, theirs = in_turns(51, lambda: scan(full), lambda: scan(empty))
    for engine in engines:
        engine.close()
    mine, other = middle(ours), middle(theirs)
    what = f"patrol with {history:,} finished runs"
    return [Row(what, mine, "ms", "empty ledger", other, "<= 1.5 x", mine <= 1.5 * other)]


def _fill(ledger: Ledger, history: int) -> None:
    per_instance = 100
    for part in range(0, history, _PART):
        instances = range(part // per_instance, min(part + _PART, history) // per_instance)
        with ledger.write() as connection:
            connection.execute(workflow_instances.insert(), [_instance(n) for n in instances])
            connection.execute(
                task_state.insert(), [row for n in instances for row in _runs(n, per_instance)]
            )
    with ledger.write() as connection:
        connection.exec_driver_sql("ANALYZE")


def _instance(number: int) -> dict[str, object]:
    at = "2026-01-01T00:00:00.000Z"
    return {
        "instance_id": f"i{number}",
        "workflow": "w",
        "plan": "{}",
        "plan_hash": "",
        "state": "completed",
        "created_at": at,
        "ended_at": at,
    }


def _runs(number: int, count: int) -> Iterator[dict[str, object]]:
    for step in range(count):
        yield {
            "run_id": f"r{number}-{step}",
            "workflow_instance_id": f"i{number}",
            "step_id": f"s{step}",
            "status": "done",
            "settled": True,
            "created_at": "2026-01-01T00:00:00.000Z",
        }


def standing_by(place: Path) -> list[Row]:
    """`run` with nothing to do: processor time in a while, and memory."""
    program = str(BIN / "openry-orchestrator")
    waiting = subprocess.Popen((program, "run"), cwd=place, env=environment(place))
    try:
        until_it_works(place / "home" / "openry.db")
        before = cpu_s(waiting.pid)
        time.sleep(IDLE_S)
        used = cpu_s(waiting.pid) - before
        resident = _resident_mib(waiting.pid)
    finally:
        waiting.send_signal(signal.SIGTERM)
        waiting.wait(30)
    share = round(100 * used / IDLE_S, 2)
    return [
        Row("idle `run`: processor", share, "%", target="<= 1 %", met=share <= 1),
        Row("idle `run`: memory", round(resident), "MiB"),
    ]


def until_it_works(ledger: Path) -> None:
    """Until its row among the workers is there: what it costs to begin is not meant."""
    while True:
        time.sleep(0.5)
        with suppress(sqlite3.Error), closing(sqlite3.connect(ledger)) as connection:
            if connection.execute("SELECT 1 FROM workers").fetchone():
                return


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def start_one(place: Path) -> list[Row]:
    """`start` of a one-step workflow, from the command line to the shell again."""
    _workflow(place, "one", 1)
    start = (str(BIN / "openry-orchestrator"), "start", "./one.yaml")
    spent = [run(start, cwd=place, env=environment(place)) for _ in range(5)]
    wall = middle([each.wall_ms for each in spent]) / 1000
    code = "import sys, openry.orchestrator.cli; print('litellm' in sys.modules)"
    loaded = run((sys.executable, "-c", code), cwd=place, env=environment(place)).output.strip()
    shutil.rmtree(place / "home")
    return [
        Row("start of a one-step workflow", round(wall, 2), "s", target="<= 1 s", met=wall <= 1),
        Row(
            "litellm imported by it", float(loaded == "True"), "", target="0", met=loaded == "False"
        ),
    ]
