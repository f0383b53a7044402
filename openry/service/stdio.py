"""Messages of the Model Context Protocol over standard input and output, one a line.

The protocol's own library hands each line to a thread and back, and passes over in silence what is
no message. Here pipes are read and written where the calls are waited for, and each line that is no
message is answered with what is wrong with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from openry.forwarder.forms import without_duplicates

#: Of one message. A megabyte of text may take six in JSON.
MAX_LINE_BYTES = 8 * 1024 * 1024

Source: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Sink: TypeAlias = MemoryObjectSendStream[SessionMessage]


class NoMessageError(Exception):
    """A line is no message. `code` is JSON-RPC's; `answers` is the number it had, if it had one."""

    def __init__(self, code: int, why: str, answers: str | int | None = None) -> None:
        super().__init__(why)
        self.code = code
        self.answers = answers

    def as_line(self) -> bytes:
        error = {"code": self.code, "message": str(self)}
        return json.dumps({"jsonrpc": "2.0", "id": self.answers, "error": error}).encode() + b"\n"


def message_of(line: bytes) -> types.JSONRPCMessage:
    """The message that a line holds.

    Raises:
        NoMessageError: It holds none.
    """
    try:
        found = json.loads(line, object_pairs_hook=without_duplicates)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise NoMessageError(types.PARSE_ERROR, f"the line is not JSON: {error}") from error
    except ValueError as error:  # JSON that says two things, or a number without an end
        raise NoMessageError(types.INVALID_REQUEST, f"the line cannot be taken: {error}") from error
    except RecursionError:
        raise NoMessageError(types.PARSE_ERROR, "the line is nested too deep") from None
    if isinstance(found, list):
        raise NoMessageError(types.INVALID_REQUEST, "several messages at once: write one a line")
    if isinstance(found, dict) and "method" in found and "id" in found and _id(found) is None:
        raise NoMessageError(types.INVALID_REQUEST, "`id` must be a text or a whole number")
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        said = f"the line is no message of JSON-RPC: {_why(error, found)}"
        raise NoMessageError(types.INVALID_REQUEST, said, _id(found)) from error


def _id(found: Any) -> str | int | None:
    given = found.get("id") if isinstance(found, dict) else None
    return given if isinstance(given, str | int) and not isinstance(given, bool) else None


def _why(error: ValidationError, found: Any) -> str:
    """What is wrong with it as a request or a notification, whichever it looks like."""
    kind = "JSONRPCRequest" if isinstance(found, dict) and "id" in found else "JSONRPCNotification"
    said = []
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        other, *place = each["loc"] or (kind,)
        if other == kind:
            said.append(f"`{'.'.join(map(str, place))}`: {each['msg']}" if place else each["msg"])
    return "; ".join(said)


@asynccontextmanager
async def messages() -> AsyncIterator[tuple[Any, Any]]:
    """The streams of messages, to be read from and written to, of this process.

    From then on descriptor 0 is empty and descriptor 1 is standard error, so that nothing
    else gets among the messages.
    """
    if not (_is_pipe(0) and _is_pipe(1)):  # a file or a terminal
        async with stdio_server() as streams:
            yield streams
        return
    given, reads = anyio.create_memory_object_stream[SessionMessage | Exception](1)
    writes, taken = anyio.create_memory_object_stream[SessionMessage](1)
    reader, writer = await _open()
    async with anyio.create_task_group() as tasks:

        async def listen() -> None:
            async with given:
                async for line in _lines(reader):
                    try:
                        if isinstance(line, NoMessageError):
                            raise line
                        await given.send(SessionMessage(message_of(line)))
                    except NoMessageError as error:
                        await say(error.as_line())
                    except anyio.BrokenResourceError:  # the server has ended
                        return

        async def speak() -> None:
            async with taken:
                async for each in taken:
                    await say(_line_of(each.message))

        async def say(line: bytes) -> None:
            try:
                writer.write(line)
                await writer.drain()
            except OSError:  # nobody reads any more
                tasks.cancel_scope.cancel()

        tasks.start_soon(listen)
        tasks.start_soon(speak)
        yield reads, writes


def _line_of(message: types.JSONRPCMessage) -> bytes:
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:  # it holds half a character, which has to be written as an escape
        text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True))
    return text.encode() + b"\n"


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return os.name == "posix" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


async def _open() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Standard input and output, which nobody else has any more."""
    loop = asyncio.get_running_loop()
    source, sink = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    reader = asyncio.StreamReader(MAX_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sink
    )
    transport.set_write_buffer_limits(0)  # what was said is in the pipe before we go on
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes | NoMessageError]:
    """Each line that is not empty; an error in the place of one that is too long."""
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            await _skip(reader)
            said = f"the line is longer than {MAX_LINE_BYTES} bytes"
            yield NoMessageError(types.INVALID_REQUEST, said)
            continue
        except asyncio.IncompleteReadError as error:
            if error.partial.strip():
                yield error.partial
            return
        if line.strip():
            yield line


async def _skip(reader: asyncio.StreamReader) -> None:
    """Read to the end of the line, keeping nothing."""
    while True:
        try:
            await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            await reader.readexactly(error.consumed)
        except asyncio.IncompleteReadError:
            return
        else:
            return
