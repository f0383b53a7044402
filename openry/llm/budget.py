"""Limits on what models may cost: reserved before each call, settled after it."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Protocol, runtime_checkable

from openry.clock import Monotonic, monotonic
from openry.errors import BudgetError, ModelError
from openry.llm.base import ChatReply, ChatRequest, Model, estimate_tokens
from openry.llm.wrapper import Wrapper, innermost

#: After these the provider may have done, and charged for, its work.
_MAY_BE_PAID = frozenset({"cut", "overloaded"})

#: Sums of prices are floats; a limit is not missed by less than this.
_ROUNDING_USD = 1e-9


@dataclass(frozen=True, slots=True)
class Spent:
    """What calls have used. `usd` counts known prices only."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.calls - other.calls, self.tokens - other.tokens, self.usd - other.usd)


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one call may use at most. Give it back with `Budget.settle`."""

    worst: Spent


class Budget:
    """Limits shared by all who hold this object, in any thread; None means no limit.

    A call is made only if its worst case still fits beside what is spent and what other calls
    under way have reserved.

    Args:
        tokens: Prompt and answer tokens together.
        seconds: Wall time from the making of this object, waiting included.
        spent: Used before, e.g. by the session that is resumed.
    """

    def __init__(
        self,
        tokens: int | None = None,
        usd: float | None = None,
        seconds: float | None = None,
        calls: int | None = None,
        *,
        spent: Spent = Spent(),
        now: Monotonic = monotonic,
    ) -> None:
        self.tokens = tokens
        self.usd = usd
        self.seconds = seconds
        self.calls = calls
        self._spent = spent
        self._reserved = Spent()
        self._now = now
        self._start = now()
        self._lock = Lock()

    @property
    def spent(self) -> Spent:
        """Settled calls only."""
        with self._lock:
            return self._spent

    def seconds_left(self) -> float | None:
        """Wall time left; None when unlimited, never below 0."""
        if self.seconds is None:
            return None
        return max(0.0, self.seconds - (self._now() - self._start))

    def reserve(self, tokens: int, usd: float) -> Reservation:
        """Set aside what the next call may use at most.

        Raises:
            BudgetError: It does not fit; nothing was set aside. `limit` says which one.
        """
        worst = Spent(1, tokens, usd)
        with self._lock:
            self._refuse_unless_fits(worst)
            self._reserved += worst
        return Reservation(worst)

    def settle(self, reservation: Reservation, used: Spent) -> None:
        """Replace a reservation by what was really used; `Spent()` when nothing was."""
        with self._lock:
            self._reserved -= reservation.worst
            self._spent += used

    def check_time(self) -> None:
        """Raise BudgetError when the time is over."""
        if self.seconds is not None and self.seconds_left() == 0.0:
            raise BudgetError(f"budget: the {self.seconds:g} seconds are over", limit="seconds")

    def _refuse_unless_fits(self, worst: Spent) -> None:
        self.check_time()
        after = self._spent + self._reserved + worst
        used = self._spent + self._reserved
        if self.calls is not None and after.calls > self.calls:
            raise BudgetError(f"budget: all {self.calls} calls of models are used", limit="calls")
        if self.tokens is not None and after.tokens > self.tokens:
            raise BudgetError(
                f"budget: {used.tokens:,} of {self.tokens:,} tokens are used and the next call "
                f"may take {worst.tokens:,}",
                limit="tokens",
            )
        if self.usd is not None and after.usd > self.usd + _ROUNDING_USD:
            raise BudgetError(
                f"budget: {used.usd:.4f} of {self.usd:.4f} USD are used and the next call may "
                f"cost {worst.usd:.4f}",
                limit="usd",
            )


@runtime_checkable
class Priced(Protocol):
    """A model that knows what it costs."""

    def price_usd(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """The price of such a call; None when it is not known."""
        ...


class Budgeted(Wrapper):
    """Makes a call only if its worst case fits the budget and its price is known.

    Args:
        allow_unpriced: Make calls of unknown price too; they count in tokens, not in money.
    """

    def __init__(self, inner: Model, budget: Budget, *, allow_unpriced: bool = False) -> None:
        super().__init__(inner)
        self.budget = budget
        self.allow_unpriced = allow_unpriced

    def complete(self, request: ChatRequest) -> ChatReply:
        prompt_tokens = estimate_tokens(request.prompt_text())
        worst_usd = self._price(prompt_tokens, request.max_tokens)
        reservation = self.budget.reserve(prompt_tokens + request.max_tokens, worst_usd or 0.0)
        used = reservation.worst  # whatever interrupts the call: it may have been paid
        try:
            reply = self.inner.complete(request)
            used = Spent(1, reply.tokens, reply.cost_usd or 0.0)
        except ModelError as error:
            if error.code not in _MAY_BE_PAID:
                used = Spent()
            raise
        finally:
            self.budget.settle(reservation, used)
        return reply

    def _price(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        model = innermost(self.inner)
        price = (
            model.price_usd(prompt_tokens, completion_tokens) if isinstance(model, Priced) else 0.0
        )
        if price is None and not self.allow_unpriced:
            raise ModelError(
                "unpriced",
                f"the price of `{self.name}` is not known, so no budget can hold: allow it with "
                "`--allow-unpriced` or OPENRY_ALLOW_UNPRICED=1",
            )
        return price
