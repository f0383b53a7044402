"""Against a real HTTP server that misbehaves on purpose, kept beside the project."""

import json
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from openry.config import load_config
from openry.errors import BudgetError, ModelError
from openry.llm import Budget, ChatRequest, open_model, user
from openry.llm.structured import ask_document, ask_structured

STUB = Path(__file__).parents[4] / "shared" / "tools" / "stub_llm.py"
pytestmark = pytest.mark.skipif(not STUB.is_file(), reason="the stub server is not beside us")

WORKFLOW = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "sub_steps": {"type": "array", "minItems": 1}},
    "required": ["name", "sub_steps"],
}
ASK = ChatRequest((user("write a workflow"),), max_tokens=200)


class Stub:
    """A running stub server, and what it was asked."""

    def __init__(self, mode, folder, monkeypatch, *options):
        self.log = folder / "calls.jsonl"
        line = [sys.executable, str(STUB), "--mode", mode, "--log", str(self.log), *options]
        while True:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            self.process = subprocess.Popen([*line, "--port", str(port)])
            if self._answers(port):
                break  # else somebody else took the port in between
        monkeypatch.setenv("OPENRY_API_BASE", f"http://127.0.0.1:{port}")
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def _answers(self, port):
        while self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return True
            time.sleep(0.05)
        return False

    @property
    def times(self):
        if not self.log.exists():
            return []
        return [json.loads(line)["t"] for line in self.log.read_text().splitlines()]

    def model(self, **settings):
        return open_model("openai/stub", config=load_config(), **settings)


@pytest.fixture
def stub(tmp_path, monkeypatch):
    started = []

    def start(mode, *options):
        started.append(Stub(mode, tmp_path, monkeypatch, *options))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.wait()


@pytest.mark.parametrize("mode", ["fence", "prose", "bad_indent"])
def test_wrapped_yaml_costs_one_call(stub, mode):
    """Fence, sentences and uneven indentation are undone by rule."""
    server = stub(mode)

    document = ask_document(server.model(), ASK, WORKFLOW, want="yaml")

    assert document.value["name"] == "demo"
    assert document.value["sub_steps"][0]["command"] == "echo hi"
    assert len(server.times) == 1


def test_a_trailing_comma_costs_one_call(stub):
    """JSON with a comma too many is read at once."""
    server = stub("trailing_comma")

    value = ask_structured(server.model(), ASK, {"type": "object", "required": ["summary"]})

    assert value == {"summary": "ok", "errors": ["e1", "e2"]}
    assert len(server.times) == 1


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("fragment", "bad_answer"),
        ("trailing_comma", "bad_answer"),
        ("fabricate", "bad_answer"),
        ("echo_inject", "bad_answer"),
        ("empty", "empty_answer"),
        ("null", "empty_answer"),
        ("length_empty", "empty_answer"),
        ("loop", "empty_answer"),
    ],
)
def test_what_cannot_be_mended_costs_two_calls_and_is_typed(stub, mode, code):
    """One repair, then one sentence; never a third call."""
    server = stub(mode)

    with pytest.raises(
        ModelError, match="`openai/stub` gave no usable answer in 2 tries"
    ) as caught:
        ask_structured(server.model(), ASK, WORKFLOW, want="yaml")

    assert caught.value.code == code
    assert len(server.times) == 2


def test_rate_limits_are_waited_out(stub):
    """Gaps of four seconds or more, and the third call succeeds."""
    server = stub("ratelimit")

    assert server.model().complete(ASK).text == "done"
    gaps = [later - earlier for earlier, later in pairwise(server.times)]
    assert len(gaps) == 2
    assert min(gaps) >= 4.0


def test_a_question_too_long_is_asked_once(stub):
    """The typed error comes at once: asking the same again would change nothing."""
    server = stub("ctxlen")

    with pytest.raises(ModelError, match=r"too long for `openai/stub`.*8192 tokens") as caught:
        server.model().complete(ASK)

    assert caught.value.code == "context_length"
    assert len(server.times) == 1


@pytest.mark.parametrize("mode", ["cut", "cut_tool"])
def test_a_stream_cut_half_way_is_tried_again_and_never_returned(stub, mode):
    """Half a word or half a tool call is a transport error, bounded in tries."""
    server = stub(mode, "--text", "hello world")

    with pytest.raises(ModelError) as caught:
        server.model(sleep=lambda _: None).complete(ASK)

    assert caught.value.code == "cut"
    assert len(server.times) == 3


def test_a_budget_ends_a_runaway(stub):
    """Calls stop at the first limit reached, before the call that might break it."""
    server = stub("loop")
    model = server.model(budget=Budget(calls=4))

    with pytest.raises(BudgetError) as caught:
        for _ in range(100):
            model.complete(ASK)

    assert caught.value.limit == "calls"
    assert len(server.times) == 4


def test_on_this_machine_an_unknown_price_is_none_unless_money_is_limited(stub):
    """A loopback server is taken as free; a limit in USD asks for a price."""
    server = stub("ok")
    assert server.model().complete(ASK).cost_usd is None

    with pytest.raises(ModelError, match="--allow-unpriced") as caught:
        server.model(budget=Budget(usd=1.0)).complete(ASK)
    assert caught.value.code == "unpriced"

    allowed = server.model(budget=Budget(usd=1.0), allow_unpriced=True)
    assert allowed.complete(ASK).text == "done"
