"""`python -m openry.orchestrator` is `openry-orchestrator`."""

import sys
from typing import NoReturn


def program() -> NoReturn:
    """The console script: a Ctrl-C is one word also while the program still loads."""
    try:
        from openry.orchestrator.cli import main

        sys.exit(main())
    except KeyboardInterrupt:
        sys.stderr.write("openry-orchestrator: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    program()
