"""Interpreters on our PATH, and those a workspace's environment leads to, work in the sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_helpers import need_bubblewrap

from openry.forwarder import Hand
from openry.models import Command

pytestmark = pytest.mark.sandbox
MakeHand = Callable[..., Hand]


@pytest.fixture(autouse=True)
def _needed():
    need_bubblewrap()


@pytest.fixture
def workspace(make_hand: MakeHand) -> Path:
    return Path(make_hand().context.workspace)


def program(path: Path, line: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def prefix(folder: Path) -> Path:
    """What looks like an interpreter's folder."""
    library = folder / "lib" / "python3.99"
    library.mkdir(parents=True)
    (library / "os.py").touch()
    program(folder / "bin" / "python3", f"echo mine; ls {library}")
    return folder


def test_a_virtual_environment_on_our_path_is_the_one_that_runs(
    make_hand: MakeHand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With its packages and the interpreter it links to; where PATH has it not, it is not seen."""
    venv = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (package,) = venv.glob("lib/python3*/site-packages")
    (package / "of_the_test.py").write_text("word = 'found'\n")
    line = "python3 -c 'import sys, of_the_test; print(sys.prefix, of_the_test.word)'"
    assert make_hand("bubblewrap").forward(Command(line)).exit_code == 1
    monkeypatch.setenv("PATH", f"{venv}/bin:{os.environ['PATH']}")

    result = make_hand("bubblewrap").forward(Command(line))

    assert result.stdout == f"{venv} found\n", result.stderr
    assert not make_hand("bubblewrap").forward(Command(f"touch {venv}/new")).ok


def test_an_environment_in_the_workspace_finds_its_interpreter(
    make_hand: MakeHand, tmp_path: Path, workspace: Path
):
    """Which is elsewhere; only when it is an interpreter's folder as a whole."""
    real = prefix(tmp_path / "elsewhere" / "3.99")
    (workspace / ".venv" / "bin").mkdir(parents=True)
    link = workspace / ".venv" / "bin" / "python3"
    link.symlink_to(real / "bin" / "python3")

    result = make_hand("bubblewrap").forward(Command(".venv/bin/python3"))

    assert result.stdout == "mine\nos.py\n"
    other = program(tmp_path / "private" / "bin" / "python3", "echo secret")
    (tmp_path / "private" / "pyvenv.cfg").touch()
    link.unlink()
    link.symlink_to(other)
    assert make_hand("none").forward(Command(".venv/bin/python3")).stdout == "secret\n"
    assert make_hand("bubblewrap").forward(Command(".venv/bin/python3")).exit_code == 127


@pytest.mark.parametrize("kind", ["pyenv", "nvm", "a link"])
def test_what_manages_versions_works(
    make_hand: MakeHand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """Shims that look for their versions, versions in folders of their own, links to them."""
    home = tmp_path / "person"
    if kind == "pyenv":
        real = prefix(home / ".pyenv" / "versions" / "3.99")
        (home / ".pyenv" / "libexec").mkdir()
        folder = program(home / ".pyenv" / "shims" / "mine", f"exec {real}/bin/python3").parent
    elif kind == "nvm":
        folder = home / ".nvm" / "versions" / "node" / "v99" / "bin"
        program(folder / "node", "echo mine; ls ${0%/*}/../lib/node_modules")
        (folder.parent / "lib" / "node_modules" / "npm").mkdir(parents=True)
        (folder / "mine").symlink_to("node")
    else:
        real = prefix(tmp_path / "opt" / "3.99")
        (real / "bin" / "mine").symlink_to("python3")
        folder = home / ".local" / "bin"
        folder.mkdir(parents=True)
        (folder / "python3").symlink_to(real / "bin" / "python3")
    (home / "secret").write_text("x")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    caged = make_hand("bubblewrap")

    assert make_hand("none").forward(Command(f"cat {home}/secret")).ok, "the control"
    assert not caged.forward(Command(f"cat {home}/secret")).ok
    if kind == "a link":  # the folder of links is a person's; what they lead to is shown
        assert caged.forward(Command(f"{real}/bin/mine")).stdout == "mine\nos.py\n"
        assert not caged.forward(Command(f"ls {folder}")).ok
    else:
        assert caged.forward(Command("mine")).stdout.startswith("mine\n")
