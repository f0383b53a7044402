"""A file that somebody names is one that can be read to its end, whatever asks for it."""

from __future__ import annotations

import os

import pytest

from loop import cli as loop_cli
from openry import cli
from openry.orchestrator import cli as orchestrator_cli

WORKFLOW = """\
name: one
sub_steps: [{id: a, shell: "true"}]
"""
#: What is asked, and how it is named in it.
ASKING = {
    "session import": (cli.main, ["session", "import", "NAMED"]),
    "backup --restore": (cli.main, ["backup", "NAMED", "--restore"]),
    "policy test": (cli.main, ["policy", "test", "NAMED"]),
    "policy explain": (cli.main, ["policy", "explain", "ls", "--policy", "NAMED"]),
    "serve --token-file": (cli.main, ["serve", "--token-file", "NAMED"]),
    "start": (orchestrator_cli.main, ["start", "NAMED"]),
    "validate": (orchestrator_cli.main, ["validate", "NAMED"]),
    "start --input-file": (orchestrator_cli.main, ["start", "WORKFLOW", "--input-file", "NAMED"]),
    "test --tests": (orchestrator_cli.main, ["test", "WORKFLOW", "--tests", "NAMED"]),
    "blame": (loop_cli.main, ["blame", "NAMED"]),
}

CASES = [(asking, what) for asking in ASKING for what in ("pipe", "folder", "endless", "missing")]
CASES.remove(("serve --token-file", "missing"))  # it makes the file, and serves


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENRY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir()
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "one.yaml").write_text(WORKFLOW)
    return tmp_path


@pytest.mark.parametrize(("asking", "what"), CASES)
def test_what_is_no_file_is_said_in_one_sentence(place, capfd, asking, what):
    """A pipe without a writer is not waited for, nor a device read for ever: usage, exit 2."""
    main, words = ASKING[asking]
    named = {"NAMED": f"./{what}", "WORKFLOW": "./one.yaml"}

    assert main([named.get(word, word) for word in words]) == 2

    told = capfd.readouterr()
    said = (told.err + told.out).strip()
    assert what in said
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1, said


def test_a_file_that_a_shell_hands_over_is_read(place, capfd):
    """`<(…)` names a pipe that has a writer."""
    reading, writing = os.pipe()
    os.write(writing, b"name: of-a-pipe\ndefault: allow\n")
    os.close(writing)
    try:
        assert cli.main(["policy", "explain", "ls", "--policy", f"/dev/fd/{reading}"]) == 0
    finally:
        os.close(reading)
