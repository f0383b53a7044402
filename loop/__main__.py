"""`python -m loop` is `openry-loop`."""

from typing import NoReturn

from openry.starting import run


def program() -> NoReturn:
    """The console script."""
    run("openry-loop", "loop.cli")


if __name__ == "__main__":
    program()
