"""An instance once more: with another model, or with what its agents said, and no model at all."""

from __future__ import annotations

import json

import pytest

from openry.errors import UsageError
from openry.ledger.llm_calls import calls
from openry.llm import ScriptedModel
from openry.llm.record import Recorded

#: An agent that is tried twice, one item after the other, and one that goes back to the first.
TEXT = """
    name: said
    max_retries: 1
    sub_steps:
      - id: first
        description: count
        payload_keys: [n]
        max_sub_step_retries: 1
        inherit_payload: true
      - {id: each, description: 'say {{ item }}', for_each: {items: [a, b]}, agent: {system: x}}
      - {id: end, kind: shell, command: 'cat said > all; echo {{ steps.first.payload.n }} >> all'}
    """


def run_(command):
    return json.dumps({"action": "run", "command": command})


def report(**payload):
    return json.dumps({"action": "report", "status": "completed", "payload": payload})


@pytest.fixture
def recorded(bench):
    """The instance, done by a model whose calls are written down."""
    script = [
        *(run_("echo one >> said"), report()),
        *(run_("echo two >> said"), report(n=2)),
        *(run_("echo a >> said"), report(item="a")),
        *(run_("echo b >> said"), report(item="b")),
    ]
    bench.models["scripted"] = Recorded(ScriptedModel(script), bench.engine.ledger, str)
    outcome = bench.run(TEXT)
    assert outcome.ok, outcome.reason
    bench.models.clear()
    return outcome


def said(outcome):
    steps = [(step.id, step.state, step.attempts, dict(step.payload)) for step in outcome.steps]
    commands = [c.command for step in outcome.steps for c in step.commands]
    return steps, commands, (open(f"{outcome.workspace}/all").read())


def test_recorded_turns_are_said_again_without_a_model(bench, recorded):
    """The same attempts, commands, payloads and files; nothing is paid; also from a replay."""
    before, old = said(recorded), recorded.instance_id
    for _ in range(2):
        made = bench.engine.replay(old, recorded=True)
        outcome = bench.engine.run(made.row["instance_id"])
        assert outcome.ok, outcome.reason
        assert said(outcome) == before
        rows = [
            row for row in calls(bench.engine.ledger) if row["instance_id"] == outcome.instance_id
        ]
        assert len(rows) == 8 and all(row["cached"] for row in rows)
        old = outcome.instance_id


def test_a_recording_that_does_not_fit_ends_the_step_with_a_sentence(bench, recorded):
    """Who asks for more than was said is told so; nothing is made up."""
    with bench.engine.room.write() as connection:
        connection.exec_driver_sql("DELETE FROM llm_calls WHERE step_id = 'first' AND id > 3")
    made = bench.engine.replay(recorded.instance_id, recorded=True)
    outcome = bench.engine.run(made.row["instance_id"])
    assert outcome.state == "failed"
    assert "asks for more than was said when it was recorded" in outcome.step("first").reason


def test_another_model_acts_in_every_agent_step(bench, recorded):
    """`model` is frozen with the new plan: nobody else is asked, in retries neither."""
    script = [report(n=3), run_("echo x >> said"), report(), report()]
    model = bench.models["other"] = ScriptedModel(script)
    made = bench.engine.replay(recorded.instance_id, model="other")
    outcome = bench.engine.run(made.row["instance_id"])
    assert outcome.ok, outcome.reason
    assert model.left == 0
    assert outcome.step("first").payload["n"] == 3


def test_what_was_not_recorded_is_refused(bench):
    """An agent whose calls nobody wrote down; nothing is queued."""
    bench.script(report())
    outcome = bench.run("{name: x, sub_steps: [{id: a, description: x, snapshot: before}]}")
    with pytest.raises(UsageError, match="what the agent of step `a` said is not in the ledger"):
        bench.engine.replay(outcome.instance_id, recorded=True)
    assert len(bench.engine.instances()) == 1


def test_recorded_asks_no_model(call):
    """Both at once is a mistake."""
    status, _, err = call("replay", "x", "--recorded", "--model", "m")
    assert (status, "leave `--model` out" in err) == (2, True)
