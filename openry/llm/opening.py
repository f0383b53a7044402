"""From a model's name to a model that keeps budgets, waits, remembers and is written down."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

from openry.config import Config
from openry.errors import UsageError
from openry.llm.base import Model, Redact, keep
from openry.llm.budget import Budget, Budgeted
from openry.llm.cassette import Cassette, Cassetted
from openry.llm.record import Recorded
from openry.llm.retry import Pick, Retrying, Sleep
from openry.llm.wrapper import innermost

if TYPE_CHECKING:
    from openry.ledger.db import Ledger
    from openry.llm.client import Endpoint


def open_model(
    name: str,
    *,
    config: Config,
    ledger: Ledger | None = None,
    budget: Budget | None = None,
    cassette: Cassette | None = None,
    redact: Redact = keep,
    allow_unpriced: bool = False,
    sleep: Sleep = time.sleep,
    pick: Pick = random.uniform,
) -> Model:
    """The model called `name`: `local/smollm2`, `local/FILE.gguf`, or any name litellm knows.

    A server on this machine whose model has no known price is taken as free, unless `budget`
    limits money. Everywhere else an unknown price must be allowed, here or in `config`.

    Raises:
        ModelError: `no_weights` or `unknown_model` for a `local/` one. What a litellm model lacks
            shows at its first call, or in `check_model`.
        UsageError: The name is empty, or the configured endpoint is no address.
    """
    budget = budget or Budget()
    if not name.strip():
        raise UsageError("the name of the model is empty: try `local/smollm2`")
    if name.startswith("local/"):
        from openry.llm.local import open_local

        model: Model = Budgeted(open_local(name, config.local_model), budget)
    else:
        from openry.llm.client import LiteLLM, preload

        preload()
        alone = LiteLLM(name, endpoint_of(config), redact=redact)
        free_here = alone.on_this_machine and budget.usd is None
        allowed = allow_unpriced or config.allow_unpriced or free_here
        budgeted = Budgeted(alone, budget, allow_unpriced=allowed)
        model = Retrying(budgeted, sleep=sleep, pick=pick, seconds_left=budget.seconds_left)
    if cassette is not None:
        model = Cassetted(model, cassette)
    return model if ledger is None else Recorded(model, ledger, redact)


def check_model(model: Model) -> None:
    """Raise now what the first call would for want of a provider, a key or weights; ask nobody.

    Raises:
        ModelError: `unknown_model`, `no_key` or `no_weights`, with the ways out.
    """
    from openry.llm.client import LiteLLM

    inner = innermost(model)
    if isinstance(inner, LiteLLM):
        inner.check()


def endpoint_of(config: Config) -> Endpoint:
    """Where `openai/…` models answer: OPENRY_API_BASE, else OpenAI's own variables."""
    from openry.llm.client import Endpoint

    base = config.api_base or _first_set("OPENAI_API_BASE", "OPENAI_BASE_URL")
    return Endpoint(base, _first_set("OPENRY_API_KEY", "OPENAI_API_KEY"))


def _first_set(*variables: str) -> str:
    return next((os.environ[name] for name in variables if os.environ.get(name)), "")
