"""`openry log verify`: is the ledger what was written?

Each row's hash is made of the row and of the one before. This finds accidents and clumsy edits.
Who owns the file can make all hashes anew: only a head that was kept elsewhere shows that
(--anchor, and `ledger.anchor_command`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from openry.cli.output import write, write_json
from openry.cli.parser import Parser
from openry.config import load_config, make_home
from openry.ledger.db import Ledger
from openry.ledger.verify import Verified, verify
from openry.ledger.verify_part import MAX_PROBLEMS


def main(words: Sequence[str]) -> int:
    parser = Parser("openry log verify", description=__doc__)
    parser.add_argument("--anchor", default="", metavar="HASH", help="it must still be there")
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(words)
    config = load_config()
    make_home(config)
    began = time.monotonic()
    with Ledger(config.ledger) as ledger, ledger.read() as connection:
        found = verify(connection, given.anchor.lower())
    seconds = time.monotonic() - began
    if given.json:
        problems = [{"table": one.table, "id": one.id, "what": one.what} for one in found.problems]
        anchored = {"anchored": found.anchored} if given.anchor else {}
        about = {"ok": found.ok, "rows": found.rows, "unhashed": found.unhashed}
        more = {"head": found.head, "seconds": round(seconds, 3), "problems": problems}
        write_json({**about, **more, **anchored})
    else:
        write(_told(found, given.anchor, seconds))
    return 0 if found.ok else 1


def _told(found: Verified, anchor: str, seconds: float) -> str:
    lines = [str(one) for one in found.problems]
    if len(found.problems) >= MAX_PROBLEMS:
        lines.append("and more")
    if found.anchored is False:
        lines.append(
            f"the anchor {anchor} is not in this ledger: something up to it was changed or removed,"
            " or it is another ledger's"
        )
    older = f", {found.unhashed:,} of them older than the hashes" if found.unhashed else ""
    verdict = "as written" if found.ok else "NOT as written"
    lines.append(f"{found.rows:,} rows{older}: {verdict} ({seconds:.1f} s)")
    if found.head:
        lines.append(f"head: {found.head}")
    return "\n".join(lines) + "\n"
