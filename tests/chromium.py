"""A real Chromium for a test, without a driver of its own: spoken to through two pipes."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: What the program is called, and what it is told: no window, nothing looked up, nothing kept.
NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip


def program() -> str | None:
    """The browser of this machine, if it has one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab. Each method has been carried out by the browser when it returns."""

    def __init__(self, send: int, receive: int) -> None:
        self._send = os.fdopen(send, "wb", 0)
        self._receive = os.fdopen(receive, "rb")
        self._number = 0
        self._session = ""
        self._events: list[Any] = []
        #: Addresses that the page asked for.
        self.asked: list[str] = []

    def begin(self) -> None:
        """Wait for the browser, and have a tab made."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        self.ask("Page.enable")
        self.ask("Network.enable")

    def ask(self, method: str, **params: Any) -> Any:
        """Have the browser do one thing; what it answers."""
        self._number += 1
        said = {"id": self._number, "method": method, "params": params}
        if self._session:
            said["sessionId"] = self._session
        self._send.write(json.dumps(said).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]
            self._events.append(told)  # it may come before the answer to what caused it

    def wait_for(self, event: str) -> Any:
        """The next event of that name."""
        while True:
            told = self._events.pop(0) if self._events else self._next()
            if told.get("method") == event:
                return told["params"]

    def _next(self) -> Any:
        told = bytearray()
        while not told.endswith(b"\0"):
            byte = self._receive.read(1)
            assert byte, "the browser has gone"
            told += byte
        found = json.loads(told[:-1])
        if found.get("method") == "Network.requestWillBeSent":
            self.asked.append(found["params"]["request"]["url"])
        return found

    def open(self, path: Path, width: int) -> None:
        """Show a file in a window of that width."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900,
                 deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        self._events.clear()
        self.ask("Page.navigate", url=path.as_uri())
        self.wait_for("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def saved(self, folder: Path, script: str) -> None:
        """Run what saves a file, and wait until it lies in `folder`."""
        self.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder),
                 eventsEnabled=True)  # fmt: skip
        self._events.clear()
        self.run(script)
        while self.wait_for("Browser.downloadProgress")["state"] != "completed":
            pass

    def close(self) -> None:
        self._send.close()
        self._receive.close()


@contextmanager
def browsing(home: Path) -> Iterator[Page]:
    """A page of a browser that keeps everything in `home`, and is gone afterwards."""
    browser = program()
    assert browser, "asked before"
    to_it, send = os.pipe()
    receive, from_it = os.pipe()
    # The browser reads from descriptor 3 and writes to 4; neither of ours may be one of them.
    ours = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in (to_it, from_it)]
    script = f'exec 3<&{ours[0]} 4>&{ours[1]}; exec "$@"'
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", browser, *_FLAGS, f"--user-data-dir={home}"],
        pass_fds=ours,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(home)},
    )  # fmt: skip
    for each in (to_it, from_it, *ours):
        os.close(each)
    page = Page(send, receive)
    try:
        page.begin()
        yield page
    finally:
        page.close()  # it ends when its pipe does
        process.wait()
