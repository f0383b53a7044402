"""Inside a sandbox: hand a listener out to the proxy, then become the command.

`python -m openry.sandbox.inlet FD -- ARGV`. The network namespace is the sandbox's own, so its
loopback addresses lead nowhere else.
"""

from __future__ import annotations

import socket
import sys

from openry.sandbox.become import become

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

PORT = 3128
_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def proxy_environment() -> dict[str, str]:
    """What makes programs use the proxy."""
    return dict.fromkeys(_VARIABLES, f"http://127.0.0.1:{PORT}")


def main(words: list[str]) -> NoReturn:
    with (
        socket.socket(fileno=int(words[0])) as out,
        socket.create_server(("127.0.0.1", PORT)) as inlet,
    ):
        socket.send_fds(out, [b"x"], [inlet.fileno()])
    become(words[2:])


if __name__ == "__main__":
    main(sys.argv[1:])
