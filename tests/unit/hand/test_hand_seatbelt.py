"""The profile for macOS, as text: untried there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from openry.errors import SandboxError
from openry.models import SandboxSpec
from openry.sandbox.launcher import launcher
from openry.sandbox.seatbelt import profile


def test_everything_is_denied_that_is_not_named():
    """The default comes first, what is protected last: the later rule wins."""
    lines = profile(SandboxSpec("seatbelt", ("/w",), ("/r",)), "/w", hide=("/w/home",)).splitlines()

    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert '(allow file-read* (subpath "/r"))' in lines
    assert '(allow file-write* (subpath "/r"))' not in lines
    assert lines.index('(allow file-write* (subpath "/w"))') < lines.index(
        '(deny file-read* file-write* (subpath "/w/home"))'
    )
    assert lines[-1] == '(deny file-write* (subpath "/w/.vscode"))'
    assert "(deny network*)" in lines


def test_the_network_is_open_only_when_asked_for():
    """And a path cannot end its quotes."""
    text = profile(SandboxSpec("seatbelt", ('/a"b',), network=True), "")

    assert "(allow network*)" in text
    assert '(allow file-write* (subpath "/a\\"b"))' in text


def test_protected_names_are_denied_and_so_is_renaming_what_is_above_them():
    """Also those of a policy; after what allows the folder."""
    spec = SandboxSpec("seatbelt", ("/w",), protect=("keys", "/w/policy.yaml"))
    lines = profile(spec, "/w").splitlines()

    allowed = lines.index('(allow file-write* (subpath "/w"))')
    for name in (".git/hooks", ".git/config", ".openry", ".vscode", "keys", "policy.yaml"):
        assert lines.index(f'(deny file-write* (subpath "/w/{name}"))') > allowed
    assert lines.index('(deny file-write-unlink (literal "/w/.git"))') > allowed


def test_a_workspace_is_not_shown_where_only_parts_of_it_are_named():
    """As the policy's list says."""
    lines = profile(SandboxSpec("seatbelt", read=("/w/in",), only_named=True), "/w").splitlines()

    assert '(allow file-read* (subpath "/w/in"))' in lines
    assert '(allow file-read* (subpath "/w"))' not in lines


def test_what_it_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Single hosts, and the end of every process. A program stands in for that of macOS."""
    program = tmp_path / "sandbox-exec"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr("openry.sandbox.seatbelt.PROGRAM", str(program))
    with pytest.raises(SandboxError, match="single hosts"):
        launcher(SandboxSpec("seatbelt", hosts=("a.test",)), "/w")
    with pytest.raises(SandboxError, match=r"`tree_kill` is required.*Linux with bubblewrap"):
        launcher(SandboxSpec("seatbelt", require=("tree_kill",)), "/w")

    made = launcher(SandboxSpec("seatbelt", ("/w",)), "/w").launch(("echo", "x"), "/w", "")

    assert made.argv[:2] == (str(program), "-p") and made.argv[-2:] == ("echo", "x")


@pytest.mark.skipif(sys.platform == "darwin", reason="it is there on macOS")
def test_elsewhere_it_is_refused():
    """With where it belongs."""
    with pytest.raises(SandboxError, match="macOS"):
        launcher(SandboxSpec("seatbelt"), str(Path.cwd()))
