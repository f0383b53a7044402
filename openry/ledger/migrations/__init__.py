"""How a ledger of an older OpenRY becomes one of this. Run by `openry.ledger.migrate`."""
