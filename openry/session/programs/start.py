"""What the programs beside it start: our own code alone, without the site packages."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from openry.session.blackboard import program

    sys.exit(program())
