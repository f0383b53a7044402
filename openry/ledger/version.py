"""Which schemas this program knows, and how long it waits for a lock."""

from __future__ import annotations

from openry import __version__
from openry.errors import LedgerTooNewError

#: Revisions of the schema, oldest first. A test compares them with the migrations.
REVISIONS = ("0001", "0002", "0003")
HEAD = REVISIONS[-1]
BUSY_TIMEOUT_S = 30.0


def refuse_newer(found: str | None, where: str) -> None:
    """Refuse a ledger whose schema this program has never heard of.

    Raises:
        LedgerTooNewError: `found` is a revision, and not one of ours.
    """
    if found is not None and found not in REVISIONS:
        raise LedgerTooNewError(
            f"the ledger `{where}` has schema {found}, but openry {__version__} knows only up to"
            f" {HEAD}; upgrade openry, or set OPENRY_DB to another file"
        )
