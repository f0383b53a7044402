"""What `openry doctor --ledger` finds: each promise broken by hand, and seen."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from textwrap import dedent

from openry.cli.doctor import main as doctor
from openry.ledger.consistency import inconsistencies
from openry.ledger.db import Ledger
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load

TEXT = """
    name: sound
    sub_steps:
      - {id: a, kind: shell, command: 'test -e x || { touch x; exit 1; }', on_failure: retry}
      - {id: each, kind: shell, for_each: {items: [1, 2]}, command: 'echo {{ item }}'}
      - {id: ask, kind: approval}
    """
RUN = "(SELECT run_id FROM task_state WHERE step_id = 'a' ORDER BY rowid {} LIMIT 1)"
FIRST, LAST = RUN.format(""), RUN.format("DESC")
BROKEN = {
    "went from": f"UPDATE events SET new = 'failed' WHERE run_id = {LAST} AND new = 'completed'",
    "but by the journal": f"UPDATE task_state SET status = 'dropped' WHERE run_id = {FIRST}",
    "that is not there": f"UPDATE events SET run_id = 'x' WHERE run_id = {FIRST}",
    "runs alive": "UPDATE task_state SET settled = 0, item = '0' WHERE item <> ''",
    "was done 2 times": (
        "UPDATE task_state SET item = '0', data = json_set(data, '$.folded', 2) WHERE item = '1'"
    ),
    "more than one of its steps": f"UPDATE task_state SET settled = 0 WHERE run_id = {FIRST}",
    "no run of it can go on": "UPDATE task_state SET settled = 1 WHERE settled = 0",
    "is settled as": f"UPDATE task_state SET status = 'validated' WHERE run_id = {LAST}",
    "is attempt 3": f"UPDATE task_state SET attempt = 3 WHERE run_id = {LAST}",
    "still `waiting_approval`": (
        "UPDATE workflow_instances SET state = 'completed', ended_at = '2026'"
    ),
    "nobody is asked": "DELETE FROM approvals",
    "which does not wait": f"UPDATE approvals SET run_id = {FIRST}",
    "its payload is not kept": "DELETE FROM payloads",
    "does not count as sub_step 2": "UPDATE retries SET number = 2",
    "is followed by 2 runs": (
        "INSERT INTO retries (at, instance_id, run_id, next_run_id, level, number)"
        " SELECT at, instance_id, run_id, next_run_id, level, number FROM retries"
    ),
    "and begun again": f"UPDATE retries SET run_id = {LAST}",
    "commands numbered": f"UPDATE commands_log SET seq = 7 WHERE run_id = {LAST}",
    "belongs to none of": "DELETE FROM workflow_instances",
}


def test_a_sound_ledger_has_nothing_to_say(bench, monkeypatch, capfd):
    """Neither while a person is waited for nor at the end; `openry doctor --ledger` says so."""
    monkeypatch.setenv("OPENRY_HOME", str(bench.engine.config.home))
    instance_id = bench.submit(TEXT)
    bench.engine.run(instance_id)
    with bench.engine.ledger.read() as connection:
        assert list(inconsistencies(connection)) == []
    bench.engine.answer(instance_id, approve=True)
    assert bench.engine.run(instance_id).ok

    assert doctor(["--ledger", "--json"]) == 0
    (found,) = json.loads(capfd.readouterr().out)
    assert (found["name"], found["ok"], found["said"]) == ("ledger", True, "1 instance, all sound")


def test_each_broken_promise_is_seen(config, workspace, monkeypatch, capfd):
    """Whatever is changed behind the engine's back, the checker names it, and doctor exits 1."""
    with Engine(config) as engine:
        engine.run(engine.submit(load(dedent(TEXT)), workspace=workspace))
    for said, how in BROKEN.items():
        broken = shutil.copy(config.ledger, f"{config.ledger}-broken")
        with closing(sqlite3.connect(broken)) as ledger, ledger:
            ledger.execute(how)
        with Ledger(broken) as ledger, ledger.read() as connection:
            assert said in "; ".join(inconsistencies(connection))
    monkeypatch.setenv("OPENRY_DB", str(broken))
    assert doctor(["--ledger"]) == 1
    assert said in capfd.readouterr().out
