"""What is not for a run's agent says so, and does nothing."""

from __future__ import annotations

from openry.config import load_config
from openry.errors import OpenRYError, UsageError
from openry.ledger.above import inside_a_run
from openry.ledger.fast import running_above

_OPEN = "an agent has `openry -c`, `--call`, `--status`, `--capabilities` and `openry output`"


def refuse_inside_a_run(program: str, *, notice_token: str = "") -> None:
    """Go on only outside of every run.

    Args:
        notice_token: What a `notify` command outside every sandbox was given. Its engine stands
            above it, and with that the engine's runs; it belongs to none of them.

    Raises:
        UsageError: This process is inside a run, or below one of the ledger that it would use.
    """
    inside, ledger = inside_a_run(), _ledger()
    if not inside and not (ledger and notice_token and _is_a_notice(ledger, notice_token)):
        inside = running_above(ledger)
    if inside:
        raise UsageError(f"`{program}` is not available inside a run: {inside} ({_OPEN})")


def _ledger() -> str:
    try:
        return load_config().ledger
    except OpenRYError:
        return ""  # whoever needs the settings says what is wrong with them


def _is_a_notice(where: str, token: str) -> bool:
    """Whether an engine that is at work has given this token to its notices."""
    from openry.ledger.db import Ledger
    from openry.ledger.tokens import fits
    from openry.ledger.workers import live_workers

    with Ledger(where) as ledger, ledger.read() as connection:
        return any(fits(token, row.data.get("notices", "")) for row in live_workers(connection))
