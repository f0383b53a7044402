"""Which hosts a sandbox may reach. A name is read once, and the judged address is used."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable

_WEB = (80, 443)
_NAME_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.")
HOST_HINT = "write it like `api.example.com:443` or `*.example.com`"
#: Finds the addresses of a host; a test has its own.
Resolve = Callable[[str, int], list[str]]


def canonical(host: str) -> str:
    """The one name of a host: lower case, IDNA, without a last dot; empty when it is none.

    A number in whatever notation is no name: what it means is up to whoever reads it.

    >>> [canonical(h) for h in ("API.Example.com.", "bücher.example", "127.0.0.1", "0x7f.1")]
    ['api.example.com', 'xn--bcher-kva.example', '', '']
    >>> [canonical(h) for h in ("2130706433", "[::1]", "a..b", "a_b.example", "", "ex ample")]
    ['', '', '', '', '', '']
    """
    try:
        name = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        return ""
    labels = name.split(".")
    if not set(name) <= _NAME_SIGNS or not all(labels) or len(name) > 253:
        return ""
    last = labels[-1]
    return "" if last.isdigit() or last.startswith("0x") else name


def is_allowed(host: str, port: int, patterns: Iterable[str]) -> bool:
    """Whether a pattern names the host: `api.example.com:443`, `*.example.com`, `example.com:*`.

    Without a port a pattern means the web's. A `*` stands for one label.

    >>> is_allowed("a.example.com", 443, ["*.example.com"]), is_allowed("a.b.c", 22, ["a.b.c"])
    (True, False)
    >>> is_allowed("example.com.evil.test", 443, ["example.com"])
    False
    """
    for pattern in patterns:
        name, ports = _read(pattern)
        if (not ports or port in ports) and _matches(host.split("."), name.split(".")):
            return True
    return False


def is_pattern(text: str) -> bool:
    """Whether `is_allowed` can read it.

    >>> [is_pattern(one) for one in ("api.example.com", "*.example.com:*", "a.example:8443")]
    [True, True, True]
    >>> [is_pattern(one) for one in ("127.0.0.1", "https://a.example", "a.example:x", "*")]
    [False, False, False, False]
    """
    name, colon, port = text.partition(":")
    labels = canonical_pattern(name).split(".")
    reads = all(labels) and bool(set(labels) - {"*"}) and bool(canonical(f"x.{labels[-1]}"))
    return reads and (not colon or port == "*" or (port.isdigit() and 0 < int(port) < 65536))


def in_both(some: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """Patterns for exactly the hosts that both lists allow.

    >>> in_both(["*.example.com", "b.test:22"], ["api.example.com:443", "c.test"])
    ('api.example.com:443',)
    """
    others = tuple(others)
    found = (_in_both(one, other) for one in some for other in others)
    return tuple(dict.fromkeys(pattern for patterns in found for pattern in patterns))


def _in_both(one: str, other: str) -> list[str]:
    (name, ports), (name_2, ports_2) = _read(one), _read(other)
    labels, labels_2 = name.split("."), name_2.split(".")
    pairs = list(zip(labels, labels_2, strict=False))
    if len(labels) != len(labels_2) or any(a != b and "*" not in (a, b) for a, b in pairs):
        return []
    both = ".".join(b if a == "*" else a for a, b in pairs)
    if not ports or not ports_2:
        shared = ports or ports_2 or ("*",)
    else:
        shared = tuple(port for port in ports if port in ports_2)
    return [f"{both}:{port}" for port in shared]


def _read(pattern: str) -> tuple[str, tuple[int, ...]]:
    """A pattern's host and its ports; no ports for all of them."""
    name, _, port = pattern.partition(":")
    ports = () if port == "*" else (int(port),) if port.isdigit() else _WEB
    return canonical_pattern(name), ports


def canonical_pattern(name: str) -> str:
    """A pattern's host as `canonical` would have it; stars stay."""
    return ".".join(label if label == "*" else canonical(label) for label in name.split("."))


def _matches(labels: list[str], wanted: list[str]) -> bool:
    return len(labels) == len(wanted) and all(
        want in ("*", label) for label, want in zip(labels, wanted, strict=True)
    )


def resolve(host: str, port: int) -> list[str]:
    """Every address of a host.

    Raises:
        OSError: It has none, or nobody can be asked.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))


def is_public(address: str) -> bool:
    """Whether an address is one of the internet: no private, local, shared or test network.

    >>> [is_public(a) for a in ("93.184.216.34", "127.0.0.1", "10.0.0.1", "169.254.169.254")]
    [True, False, False, False]
    >>> is_public("::ffff:127.0.0.1"), is_public("64:ff9b::7f00:1"), is_public("100.64.0.1")
    (False, False, False)
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inside = found.ipv4_mapped or found.sixtofour or _nat64(found)
        if inside is not None:
            return is_public(str(inside))
    return found.is_global and not found.is_multicast


def _nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    prefix = ipaddress.ip_network("64:ff9b::/96")
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in prefix else None
