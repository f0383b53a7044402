"""Requests to a real server in this process: it answers, breaks off, sends on, keeps silent."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from openry.capability import complete, load_registry
from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.runner import load
from openry.errors import BadArgumentsError
from tests.web import serving

REGISTRY = load_registry()
BIG = 3 << 20


class Handler(BaseHTTPRequestHandler):
    """`/status/N`, `/to?URL`, `/echo`, `/big`, `/cut`, `/slow`, `/latin`."""

    seen: list[tuple[str, str, dict, bytes]]

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        type(self).seen.append((self.command, self.path, dict(self.headers), body))
        page, _, rest = self.path[1:].partition("?")
        if page.startswith("status/"):
            extra = {"Retry-After": "7"} if "429" in page else {}
            return self.answer(int(page[7:]), b"said so\n", **extra)
        if page == "to":
            return self.answer(302, b"", Location=rest)
        if page == "big":
            return self.answer(200, bytes(BIG), **{"Content-Type": "application/octet-stream"})
        if page == "cut":
            return self.answer(200, b"half", **{"Content-Length": "100"})
        if page == "slow":
            time.sleep(3)
        if page == "latin":
            return self.answer(
                200, b"caf\xe9", **{"Content-Type": "text/plain; charset=iso-8859-1"}
            )
        told = {"method": self.command, "headers": dict(self.headers), "body": body.decode()}
        return self.answer(200, json.dumps(told).encode(), **{"Content-Type": "application/json"})

    do_POST = do_HEAD = do_PUT = do_DELETE = do_GET  # noqa: N815  # names of http.server

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Nobody reads it."""


@pytest.fixture
def seen() -> list:
    Handler.seen = []
    return Handler.seen


@pytest.fixture
def site(seen, tmp_path: Path, monkeypatch) -> Iterator[str]:
    for name in (
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}"


def run(name: str, **arguments) -> bytes:
    tool = REGISTRY.get(name)
    return load(tool.python or "")(**complete(tool, arguments))


def ask(url: str, **arguments) -> dict:
    return json.loads(run("http_request", url=url, **arguments))


def test_what_is_sent_and_what_comes_back(site: str):
    """Method, headers and body as given; status, headers and text as answered."""
    told = ask(f"{site}/echo", method="POST", body='{"a": 1}', headers={"X-Key": "secret"})
    heard = json.loads(told["body"])

    assert (told["status"], told["headers"]["content-type"]) == (200, "application/json")
    assert (heard["method"], heard["body"]) == ("POST", '{"a": 1}')
    assert heard["headers"]["X-Key"] == "secret"
    assert heard["headers"]["Content-Type"] == "application/json"
    assert ask(f"{site}/latin")["body"] == "café"
    assert ask(f"{site}/echo", method="HEAD")["body"] == ""


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        (400, "bad_arguments"), (401, "auth"), (403, "permission"), (404, "not_found"),
        (409, "conflict"), (418, "bad_arguments"), (429, "rate_limited"), (500, "internal"),
        (503, "network"),
    ],
)  # fmt: skip
def test_an_answer_that_is_an_error_has_its_class(site: str, status: int, error_class: str):
    """With the server's own words; as a result where it is asked for as one."""
    with pytest.raises(ToolFailure, match=f"{status} .*said so") as failure:
        ask(f"{site}/status/{status}")

    assert failure.value.error_class == error_class
    assert ("try again after 7 s" in str(failure.value)) == (status == 429)
    assert ask(f"{site}/status/{status}", fail_on_error=False)["status"] == status


def test_a_key_is_not_carried_to_another_host(site: str, seen: list):
    """A redirect to the same place keeps it; to another port it goes without."""
    headers = {"Authorization": "Bearer x", "Cookie": "c=1", "X-Other": "y"}
    elsewhere = site.replace("127.0.0.1", "localhost")

    ask(f"{site}/to?/echo", headers=headers)
    ask(f"{site}/to?{elsewhere}/echo", headers=headers)

    first, second = (each[2] for each in seen if each[1] == "/echo")
    assert (first["Authorization"], first["Cookie"]) == ("Bearer x", "c=1")
    assert "Authorization" not in second
    assert "Cookie" not in second
    assert second["X-Other"] == "y"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x/", "//"])
def test_a_redirect_leads_to_the_web_only(site: str, target: str):
    """Never to a file of this machine, nor to another protocol."""
    with pytest.raises(ToolFailure):
        ask(f"{site}/to?{target}")
    assert ask(f"{site}/to?{target}", follow_redirects=False)["status"] == 302


def test_redirects_end(site: str):
    """Ten are enough."""
    with pytest.raises(ToolFailure):
        ask(f"{site}/to?/to?/to")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://a.example/x", "http://", "http:///x", "http://a b/",
        "example.com",
        "http://a.example:99999/", "http://u:p@a.example/", "http://a.example/\r\nX: y", "http://[::1",
        "http://..example/", "javascript:alert(1)", "http://a\u2028b.example/", "http://\udc80/",
    ],
)  # fmt: skip
def test_only_plain_addresses_of_the_web_are_asked(url: str):
    """Everything else is refused before anything is sent."""
    with pytest.raises((ToolFailure, BadArgumentsError)) as refusal:
        ask(url)
    if isinstance(refusal.value, ToolFailure):
        assert refusal.value.error_class in ("bad_arguments", "network")


@pytest.mark.parametrize(
    "headers",
    [{"X": "a\r\nEvil: 1"}, {"X\r\nEvil": "1"}, {"Host": "other"}, {"Content-Length": "9"},
     {"transfer-encoding": "chunked"}, {"": "x"}, {"X": "大"}],
)  # fmt: skip
def test_a_header_is_one_line_and_not_ours(site: str, seen: list, headers: dict):
    """No header smuggles another one in."""
    with pytest.raises(ToolFailure) as failure:
        ask(f"{site}/echo", headers=headers)
    assert failure.value.error_class == "bad_arguments"
    assert not seen


def test_a_download_is_whole_or_not_there(site: str, tmp_path: Path):
    """Too large, cut off, another checksum: nothing is left; else every byte is there."""
    told = run("download", url=f"{site}/big", output="in/big.bin").decode()
    digest = hashlib.sha256(bytes(BIG)).hexdigest()

    assert Path("in/big.bin").read_bytes() == bytes(BIG)
    assert told == f"{BIG} bytes to in/big.bin, sha256 {digest}\n"
    run("download", url=f"{site}/big", output="in/big.bin", sha256=digest.upper())
    for arguments in (
        {"url": f"{site}/big", "max_mb": 2}, {"url": f"{site}/cut"}, {"url": f"{site}/status/404"},
        {"url": f"{site}/big", "sha256": "0" * 64},
    ):  # fmt: skip
        with pytest.raises(ToolFailure):
            run("download", output="x.bin", **arguments)
    with pytest.raises(ToolFailure, match="exists"):
        run("download", url=f"{site}/big", output="in/big.bin", overwrite=False)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["big.bin", "in"]


def test_an_answer_too_large_to_read_says_what_to_use(site: str):
    """One MiB goes into an answer; a file goes to `download`."""
    with pytest.raises(ToolFailure, match="use `download`") as failure:
        ask(f"{site}/big")
    assert failure.value.error_class == "resource"


def test_silence_is_a_timeout_and_a_closed_door_is_the_network(site: str):
    """Each has its class, the host is named."""
    with pytest.raises(ToolFailure, match="did not answer in time") as slow:
        ask(f"{site}/slow", wait_s=1)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ToolFailure, match=f"127.0.0.1:{port}") as shut:
        ask(f"http://127.0.0.1:{port}/")
    assert (slow.value.error_class, shut.value.error_class) == ("timeout", "network")


def test_a_proxy_is_asked_where_there_is_one(site: str, seen: list, monkeypatch):
    """The sandbox's way out judges hosts; what it refuses is no fault of the network."""
    monkeypatch.setenv("http_proxy", site)
    monkeypatch.setenv("https_proxy", site)

    ask("http://api.example.com/echo")
    assert seen[-1][1] == "http://api.example.com/echo"
    with pytest.raises(ToolFailure):
        ask("https://api.example.com/")
