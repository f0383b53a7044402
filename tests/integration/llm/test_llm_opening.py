"""From a name to a model: what is written down of each call, and what is refused."""

import pytest

from openry.config import load_config
from openry.errors import BudgetError, ModelError, UsageError
from openry.ledger import llm_calls
from openry.ledger.db import Ledger
from openry.llm import (
    Budget,
    Cassette,
    ChatReply,
    ChatRequest,
    Purpose,
    ScriptedModel,
    ToolCall,
    check_model,
    open_model,
    user,
)
from openry.llm.budget import Budgeted
from openry.llm.cassette import Cassetted
from openry.llm.record import Recorded

ASK = ChatRequest(
    (user("the s3cret word"),), purpose=Purpose("draft", "s1", "i1", "r1", "step", round=2)
)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "openry.db") as opened:
        yield opened


@pytest.fixture
def config(tmp_path):
    return load_config(tmp_path, env={"HOME": str(tmp_path)})


def hide(text):
    return text.replace("s3cret", "***")


def test_a_call_is_a_row_before_it_is_made(ledger):
    """While the model thinks, the row says `reserved`; afterwards it says what came of it."""
    seen = []

    def think(_):
        seen.extend(llm_calls.calls(ledger))
        return ChatReply("s3cret!", (ToolCall("1", "f", '{"k":"s3cret"}'),), "stop", 7, 2, 0.5)

    Recorded(ScriptedModel([think]), ledger, hide).complete(ASK)

    assert [row["state"] for row in seen] == ["reserved"]
    (row,) = llm_calls.calls(ledger, session_id="s1")
    assert (row["state"], row["finish_reason"], row["cached"]) == ("settled", "stop", False)
    assert (row["prompt_tokens"], row["completion_tokens"], row["cost_usd"]) == (7, 2, 0.5)
    assert (row["purpose"], row["run_id"], row["round"]) == ("draft", "r1", 2)
    assert row["reply"] == "***!"
    assert row["tool_calls"][0]["arguments"] == '{"k":"***"}'
    assert "s3cret" not in str(row)
    assert row["at"] <= row["ended_at"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelError("no_network", "no way to s3cret"), "no_network"),
        (BudgetError("all used"), "budget"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_a_call_that_failed_is_a_row_too(ledger, error, code):
    """Its code is kept, its message redacted, and it counts nothing."""
    with pytest.raises(type(error)):
        Recorded(ScriptedModel([error]), ledger, hide).complete(ASK)

    (row,) = llm_calls.calls(ledger)
    assert (row["state"], row["error_code"]) == ("failed", code)
    assert "s3cret" not in row["error"]
    assert llm_calls.totals(ledger).calls == 0


def test_what_a_cassette_answers_is_written_down_as_free(ledger, tmp_path):
    """Two rows, one paid: totals count what was spent, once."""
    reply = ChatReply("yes", prompt_tokens=7, completion_tokens=3, cost_usd=0.5)
    for script in ([reply], []):
        cassette = Cassette(tmp_path / "answers.jsonl")
        model = Recorded(Cassetted(ScriptedModel(script), cassette), ledger, hide)
        assert model.complete(ASK).text == "yes"

    assert [row["cached"] for row in llm_calls.calls(ledger, run_id="r1")] == [False, True]
    totals = llm_calls.totals(ledger, session_id="s1")
    assert (totals.calls, totals.tokens, totals.usd) == (1, 10, 0.5)
    assert llm_calls.totals(ledger, session_id="other").calls == 0


def test_a_resumed_session_pays_nothing_twice(tmp_path):
    """Killed after the second of three calls: the second life makes only the third."""
    reply = ChatReply("yes", prompt_tokens=50, completion_tokens=50)
    asks = [ChatRequest((user(str(n)),), max_tokens=40) for n in range(3)]
    path = tmp_path / "answers.jsonl"

    def life(script, stop_after):
        cassette = Cassette(path)
        budget = Budget(tokens=300, spent=cassette.spent)
        model = Cassetted(Budgeted(ScriptedModel(script), budget), cassette)
        return [model.complete(ask).text for ask in asks[:stop_after]], budget.spent.tokens

    assert life([reply, reply], 2) == (["yes", "yes"], 200)
    assert life([reply], 3) == (["yes", "yes", "yes"], 300)


@pytest.mark.parametrize(
    ("name", "code"), [("local/other", "unknown_model"), ("local/gone.gguf", "no_weights")]
)
def test_a_local_model_that_is_not_there_is_one_sentence(config, name, code):
    """The name is repeated, and what to write or do instead."""
    with pytest.raises(ModelError, match=name) as caught:
        open_model(name, config=config)

    assert caught.value.code == code


def test_an_empty_name_is_refused(config):
    """Nothing is guessed."""
    with pytest.raises(UsageError, match="local/smollm2"):
        open_model(" ", config=config)


def test_a_missing_key_shows_before_any_call(config, monkeypatch):
    """`check_model` asks nobody and names the variable and the ways out."""
    for name in ("OPENAI_API_KEY", "OPENRY_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    model = open_model("openai/gpt-4o-mini", config=config)

    with pytest.raises(ModelError, match=r"OPENAI_API_KEY.*--planner local/smollm2") as caught:
        check_model(model)

    assert caught.value.code == "no_key"


def test_a_remote_model_of_unknown_price_is_refused_before_the_call(config, monkeypatch):
    """Only `--allow-unpriced` or the setting opens a meter nobody can read."""
    monkeypatch.setenv("OPENAI_API_BASE", "https://models.test/v1")
    model = open_model("openai/nobody-knows", config=config)

    with pytest.raises(ModelError) as caught:
        model.complete(ASK)

    assert caught.value.code == "unpriced"


@pytest.mark.parametrize("word", ["1", "true", "Yes"])
def test_the_setting_allows_unpriced(tmp_path, word):
    """The environment's words for yes are understood; others are named."""
    home = {"HOME": str(tmp_path)}
    assert load_config(tmp_path, env={**home, "OPENRY_ALLOW_UNPRICED": word}).allow_unpriced

    with pytest.raises(UsageError, match="OPENRY_ALLOW_UNPRICED must be `true` or `false`"):
        load_config(tmp_path, env={**home, "OPENRY_ALLOW_UNPRICED": "perhaps"})
