"""Ten minutes of work with engines that are killed, steps that are braked and people in between."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from textwrap import dedent

import pytest

from openry.ledger.consistency import inconsistencies
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.outcomes import FINAL
from openry.orchestrator.room import Times
from tests.integration.engine.dying import in_child, wait

QUICK = Times(interval_s=0.5, watch_s=0.05, beat_s=0.3, self_kill_s=1.0, lease_s=2.0, grace_s=0.5)
#: How long; another number makes another soak.
SOAK_S = float(os.environ.get("SOAK_SECONDS", "600"))
WORKERS, LIVE = 4, 12
KINDS = {
    "chain": """
        name: chain
        max_retries: 1
        sub_steps:
          - {id: a, kind: shell, command: 'echo $OPENRY_IDEMPOTENCY_KEY >> MARKS; sleep 0.1'}
          - {id: b, kind: shell, command: 'test $(($(date +%N | cut -c 9) % 3)) = 0',
             on_failure: retry}
          - {id: c, kind: shell, command: 'echo $OPENRY_IDEMPOTENCY_KEY >> MARKS'}
        """,
    "items": """
        name: items
        concurrency: {max_parallel_instances: 3}
        big_steps: [{ref: each, on_failure: mend}, {ref: mend}]
        """,
    "each": """
        name: each
        sub_steps:
          - id: each
            kind: shell
            for_each: {items: [1, 2, 3, 4], max_parallel: 2}
            command: 'echo $OPENRY_IDEMPOTENCY_KEY >> MARKS; test {{ item }} != 3 || sleep 0.5'
        """,
    "mend": """
        name: mend
        sub_steps:
          - {id: ask, kind: approval}
          - {id: m, kind: shell, command: 'echo $OPENRY_IDEMPOTENCY_KEY >> MARKS'}
        """,
    "slow": """
        name: slow
        timeout_minutes: 0.05
        sub_steps:
          - {id: s, kind: shell, command: 'sleep 60 & sleep 60'}
        """,
}


def soak(config, place: Path, seconds: float, seed: int) -> list[str]:
    """What contradicts itself afterwards. Says how much was done."""
    pick, marks = random.Random(seed), place / "marks"
    for name, text in KINDS.items():
        (place / f"{name}.yaml").write_text(dedent(text).replace("MARKS", str(marks)))
    plans = [load(place / f"{name}.yaml") for name in ("chain", "items", "slow")]
    assert not any(plan.errors for plan in plans)

    def serve():
        with Engine(config, times=QUICK, slots=2) as engine:
            engine.serve(should_stop=lambda: (place / "stop").exists())

    workers = [in_child(serve) for _ in range(WORKERS)]
    try:
        with Engine(config, times=QUICK) as engine:
            _disturb(engine, plans, workers, serve, seconds, pick)
            _until_still(engine, 120)
            (place / "stop").touch()
            assert [wait(pid) for pid in workers] == [0] * WORKERS
            workers.clear()
            with engine.ledger.read() as connection:
                return list(inconsistencies(connection))
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
            wait(pid)


def _disturb(engine, plans, workers, serve, seconds, pick):
    """Submit, kill, cancel, answer and retry at random."""
    kills = cancels = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(pick.uniform(0.1, 0.6))
        known = engine.instances(limit=1000)
        live = [one for one in known if one.state not in FINAL]
        if len(live) < LIVE:
            engine.submit(pick.choice(plans))
        if pick.random() < 0.3:
            number = pick.randrange(WORKERS)
            os.kill(workers[number], signal.SIGKILL)
            assert wait(workers[number]) == signal.SIGKILL
            workers[number] = in_child(serve)
            kills += 1
        if live and pick.random() < 0.15:
            cancels += engine.cancel(pick.choice(live).instance_id)
        _answer(engine, live, pick)
        ended = [one for one in known if one.state == "failed" and one.current_step]
        if ended and pick.random() < 0.1:
            engine.retry(pick.choice(ended).instance_id)
    print(f"{len(engine.instances(limit=100_000))} instances, {kills} kills, {cancels} cancels")


def _answer(engine, live, pick):
    for one in live:
        if one.state == "suspended":
            engine.answer(one.instance_id, approve=pick.random() < 0.7)


def _until_still(engine, seconds):
    """A person answers, nobody dies: everything comes to its end."""
    until, yes = time.monotonic() + seconds, random.Random(1)
    while live := [one for one in engine.instances(limit=1000) if one.state not in FINAL]:
        assert time.monotonic() < until, [(one.instance_id, one.state) for one in live]
        _answer(engine, live, yes)
        time.sleep(0.2)


@pytest.mark.long
def test_a_soak_ends_with_a_sound_ledger_and_no_process_left(config, tmp_path):
    """Four workers, each killed again and again; SOAK_SECONDS says how many seconds, else 600."""
    place = tmp_path / "soak"
    place.mkdir()
    assert soak(config, place, SOAK_S, seed=5) == []
    strays = [
        environ.parent.name
        for environ in Path("/proc").glob("[0-9]*/environ")
        if str(place).encode() in _read(environ)
    ]
    assert strays == []


def _read(environ: Path) -> bytes:
    try:
        return environ.read_bytes() + environ.with_name("cmdline").read_bytes()
    except OSError:
        return b""
