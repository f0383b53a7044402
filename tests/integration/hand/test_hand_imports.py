"""The forwarder's path imports nothing heavy: its start is every call's latency."""

from __future__ import annotations

import subprocess
import sys

import pytest
from run_helpers import worker

HEAVY = "sqlalchemy alembic pydantic typer click litellm jinja2 yaml asyncio httpx rich".split()
#: Each costs more than a tenth of a forwarded command.
SLOW = (
    "argparse collections dataclasses enum functools inspect json pathlib re subprocess typing"
).split()


def _imported(code: str, env: dict[str, str] | None = None) -> set[str]:
    argv = [sys.executable, "-X", "importtime", "-c", code]
    done = subprocess.run(argv, capture_output=True, env=env, timeout=60)
    lines = done.stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def test_importing_the_command_line_is_light():
    """Neither the heavy libraries nor the slow parts of the standard one."""
    found = _imported("import openry.cli")

    assert found & {"openry.cli"}
    assert sorted(found & {*HEAVY, *SLOW}) == []


def test_a_runs_client_is_lighter_still(openry):
    """It knows no ledger, no settings, no policy and no sandbox; only the socket."""
    with worker(openry):
        code = "import openry.cli; openry.cli.main(['-c', 'true'])"
        found = _imported(code, openry.env)

    ours = {name for name in found if name.startswith("openry")}
    assert ours == {
        "openry", "openry.cli", "openry.cli.output", "openry.errors", "openry.forwarder",
        "openry.forwarder.client", "openry.forwarder.frames",
    }  # fmt: skip
    assert sorted(found & {*HEAVY, *SLOW, "sqlite3", "_sqlite3", "socket", "hashlib"}) == []


@pytest.mark.parametrize("line", ["true"])
def test_a_whole_call_is_light(openry, line: str):
    """From the command line to the answer, with a ledger that is there already."""
    openry("-c", "true")

    found = _imported(f"import openry.cli; openry.cli.main(['-c', {line!r}])", openry.env)

    assert "openry.forwarder.run" in found
    assert sorted(found & {*HEAVY, *SLOW}) == []
