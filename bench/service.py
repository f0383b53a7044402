"""The hand over MCP and HTTP: what a call costs beside `sh -c`, and many calls at once."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import BIN, Case, Row, environment, in_turns, middle, run, timed
from openry import __version__
from openry.capability import own_registry
from openry.data import data_root

_ROUNDS = 150
#: Calls before the first that counts: the interpreter fits itself to what it does often.
_WARM = 20
_PEER = "sh -c true"
_LINE = {"command": "true"}


def calls(place: Path) -> list[Row]:
    """One call after another, each way in taking turns with the bare shell alone.

    What a client takes by itself is no cost of the server's: lines of JSON are written to a pipe,
    and requests to one connection of `http.client`. The protocol's own client stands beside them.
    Two servers at once would keep each other's caches cold, which no client of one of them sees.
    """
    bare = timed(lambda: subprocess.run(("sh", "-c", "true"), cwd=place, check=True))

    def added(call: Callable[[], Any]) -> tuple[float, float]:
        """Median milliseconds over the bare shell's, and those of the shell."""
        for _ in range(_WARM):
            call()
        shell, took = in_turns(_ROUNDS, bare, timed(call))
        return round(middle(took) - middle(shell), 2), middle(shell)

    with mcp_server(place) as ask:
        mcp = added(lambda: ask("tools/call", {"name": "openry", "arguments": _LINE}))
    with http_server(place) as post:
        web = added(lambda: post("/run", _LINE))
    with mcp_client(place) as client:
        theirs = added(lambda: client("openry", _LINE))
    what = "a command line, added to sh -c"
    return [
        Row(f"openry mcp: {what}", mcp[0], "ms", _PEER, mcp[1], "<= 2 ms", mcp[0] <= 2),
        Row(f"openry serve: {what}", web[0], "ms", _PEER, web[1], "<= 4 ms", web[0] <= 4),
        Row("openry mcp: the same by the SDK's client", theirs[0], "ms", _PEER, theirs[1]),
    ]


def many(place: Path) -> list[Row]:
    """A hundred at once, and a thousand that wait for their turn; each must get its own answer."""
    rows = []
    with http_server(place, keep=False) as post:
        for count, at_once in ((100, 100), (1000, 100)):

            def ask(number: int) -> bool:
                said = post("/run", {"command": f"echo {number}"})
                return bool(said.get("stdout") == f"{number}\n")

            def all_of_them(count: int = count, at_once: int = at_once) -> int:
                with ThreadPoolExecutor(at_once) as pool:
                    return count - sum(pool.map(ask, range(count)))

            what = f"openry serve: {count:,} calls, {at_once} at a time"
            began = time.perf_counter()
            lost = all_of_them()
            spent = (time.perf_counter() - began) * 1000
            rows.append(Row(f"{what}: lost", lost, "", target="0", met=lost == 0))
            rows.append(Row(f"{what}: each", round(spent / count, 2), "ms"))
    return rows


def tools(place: Path) -> list[Row]:
    """200 tools, read by a fresh process that read them before."""
    home = place / "home"
    shipped, made = len(own_registry(home)), 0
    for copy in range(3):
        for pack in ("text", "files", "data"):
            folder = home / "capabilities" / f"{pack}{copy}"
            shutil.copytree(data_root() / "templates" / "capabilities" / pack, folder)
            for file in sorted(folder.glob("*.yaml")):
                if file.name == "pack.yaml":
                    continue
                made += 1
                text = file.read_text("utf-8")
                name = file.stem
                file.write_text(text.replace(f"name: {name}", f"name: {name}_{copy}", 1), "utf-8")
                if shipped + made > 200:
                    file.unlink()
    home.chmod(0o700)
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from openry.capability import own_registry\nbegan = time.perf_counter()\n"
        "found = own_registry(Path(sys.argv[1]))\n"
        "print(len(found), (time.perf_counter() - began) * 1000)"
    )
    argv, env = (sys.executable, "-c", code, str(home)), environment(place)
    time.sleep(2.5)  # the registry remembers no folder that changed within two seconds
    told = [run(argv, cwd=place, env=env).output.split() for _ in range(6)][1:]
    count, took = told[0][0], middle([float(each[1]) for each in told])
    return [Row(f"{count} tools: load", took, "ms", target="<= 150 ms", met=took <= 150)]


@contextmanager
def mcp_server(place: Path) -> Iterator[Any]:
    """A way to ask one `openry mcp` and wait for its answer, without a library between."""
    argv = (str(BIN / "openry"), "mcp", "--dir", str(place))
    server = subprocess.Popen(
        argv, env=environment(place), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    number = 0

    def send(message: dict[str, Any]) -> None:
        assert server.stdin is not None
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()

    def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        nonlocal number
        number += 1
        send({"id": number, "method": method, "params": params})
        while True:
            assert server.stdout is not None
            said: dict[str, Any] = json.loads(server.stdout.readline())
            if said.get("id") == number:
                assert "error" not in said, said
                return said

    about = {"name": "bench", "version": __version__}
    ask(
        "initialize",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about},
    )
    send({"method": "notifications/initialized"})
    try:
        yield ask
    finally:
        server.stdin.close()
        server.wait(30)


@contextmanager
def mcp_client(place: Path) -> Iterator[Any]:
    """A way to call a tool of one `openry mcp` by the client of the protocol's own library."""
    import mcp
    from anyio.from_thread import start_blocking_portal

    server = mcp.StdioServerParameters(
        command=str(BIN / "openry"), args=["mcp", "--dir", str(place)], env=environment(place)
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(mcp.Client(server)) as client,
    ):
        yield lambda name, arguments: portal.call(client.call_tool, name, arguments)


@contextmanager
def http_server(place: Path, *, keep: bool = True) -> Iterator[Any]:
    """A way to post to one `openry serve`.

    Args:
        keep: Over one connection; else each call makes its own, as from a thread of its own.
    """
    argv = (str(BIN / "openry"), "serve", "--port", "0", "--dir", str(place))
    server = subprocess.Popen(argv, env=environment(place), stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    host = server.stdout.readline().split()[2].rstrip(";").removeprefix("http://")
    token = (place / "home" / "serve.token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    one = http.client.HTTPConnection(host)

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = one if keep else http.client.HTTPConnection(host, timeout=300)
        connection.request("POST", path, json.dumps(body), headers)
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        if not keep:
            connection.close()
        return answer

    try:
        yield post
    finally:
        one.close()
        server.terminate()
        server.wait(30)


CASES: dict[str, Case] = {"service": calls, "service_many": many, "tools": tools}
