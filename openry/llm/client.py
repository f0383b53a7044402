"""Models behind a network address, through litellm: one attempt, streamed, whole or an error."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import ip_address
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

from openry.errors import ModelError, UsageError
from openry.llm.base import (
    ChatReply,
    ChatRequest,
    Json,
    Redact,
    ToolCall,
    estimate_tokens,
    keep,
)
from openry.llm.trouble import as_model_error

#: Assumed where nobody knows better: what the smallest models in use can read.
DEFAULT_CONTEXT_TOKENS = 8192
CONNECT_TIMEOUT_S = 10.0
#: Longest silence in a stream: a large model on a slow machine may think this long.
READ_TIMEOUT_S = 300.0
#: Must be set before litellm is imported. The first keeps it from fetching a price list from the
#: network, the second from reading a `.env` file of the folder we happen to stand in.
_ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
#: What an OpenAI-compatible server that wants no key is given.
_NO_KEY = "none"
#: Providers that litellm looks for on this machine unless the variable says otherwise.
_LOCAL_SERVERS = {
    "ollama": "OLLAMA_API_BASE",
    "ollama_chat": "OLLAMA_API_BASE",
    "lm_studio": "LM_STUDIO_API_BASE",
    "llamafile": "LLAMAFILE_API_BASE",
}
_HERE = "http://localhost"
_importing = Lock()


@cache
def litellm() -> Any:
    """litellm, silenced. The first call imports it: seconds, and 190 MB."""
    with _importing:
        os.environ.update(_ENVIRONMENT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import litellm as module

            module.suppress_debug_info = True
            module.telemetry = False
            module.drop_params = True
            _silence_loggers()
            _load_its_parts(module)
        warnings.filterwarnings("ignore", module=r"(pydantic|litellm)\.")
        return module


def _silence_loggers() -> None:
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.addHandler(logging.NullHandler())
        logger.propagate = False


def _load_its_parts(module: Any) -> None:
    """Make a call that goes nowhere: half of litellm is imported, with warnings, by the first."""
    message = {"role": "user", "content": "x"}
    stream = module.completion("openai/x", [message], mock_response="x", stream=True)
    for _ in stream:
        pass


def preload() -> None:
    """Begin to import litellm in the background, so that nobody waits for it twice."""
    Thread(target=litellm, name="litellm-import", daemon=True).start()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an OpenAI-compatible server answers; empty means the provider's own address."""

    base_url: str = ""
    api_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.base_url and urlsplit(self.base_url).scheme not in ("http", "https"):
            raise UsageError(
                f"`{self.base_url}` is no model endpoint: write it as "
                "`http://host:port/v1` in OPENRY_API_BASE"
            )

    @property
    def on_this_machine(self) -> bool:
        host = urlsplit(self.base_url).hostname or ""
        try:
            return host == "localhost" or ip_address(host).is_loopback
        except ValueError:
            return False


class LiteLLM:
    """One model by its litellm name, e.g. `openai/gpt-4o-mini` or `anthropic/claude-sonnet-4-5`."""

    def __init__(self, name: str, endpoint: Endpoint, *, redact: Redact = keep) -> None:
        self.name = name
        self.endpoint = endpoint
        self._redact = redact

    @property
    def on_this_machine(self) -> bool:
        """Whether it is asked at a loopback address, so that nobody sends a bill."""
        provider = self.name.partition("/")[0]
        if provider == "openai":
            return self.endpoint.on_this_machine
        variable = _LOCAL_SERVERS.get(provider)
        return variable is not None and Endpoint(os.environ.get(variable, _HERE)).on_this_machine

    @property
    def context_tokens(self) -> int:
        return int(self._facts().get("max_input_tokens") or DEFAULT_CONTEXT_TOKENS)

    @property
    def tool_calling(self) -> bool:
        """OpenAI-compatible servers are taken to have tools unless the list says otherwise."""
        listed = self._facts().get("supports_function_calling")
        return bool(listed) if listed is not None else self._speaks_openai

    @property
    def _speaks_openai(self) -> bool:
        provider, slash, _ = self.name.partition("/")
        return provider == "openai" if slash else self._facts().get("litellm_provider") == "openai"

    def price_usd(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """From litellm's price list, which came with it; None when this model is not in it."""
        facts = self._facts()
        prompt, completion = facts.get("input_cost_per_token"), facts.get("output_cost_per_token")
        if prompt is None or completion is None:
            return None
        return float(prompt * prompt_tokens + completion * completion_tokens)

    def check(self) -> None:
        """Raise now what a call would raise for want of a provider or a key. Asks nobody."""
        module = litellm()
        try:
            module.get_llm_provider(self.name)
        except Exception as error:
            raise self._renamed(error, _Partial()) from error
        found = module.validate_environment(self.name)
        keys = [name for name in found["missing_keys"] if name.endswith("_API_KEY")]
        if keys and not found["keys_in_environment"] and not self._address():
            missing = ValueError("missing API key")
            raise self._renamed(missing, _Partial())

    def complete(self, request: ChatRequest) -> ChatReply:
        module = litellm()
        partial = _Partial()
        try:
            stream = module.completion(**self._arguments(request))
            for chunk in stream:
                if request.should_stop():
                    raise ModelError("stopped", f"the call of `{self.name}` was stopped")
                partial.add(chunk)
        except ModelError:
            raise
        except Exception as error:
            raise self._renamed(error, partial) from error
        if not partial.finish_reason or _made_up_its_end(stream):
            raise ModelError("cut", f"the answer of `{self.name}` broke off", partial.text)
        return self._counted(request, partial.reply())

    def _renamed(self, error: Exception, partial: _Partial) -> ModelError:
        base_url = self.endpoint.base_url if self._speaks_openai else ""
        known = as_model_error(error, self.name, base_url, begun=partial.begun)
        said = self._redact(str(known))
        return ModelError(known.code, said, partial.text, retry_after_s=known.retry_after_s)

    def _counted(self, request: ChatRequest, reply: ChatReply) -> ChatReply:
        """The reply with its cost, and with estimates where the provider counted nothing."""
        prompt_tokens = reply.prompt_tokens or estimate_tokens(request.prompt_text())
        said = reply.text + "".join(call.arguments for call in reply.tool_calls)
        completion_tokens = reply.completion_tokens or (estimate_tokens(said) if said else 0)
        return replace(
            reply,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cost_usd=self.price_usd(prompt_tokens, completion_tokens),
        )

    def _arguments(self, request: ChatRequest) -> dict[str, Any]:
        import httpx

        messages = [message.to_openai() for message in request.messages]
        arguments: dict[str, Any] = {
            "model": self.name,
            "messages": messages,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "stream": True,
            "stream_options": {"include_usage": True},
            "timeout": httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            "max_retries": 0,  # `Retrying` waits as the provider says; litellm would not
            "num_retries": 0,
        }
        if request.stop:
            arguments["stop"] = list(request.stop)
        if request.tools:
            arguments["tools"] = list(request.tools)
        if request.schema is not None:
            self._ask_for_schema(arguments, request.schema)
        return arguments | self._address()

    def _ask_for_schema(self, arguments: dict[str, Any], schema: Json) -> None:
        if litellm().supports_response_schema(self.name):
            arguments["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(schema)},
            }
        else:
            arguments["messages"] = with_schema_in_words(arguments["messages"], schema)

    def _address(self) -> dict[str, str]:
        """The endpoint is for OpenAI-compatible models only; others know their own address."""
        if not self.endpoint.base_url or not self._speaks_openai:
            return {}
        key = self.endpoint.api_key or _NO_KEY
        return {"api_base": self.endpoint.base_url, "api_key": key}

    def _facts(self) -> Mapping[str, Any]:
        return model_facts(self.name)


@cache
def model_facts(name: str) -> Mapping[str, Any]:
    """What litellm's own list says of a model: window, prices. Nothing when it is not in there."""
    listed: dict[str, dict[str, Any]] = litellm().model_cost
    provider, _, bare = name.partition("/")
    facts = listed.get(bare, {})
    return listed.get(name) or (facts if facts.get("litellm_provider") == provider else {})


def with_schema_in_words(messages: list[dict[str, Any]], schema: Json) -> list[dict[str, Any]]:
    """`messages` with the schema after the last one's words, for models that take none."""
    wish = (
        "Answer with one JSON value that fits this JSON Schema, and nothing else:\n"
        + json.dumps(schema, ensure_ascii=False)
    )
    if not messages or messages[-1]["role"] != "user":
        return [*messages, {"role": "user", "content": wish}]
    last = messages[-1]
    return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{wish}"}]


def _made_up_its_end(stream: Any) -> bool:
    """Whether the provider sent no reason to stop: litellm then says `stop` on its own account."""
    heard = ("received_finish_reason", "intermittent_finish_reason", "received_any_finish_reason")
    return not any(getattr(stream, name, True) for name in heard)


class _Partial:
    """An answer as its pieces come in."""

    def __init__(self) -> None:
        self.text = ""
        self.finish_reason = ""
        self.begun = False
        self._calls: dict[int, dict[str, str]] = {}
        self._usage: Any = None

    def add(self, chunk: Any) -> None:
        self.begun = True
        self._usage = getattr(chunk, "usage", None) or self._usage
        for choice in chunk.choices[:1]:
            self.text += choice.delta.content or ""
            self.finish_reason = choice.finish_reason or self.finish_reason
            for piece in choice.delta.tool_calls or ():
                self._add_call(piece)

    def _add_call(self, piece: Any) -> None:
        call = self._calls.setdefault(piece.index or 0, {"id": "", "name": "", "arguments": ""})
        call["id"] = piece.id or call["id"]
        call["name"] += piece.function.name or ""
        call["arguments"] += piece.function.arguments or ""

    def reply(self) -> ChatReply:
        calls = (self._calls[index] for index in sorted(self._calls))
        return ChatReply(
            self.text,
            tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in calls),
            self.finish_reason,
            getattr(self._usage, "prompt_tokens", 0) or 0,
            getattr(self._usage, "completion_tokens", 0) or 0,
        )
