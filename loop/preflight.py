"""Before the first call: how many rounds a budget buys, and whether that is worth beginning."""

from __future__ import annotations

from dataclasses import dataclass

from loop.order import STRUCTURED, Order
from loop.planner import DRAFT_TOKENS, EDIT_TOKENS, offered
from openry.capability.registry import Registry
from openry.llm import Model
from openry.llm.base import estimate_tokens
from openry.llm.budget import Priced
from openry.llm.wrapper import innermost

#: Fewer rounds than this are not worth their cost: a draft and a mend or two.
LEAST_ROUNDS = 3
#: What a prompt holds beside the offered tools: instructions, step, files, evidence.
_REST_TOKENS = 2500


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a budget buys at most.

    Attributes:
        rounds: So many rounds after the draft.
        limit: The tightest limit, `tokens` or `usd`; empty where nothing limits.
        sentence: The same in words.
    """

    rounds: int
    limit: str = ""
    sentence: str = ""

    @property
    def enough(self) -> bool:
        return not self.limit or self.rounds >= LEAST_ROUNDS


def estimate(order: Order, model: Model, registry: Registry) -> Estimate:
    """What `order`'s budget buys with its planner, each call at its longest.

    Prices that are not known limit nothing here: such calls are refused when they are made.
    """
    if order.strategy != STRUCTURED:
        return Estimate(order.rounds)
    prompt = estimate_tokens(offered(registry)) + _REST_TOKENS
    draft = 0 if order.source else prompt + DRAFT_TOKENS
    each = prompt + EDIT_TOKENS
    bought: list[tuple[int, str, str]] = []
    if order.budget_tokens is not None:
        rounds = (order.budget_tokens - draft) // each
        need = f"{draft + LEAST_ROUNDS * each:,} tokens"
        bought.append((rounds, "tokens", need))
    price = _price(model, prompt, EDIT_TOKENS)
    if order.budget_usd is not None and price:
        first = 0.0 if order.source else _price(model, prompt, DRAFT_TOKENS)
        need = f"{first + LEAST_ROUNDS * price:.2f} USD"
        bought.append((int((order.budget_usd - first) / price), "usd", need))
    if not bought:
        return Estimate(order.rounds)
    rounds, limit, need = min(bought)
    rounds = max(0, rounds)
    said = f"the budget buys about {rounds} rounds with `{order.planner}`"
    if rounds < LEAST_ROUNDS:
        said += f", fewer than {LEAST_ROUNDS} are not begun: give {need}, or another planner"
    return Estimate(min(rounds, order.rounds) if rounds >= LEAST_ROUNDS else rounds, limit, said)


def _price(model: Model, prompt: int, answer: int) -> float:
    own = innermost(model)
    return (own.price_usd(prompt, answer) or 0.0) if isinstance(own, Priced) else 0.0
