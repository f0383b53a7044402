"""Real servers of the hand: an MCP one per test, one over HTTP per file."""

import os
import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-m", "openry"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "names.txt").write_text("bea\nadam\n")
    return tmp_path


@pytest.fixture(scope="module")
def environment(home):
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "OPENRY_HOME": str(home)}


@pytest.fixture
def log(environment):
    """What the ledger says, one line a command."""

    def read():
        argv = [*PROGRAM, "log"]
        told = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
        return told.stdout.splitlines()

    return read
