"""A fresh home with warm embeddings, and a planner that misbehaves on purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.web import serving


@pytest.fixture(scope="session")
def warm(pytestconfig) -> Path:
    """Embeddings of the shipped examples, kept between test runs."""
    return pytestconfig.cache.mkdir("openry-home") / "cache"


@pytest.fixture
def home(tmp_path, warm, monkeypatch) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    warm.mkdir(exist_ok=True)
    (made / "cache").symlink_to(warm)
    monkeypatch.setenv("OPENRY_HOME", str(made))
    for name in ("OPENRY_MODEL", "OPENRY_PLANNER_MODEL", "OPENRY_DB", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "names.txt").write_text("bob\nal\ncy\n")
    (made / "app.log").write_text("INFO a\nERROR b\n")
    return made


class Endpoint:
    """An OpenAI-style endpoint on loopback that answers every question with `text`.

    `refusals` first answers are "too many requests". `calls` counts what was asked.
    """

    def __init__(self) -> None:
        self.text: str | None = ""
        self.finish = "stop"
        self.refusals = 0
        self.calls = 0
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: object) -> None:
                return

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.calls += 1
                if endpoint.calls <= endpoint.refusals:
                    self._answer(429, {"error": {"message": "slow down"}}, ("Retry-After", "0"))
                else:
                    self._stream()

            def _answer(self, status: int, data: dict, *headers: tuple[str, str]) -> None:
                body = json.dumps(data).encode()
                self.send_response(status)
                for name, value in (("Content-Type", "application/json"), *headers):
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _stream(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                parts = (
                    {"index": 0, "delta": {"content": endpoint.text}, "finish_reason": None},
                    {"index": 0, "delta": {}, "finish_reason": endpoint.finish},
                )
                for part in parts:
                    self.wfile.write(b"data: " + json.dumps({"choices": [part]}).encode() + b"\n\n")
                self.wfile.write(b"data: [DONE]\n\n")

        self.handler = Handler


@pytest.fixture
def endpoint(monkeypatch) -> Iterator[Endpoint]:
    made = Endpoint()
    with serving(made.handler) as port:
        monkeypatch.setenv("OPENRY_API_BASE", f"http://127.0.0.1:{port}/v1")
        yield made
