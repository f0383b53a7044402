"""`openry output`: look into outputs that were too large to be answered whole."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence

from openry.cli.output import write
from openry.config import load_config
from openry.forwarder.outputs import Shelf, look
from openry.output.redact import Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.ledger.fast import FastLedger
    from openry.models.output import StoredOutput

_HELP = """\
openry output list [--json]                 outputs that were kept, newest last
openry output show ID [--lines A:B]         all of one, or some lines
openry output grep ID REGEX [-i] [-C N] [--max N]
                                            lines that match, with their numbers
openry output kinds ID                      its kinds of lines and how often each is there
openry output digest ID|FILE [--tokens N] [--task TEXT]
                                            trouble, rarities and the usual in at most N tokens
openry output slice ID|FILE --into DIR [--tokens N] [--most N] [--task TEXT]
                                            parts cut at records, those worth reading
openry output merge DIR [--tokens N]        summaries of the parts, checked against them
"""


def main(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        write(_HELP)
        return 0 if words else 2
    gc.disable()  # a census makes many small objects and no circles, and then we end
    redactor = Redactor.for_config(load_config(), os.environ)
    return look(words, Shelf(_find, _newest, text=redactor.text), write)


def _ledger() -> FastLedger:
    """The ledger, for a person; who is inside a run asks its worker instead."""
    from openry.config import make_home
    from openry.ledger.fast import FastLedger
    from openry.ledger.inside import refuse_inside_a_run

    refuse_inside_a_run("openry output with the name of an output")
    config = load_config()
    make_home(config)
    return FastLedger(config.ledger)


def _find(name: str) -> StoredOutput | None:
    from openry.ledger.outputs import find_output

    with _ledger() as ledger:
        return find_output(ledger, name)


def _newest() -> Sequence[StoredOutput]:
    from openry.ledger.outputs import outputs_of

    with _ledger() as ledger:
        return outputs_of(ledger)
