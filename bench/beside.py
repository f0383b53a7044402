"""The orchestrator beside other engines, in the same minutes: Dagu, DBOS on SQLite, Prefect."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypeVar

from bench import peers
from bench.engine import IDLE_S, cpu_s, until_it_works
from bench.measure import BIN, Row, environment, middle, pss_mib, run, tree
from openry.config import load_config
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load

T = TypeVar("T")
_PROGRAM = str(BIN / "openry-orchestrator")
_SAMPLE_S = 0.05
#: How long the ledger lends a run to an engine that is heard no more: the default of `Times`.
_LEASE_S = 15.0


def beside_engines(place: Path) -> list[Row]:
    """200 chained steps, 50 instances of 20, memory, standing by, and coming back from a kill.

    Every step of every engine is `sh -c` of one `date`; so what is measured is the time from one
    step's command to the next one's.
    """
    found = [each for each in (peers.dagu(), peers.dbos(), peers.prefect()) if each is not None]
    return [
        *_chained(place, found),
        *_parallel(place, found),
        *_memory(place, found),
        *_idle(place),
        *_again(place),
        *_worker_killed(place),
    ]


def _chained(place: Path, found: Sequence[peers.Peer], steps: int = 200) -> list[Row]:
    ours = _gap(place / "ours", steps, _ours)
    rows = [Row(f"{steps} chained steps: from one to the next", ours[0], "ms")]
    rows.append(Row(f"{steps} chained steps: CPU per step", ours[1], "ms"))
    floor = _floor(place / "floor", steps)
    rows.append(Row("the same", ours[0], "ms", "a bare loop, two rows kept for each step", floor))
    limits = {"Dagu": 0.35, "DBOS on SQLite": 1.0}
    for peer in found:
        measured = _tried(peer, partial(_gap, place / peer.short, steps, peer))
        if measured is None:
            continue
        gap, cpu = measured
        limit = limits.get(peer.name)
        target = f"<= {limit} x" if limit else ""
        met = ours[0] <= limit * gap if limit else None
        rows.append(Row("the same", ours[0], "ms", peer.name, gap, target, met))
        limit = 0.6 if peer.name == "Dagu" else None
        target, met = ("<= 0.6 x", ours[1] <= 0.6 * cpu) if limit else ("", None)
        rows.append(Row("the same: CPU per step", ours[1], "ms", peer.name, cpu, target, met))
    return rows


def _tried(peer: peers.Peer, measure: Callable[[], T]) -> T | None:
    """What a peer took; None, and a line about it, when it could not do it here."""
    try:
        return measure()
    except (SystemExit, AssertionError) as error:
        print(f"  {peer.name} is left out: {str(error).splitlines()[0][:100]}")
        return None


def _ours_chain(place: Path, steps: int, does: str) -> Sequence[str]:
    lines = ["name: course", "workspace: shared", "sandbox: none", "command_policy: permissive"]
    lines += ["sub_steps:"]
    lines += [f"  - {{id: s{n}, kind: shell, command: '{does}'}}" for n in range(steps)]
    (place / "course.yaml").write_text("\n".join(lines) + "\n")
    return (_PROGRAM, "start", "./course.yaml", "--wait", "--json")


def _ours_many(place: Path, courses: int, steps: int, does: str) -> Sequence[str]:
    _ours_chain(place, steps, does)
    config = load_config(place / "home", env=environment(place))
    (place / "home").mkdir(mode=0o700)
    with Engine(config) as engine:
        loaded = load(place / "course.yaml")
        for _ in range(courses):
            engine.submit(loaded, workspace=place)
    return (_PROGRAM, "run", "--once", "--workers", "8")


_ours = peers.Peer("openry", {}, _ours_chain, _ours_many)


def _stamped(place: Path) -> list[int]:
    """When each step ran, in nanoseconds."""
    return sorted(map(int, (place / "times").read_text().split()))


def _prepared(place: Path, peer: peers.Peer) -> tuple[dict[str, str], str]:
    place.mkdir()
    more = {"DAGU_HOME": str(place / "dagu"), "PREFECT_HOME": str(place / "prefect")}
    return {**environment(place), **more, **peer.env}, peers.STAMP.format(times=place / "times")


def _gap(place: Path, steps: int, peer: peers.Peer) -> tuple[float, float]:
    """Median milliseconds from one step's command to the next one's, and processor time a step."""
    env, does = _prepared(place, peer)
    spent = run(_hushed(peer.chain(place, steps, does)), cwd=place, env=env)
    times = _stamped(place)
    assert len(times) == steps, f"{peer.name}: {len(times)} of {steps} steps ran"
    gap = median((after - before) / 1e6 for before, after in pairwise(times))
    return round(gap, 2), round(spent.cpu_ms / steps, 2)


def _floor(place: Path, steps: int) -> float:
    """The gap of who does nothing but start the command and wait for the disk before and after.

    No engine in Python that keeps what it promises can be faster on this machine.
    """
    place.mkdir()
    argv = ("sh", "-c", peers.STAMP.format(times=place / "times"))
    with closing(sqlite3.connect(place / "rows.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE rows (step, said)")
        for step in range(steps):
            db.execute("INSERT INTO rows VALUES (?, 'started')", (step,))
            subprocess.run(argv, check=True)
            db.execute("INSERT INTO rows VALUES (?, 'ended')", (step,))
    times = _stamped(place)
    return round(median((after - before) / 1e6 for before, after in pairwise(times)), 2)


def _parallel(
    place: Path, found: Sequence[peers.Peer], courses: int = 50, steps: int = 20
) -> list[Row]:
    what = f"{courses} instances x {steps} steps, 8 slots: steps a second"
    ours = _rate(place / "ours-many", courses, steps, _ours)
    loop = _loop_rate(place / "bare", courses * steps)
    rows = [Row(what, ours, "/s", "a bare loop, 8 threads", loop, ">= 0.35 x", ours >= 0.35 * loop)]
    limits = {"Dagu": 2.5, "DBOS on SQLite": 1.3, "Prefect": 6.0}
    for peer in found:
        folder = place / f"{peer.short}-many"
        theirs = _tried(peer, partial(_rate, folder, courses, steps, peer))
        if theirs is None:
            continue
        limit = limits[peer.name]
        met = ours >= limit * theirs
        rows.append(Row("the same", ours, "/s", peer.name, theirs, f">= {limit} x", met))
    return rows


def _rate(place: Path, courses: int, steps: int, peer: peers.Peer) -> float:
    """Steps a second from the first to the last; how long it took to begin does not count."""
    env, does = _prepared(place, peer)
    run(_hushed(peer.many(place, courses, steps, does)), cwd=place, env=env)
    times = _stamped(place)
    assert len(times) == courses * steps, f"{peer.name}: {len(times)} steps ran"
    return round(len(times) * 1e9 / (times[-1] - times[0]), 1)


def _loop_rate(place: Path, steps: int) -> float:
    place.mkdir()
    argv = ("sh", "-c", peers.STAMP.format(times=place / "times"))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: subprocess.run(argv, check=True), range(steps)))
    times = _stamped(place)
    return round(len(times) * 1e9 / (times[-1] - times[0]), 1)


def _again(place: Path) -> list[Row]:
    """Kill -9 while a step sleeps, then start once more: until that step's command runs again."""
    ours, theirs = [], []
    for turn in range(3):
        ours.append(_restart(place / f"again-{turn}", _ours, None))
        if (peer := peers.dbos()) is not None:
            theirs.append(_restart(place / f"dbos-again-{turn}", peer, peers.dbos_again))
    mine = middle(ours)
    if not theirs:
        return [Row("kill -9 and restart: the step runs again after", mine, "s")]
    other = middle(theirs)
    about = ("DBOS on SQLite", other, "<= 1.2 x", mine <= 1.2 * other)
    return [Row("kill -9 and restart: the step runs again after", mine, "s", *about)]


def _restart(
    place: Path, peer: peers.Peer, again: Callable[[Path, str], Sequence[str]] | None
) -> float:
    env, stamp = _prepared(place, peer)
    does = f"{stamp}; test $(wc -l < {place / 'times'}) -gt 1 || sleep 60"
    argv = peer.chain(place, 1, does)
    first = subprocess.Popen(_hushed(argv), cwd=place, env=env, stdout=subprocess.DEVNULL)
    _until_stamped(place, 1)
    first.kill()
    first.wait()
    began = time.time_ns()
    argv = again(place, does) if again else (_PROGRAM, "run", "--once")
    run(_hushed(argv), cwd=place, env=env)
    return round((_stamped(place)[1] - began) / 1e9, 2)


def _until_stamped(place: Path, times: int) -> None:
    until = time.monotonic() + 60
    while not (place / "times").exists() or len(_stamped(place)) < times:
        if time.monotonic() > until:
            raise SystemExit("bench: the first step did not begin")
        time.sleep(0.01)


def _hushed(argv: Sequence[str]) -> Sequence[str]:
    """Its messages go to a file: a peer tells of every step."""
    return ("sh", "-c", 'exec "$@" 2>messages', "sh", *argv)


# --- memory, and standing by ----------------------------------------------------------------


def _memory(place: Path, found: Sequence[peers.Peer], steps: int = 40) -> list[Row]:
    """The most that an engine and its steps held at any moment, each shared page counted once."""
    rows = []
    ours = _peak_mib(place / "ours-memory", steps, _ours)
    for peer in found:
        theirs = _tried(peer, partial(_peak_mib, place / f"{peer.short}-memory", steps, peer))
        if theirs is None:
            continue
        about = ("<= 1.2 x", ours <= 1.2 * theirs) if peer.name == "Dagu" else ("", None)
        rows.append(Row("chained steps: peak memory (PSS)", ours, "MiB", peer.name, theirs, *about))
    return rows


def _peak_mib(place: Path, steps: int, peer: peers.Peer) -> float:
    env, does = _prepared(place, peer)
    argv = _hushed(peer.chain(place, steps, does))
    with subprocess.Popen(argv, cwd=place, env=env, stdout=subprocess.DEVNULL) as process:
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, sum(map(pss_mib, tree(process.pid))))
            time.sleep(_SAMPLE_S)
    assert process.returncode == 0, f"{peer.name} ended with {process.returncode}"
    return round(peak, 1)


def _idle(place: Path) -> list[Row]:
    """Nothing to do, for a while: processor time and memory, beside Prefect's server."""
    (place / "idle").mkdir()
    env = environment(place / "idle")
    with _standing_by((_PROGRAM, "run"), place / "idle", env) as pid:
        until_it_works(place / "idle" / "home" / "openry.db")
        ours = _spent_idle(pid)
    theirs = None
    if python := peers.python_of("prefect"):
        env |= {"PREFECT_HOME": str(place / "idle" / "prefect"), "PREFECT_LOGGING_LEVEL": "ERROR"}
        port = _free_port()
        argv = (python, "-m", "prefect", "server", "start", "--port", str(port))
        with _standing_by(argv, place / "idle", env) as pid:
            if _answers(port):
                time.sleep(IDLE_S / 2)  # it has things to do at first
                theirs = _spent_idle(pid)
    if theirs is None:
        return [Row("idle `run`: processor", ours[0], "%"), Row("the same: memory", ours[1], "MiB")]
    return [
        Row(what, mine, unit, "Prefect's server", other, "<= 0.5 x", mine <= 0.5 * other)
        for what, unit, mine, other in zip(
            ("idle `run`: processor", "idle `run`: memory (PSS)"), ("%", "MiB"), ours, theirs,
            strict=True,
        )
    ]  # fmt: skip


@contextmanager
def _standing_by(argv: Sequence[str], place: Path, env: dict[str, str]) -> Iterator[int]:
    process = subprocess.Popen(
        _hushed(argv), cwd=place, env=env, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def _spent_idle(pid: int) -> tuple[float, float]:
    """Percent of one processor, and MiB, of a process and all below it."""
    members = tree(pid)
    before = sum(map(cpu_s, members))
    time.sleep(IDLE_S)
    used = sum(map(cpu_s, members)) - before
    return round(100 * used / IDLE_S, 2), round(sum(map(pss_mib, members)), 1)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answers(port: int) -> bool:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.5)
        else:
            return True
    return False


def _worker_killed(place: Path) -> list[Row]:
    """Kill -9 the engine that does a step while another stands by, until its command runs again."""
    times = [_taken_over(place / f"taken-over-{turn}") for turn in range(3)]
    return [
        Row(
            f"kill -9 of a worker, another alive, lease {_LEASE_S:g} s: runs again after",
            middle(times), "s", target=f"<= {1.5 * _LEASE_S:g} s",
            met=middle(times) <= 1.5 * _LEASE_S,
        )
    ]  # fmt: skip


def _taken_over(place: Path) -> float:
    env, stamp = _prepared(place, _ours)
    _ours_many(place, 1, 1, f"{stamp}; test $(wc -l < {place / 'times'}) -gt 1 || sleep 60")
    with _standing_by((_PROGRAM, "run"), place, env) as first:
        _until_stamped(place, 1)
        with _standing_by((_PROGRAM, "run"), place, env):
            time.sleep(5)  # until it looks
            began = time.time_ns()
            os.kill(first, signal.SIGKILL)
            _until_stamped(place, 2)
    return round((_stamped(place)[1] - began) / 1e9, 2)
