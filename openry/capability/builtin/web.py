"""The `http` pack. Where a step's sandbox has a proxy, requests go through it and are judged."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator, Mapping
from email.message import Message
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from openry.capability.builtin.failure import ToolFailure, note
from openry.capability.builtin.lines import json_line
from openry.capability.builtin.runner import replace_file

_MIB = 1024 * 1024
_ANSWER_LIMIT = _MIB
_CHUNK = 64 * 1024
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Sent by ourselves, or a way to say one thing to us and another to the server.
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "proxy-authorization"}
)
#: What is only for the host that was named, not for one it sends us on to.
_PRIVATE = ("authorization", "cookie", "x-api-key")
_CLASSES = {
    400: "bad_arguments",
    401: "auth",
    403: "permission",
    404: "not_found",
    405: "bad_arguments",
    407: "auth",
    408: "timeout",
    409: "conflict",
    410: "not_found",
    413: "resource",
    422: "bad_arguments",
    429: "rate_limited",
    502: "network",
    503: "network",
    504: "network",
}


def http_request(
    url: str,
    method: str,
    headers: Mapping[str, Any],
    follow_redirects: bool,
    fail_on_error: bool,
    wait_s: int,
    body: str | None = None,
) -> bytes:
    """One request; the answer as JSON: status, final address, headers, body."""
    request = Request(  # noqa: S310  # only http and https, see `_checked`
        _checked(url),
        data=None if body is None else body.encode("utf-8", "surrogateescape"),
        headers=_headers(headers, body),
        method=method,
    )
    with _open(request, wait_s, follow=follow_redirects, fail=fail_on_error) as response:
        empty = method == "HEAD" or response.status in (204, 304)
        content = b"" if empty else b"".join(_chunks(response, _ANSWER_LIMIT))
        told = {
            "status": response.status,
            "url": response.url,
            "headers": {name.lower(): value for name, value in response.headers.items()},
            "body": _decoded(content, response.headers),
        }
    return json_line(told)


def download(
    url: str, output: str, max_mb: int, overwrite: bool, sha256: str | None = None
) -> bytes:
    """One file, written whole or not at all."""
    import hashlib
    import os

    if os.path.lexists(output) and not overwrite:
        raise ToolFailure("conflict", f"`{output}` exists; give another name or `overwrite`")
    digest, size = hashlib.sha256(), 0

    def pieces(response: HTTPResponse) -> Iterator[bytes]:
        nonlocal size
        for chunk in _chunks(response, max_mb * _MIB):
            digest.update(chunk)
            size += len(chunk)
            yield chunk
        if sha256 and digest.hexdigest() != sha256.lower():
            raise ToolFailure(
                "conflict", f"the file's SHA-256 is {digest.hexdigest()}, not {sha256}"
            )

    with _open(Request(_checked(url)), 30, follow=True, fail=True) as response:  # noqa: S310
        replace_file(output, pieces(response))
    return f"{size} bytes to {output}, sha256 {digest.hexdigest()}\n".encode(
        "utf-8", "surrogateescape"
    )


# --- asking -------------------------------------------------------------------------------


def _checked(url: str) -> str:
    """`url` as it may be asked for: http or https, a host, nobody's password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ToolFailure("bad_arguments", f"`{url}` is no address: {error}") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise ToolFailure("bad_arguments", f"`{url}` must begin with http:// or https://")
    if not parts.hostname or port == 0:
        raise ToolFailure("bad_arguments", f"`{url}` names no host")
    if parts.username is not None:
        raise ToolFailure(
            "bad_arguments", "an address may not hold a password; give an Authorization header"
        )
    return _quoted(url)


def _quoted(url: str) -> str:
    """Letters beyond ASCII and blanks as an address has them; what is quoted already stays."""
    from urllib.parse import quote, urlunsplit

    parts = urlsplit(url)
    try:
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except UnicodeError:
        raise ToolFailure("bad_arguments", f"`{parts.netloc}` is no name of a host") from None
    path, query = (quote(each, safe="/%:@!$&'()*+,;=?~[]") for each in (parts.path, parts.query))
    return urlunsplit((parts.scheme.lower(), host, path, query, ""))


def _headers(given: Mapping[str, Any], body: str | None) -> dict[str, str]:
    made = {"User-Agent": "openry", "Accept": "*/*", "Accept-Encoding": "identity"}
    if body is not None:
        json_line = body.lstrip()[:1] in ("{", "[")
        made["Content-Type"] = "application/json" if json_line else "text/plain; charset=utf-8"
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value)
        if not _HEADER.fullmatch(name) or name.lower() in _OURS:
            raise ToolFailure("bad_arguments", f"`{name}` is no header you can set")
        if any(sign in text for sign in "\r\n\0"):
            raise ToolFailure("bad_arguments", f"header `{name}` may not hold a line end")
        try:
            text.encode("latin-1")
        except UnicodeEncodeError:
            raise ToolFailure("bad_arguments", f"header `{name}` holds more than Latin-1") from None
        made = {key: old for key, old in made.items() if key.lower() != name.lower()}
        made[name] = text
    return made


class _Redirects(HTTPRedirectHandler):
    """Ten at most, to the web only, and without what was meant for the first host alone."""

    max_redirections = 10

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        new = super().redirect_request(req, fp, code, msg, headers, _checked(newurl))
        if new is not None and _origin(new.full_url) != _origin(req.full_url):
            for name in [each for each in new.headers if each.lower() in _PRIVATE]:
                new.remove_header(name)
        return new


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _open(request: Request, wait_s: int, *, follow: bool, fail: bool) -> HTTPResponse:
    opener: OpenerDirector = build_opener(_Redirects if follow else _NoRedirects)
    try:
        response: HTTPResponse = opener.open(request, timeout=wait_s)
    except HTTPError as error:
        if follow and 300 <= error.code < 400 and error.code != 304:
            told = error.headers.get("Location", "nowhere")
            raise ToolFailure(
                "bad_arguments", f"{error.code}: sent on without end, or to no address: `{told}`"
            ) from None
        if fail and error.code >= 400:
            raise _status_failure(error) from None
        return error  # type: ignore[return-value]
    except (URLError, HTTPException, OSError, ValueError) as error:
        raise _unreachable(error, request.host) from None
    return response


def _status_failure(error: HTTPError) -> ToolFailure:
    """What the server answered instead, its first words kept."""
    try:
        said = " ".join(_decoded(error.read(600), error.headers).split())[:200]
    except (OSError, HTTPException, ValueError):
        said = ""
    wait = error.headers.get("Retry-After")
    later = f"; try again after {wait} s" if wait and wait.isdecimal() else ""
    words = f"{error.code} {error.reason}{later}" + (f": {said}" if said else "")
    return ToolFailure(
        _CLASSES.get(error.code, "bad_arguments" if error.code < 500 else "internal"), words
    )


def _unreachable(error: Exception, host: str | None) -> ToolFailure:
    why: object = error.reason if isinstance(error, URLError) else error
    if isinstance(why, TimeoutError) or "timed out" in str(why):
        return ToolFailure("timeout", f"`{host}` did not answer in time")
    if isinstance(why, ssl.SSLCertVerificationError):
        return ToolFailure(
            "permission", f"`{host}` shows no certificate to be trusted: {why.verify_message}"
        )
    if "Tunnel connection failed: 403" in str(why):
        return ToolFailure("permission", f"this step may not reach `{host}`")
    if isinstance(why, UnicodeError | ValueError) and not isinstance(why, ssl.SSLError):
        return ToolFailure("bad_arguments", f"`{host}` cannot be asked: {why}")
    return ToolFailure("network", f"`{host}` could not be reached: {why}")


# --- reading ------------------------------------------------------------------------------


def _chunks(response: HTTPResponse, most: int) -> Iterator[bytes]:
    """The body in pieces.

    Raises:
        ToolFailure: It is longer than `most` bytes, or ends too early.
    """
    size, promised = 0, response.headers.get("Content-Length", "")
    if promised.isdecimal() and int(promised) > most:
        raise _too_large(int(promised), most)
    while chunk := _read(response):
        size += len(chunk)
        if size > most:
            raise _too_large(size, most)
        yield chunk
    if promised.isdecimal() and size < int(promised):
        raise ToolFailure("network", f"only {size} of {promised} bytes came")


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK)
    except TimeoutError:
        raise ToolFailure("timeout", "the server stopped sending") from None
    except (HTTPException, OSError) as error:
        raise ToolFailure("network", f"the connection broke off: {error}") from None


def _too_large(size: int, most: int) -> ToolFailure:
    return ToolFailure(
        "resource", f"the answer has {size} bytes or more, {most} are taken; use `download`"
    )


def _decoded(content: bytes, headers: Message) -> str:
    """As text: by the charset it came with, else UTF-8, else Latin-1."""
    charset = headers.get_content_charset() or "utf-8"
    kind = headers.get_content_maintype()
    if b"\0" in content[:1000] and kind not in ("text",):
        note(f"the body is {headers.get_content_type()}, no text; `download` keeps it as it is")
    for each in (charset, "utf-8"):
        try:
            return content.decode(each)
        except (UnicodeDecodeError, LookupError):
            continue
    return content.decode("latin-1")
