"""A closed network with named hosts: what the proxy connects to, and what nobody gets through."""

from __future__ import annotations

import http.server
import json
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hand_helpers import need_bubblewrap

from openry.forwarder import Hand
from openry.models import Command, SandboxSpec
from openry.output.redact import Redactor
from openry.sandbox.proxy import Proxy
from tests.web import serving

MakeHand = Callable[..., Hand]


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"{self.path} for {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def port() -> Iterator[int]:
    """A web server on this host."""
    with serving(_Page) as number:
        yield number


class _Asker:
    """A proxy whose names mean this host, and a client of it."""

    def __init__(self, *hosts: str, **settings: object) -> None:
        outside, inside = socket.socketpair()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.address = listener.getsockname()
            settings = {"find": lambda name, port: ["127.0.0.1"], "may_reach": bool} | settings
            self.proxy = Proxy(outside, hosts, **settings)  # type: ignore[arg-type]
            socket.send_fds(inside, [b"x"], [listener.fileno()])
        inside.close()

    def ask(self, first: str, then: str = "") -> str:
        with socket.create_connection(self.address, 10) as client:
            client.sendall(f"{first}\r\nHost: misleading.test\r\n\r\n".encode())
            if then:
                assert client.recv(1000).startswith(b"HTTP/1.1 200 connected")
                client.sendall(f"{then}\r\nHost: inner\r\n\r\n".encode())
            answer = b""
            while part := client.recv(10_000):
                answer += part
                if then and b"for inner" in answer:
                    break
        return answer.decode()


def test_a_named_host_is_reached_by_request_and_by_tunnel(port: int):
    """The host of the address counts, not the one of the header."""
    asker = _Asker(f"api.example.test:{port}")

    plain = asker.ask(f"GET http://API.example.test:{port}/a?b HTTP/1.1")
    tunnel = asker.ask(f"CONNECT api.example.test:{port} HTTP/1.1", "GET /c HTTP/1.1")

    assert plain.endswith(f"/a?b for API.example.test:{port}")
    assert tunnel.endswith("/c for inner")
    assert [d.reason for d in asker.proxy.decisions] == ["", ""]
    asker.proxy.close()


@pytest.mark.parametrize(
    "place",
    [
        "api.example.test.evil.test:{port}",
        "evil-api.example.test:{port}",
        "example.test:{port}",
        "xapi.example.test:{port}",
        "api.example.test:1",
        "127.0.0.1:{port}",
        "0x7f000001:{port}",
        "2130706433:{port}",
        "[::1]:{port}",
        "localhost:{port}",
        "api.example.test@evil.test:{port}",
        "аpi.example.test:{port}",
        "api.example.test%00.evil.test:{port}",
        "api.example.test..:{port}",
        "api.example.test:{port}:{port}",
        "api.example.test\\@evil.test:{port}",
        "%61pi.example.test:{port}",
        "api-example.test:{port}",
        "0177.0.0.1:{port}",
        "127.1:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "localhost.:{port}",
        "api.example.test:00{port}0",
        "api.example.test:-{port}",
        "api.example.test:٤٤٣",
        "ａｐｉ.example.test:{port}",
    ],
)
def test_lookalikes_and_numbers_are_refused(port: int, place: str):
    """Each by tunnel; the decision is on record."""
    asker = _Asker(f"api.example.test:{port}")

    answer = asker.ask(f"CONNECT {place.format(port=port)} HTTP/1.1")

    assert answer.split()[1] in ("400", "403")
    assert [bool(d.reason) for d in asker.proxy.decisions] == [True]
    asker.proxy.close()


@pytest.mark.parametrize("name", ["api.example.test", "API.EXAMPLE.test", "api.example.test."])
def test_the_same_name_in_another_spelling_is_the_same_host(port: int, name: str):
    """Upper case, a last dot: what is found and connected to is the one name."""
    found = []

    def find(host: str, number: int) -> list[str]:
        found.append((host, number))
        return ["127.0.0.1"]

    asker = _Asker(f"api.example.test:{port}", find=find)

    assert asker.ask(f"CONNECT {name}:{port} HTTP/1.1", "GET /c HTTP/1.1").endswith("for inner")
    assert found == [("api.example.test", port)]
    asker.proxy.close()


def test_the_address_that_was_judged_is_the_one_connected_to(port: int):
    """A name that means another address a moment later is not asked for again."""
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    asker = _Asker(f"a.test:{port}", find=lambda name, number: next(answers))

    assert asker.ask(f"GET http://a.test:{port}/ HTTP/1.1").split()[1] == "200"
    assert next(answers) == ["127.0.0.2"]
    asker.proxy.close()


def test_too_many_at_once_are_told_to_come_later(port: int):
    """And the proxy lives on once some have gone."""
    asker = _Asker(f"a.test:{port}")

    def status() -> str:
        try:
            return asker.ask(f"GET http://a.test:{port}/ HTTP/1.1").split()[1]
        except ConnectionResetError:  # what it had sent was not read
            return "reset"

    waiting = [socket.create_connection(asker.address, 10) for _ in range(64)]

    assert status() in ("503", "reset")
    for client in waiting:
        client.close()
    until = time.monotonic() + 20
    while status() != "200":
        assert time.monotonic() < until
    asker.proxy.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1"])
def test_a_name_that_leads_inside_is_refused(port: int, address: str):
    """An allowed name is no way to this host or its neighbours, even beside a public address."""
    from openry.sandbox.hosts import is_public

    asker = _Asker(
        "*.example.test:*", find=lambda name, port: ["93.184.216.34", address], may_reach=is_public
    )

    answer = asker.ask(f"CONNECT a.example.test:{port} HTTP/1.1")

    assert answer.startswith("HTTP/1.1 403")
    assert "not on the internet" in answer
    asker.proxy.close()


def test_connections_a_minute_are_limited(port: int):
    """The third of two is told to come later."""
    asker = _Asker(f"a.test:{port}", per_minute=2)
    line = f"GET http://a.test:{port}/ HTTP/1.1"

    answers = [asker.ask(line).split()[1] for _ in range(3)]

    assert answers == ["200", "200", "429"]
    asker.proxy.close()


@pytest.mark.parametrize("first", ["GET / HTTP/1.1", "nonsense", "CONNECT a HTTP/1.1", "\0\0\0"])
def test_what_is_no_request_is_refused(port: int, first: str):
    """One sentence; the proxy lives on."""
    asker = _Asker(f"a.test:{port}")

    assert asker.ask(first).split()[1] == "400"
    assert asker.ask(f"GET http://a.test:{port}/ HTTP/1.1").split()[1] == "200"
    asker.proxy.close()


def test_a_proxy_ends_with_its_sandbox():
    """Also when that ended before its listener was handed out."""
    outside, inside = socket.socketpair()
    proxy = Proxy(outside, ["a.test"])
    inside.close()
    proxy.close()

    assert not [t for t in threading.enumerate() if t.name == "openry-proxy"]


@pytest.mark.sandbox
def test_inside_a_sandbox_only_the_proxy_leads_out(make_hand: MakeHand, port: int, tmp_path: Path):
    """The network is closed, names are asked of the proxy, and this host is refused by it.

    Each decision is an event in the ledger.
    """
    need_bubblewrap()
    workspace = make_hand().context.workspace
    (Path(workspace) / "ask.py").write_text(
        "import sys, urllib.request, urllib.error\n"
        "try:\n"
        "    print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())\n"
        "except urllib.error.HTTPError as error:\n"
        "    print(error.code, error.read().decode())\n"
    )
    spec = SandboxSpec("bubblewrap", (workspace,), hosts=(f"localhost:{port}",))
    hand = make_hand(sandbox=spec)

    def ask(place: str) -> str:
        argv = (sys.executable, "-I", "ask.py", f"http://{place}/")
        return hand.forward(Command(stages=(argv,))).stdout

    assert "403" in ask(f"localhost:{port}") and "not on the internet" in ask(f"localhost:{port}")
    assert "is not allowed; allowed: localhost" in ask("evil.test")
    hand.redactor = Redactor([("WORD", "sesame-99")])
    assert "sesame" not in ask("sesame-99.evil.test") + ask("evil.test/sesame-99")
    direct = hand.forward(Command(f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"))
    assert direct.exit_code != 0
    refused = hand.forward(Command(stages=((sys.executable, "-I", "ask.py", "http://evil.test/"),)))
    assert "openry: not allowed: evil.test:80 is not allowed" in refused.stderr
    database = sqlite3.connect(tmp_path / "home" / "openry.db")
    rows = database.execute("SELECT new, actor, data, reason FROM events ORDER BY id").fetchall()
    database.close()
    assert "sesame" not in str(rows)
    assert [row[:2] for row in rows] == [("refused", "proxy")] * 6
    assert json.loads(rows[-1][2])["host"] == "evil.test"
    assert "is not allowed" in rows[-1][3]
