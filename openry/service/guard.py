"""Who may speak to the server: the right host and origin, a token or a login, bounded bodies."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openry.forwarder.forms import without_duplicates

COOKIE = "openry_login"
MAX_BODY_BYTES = 1024 * 1024
#: How long a body may take to come.
BODY_S = 30.0
_LOGIN_PATH = "/login"
_READS = ("GET", "HEAD")


@dataclass
class Keys:
    """What opens the server.

    Attributes:
        token: For programs, in every request.
        hosts: `name:port` by which the server may be called.
    """

    token: str
    hosts: frozenset[str]
    _once: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _logins: set[str] = field(default_factory=set)

    @property
    def login_path(self) -> str:
        """Where a browser logs in, once."""
        return f"{_LOGIN_PATH}?code={self._once}"

    def log_in(self, code: str) -> str | None:
        """A new cookie for the one-time code; None when it is wrong or was used."""
        if not self._once or not _same(code, self._once):
            return None
        self._once = ""
        made = secrets.token_urlsafe(24)
        self._logins.add(made)
        return made

    def fits_token(self, given: str) -> bool:
        return _same(given, self.token)

    def fits_cookie(self, given: str) -> bool:
        return any(_same(given, each) for each in self._logins)


def _same(one: str, other: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


class Guard:
    """Lets through what `keys` open; answers the rest itself, with one sentence in JSON."""

    def __init__(self, app: ASGIApp, keys: Keys, *, body_s: float = BODY_S) -> None:
        self.app = app
        self.keys = keys
        self._body_s = body_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        try:
            async with asyncio.timeout(self._body_s):
                body = await _whole(receive)
        except TimeoutError:
            said = f"the body did not come within {self._body_s:g} seconds"
            await _answer(send, 408, "timeout", said, close=True)
            return
        if body is None:
            await _answer(send, 413, "too_large", f"a body may have {MAX_BODY_BYTES} bytes at most")
            return
        wrong = _not_json(body) if "json" in headers.get("content-type", "").lower() else ""
        if wrong:
            await _answer(send, 422, "bad_arguments", wrong)
            return
        await self.app(scope, _again(body, receive), send)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        """Status, code and sentence for a request that may not pass."""
        host = headers.get("host", "").lower()
        if host not in self.keys.hosts:
            return 421, "wrong_host", f"this server is not `{host}`; call it by its own address"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in _origins(self.keys.hosts):
            return 403, "wrong_origin", f"pages of `{origin}` may not call this server"
        if scope["path"] == _LOGIN_PATH:
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.keys.fits_token(token.strip()):
            return None
        if self.keys.fits_cookie(_cookie(headers.get("cookie", ""))):
            if scope["method"] in _READS or origin is not None:
                return None
            return 403, "no_origin", "a browser's login only counts for requests of its own pages"
        return 401, "no_token", "say `Authorization: Bearer TOKEN`, with the token of the file"


def _origins(hosts: Iterable[str]) -> set[str]:
    return {f"http://{host}" for host in hosts}


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


async def _whole(receive: Receive) -> bytes | None:
    """The body of a request; None when it is too large."""
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            return None
        if not message.get("more_body"):
            return body


def _not_json(body: bytes) -> str:
    """What keeps a body from being JSON that means one thing; empty for nothing."""
    try:
        found = json.loads(body or b"null", object_pairs_hook=without_duplicates)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return "the body holds half a character (a lone surrogate)"
    except ValueError as error:
        return f"the body is not JSON: {error}"
    except RecursionError:
        return "the body is nested too deep"
    return ""


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read already, then what really comes: the end of the connection."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


async def _answer(
    send: Send, status: int, code: str, sentence: str, *, close: bool = False
) -> None:
    told: dict[str, Any] = {"error": code, "message": sentence, "problems": [sentence]}
    body = json.dumps(told).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="openry"'))
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
