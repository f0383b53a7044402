"""The only way out of a closed network: a proxy outside that connects to named hosts only.

It accepts on a listener that was made inside the sandbox and handed out (`openry.sandbox.inlet`).
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterable

from openry.clock import utc_now
from openry.errors import HostRefusedError
from openry.models.value import value
from openry.sandbox.hosts import Resolve, canonical, is_allowed, is_public, resolve

_LONGEST_HEAD = 64 * 1024
_CONNECT_S, _HEAD_S, _IDLE_S, _PAUSE_S = 15.0, 15.0, 120.0, 0.05
_CHUNK = 64 * 1024
#: Connections at once, and decisions remembered; who asks for more is told to come later.
_MOST_CLIENTS, _MOST_DECISIONS = 64, 1000


@value
class Decision:
    """One connection asked for, and when. `reason` is empty when it was made."""

    host: str
    port: int
    reason: str
    at: str


class Proxy:
    """Serves one sandbox until `close`.

    Args:
        control: Where the inside sends its listener.
        hosts: Patterns of `is_allowed`.
        per_minute: Most connections a minute; 0 for no limit.
    """

    def __init__(
        self,
        control: socket.socket,
        hosts: Iterable[str],
        *,
        per_minute: int = 0,
        find: Resolve = resolve,
        may_reach: Callable[[str], bool] = is_public,
    ) -> None:
        self._control = control
        self._hosts = tuple(hosts)
        self._per_minute = per_minute
        self.decisions: list[Decision] = []
        self._find = find
        self._may_reach = may_reach
        self._recent: list[float] = []
        self._lock = threading.Lock()
        self._clients = threading.BoundedSemaphore(_MOST_CLIENTS)
        self._stop, self._stopper = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="openry-proxy", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End every connection; nothing is served afterwards."""
        self._stopper.close()
        self._thread.join(_CONNECT_S)

    # --- threads ----------------------------------------------------------------------------

    def _serve(self) -> None:
        with self._control, self._stop:
            listener = self._listener()
            if listener is None:
                return
            with listener:
                while self._ready(listener):
                    try:
                        client, _ = listener.accept()
                    except OSError:  # it went away, or there are no descriptors left for it
                        time.sleep(_PAUSE_S)
                        continue
                    self._take(client)

    def _take(self, client: socket.socket) -> None:
        """Answer a client in a thread of its own, if there are not too many."""
        if not self._clients.acquire(blocking=False):
            with client:
                _refuse(client, HostRefusedError("503 Service Unavailable", "too many at once"))
            return

        def answer() -> None:
            try:
                self._answer(client)
            finally:
                self._clients.release()

        threading.Thread(target=answer, daemon=True).start()

    def _listener(self) -> socket.socket | None:
        """The listener made inside; None when the sandbox ended before it was."""
        if not self._ready(self._control):
            return None
        _, fds, _, _ = socket.recv_fds(self._control, 1, 1)
        if not fds:
            return None
        listener = socket.socket(fileno=fds[0])
        listener.settimeout(_PAUSE_S)  # who asked may be gone before he is answered
        return listener

    def _ready(self, one: socket.socket) -> bool:
        """Wait for `one`; False when we are to stop."""
        readable, _, _ = select.select([one, self._stop], [], [])
        return self._stop not in readable

    def _answer(self, client: socket.socket) -> None:
        with client:
            client.settimeout(_HEAD_S)
            host, port = "", 0
            try:
                head, rest = _read_head(client)
                host, port, forwarded = _asked(head)
                server = self._connect(host, port)
            except HostRefusedError as refusal:
                self._decided(host, port, str(refusal))
                _refuse(client, refusal)
                return
            except OSError:  # it went away
                return
            with server:
                if forwarded:
                    server.sendall(forwarded + rest)
                else:
                    client.sendall(b"HTTP/1.1 200 connected\r\n\r\n")
                    server.sendall(rest)
                self._pump(client, server)

    def _connect(self, host: str, port: int) -> socket.socket:
        """A connection to the host, at the address that was judged."""
        name = canonical(host)
        if not name:
            raise HostRefusedError("403 Forbidden", f"`{host}` is no name of a host")
        if not is_allowed(name, port, self._hosts):
            allowed = ", ".join(self._hosts) or "none"
            raise HostRefusedError(
                "403 Forbidden", f"{name}:{port} is not allowed; allowed: {allowed}"
            )
        self._count(name)
        server = self._connect_to(name, port)
        self._decided(name, port, "")
        return server

    def _decided(self, host: str, port: int, reason: str) -> None:
        if len(self.decisions) < _MOST_DECISIONS:
            self.decisions.append(Decision(host, port, reason, utc_now()))

    def _connect_to(self, name: str, port: int) -> socket.socket:
        try:
            addresses = self._find(name, port)
        except OSError as error:
            raise HostRefusedError("502 Bad Gateway", f"{name} has no address: {error}") from error
        if inner := [address for address in addresses if not self._may_reach(address)]:
            raise HostRefusedError(
                "403 Forbidden", f"{name} is {inner[0]}, which is not on the internet"
            )
        for address in addresses:
            try:
                return socket.create_connection((address, port), _CONNECT_S)
            except OSError:
                continue
        raise HostRefusedError("502 Bad Gateway", f"{name}:{port} does not answer")

    def _count(self, name: str) -> None:
        with self._lock:
            now = time.monotonic()
            self._recent = [at for at in self._recent if now - at < 60]
            if self._per_minute and len(self._recent) >= self._per_minute:
                reason = f"{name}: more than {self._per_minute} connections a minute"
                raise HostRefusedError("429 Too Many Requests", reason)
            self._recent.append(now)

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        """Carry bytes both ways until one side ends, all is idle, or we are to stop."""
        for one in (client, server):
            one.settimeout(_IDLE_S)
        other = {client: server, server: client}
        while True:
            try:
                readable, _, _ = select.select([client, server, self._stop], [], [], _IDLE_S)
            except ValueError:  # all is closed already
                return
            if not readable or self._stop in readable:
                return
            for one in readable:
                try:
                    data = one.recv(_CHUNK)
                    other[one].sendall(data)
                except OSError:
                    return
                if not data:
                    return


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """The request's head, and what came after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(_CHUNK)
        data += part
        if not part or len(data) > _LONGEST_HEAD:
            raise HostRefusedError("400 Bad Request", "no request that a proxy understands")
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _asked(head: bytes) -> tuple[str, int, bytes]:
    """Host, port, and the head to send on; that is empty for a tunnel.

    >>> _asked(b"CONNECT Example.com:443 HTTP/1.1")
    ('Example.com', 443, b'')
    >>> _asked(b"GET http://a.example:81/x HTTP/1.1\\r\\nHost: other\\r\\nA: b")[2].split()[:5]
    [b'GET', b'/x', b'HTTP/1.1', b'Host:', b'a.example:81']
    """
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3:
        raise HostRefusedError("400 Bad Request", "no request that a proxy understands")
    method, target, version = words
    if method == "CONNECT":
        host, port = _host_and_port(target, 0)
        return host, port, b""
    if not target.lower().startswith("http://"):
        raise HostRefusedError("400 Bad Request", "only `CONNECT` and `http://` can be asked for")
    place, slash, path = target[7:].partition("/")
    host, port = _host_and_port(place, 80)
    dropped = ("host:", "connection:", "proxy-")
    kept = [line for line in lines[1:] if not line.lower().startswith(dropped)]
    made = [
        f"{method} {slash or '/'}{path} {version}",
        f"Host: {place}",
        *kept,
        "Connection: close",
    ]
    return host, port, "\r\n".join([*made, "", ""]).encode("latin-1")


def _host_and_port(place: str, default: int) -> tuple[str, int]:
    host, colon, port = place.rpartition(":")
    if not colon:
        host, port = place, str(default)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536 or "@" in host:
        raise HostRefusedError("400 Bad Request", f"`{place}` is no host and port")
    return host, int(port)


def _refuse(client: socket.socket, refusal: HostRefusedError) -> None:
    body = f"openry: not allowed: {refusal}\n".encode("utf-8", "replace")
    head = f"HTTP/1.1 {refusal.status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    try:
        client.sendall(head.encode() + body)
    except OSError:  # it went away
        return
