"""The litellm client at the HTTP border: what is sent, and what each answer comes to."""

import json
import subprocess
import sys

import httpx
import pytest
import respx

from openry.errors import ModelError, UsageError
from openry.llm import ChatRequest, ScriptedModel, ToolCall, user
from openry.llm.client import Endpoint, LiteLLM
from openry.llm.retry import Retrying

BASE = "http://models.test/v1"
URL = f"{BASE}/chat/completions"
ASK = ChatRequest((user("what?"),), max_tokens=77, seed=5)
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


@pytest.fixture
def http():
    with respx.mock(assert_all_called=False) as router:
        yield router


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def sse(*events, done=True):
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    body = "".join(lines) + ("data: [DONE]\n\n" if done else "")
    return httpx.Response(200, text=body, headers={"Content-Type": "text/event-stream"})


def piece(finish=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call_piece(**function):
    return piece(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": function}])


def model(name="openai/stub", key="k3y", **settings):
    return LiteLLM(name, Endpoint(BASE, key), **settings)


def sent(http):
    return json.loads(http.calls.last.request.content)


def test_a_streamed_answer_is_put_together(http):
    """Pieces become one text, with the provider's own count of tokens."""
    http.post(URL).mock(
        return_value=sse(
            piece(content="Hel"),
            piece(content="lo"),
            piece("stop"),
            {"choices": [], "usage": USAGE},
        )
    )

    reply = model().complete(ASK)

    assert (reply.text, reply.finish_reason) == ("Hello", "stop")
    assert (reply.prompt_tokens, reply.completion_tokens) == (11, 3)


def test_the_request_says_what_was_asked(http):
    """Key, model, limits and seed reach the server; litellm's own retries are off."""
    http.post(URL).mock(return_value=sse(piece("stop", content="x")))

    model().complete(ASK)

    assert http.calls.last.request.headers["Authorization"] == "Bearer k3y"
    body = sent(http)
    assert body["model"] == "stub"
    assert body["messages"] == [{"role": "user", "content": "what?"}]
    assert (body["max_tokens"], body["seed"], body["temperature"]) == (77, 5, 0.0)
    assert http.calls.call_count == 1


def test_bytes_that_are_no_text_do_no_harm(http):
    """A lone surrogate, as undecodable output has, is sent as a replacement character."""
    http.post(URL).mock(return_value=sse(piece("stop", content="x")))

    model().complete(ChatRequest((user("say \udcff"),)))

    assert sent(http)["messages"][0]["content"].startswith("say \N{REPLACEMENT CHARACTER}")


def test_a_listed_model_costs_what_the_list_says(http):
    """Prices come with litellm; a model that is not listed has none."""
    http.post(URL).mock(
        return_value=sse(piece("stop", content="x"), {"choices": [], "usage": USAGE})
    )

    assert model("openai/gpt-4o-mini").complete(ASK).cost_usd == pytest.approx(
        11 * 0.15e-6 + 3 * 0.6e-6
    )
    assert model().complete(ASK).cost_usd is None


def test_a_tool_call_in_pieces_is_one_call(http):
    """Its arguments are joined as they come."""
    http.post(URL).mock(
        return_value=sse(
            call_piece(name="openry", arguments=""),
            call_piece(arguments='{"command": '),
            call_piece(arguments='"ls"}'),
            piece("tool_calls"),
        )
    )

    reply = model().complete(ASK)

    assert reply.tool_calls == (ToolCall("c1", "openry", '{"command": "ls"}'),)
    assert reply.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    "events",
    [(piece(content="rm -rf bui"),), (call_piece(name="openry", arguments='{"comm'),), ()],
)
def test_a_stream_without_an_end_is_cut(http, events):
    """No reason to stop was sent: half an answer is an error that keeps its text, never a reply."""
    http.post(URL).mock(return_value=sse(*events, done=False))

    with pytest.raises(ModelError, match="broke off") as caught:
        model().complete(ASK)

    assert caught.value.code == "cut"


def test_another_providers_stream_without_an_end_is_cut_too(http, monkeypatch):
    """Where litellm makes up a `stop` of its own, we do not believe it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k3y")
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 4, "output_tokens": 1}}}
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    text = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "Hi"},
    }
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 2},
    }
    route = http.post("https://api.anthropic.com/v1/messages")
    claude = LiteLLM("anthropic/claude-sonnet-4-5", Endpoint())
    route.mock(return_value=sse(start, block, text, end, {"type": "message_stop"}, done=False))
    assert claude.complete(ASK).text == "Hi"

    route.mock(return_value=sse(start, block, text, done=False))
    with pytest.raises(ModelError) as caught:
        claude.complete(ASK)

    assert (caught.value.code, caught.value.text) == ("cut", "Hi")


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (401, "Incorrect API key provided", "no_key"),
        (403, "not yours", "no_key"),
        (404, "no such model", "unknown_model"),
        (400, "This model's maximum context length is 8192 tokens", "context_length"),
        (400, "temperature must be 1", "provider"),
        (429, "slow down", "rate_limited"),
        (429, "You exceeded your current quota", "no_credit"),
        (500, "oops", "overloaded"),
        (503, "try later", "overloaded"),
    ],
)
def test_each_refusal_has_its_code(http, status, message, code):
    """One lower-case sentence naming the model, whatever the provider wrote."""
    http.post(URL).respond(status, json={"error": {"message": message}})

    with pytest.raises(ModelError, match="`openai/stub`") as caught:
        model().complete(ASK)

    assert caught.value.code == code
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_server_that_is_not_there_is_no_network(http):
    """The sentence names the address and the ways out."""
    http.post(URL).mock(side_effect=httpx.ConnectError("Connection refused"))

    with pytest.raises(
        ModelError, match=r"--planner local/smollm2.*OPENRY_PLANNER_MODEL"
    ) as caught:
        model().complete(ASK)

    assert caught.value.code == "no_network"
    assert BASE in str(caught.value)


def test_silence_is_overloaded(http):
    """A server that does not answer in time is tried again later, not taken for a bad name."""
    http.post(URL).mock(side_effect=httpx.ReadTimeout("silence"))

    with pytest.raises(ModelError) as caught:
        model().complete(ASK)

    assert caught.value.code == "overloaded"


def test_retry_after_is_slept_and_the_third_call_succeeds(http):
    """Two refusals with a wish, then an answer: two waits of at least that long."""
    busy = httpx.Response(429, json={"error": {"message": "slow"}}, headers={"Retry-After": "4"})
    http.post(URL).mock(side_effect=[busy, busy, sse(piece("stop", content="done"))])
    slept = []

    assert Retrying(model(), sleep=slept.append).complete(ASK).text == "done"
    assert len(slept) == 2
    assert min(slept) >= 4.0


def test_a_key_in_an_error_is_redacted(http):
    """Providers quote the key they refuse; nobody gets to read it from us."""
    http.post(URL).respond(400, json={"error": {"message": "bad key k3y, really"}})

    with pytest.raises(ModelError) as caught:
        model(redact=lambda text: text.replace("k3y", "***")).complete(ASK)

    assert "k3y" not in str(caught.value)


def test_a_schema_goes_where_the_model_takes_it(http):
    """As `response_format` where the model is known to hold to it, else in words."""
    http.post(URL).mock(return_value=sse(piece("stop", content="{}")))
    ask = ChatRequest((user("what?"),), schema={"type": "object"})

    model("openai/gpt-4o-mini").complete(ask)
    assert sent(http)["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert sent(http)["messages"][-1]["content"] == "what?"

    model().complete(ask)
    assert "response_format" not in sent(http)
    assert '{"type": "object"}' in sent(http)["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("openai/gpt-4o-mini", "no_key"),
        ("anthropic/claude-sonnet-4-5", "no_key"),
        ("what", "unknown_model"),
    ],
)
def test_what_lacks_is_known_before_any_call(http, name, code):
    """A check asks nobody, and says which variable is missing or that the name is none."""
    with pytest.raises(ModelError, match="--planner local/smollm2") as caught:
        LiteLLM(name, Endpoint()).check()

    assert caught.value.code == code
    assert http.calls.call_count == 0


def test_what_is_known_of_a_model():
    """Window and tools come from the list; an unlisted OpenAI-like server has tools."""
    listed, unlisted = model("openai/gpt-4o-mini"), model()

    assert (listed.context_tokens, listed.tool_calling) == (128_000, True)
    assert (unlisted.context_tokens, unlisted.tool_calling) == (8192, True)
    assert model("bogus/x").tool_calling is False
    assert ScriptedModel([]).tool_calling is False


def test_an_endpoint_is_an_http_address():
    """Anything else is refused before it is used."""
    with pytest.raises(UsageError, match="OPENRY_API_BASE"):
        Endpoint("localhost:8099")


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8099", True),
        ("http://localhost/v1", True),
        ("http://[::1]:80", True),
        ("https://api.example.com", False),
        ("http://localhost.example.com", False),
        ("http://127.example.com", False),
        ("", False),
    ],
)
def test_this_machine_is_the_loopback_address(url, here):
    """A name that only begins like one is somewhere else."""
    assert Endpoint(url).on_this_machine is here


@pytest.mark.parametrize(
    ("name", "base", "here"),
    [
        ("openai/mine", "http://127.0.0.1:8099", True),
        ("openai/mine", "https://models.test", False),
        ("anthropic/other", "http://127.0.0.1:8099", False),
        ("ollama/qwen3", "", True),
    ],
)
def test_which_models_run_on_this_machine(name, base, here, monkeypatch):
    """The configured address counts for `openai/…` only; Ollama's own server is here by default."""
    monkeypatch.delenv("OLLAMA_API_BASE", raising=False)

    assert LiteLLM(name, Endpoint(base)).on_this_machine is here


def test_an_ollama_elsewhere_is_not_here(monkeypatch):
    """Its own variable moves it."""
    monkeypatch.setenv("OLLAMA_API_BASE", "https://gpu.example.com")

    assert LiteLLM("ollama/qwen3", Endpoint()).on_this_machine is False


def test_nothing_is_printed_and_no_dotenv_is_read(tmp_path):
    """A failing call leaves the terminal to us, and a `.env` lying about changes nothing."""
    (tmp_path / ".env").write_text("OPENAI_API_BASE=http://evil.test\nOPENRY_SEEN=1\n")
    script = (
        "import os\n"
        "from openry.errors import ModelError\n"
        "from openry.llm import ChatRequest, user\n"
        "from openry.llm.client import Endpoint, LiteLLM\n"
        "for base in ('http://127.0.0.1:9/v1', ''):\n"
        "    try:\n"
        "        LiteLLM('openai/stub', Endpoint(base)).complete(ChatRequest((user('x'),)))\n"
        "    except ModelError as error:\n"
        "        print(error.code)\n"
        "print('OPENRY_SEEN' in os.environ)\n"
    )

    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert run.stdout.split() == ["no_network", "no_key", "False"]
    assert run.stderr == ""
