"""The newest head of the ledger, given to whoever keeps it elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress

from openry.config import Config
from openry.errors import StorageError
from openry.ledger.db import Ledger
from openry.ledger.heads import newest_head

_WAIT_S = 10.0


class Anchor:
    """Starts `ledger.anchor_command` for each new head; it reads `{"head": HASH}`.

    It is the operator's own command, from config.yaml alone: it runs outside every sandbox.
    """

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self._command = config.anchor_command
        self._ledger = ledger
        self._sent = self._newest() if self._command else ""
        self._running: list[subprocess.Popen[bytes]] = []

    def look(self) -> None:
        """Send the newest head, if there is a new one."""
        if not self._command:
            return
        head = self._newest()
        if head == self._sent:
            return
        self._sent = head
        self._running = [each for each in self._running if each.poll() is None]
        argv = ("sh", "-c", self._command)
        try:
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        except OSError as error:
            sys.stderr.write(f"openry: ledger.anchor_command cannot start: {error.strerror}\n")
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(json.dumps({"head": head}).encode() + b"\n")
        self._running.append(process)

    def close(self) -> None:
        """Send what was not sent, and wait for those under way, not for long."""
        # Whoever ends on a ledger that cannot be read has been told so.
        with suppress(StorageError):
            self.look()
        for process in self._running:
            try:
                process.wait(_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                sys.stderr.write(f"openry: ledger.anchor_command took longer than {_WAIT_S:g} s\n")

    def _newest(self) -> str:
        with self._ledger.read() as connection:
            return newest_head(connection)
