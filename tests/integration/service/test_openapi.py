"""`openry serve` as its own description says, asked by a program that reads it."""

import shutil
import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-m", "openry"]


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("schemathesis"), reason="schemathesis is not installed")
@pytest.mark.skipif(not shutil.which("bwrap"), reason="what it makes up is run in a sandbox only")
def test_no_request_of_the_description_makes_the_server_stumble(environment, home, tmp_path):
    """Hundreds of requests, sound and unsound: no 5xx, and statuses, types and bodies as described.

    The stream of events is left out: it has no end.
    """
    serving = [*PROGRAM, "serve", "--port", "0", "--dir", str(tmp_path), "--sandbox", "bubblewrap"]
    with subprocess.Popen(serving, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().split()[2].rstrip(";")
            token = (home / "serve.token").read_text().strip()
            checks = (
                "not_a_server_error,status_code_conformance,"
                "content_type_conformance,response_schema_conformance"
            )
            argv = [
                *("schemathesis", "run", f"{address}/openapi.json", "--exclude-path", "/events"),
                *("-H", f"Authorization: Bearer {token}", "--checks", checks),
                *("--max-examples", "60", "--request-timeout", "60", "--no-color"),
            ]
            done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        finally:
            server.terminate()

    assert done.returncode == 0, done.stdout[-5000:]
    assert "passed" in done.stdout
