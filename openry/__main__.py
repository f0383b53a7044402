"""`python -m openry`: the same as `openry`."""

from openry.cli import program

if __name__ == "__main__":
    program()
