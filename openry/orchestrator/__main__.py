"""`python -m openry.orchestrator` is `openry-orchestrator`."""

import gc
import sys
from typing import NoReturn

#: Objects made before circles among the young ones are looked for. Python's own 700 are for small
#: programs: loading this one makes 200,000 that all stay, and looking through them takes a tenth
#: of the time.
_YOUNG = 50_000


def program() -> NoReturn:
    """The console script: a Ctrl-C is one word also while the program still loads."""
    gc.set_threshold(_YOUNG)
    try:
        from openry.orchestrator.cli import main

        sys.exit(main())
    except KeyboardInterrupt:
        sys.stderr.write("openry-orchestrator: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    program()
