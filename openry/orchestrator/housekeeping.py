"""What `run` does beside the patrol: it applies `retention`, and sweeps what sessions left."""

from __future__ import annotations

import sys
import threading
from itertools import count
from types import TracebackType
from typing import Self

from openry.config import Config
from openry.errors import OpenRYError
from openry.ledger.db import Ledger
from openry.session.lifecycle import sweep
from openry.session.retention import apply_retention

_SWEEP_EVERY_S = 300.0
_RETAIN_EVERY = 12  # sweeps


class Housekeeper:
    """Works in a thread of its own while it is entered."""

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self._config = config
        self._ledger = ledger
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="housekeeping")

    @property
    def _retains(self) -> bool:
        config = self._config
        limits = (config.retention_spills_bytes, config.retention_snapshots_bytes)
        return bool(config.retention_runs_s) or any(limits)

    def _work(self) -> None:
        for turn in count():
            try:
                if self._retains and not turn % _RETAIN_EVERY:
                    apply_retention(self._config, self._ledger, should_stop=self._ended.is_set)
                if turn:
                    sweep(self._config, self._ledger)
            except OpenRYError as error:
                sys.stderr.write(f"openry: housekeeping: {error}\n")
            if self._ended.wait(_SWEEP_EVERY_S):
                return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
