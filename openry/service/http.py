"""The hand over HTTP: tools, command lines, reports, and the ledger's events as they happen."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from functools import cache
from typing import Annotated, Any, Literal

import anyio
import anyio.to_thread
from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from openry import __version__
from openry.capability import ToolResult, as_json, as_mcp, as_openai, as_prompt
from openry.data import data_root
from openry.errors import BadArgumentsError, NotFoundError, OpenRYError, StorageError
from openry.ledger.db import Ledger
from openry.ledger.journal import events_after, last_event_id
from openry.service.desk import Desk, Recall, explain
from openry.service.guard import COOKIE, Guard, Keys
from openry.service.requests import Line, Seconds
from openry.service.turns import Turns

#: Calls that run at once; the others wait for their turn.
CALLS_AT_ONCE = 16
_LOOK_S = 0.3
_EVENT_ID = re.compile(r"[0-9]{1,18}")
_STATUS_OF = ((NotFoundError, 404), (BadArgumentsError, 422), (StorageError, 503))


class Invoke(BaseModel):
    """A call of a tool."""

    model_config = ConfigDict(extra="forbid")

    capability: str = Field(description="The tool's name.")
    arguments: dict[str, Any] = Field({}, description="Its arguments, by its schema.")
    dry_run: bool = Field(False, description="Say what would be done, and do nothing.")
    timeout_seconds: Seconds | None = None


class Run(Line):
    """A command line, or what would become of it."""

    dry_run: bool = Field(False, description="Say what would be done, and do nothing.")


class Report(BaseModel):
    """What an agent says of its run."""

    model_config = ConfigDict(extra="forbid")

    run_id: str = Field(min_length=1, description="The run, as its agent was told.")
    token: str = Field(description="The run's token, as its agent was told.")
    status: Literal["completed", "failed", "cancelled", "overflow", "in_progress"]
    payload: dict[str, Any] = Field({}, description="What the step has to hand on.")


class Acknowledged(BaseModel):
    """Whether a report was taken; `message` says what must be done, if anything."""

    status: str
    payload: dict[str, Any]
    acknowledged: bool
    message: str = ""


class FourKeys(BaseModel):
    """What came of a command line."""

    exit_code: int
    stdout: str
    stderr: str
    duration_ms: int


class Refused(BaseModel):
    """Why a request was not carried out."""

    error: str
    message: str
    problems: list[str] = []


#: What answers that are not only JSON look like.
_ANSWERS: dict[str, dict[int | str, dict[str, Any]]] = {
    "/capabilities": {200: {"content": {"application/json": {}, "text/plain": {}}}},
    "/events": {200: {"content": {"text/event-stream": {}}}},
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refused} for status in (400, 401, 403, 404, 405, 408, 413, 421, 422, 503)
}


def build(desk: Desk, keys: Keys) -> Guard:
    """The application that offers `desk` to whoever `keys` let in."""
    app = FastAPI(
        title="OpenRY",
        version=__version__,
        description="The hand for programs: described tools and command lines, in one folder.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=_REFUSALS,
    )
    _say_errors_plainly(app)
    _add_tools(app, desk)
    _add_commands(app, desk)
    _add_events(app, desk)
    _add_pages(app, keys)
    return Guard(app, keys)


def _add_tools(app: FastAPI, desk: Desk) -> None:
    turns = Turns(CALLS_AT_ONCE)

    @app.get(
        "/capabilities",
        summary="The tools, in one of the forms models are offered them",
        responses=_ANSWERS["/capabilities"],
    )
    def capabilities(
        format: Literal["json", "openai", "mcp", "prompt"] = "json",
    ) -> Response:
        tools = desk.tools.tools()
        if format == "prompt":
            return PlainTextResponse(as_prompt(tools))
        made = {"json": as_json, "openai": as_openai, "mcp": as_mcp}[format]
        return JSONResponse(made(tools))

    @app.post("/invoke", summary="Call a tool", response_model=ToolResult)
    async def invoke(asked: Invoke, request: Request) -> Response:
        def work(stop: Recall) -> Response:
            try:
                return _called(desk, asked, stop)
            except BadArgumentsError as error:
                return _said(explain(error, desk.schema(asked.capability)), 422)

        return await _in_turn(work, request, turns)


def _called(desk: Desk, asked: Invoke, stop: Recall) -> Response:
    """What the tool gave; the four keys where the hand did not let the call through."""
    name, given, limit_s = asked.capability, asked.arguments, asked.timeout_seconds
    if asked.dry_run:
        answer = desk.preview(name, given)
        text = "" if answer.exit_code else answer.stdout
    else:
        called = desk.invoke(name, given, timeout_s=limit_s, recall=stop)
        answer = called.answer
        text = answer.stdout if called.result else ""
    return _said(text or answer.answer().to_json())


def _add_commands(app: FastAPI, desk: Desk) -> None:
    turns = Turns(CALLS_AT_ONCE)

    @app.post("/run", summary="Run a command line", response_model=FourKeys)
    async def run(asked: Run, request: Request) -> Response:
        def work(stop: Recall) -> Response:
            result = desk.run(asked.as_command(), dry_run=asked.dry_run, recall=stop)
            return _said(result.answer().to_json())

        return await _in_turn(work, request, turns)

    @app.post("/status", summary="Say how a run stands")
    def status(said: Report) -> Acknowledged:
        outcome = desk.report(said.run_id, said.token, said.status, said.payload)
        return Acknowledged(
            status=said.status,
            payload=desk.clean(said.payload),
            acknowledged=outcome.acknowledged,
            message=outcome.message,
        )


async def _in_turn(work: Callable[[Recall], Response], request: Request, turns: Turns) -> Response:
    """Do `work` in a thread of its own; a client that leaves ends its command."""

    def answer(stop: Recall) -> Response:
        try:
            return work(stop)
        except OpenRYError as error:
            return _refusal(error)

    stop = Recall()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        stop.now()

    watching = asyncio.create_task(watch())
    try:
        return await turns.take(answer, stop)
    finally:
        watching.cancel()


def _add_events(app: FastAPI, desk: Desk) -> None:
    @cache
    def ledger() -> Ledger:
        return Ledger(desk.config.ledger)

    @app.get(
        "/events",
        summary="What happens, as server-sent events: the ledger, and output",
        response_class=StreamingResponse,
        responses=_ANSWERS["/events"],
    )
    async def events(
        after: Annotated[int | None, Query(ge=0, le=2**62)] = None,
        instance: str = "",
        last_event_id: Annotated[str, Header()] = "",
    ) -> StreamingResponse:
        begin = int(last_event_id) if _EVENT_ID.fullmatch(last_event_id) else after
        stream = _stream(ledger(), begin, instance, desk)
        return StreamingResponse(stream, media_type="text/event-stream")


async def _stream(
    ledger: Ledger, after: int | None, instance_id: str, desk: Desk
) -> AsyncIterator[str]:
    """Events after the one of that id, or from now on; a comment now and then shows life.

    What this server's own calls write meanwhile comes as `output`, without an id: it is not kept.
    """
    last, told = after, dict[int, str]()
    yield ": events of the ledger\n\n"
    while True:
        found, last = await anyio.to_thread.run_sync(_look, ledger, last, instance_id)
        for event in found:
            data = json.dumps(event, ensure_ascii=False)
            yield f"id: {event['id']}\nevent: {event['kind']}\ndata: {data}\n\n"
        heard = () if instance_id else desk.heard()
        for each in heard:
            if told.get(each.call) != each.line:
                yield f"event: output\ndata: {json.dumps(asdict(each), ensure_ascii=False)}\n\n"
        told = {each.call: each.line for each in heard}
        if not found:
            yield ": \n\n"
            await anyio.sleep(_LOOK_S)


def _look(ledger: Ledger, after: int | None, instance_id: str) -> tuple[list[dict[str, Any]], int]:
    with ledger.read() as connection:
        if after is None:
            return [], last_event_id(connection)
        found = events_after(connection, after, instance_id)
    return [asdict(event) for event in found], found[-1].id if found else after


# --- pages and errors -----------------------------------------------------------------------


def _add_pages(app: FastAPI, keys: Keys) -> None:
    @app.get("/login", include_in_schema=False)
    def login(code: str = "") -> Response:
        made = keys.log_in(code)
        if made is None:
            return PlainTextResponse("this address worked once; start the server again\n", 403)
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(COOKIE, made, httponly=True, samesite="strict")
        return answer

    @app.get("/", include_in_schema=False)
    def page(request: Request) -> HTMLResponse:
        from jinja2 import Environment

        text = (data_root() / "templates/reports/service.html.j2").read_text("utf-8")
        template = Environment(autoescape=True).from_string(text)
        return HTMLResponse(template.render(api=app.openapi(), host=request.headers["host"]))


def _said(told: str | dict[str, Any], status: int = 200) -> Response:
    """JSON, also of names that are no UTF-8: half a character is written as its escape."""
    text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
    return Response(text.encode("utf-8", "backslashreplace"), status, media_type="application/json")


def _refusal(error: OpenRYError) -> Response:
    status = next((status for kind, status in _STATUS_OF if isinstance(error, kind)), 400)
    return _said(explain(error), status)


def _say_errors_plainly(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    def elsewhere(request: Request, error: HTTPException) -> JSONResponse:
        path = request.url.path
        code, said = {
            404: (
                "not_found",
                f"there is nothing at `{path}`; `/openapi.json` lists what there is",
            ),
            405: ("wrong_method", f"`{path}` does not take {request.method}"),
        }.get(error.status_code, ("refused", str(error.detail)))
        told = {"error": code, "message": said, "problems": [said]}
        return JSONResponse(told, error.status_code, headers=error.headers)

    @app.exception_handler(OpenRYError)
    def ours(_: Request, error: OpenRYError) -> Response:
        return _refusal(error)

    @app.exception_handler(RequestValidationError)
    def unfit(_: Request, error: RequestValidationError) -> Response:
        problems = tuple(
            f"`{'.'.join(str(part) for part in each['loc'][1:]) or each['loc'][0]}`: {each['msg']}"
            for each in error.errors()
        )
        return _said(explain(BadArgumentsError(problems)), 422)
