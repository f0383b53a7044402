"""`openry config`: each setting and where it came from."""

from __future__ import annotations

from collections.abc import Sequence

from openry.cli.output import write_json, write_table
from openry.cli.parser import Parser
from openry.config import SETTINGS, load_config
from openry.ledger.place import shown


def main(words: Sequence[str]) -> int:
    parser = Parser("openry config", description=__doc__)
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(words)
    config = load_config()
    found = [
        (key or field, _plain(field, getattr(config, field)), config.origins[field], variable)
        for field, key, variable, _ in SETTINGS
    ]
    if given.json:
        write_json({name: {"value": item, "from": from_} for name, item, from_, _ in found})
        return 0
    write_table(
        (name, _shown(item), f"{origin} ({variable})" if origin == "environment" else origin)
        for name, item, origin, variable in found
    )
    return 0


def _plain(field: str, item: object) -> object:
    """A setting as it may be shown: texts that are secret, and a password in an address, hidden."""
    if field == "redact" and isinstance(item, tuple):
        return ("***",) * len(item)
    return shown(item) if field in ("ledger", "api_base") and isinstance(item, str) else item


def _shown(item: object) -> str:
    return ", ".join(map(str, item)) if isinstance(item, tuple) else str(item)
