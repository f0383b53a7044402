"""Ctrl-C before a command has begun."""

from __future__ import annotations

import subprocess
import sys

import pytest

EARLY = """
import sys

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient())
sys.argv = ["openry", {word!r}]
from {module} import program
program()
"""


@pytest.mark.parametrize(
    ("module", "word", "name", "says"),
    [
        ("openry.orchestrator.__main__", "list", "typer", "openry-orchestrator: interrupted\n"),
        ("loop.__main__", "list", "typer", "openry-loop: interrupted\n"),
        ("loop.__main__", "list", "loop.start", "openry-loop: interrupted\n"),
        ("openry.__main__", "log", "openry.cli.log", "openry: interrupted\n"),
    ],
)
def test_while_a_program_still_loads_it_is_one_sentence(
    module: str, word: str, name: str, says: str
):
    """Whatever was being imported just then."""
    code = EARLY.format(name=name, module=module, word=word)

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (130, says)
