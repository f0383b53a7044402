"""Answers remembered in a file, so that no question is paid for twice."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from openry.clock import utc_now
from openry.errors import ModelError, StorageError
from openry.llm.base import ChatReply, ChatRequest, Model, Redact, ToolCall, keep
from openry.llm.budget import Spent
from openry.llm.wrapper import Wrapper

#: `auto` answers from the file what is in it and asks the rest; `replay` never asks; `record`
#: always asks, and remembers the latest answer.
Mode = Literal["auto", "replay", "record"]


class Cassette:
    """Answers by question: model, prompt, schema, seed and attempt together make the key.

    One JSON object a line. An answer is on disk before anybody sees it. What `redact` replaces is
    replaced in what is given back too, so that a resumed run reads just what the first one read;
    the key is made of the question as it was.

    Raises:
        StorageError: The file cannot be read or written.
    """

    def __init__(self, path: Path, mode: Mode = "auto", *, redact: Redact = keep) -> None:
        self.path = path
        self.mode = mode
        self._redact = redact
        self._replies: dict[str, ChatReply] = {}
        self._spent = Spent()
        self._lock = Lock()
        self._read()

    def __len__(self) -> int:
        return len(self._replies)

    @property
    def spent(self) -> Spent:
        """What all answers in the file have cost: give it to the Budget of a resumed session."""
        return self._spent

    def get(self, key: str) -> ChatReply | None:
        return self._replies.get(key)

    def put(self, key: str, model: str, request: ChatRequest, reply: ChatReply) -> ChatReply:
        """Write an answer, to disk, and give it as it will be given from now on."""
        kept = _redacted_reply(reply, self._redact)
        line = {
            "key": key,
            "at": utc_now(),
            "model": model,
            "request": redacted(request.to_record(), self._redact),
            "reply": asdict(kept),
        }
        with self._lock:
            self._append(json.dumps(line, ensure_ascii=False) + "\n")
            self._remember(key, kept)
        return kept

    def _remember(self, key: str, reply: ChatReply) -> None:
        self._replies[key] = replace(reply, recorded=True)
        self._spent += Spent(1, reply.tokens, reply.cost_usd or 0.0)

    def _append(self, line: str) -> None:
        data = line.encode("utf-8", "backslashreplace")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                if not _ends_whole(file):
                    data = b"\n" + data
                os.write(file, data)
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise StorageError(f"`{self.path}` cannot be written: {error.strerror}") from error

    def _read(self) -> None:
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"`{self.path}` cannot be read: {error.strerror}") from error
        for line in lines:
            try:
                entry = json.loads(line)
                self._remember(entry["key"], _reply_of(entry["reply"]))
            except (ValueError, KeyError, TypeError):
                continue  # cut by a crash while it was written: that answer was never used


class Cassetted(Wrapper):
    """Asks the cassette first."""

    def __init__(self, inner: Model, cassette: Cassette) -> None:
        super().__init__(inner)
        self.cassette = cassette

    def complete(self, request: ChatRequest) -> ChatReply:
        key = request.key(self.name)
        known = None if self.cassette.mode == "record" else self.cassette.get(key)
        if known is not None:
            return known
        if self.cassette.mode == "replay":
            raise ModelError(
                "not_recorded", f"`{self.cassette.path}` holds no answer of `{self.name}` to this"
            )
        return self.cassette.put(key, self.name, request, self.inner.complete(request))


def redacted(value: Any, redact: Redact) -> Any:
    """A JSON value with every text in it redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redacted(item, redact) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item, redact) for item in value]
    return value


def _redacted_reply(reply: ChatReply, redact: Redact) -> ChatReply:
    calls = tuple(replace(call, arguments=redact(call.arguments)) for call in reply.tool_calls)
    return replace(reply, text=redact(reply.text), tool_calls=calls)


def _reply_of(entry: dict[str, Any]) -> ChatReply:
    calls = tuple(ToolCall(**call) for call in entry.pop("tool_calls"))
    return ChatReply(**entry, tool_calls=calls)


def _ends_whole(file: int) -> bool:
    """Whether the file is empty or ends with a line's end; not so after a crash while writing."""
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"
