"""`context.summary_model` of the settings: who tells an agent's older turns."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from openry.config import load_config
from openry.errors import ModelError
from openry.ledger.llm_calls import calls
from openry.llm import ScriptedModel
from openry.llm.record import Recorded

LOOK = json.dumps({"action": "run", "command": "cat log"})
DONE = json.dumps({"action": "report", "status": "completed"})
AGENT = """
name: reader
sub_steps:
  - {id: read, description: Read log, agent: {max_cost_usd: %s}}
"""


@pytest.fixture
def config(config):
    return replace(config, context_summary_model="teller", loop_same=99, loop_share=1.0)


class Priced(ScriptedModel):
    """Each of its calls may cost a dollar."""

    def price_usd(self, prompt_tokens, completion_tokens):
        return 1.0


def read(bench, price, teller):
    """Lets an agent read more than its window holds; gives what it was sent last."""
    (bench.workspace / "log").write_text("".join(f"line {n}\n" for n in range(400)))
    bench.models["teller"] = Recorded(teller, bench.engine.ledger, str)
    model = bench.script(*[LOOK.replace("log", f"log; : {n}") for n in range(4)], DONE,
                         context_tokens=6000)  # fmt: skip
    outcome = bench.run(AGENT % price)
    assert outcome.ok, outcome.reason
    return outcome, model.requests[-1].messages[2].text


def test_the_configured_model_tells_the_older_turns(bench):
    """Its calls are in the ledger by a purpose of their own, so a recorded replay leaves them."""
    outcome, told = read(bench, "null", ScriptedModel(["It was all read."] * 4))

    assert "It was all read." in told
    rows = calls(bench.engine.ledger, run_id=bench.runs(outcome.instance_id)[0].run_id)
    assert {row["purpose"] for row in rows} == {"summary"}


def test_it_shares_the_money_of_the_step(bench):
    """Where a summary costs too much the digest stands in, and the step goes on."""
    teller = Priced(["It was all read."] * 4)
    _, told = read(bench, "0.5", teller)

    assert teller.requests == [] and "It was all read." not in told


def test_a_model_that_cannot_be_had_stops_nobody(bench):
    """The digest stands in, as for any other failure."""
    bench.engine.room._open_model = lambda name: (
        bench.models[name] if name == "scripted" else missing()
    )

    def missing():
        raise ModelError("no_weights", "there are none")

    (bench.workspace / "log").write_text("".join(f"line {n}\n" for n in range(400)))
    model = bench.script(LOOK, LOOK.replace("log", "log; :"), DONE, context_tokens=6000)
    outcome = bench.run(AGENT % "null")

    assert outcome.ok, outcome.reason
    assert "as a model tells" not in model.requests[-1].prompt_text()


def test_the_setting_is_read_and_off_by_default(tmp_path):
    """It names a model."""
    assert load_config(tmp_path, env={}).context_summary_model == ""
    (tmp_path / "config.yaml").write_text("context: {summary_model: openai/small}\n")
    assert load_config(tmp_path, env={}).context_summary_model == "openai/small"
