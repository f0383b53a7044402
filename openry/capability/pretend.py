"""Web addresses that answer while a tool's examples run: a proxy on this machine that knows a few.

So the real client sends real requests, and nothing leaves the machine.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from openry.models import Command, CommandResult, RunCommand

_KINDS = {
    "json": "application/json",
    "csv": "text/csv",
    "svg": "image/svg+xml",
    "html": "text/html",
}


def is_address(name: str) -> bool:
    """Whether a fixture is no file but what a web address answers."""
    return name.startswith("http://")


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A tool that does not wait for its answer is no error of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def answering(run: RunCommand, answers: Mapping[str, str]) -> Iterator[RunCommand]:
    """`run`, for whose commands the web is `answers` and nothing else."""
    if not answers:
        yield run
        return
    server = _Server(("127.0.0.1", 0), _handler(answers))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    proxy = f"http://127.0.0.1:{server.server_port}"

    def through(command: Command) -> CommandResult:
        env = {**command.env, "http_proxy": proxy, "https_proxy": proxy, "no_proxy": ""}
        return run(replace(command, env=env))

    try:
        yield through
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(answers: Mapping[str, str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            text = answers.get(self.path)
            body = (text if text is not None else "no such address\n").encode()
            self.send_response(200 if text is not None else 404)
            self.send_header("Content-Type", _kind(self.path, body))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    return Handler


def _kind(path: str, body: bytes) -> str:
    if body[:1] in (b"{", b"["):
        return _KINDS["json"]
    return _KINDS.get(path.rpartition(".")[2], _KINDS["html"] if body[:1] == b"<" else "text/plain")
