"""A policy given to a server holds in its sandbox too, not only for the words of commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openry.capability import Registry
from openry.config import load_config
from openry.errors import OpenRYError
from openry.models import Command
from openry.service.desk import Desk

pytestmark = pytest.mark.sandbox


def desk(tmp_path: Path, policy: str, backend: str = "auto") -> Desk:
    file = tmp_path / "mine.yaml"
    file.write_text("default: allow\ncommands: [{allow: python3, runs: true}]\n" + policy)
    config = load_config(tmp_path / "home", env={})
    (tmp_path / "ws").mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"]}
    return Desk(config, Registry(), tmp_path / "ws", policy=[str(file)], backend=backend, env=env)


def test_its_files_and_limits_hold(tmp_path: Path):
    """What a program does, its words do not say."""
    line = "python3 -c \"open('made', 'w')\""

    held = desk(tmp_path, "files: {write: []}\n").run(Command(line))
    free = desk(tmp_path, "").run(Command(line))

    assert held.exit_code == 1 and "Read-only file system" in held.stderr
    assert free.exit_code == 0, free


def test_what_it_requires_and_cannot_be_held_stops_the_server(tmp_path: Path):
    """At its start, with the way out."""
    with pytest.raises(OpenRYError, match="`net` is required, which `none` cannot hold"):
        desk(tmp_path, "require: [net]\n", backend="none")
