"""What did step two change?"""

from __future__ import annotations

import json

from openry import cli

WORKFLOW = """
name: changing
sub_steps:
  - id: one
    kind: shell
    command: 'echo a > kept; echo b > gone; echo {\\"n\\":1}'
    payload_keys: [n]
  - id: two
    kind: shell
    snapshot: both
    command: 'echo c >> kept; rm gone; mkdir new; echo {\\"n\\":2}'
    payload_keys: [n]
  - {id: three, kind: shell, command: 'true', inherit_payload: true}
"""


def test_a_step_s_changes_are_told(bench, monkeypatch, capfd):
    """Files with their diffs, the payload key by key, the commands; without snapshots, how to."""
    outcome = bench.run(WORKFLOW)
    assert outcome.ok, outcome
    config = bench.engine.config
    monkeypatch.setenv("OPENRY_HOME", config.home_dir)
    monkeypatch.setenv("OPENRY_DB", str(config.ledger))
    monkeypatch.delenv("OPENRY_RUN_ID", raising=False)
    capfd.readouterr()

    assert cli.main(["log", "--changes", "two", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [(one["kind"], one["path"]) for one in found["files"]] == [
        ("deleted", "gone"), ("changed", "kept"), ("added", "new"),
    ]  # fmt: skip
    assert found["files"][1]["diff"].splitlines()[-1] == "+c"
    assert found["payload"]["n"] == {"before": 1, "after": 2}
    assert len(found["commands"]) == 1

    assert cli.main(["log", "--changes", "one", "--instance", outcome.instance_id]) == 0
    assert "give the step `snapshot: both`" in capfd.readouterr().out
