"""The head of what ended: shown, and sent to whoever keeps it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from openry.config import load_config
from openry.ledger.db import Ledger
from openry.orchestrator.anchor import Anchor

WORKFLOW = "name: w\nsub_steps:\n  - {id: a, kind: shell, command: 'echo 1'}\n"
BIN = Path(sys.executable).parent


def test_each_head_is_sent_and_holds(tmp_path):
    """`ledger.anchor_command` reads the head that `status` shows; `log verify` finds it."""
    home = tmp_path / "home"
    home.mkdir()
    command = f"cat >> {tmp_path}/kept"
    (home / "config.yaml").write_text(f"ledger: {{anchor_command: '{command}'}}\n")
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OPENRY_HOME": str(home)}

    def run(*words: str) -> str:
        done = subprocess.run(words, cwd=tmp_path, env=env, check=True, capture_output=True)
        return done.stdout.decode()

    said = json.loads(run(BIN / "openry-orchestrator", "start", "w.yaml", "--wait", "--json"))

    kept = json.loads((tmp_path / "kept").read_text())
    assert kept == {"head": said["head"]}
    found = json.loads(run(BIN / "openry", "log", "verify", "--anchor", said["head"], "--json"))
    assert (found["ok"], found["anchored"], found["head"]) == (True, True, said["head"])


def test_an_anchor_is_waited_for_on_a_ledger_that_cannot_be_read(tmp_path):
    """What was begun is not left behind, and the end of an engine is not stopped."""
    path = tmp_path / "openry.db"
    config = replace(load_config(tmp_path / "home", env={}), anchor_command="true")
    with Ledger(path) as ledger:
        anchor = Anchor(config, ledger)
        anchor._sent = "another head"
        anchor.look()
        (process,) = anchor._running
        path.write_bytes(b"no ledger " * 1000)

        anchor.close()

    assert process.returncode == 0
