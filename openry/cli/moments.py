"""`--since`: a time as people say it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from openry.errors import UsageError

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def time_since(text: str, now: datetime | None = None) -> str:
    """The time that is meant, as the ledger writes it.

    >>> time_since("90m", datetime(2026, 3, 1, 12, tzinfo=UTC)), time_since("2026-02-28")
    ('2026-03-01T10:30:00.000Z', '2026-02-28T00:00:00.000Z')

    Raises:
        UsageError: It is neither a number with a unit nor a date.
    """
    unit = _UNITS_S.get(text[-1:])
    try:
        if unit is not None and text[:-1].isascii() and text[:-1].isdigit():
            then = (now or datetime.now(UTC)) - timedelta(seconds=int(text[:-1]) * unit)
        else:
            then = datetime.fromisoformat(text)
            then = then.replace(tzinfo=UTC) if then.tzinfo is None else then.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            "--since must be a number and s, m, h, d or w, e.g. `1h`, or a date in UTC such as"
            f" `2026-03-01`; got `{text}`"
        ) from None
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")
