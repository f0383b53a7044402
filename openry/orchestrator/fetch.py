"""Inside a sandbox: ask a web address, and print the status it answers with.

`python -m openry.orchestrator.fetch METHOD URL SECONDS`, a JSON body in REQUEST_BODY if there is
one. Exit 0 with a status; 3 with a sentence.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO

#: What our proxy says when a host is not allowed; not an answer of the host.
_REFUSED = b"openry: not allowed: "
_SHOWN_BYTES = 300


class _AsAnswered(urllib.request.HTTPRedirectHandler):
    """The first answer counts: a redirection is a status as others are."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        return None


def status_of(method: str, url: str, timeout_s: float) -> int:
    """The status of one request.

    Raises:
        OSError: It was not answered, or not let out.
    """
    headers, body = {"User-Agent": "openry"}, os.environ.get("REQUEST_BODY", "").encode() or None
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310
    opener = urllib.request.build_opener(_AsAnswered)
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(_SHOWN_BYTES)
        if said.startswith(_REFUSED):
            why = said.removeprefix(_REFUSED).decode("utf-8", "replace").strip()
            raise OSError(why) from None
        return error.code


def main(words: list[str]) -> int:
    method, url, seconds = words
    try:
        sys.stdout.write(f"{status_of(method, url, float(seconds))}\n")
    except (OSError, HTTPException, ValueError) as error:
        sys.stderr.write(f"{getattr(error, 'reason', error)}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
