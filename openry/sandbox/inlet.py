"""Inside a sandbox: hand a listener out to the proxy, then become the command.

`python -m openry.sandbox.inlet FD -- ARGV`. The network namespace is the sandbox's own, so its
loopback addresses lead nowhere else.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

PORT = 3128
_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def proxy_environment() -> dict[str, str]:
    """What makes programs use the proxy."""
    return dict.fromkeys(_VARIABLES, f"http://127.0.0.1:{PORT}")


def main(words: list[str]) -> None:
    control, argv = int(words[0]), words[2:]
    with socket.socket(fileno=control) as out, socket.create_server(("127.0.0.1", PORT)) as inlet:
        socket.send_fds(out, [b"x"], [inlet.fileno()])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
