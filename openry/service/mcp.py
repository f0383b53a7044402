"""The hand over the Model Context Protocol: each tool is a tool there, a command line one more.

The protocol's few messages are spoken here without a library. Whoever reads a call carries it out,
and another thread reads on meanwhile: no call waits for a hand-over between threads.
"""

from __future__ import annotations

import json
import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from openry import __version__
from openry.capability import as_mcp
from openry.errors import OpenRYError
from openry.forwarder.forms import without_duplicates
from openry.service.desk import Desk, Recall, explain, recall
from openry.service.requests import Line, line_of

#: The tool for command lines, named like the program it stands for.
SHELL_TOOL = "openry"
#: Calls that run at once; the others wait for their turn.
CALLS_AT_ONCE = 16
#: Revisions that begin with `initialize`, the newest last, and those that say it in each request.
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = ("2026-07-28",)
_PARSE, _REQUEST, _METHOD, _PARAMS, _OURS, _VERSION = -32700, -32600, -32601, -32602, -32603, -32022
_META = "io.modelcontextprotocol/"
_BEAT_S = 1.0
_CHUNK = 64 * 1024
_ABOUT = {"name": "openry", "version": __version__}
_CAN = {"tools": {"listChanged": False}}
_INSTRUCTIONS = (
    "Work in one folder through described tools. Prefer a tool that fits over a command line. "
    "A failed call says why and what to do; `cd` does not last from one call to the next."
)
_LINE_SCHEMA = Line.model_json_schema()

Data = dict[str, Any]


class RequestError(Exception):
    """A request that the protocol does not allow; `code` is the protocol's."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class _Call:
    """One `tools/call` from its request to its answer."""

    def __init__(self, number: int | str, params: Data, *, stateless: bool) -> None:
        self.number, self.params, self.stateless = number, params, stateless
        self.token = _meta(params).get("progressToken")
        self.called_off = False
        self.begun_s = 0.0  #: when it began to run
        self.told_s = 0.0  #: for how long it had run when that was last told
        self.stop: Recall | None = None  #: while it runs


class Session:
    """One client, by its lines and ours.

    Args:
        source: Descriptor of its lines.
        sink: Descriptor for ours.
        shell: Offer command lines too, not only the tools.
    """

    def __init__(self, desk: Desk, source: int, sink: int, *, shell: bool = True) -> None:
        self._desk, self._shell = desk, shell
        self._lines, self._sink = _lines(source), sink
        self._offered = as_mcp(desk.tools.tools())
        if shell:
            self._offered.append(_shell_tool())
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._over = threading.Event()
        self._still = threading.Condition(self._lock)  #: told when no call runs any more
        self._turn_to_read = threading.Semaphore(0)
        self._idle = 0  #: threads that wait for their turn
        self._running = 0
        self._waiting: deque[_Call] = deque()
        self._calls: dict[Any, _Call] = {}

    def run(self) -> None:
        """Answer until the client closes; what runs then is called off, and recorded as that."""
        try:
            self._let_another_read()
            while not self._over.wait(_BEAT_S):
                self._tell_progress()
        finally:
            with self._lock:
                for call in self._calls.values():
                    _call_off(call)
                self._still.wait_for(lambda: not self._running)

    # --- reading ----------------------------------------------------------------------------

    def _let_another_read(self) -> None:
        """A thread that waits for it, or a new one; the process may end while it reads."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._turn_to_read.release()
                return
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while not self._over.is_set():
            self._read()
            with self._lock:
                self._idle += 1
            self._turn_to_read.acquire()

    def _read(self) -> None:
        """Take requests until one is a call that may run: then another thread reads on."""
        for line in self._lines:
            call = self._heard(line)
            if call is not None and self._may_run(call):
                self._let_another_read()
                self._carry_out(call)
                return
        self._over.set()

    def _heard(self, line: bytes) -> _Call | None:
        """Do what a line asks for; the call, when it is one."""
        number = None
        try:
            message = _parsed(line)
            number = message.get("id")
            params = message.get("params") or {}
            if "method" not in message:
                return None  # an answer: we ask nothing
            if number is None:
                self._notified(message["method"], params)
                return None
            stateless = _is_stateless(params)
            if message["method"] == "tools/call":
                return self._taken(_Call(number, params, stateless=stateless))
            self._answer(number, self._plain(message["method"], params), stateless=stateless)
        except RequestError as error:
            self._refuse(number, error)
        except Exception as error:
            self._refuse(number, _our_mistake(error))
        return None

    def _plain(self, method: str, params: Data) -> Data:
        """The result of a request that is no call."""
        if method == "initialize":
            asked = params.get("protocolVersion")
            version = asked if asked in HANDSHAKES else HANDSHAKES[-1]
            return {"protocolVersion": version, "serverInfo": _ABOUT, **_INTRODUCED}
        if method == "server/discover":
            return {"supportedVersions": [*STATELESS], **_INTRODUCED, **_UNCACHED}
        if method == "tools/list":
            return {"tools": self._offered, **(_UNCACHED if _is_stateless(params) else {})}
        if method == "ping":
            return {}
        raise RequestError(_METHOD, "Method not found", method)

    def _taken(self, call: _Call) -> _Call:
        name, given = call.params.get("name"), call.params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(given, dict):
            raise RequestError(_PARAMS, "`name` must be a text and `arguments` an object")
        with self._lock:
            if call.number in self._calls:
                raise RequestError(_REQUEST, f"request {call.number!r} is under way already")
            self._calls[call.number] = call
        return call

    def _notified(self, method: str, params: Data) -> None:
        number = params.get("requestId")
        if method == "notifications/cancelled" and _is_number(number):
            with self._lock:
                if call := self._calls.get(number):
                    _call_off(call)

    # --- calls ------------------------------------------------------------------------------

    def _may_run(self, call: _Call) -> bool:
        """Whether it may run now; else it waits for its turn."""
        with self._lock:
            if self._running == CALLS_AT_ONCE:
                self._waiting.append(call)
                return False
            self._running += 1
            return True

    def _carry_out(self, call: _Call | None) -> None:
        """This call, then those that wait."""
        while call is not None:
            self._carry_out_one(call)
            with self._lock:
                call = self._waiting.popleft() if self._waiting else None
                self._running -= call is None
                self._still.notify_all()

    def _carry_out_one(self, call: _Call) -> None:
        with recall() as stop:
            with self._lock:
                call.stop, call.begun_s = stop, time.monotonic()
                if call.called_off:
                    stop.now()
            try:
                result = None if call.called_off else self._result(call.params, stop)
                refusal = None
            except Exception as error:
                refusal = _our_mistake(error)
            with self._lock:
                call.stop = None
                del self._calls[call.number]
        if call.called_off:
            return
        if refusal:
            self._refuse(call.number, refusal)
        else:
            self._answer(call.number, result or {}, stateless=call.stateless)

    def _result(self, params: Data, stop: Recall) -> Data:
        name, given = params["name"], params.get("arguments") or {}
        if self._shell and name == SHELL_TOOL:
            return _line(self._desk, given, stop)
        return _tool(self._desk, name, given, stop)

    def _tell_progress(self) -> None:
        """Seconds so far and the last line that was written, to those who asked for it."""
        now = time.monotonic()
        with self._lock:
            running = [call for call in self._calls.values() if call.stop and not call.called_off]
            heard = [(call, call.stop.last_line if call.stop else "") for call in running]
        for call, line in heard:
            passed = round(now - call.begun_s, 3)
            if call.token is None or passed < call.told_s + _BEAT_S / 2:
                continue
            call.told_s = passed
            said = f"running for {passed:.0f} s{f': {line}' if line else ''}"
            told = {"progressToken": call.token, "progress": passed, "message": said}
            self._write({"method": "notifications/progress", "params": told})

    # --- writing ----------------------------------------------------------------------------

    def _answer(self, number: int | str, result: Data, *, stateless: bool) -> None:
        if stateless:
            result = {**result, "resultType": "complete", "_meta": {f"{_META}serverInfo": _ABOUT}}
        self._write({"id": number, "result": result})

    def _refuse(self, number: Any, error: RequestError) -> None:
        told = {"code": error.code, "message": str(error)}
        told |= {} if error.data is None else {"data": error.data}
        self._write({"id": number if _is_number(number) else None, "error": told})

    def _write(self, message: Data) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n"
        left = memoryview(text.encode("utf-8", "replace"))
        with self._writing, suppress(BrokenPipeError):  # a client that went closes its end as well
            while left:
                left = left[os.write(self._sink, left) :]


_INTRODUCED = {"capabilities": _CAN, "instructions": _INSTRUCTIONS}
_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}


def serve(desk: Desk, *, shell: bool = True) -> None:
    """Answer on standard input and output until the client closes them.

    Meanwhile nothing else can be read from the one, or comes out of the other.
    """
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    Session(desk, source, sink, shell=shell).run()


def _lines(source: int) -> Iterator[bytes]:
    """Whole lines of a descriptor; what follows the last one is none."""
    begun: list[bytes] = []
    while chunk := os.read(source, _CHUNK):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun)
            begun = [other]


def _parsed(line: bytes) -> Data:
    """A message, sound as far as all messages are alike.

    Raises:
        RequestError: It is none.
    """
    try:
        message = json.loads(line.decode("utf-8", "replace"), object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError) as error:
        raise RequestError(_PARSE, f"Parse error: {error}") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RequestError(_REQUEST, "a message is an object with `jsonrpc` 2.0, one a line")
    if "method" in message:
        if not isinstance(message["method"], str) or not isinstance(
            message.get("params") or {}, dict
        ):
            raise RequestError(_REQUEST, "`method` must be a text and `params` an object")
        if "id" in message and not _is_number(message["id"]):
            raise RequestError(_REQUEST, "`id` must be a whole number or a text")
    return message


def _our_mistake(error: Exception) -> RequestError:
    """Told to both sides, the client and whoever reads our standard error; the others go on."""
    traceback.print_exception(error)
    return RequestError(_OURS, f"Internal error: {type(error).__name__}")


def _is_number(number: Any) -> bool:
    """Whether a request may be numbered like this."""
    return isinstance(number, int | str) and not isinstance(number, bool)


def _meta(params: Mapping[str, Any]) -> Data:
    found = params.get("_meta")
    return found if isinstance(found, dict) else {}


def _is_stateless(params: Data) -> bool:
    """Whether a request names its revision itself.

    Raises:
        RequestError: That revision is not spoken here.
    """
    version = _meta(params).get(f"{_META}protocolVersion")
    if version is not None and version not in (*STATELESS, *HANDSHAKES):
        told = {"supported": [*HANDSHAKES, *STATELESS], "requested": version}
        raise RequestError(_VERSION, "Unsupported protocol version", told)
    return version in STATELESS


def _call_off(call: _Call) -> None:
    call.called_off = True
    if call.stop:
        call.stop.now()


def _tool(desk: Desk, name: str, given: Data, stop: Recall) -> Data:
    try:
        called = desk.invoke(name, given, recall=stop)
    except OpenRYError as error:
        return _said(explain(error, desk.schema(name)), failed=True)
    if called.result is None:
        return _said(_keys(called.answer.answer().to_json()), failed=True)
    return _said(called.result.model_dump(mode="json", by_alias=True), not called.result.success)


def _line(desk: Desk, given: Data, stop: Recall) -> Data:
    try:
        answer = desk.run(line_of(given).as_command(), recall=stop).answer()
    except OpenRYError as error:
        return _said(explain(error, _LINE_SCHEMA), failed=True)
    return _said(_keys(answer.to_json()), failed=False)


def _keys(text: str) -> Data:
    keys: Data = json.loads(text)
    return keys


def _said(told: Data, failed: bool) -> Data:
    """The same for models that read text and for clients that read values."""
    text = json.dumps(told, ensure_ascii=False)
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": told,
        "isError": failed,
    }


def _shell_tool() -> Data:
    return {
        "name": SHELL_TOOL,
        "description": (
            "Run a command line in the workspace. Answers with exit_code, stdout, stderr and "
            "duration_ms. Use it only where no other tool fits."
        ),
        "inputSchema": _LINE_SCHEMA,
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": True,
        },
    }
