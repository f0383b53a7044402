"""The hand over the Model Context Protocol: each tool is a tool there, a command line one more."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from openry import __version__
from openry.capability import as_mcp
from openry.errors import OpenRYError
from openry.service.desk import Desk, Recall, explain
from openry.service.requests import Line, line_of
from openry.service.stdio import messages
from openry.service.turns import Turns

_T = TypeVar("_T")
#: The tool for command lines, named like the program it stands for.
SHELL_TOOL = "openry"
#: Calls that run at once; the others wait for their turn.
CALLS_AT_ONCE = 16
_BEAT_S = 1.0
_INSTRUCTIONS = (
    "Work in one folder through described tools. Prefer a tool that fits over a command line. "
    "A failed call says why and what to do; `cd` does not last from one call to the next."
)


def build(desk: Desk, *, shell: bool = True) -> Server[Any]:
    """A server that offers `desk`.

    Args:
        shell: Offer command lines too, not only the tools.
    """
    offered = [types.Tool.model_validate(each) for each in as_mcp(desk.tools.tools())]
    if shell:
        offered.append(_shell_tool())
    turns = Turns(CALLS_AT_ONCE)

    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered)

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        given = params.arguments or {}

        def work(stop: Recall) -> types.CallToolResult:
            if shell and params.name == SHELL_TOOL:
                return _line(desk, given, stop)
            return _tool(desk, params.name, given, stop)

        return await _in_turn(work, context, turns)

    server: Server[Any] = Server(
        "openry",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # instead of spans for a telemetry that nobody here has set up
    server.middleware[:] = [_say_what_is_wrong]
    return server


async def _say_what_is_wrong(
    ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """The library says `Invalid request parameters` of whatever a request lacks."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        told = (
            f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}"
            for each in error.errors(include_url=False, include_context=False, include_input=False)
        )
        said = "; ".join(told)
    except MCPError as error:
        if error.code != types.INVALID_PARAMS or error.data != "":
            raise
        said = "say `initialize` first"
    raise MCPError(types.INVALID_PARAMS, f"`{ctx.method}`: {said}")


async def serve(desk: Desk, *, shell: bool = True) -> None:
    """Answer on standard input and output until the client closes them."""
    server = build(desk, shell=shell)
    gc.freeze()  # what is loaded stays: it need not be looked through for garbage
    async with messages() as (source, sink):
        await server.run(source, sink, server.create_initialization_options())


async def _in_turn(
    work: Callable[[Recall], _T], context: ServerRequestContext[Any], turns: Turns
) -> _T:
    """Do `work` in a thread of its own, tell how it goes to a client that asks, and end it when the
    client calls off.
    """
    stop = Recall()
    if not context.meta or context.meta.get("progress_token") is None:
        return await turns.take(work, stop)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_tell_progress, context, stop)
        done = await turns.take(work, stop)
        tasks.cancel_scope.cancel()
    return done


async def _tell_progress(context: ServerRequestContext[Any], call: Recall) -> None:
    """Seconds so far and the last line that was written, once a second."""
    begun = anyio.current_time()
    while True:
        await anyio.sleep(_BEAT_S)
        passed = anyio.current_time() - begun
        said = f": {call.last_line}" if call.last_line else ""
        await context.session.report_progress(passed, message=f"running for {passed:.0f} s{said}")


def _tool(desk: Desk, name: str, given: dict[str, Any], stop: Recall) -> types.CallToolResult:
    try:
        called = desk.invoke(name, given, recall=stop)
    except OpenRYError as error:
        return _said(explain(error, desk.schema(name)), failed=True)
    if called.result is None:
        return _said(_keys(called.answer.answer().to_json()), failed=True)
    return _said(called.result.model_dump(mode="json", by_alias=True), not called.result.success)


def _line(desk: Desk, given: dict[str, Any], stop: Recall) -> types.CallToolResult:
    try:
        answer = desk.run(line_of(given).as_command(), recall=stop).answer()
    except OpenRYError as error:
        return _said(explain(error, _LINE_SCHEMA), failed=True)
    return _said(_keys(answer.to_json()), failed=False)


def _keys(text: str) -> dict[str, Any]:
    keys: dict[str, Any] = json.loads(text)
    return keys


def _said(told: dict[str, Any], failed: bool) -> types.CallToolResult:
    """The same for models that read text and for clients that read values."""
    text = json.dumps(told, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=told,
        is_error=failed,
    )


_LINE_SCHEMA = Line.model_json_schema()


def _shell_tool() -> types.Tool:
    return types.Tool(
        name=SHELL_TOOL,
        description=(
            "Run a command line in the workspace. Answers with exit_code, stdout, stderr and "
            "duration_ms. Use it only where no other tool fits."
        ),
        input_schema=_LINE_SCHEMA,
        annotations=types.ToolAnnotations(
            read_only_hint=False,
            destructive_hint=True,
            idempotent_hint=False,
            open_world_hint=True,
        ),
    )
