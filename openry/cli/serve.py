"""`openry serve`: the hand for programs on this machine, over HTTP."""

from __future__ import annotations

import gc
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from openry.cli.desk import add_desk_options, open_desk
from openry.cli.output import write
from openry.cli.parser import Parser
from openry.errors import UsageError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SHORTEST_TOKEN = 16


def main(words: Sequence[str]) -> int:
    parser = Parser("openry serve", description=__doc__)
    add_desk_options(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=9100, help="0 takes a free one")
    parser.add_argument("--token-file", type=Path, help="default: serve.token in OPENRY_HOME")
    given = parser.parse_args(words)
    _check(given.host, given.port)
    desk = open_desk(given)
    path = given.token_file or desk.config.home / "serve.token"
    token = _token(path, given.host)

    import uvicorn

    from openry.service.guard import Keys
    from openry.service.http import build

    with _listen(given.host, given.port) as listener:
        port = listener.getsockname()[1]
        keys = Keys(token, _names(given.host, port))
        if given.host not in _LOOPBACK:
            sys.stderr.write(
                f"openry: {given.host} is open to the network, without encryption: whoever has the"
                " token runs commands here as you do\n"
            )
        write(f"listening on {_address(given.host, port)}; the token is in {path}\n")
        write(f"for a browser, once: {_address(given.host, port)}{keys.login_path}\n")
        settings = uvicorn.Config(
            build(desk, keys), log_level="warning", access_log=False, lifespan="off"
        )
        gc.freeze()  # what is loaded stays: it need not be looked through for garbage
        uvicorn.Server(settings).run(sockets=[listener])
    return 0


def _check(host: str, port: int) -> None:
    if not host.strip():
        raise UsageError("--host is empty; the address of this machine alone is 127.0.0.1")
    if not 0 <= port <= 65535:
        raise UsageError(f"--port must be 0 to 65535, got `{port}`")


def _token(path: Path, host: str) -> str:
    """The token in the file; a new one when there is no file yet.

    Raises:
        UsageError: It cannot be used; or there is none, and the network would be let in.
    """
    from openry.files import must_be_file, write_private

    try:
        if not path.parent.is_dir():
            raise UsageError(f"folder `{path.parent}` of --token-file does not exist; make it")
        if path.is_dir():
            raise UsageError(f"`{path}` is a folder; name a file with --token-file")
        if path.exists():
            must_be_file(path)
        else:
            if host not in _LOOPBACK:
                raise UsageError(
                    f"`{host}` is open to the network, and `{path}` holds no token yet; serve once"
                    " on 127.0.0.1, which makes one, or name a file with --token-file"
                )
            write_private(path, secrets.token_urlsafe(32) + "\n")
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise UsageError(f"others may read `{path}`; run: chmod 600 {path}")
        token = path.read_text("utf-8").strip()
    except OSError as error:
        raise UsageError(f"`{path}`: {error.strerror}; name another with --token-file") from error
    if len(token) < _SHORTEST_TOKEN:
        raise UsageError(f"`{path}` holds no token of {_SHORTEST_TOKEN} characters or more")
    return token


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only where the protocol is named; else each answer waits 40 ms
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # whoever read our first line may call before we answer
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or "no such port"
        raise UsageError(f"`{host}:{port}`: {why}; choose others with --host, --port") from error
    return listener


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _names(host: str, port: int) -> frozenset[str]:
    """By which names a request may call: a page elsewhere that got our address has another one."""
    names = {host, *(_LOOPBACK if host in _LOOPBACK else ())}
    return frozenset(f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names)
