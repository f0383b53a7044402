"""Inputs in their types, and files by name."""

from __future__ import annotations

import pytest

from openry.config import load_config
from openry.errors import NotFoundError, UsageError
from openry.ledger.db import Ledger
from openry.ledger.journal import add_event
from openry.ledger.watch import Watch
from openry.orchestrator.inputs import check_inputs
from openry.orchestrator.loader import load
from openry.orchestrator.lookup import find_file
from openry.sandbox.strays import end_strays


@pytest.mark.parametrize(
    ("spec", "given", "value"),
    [
        ("{type: int}", "3", 3),
        ("{type: int}", 3, 3),
        ("{type: number}", "2.5", 2.5),
        ("{type: bool}", "no", False),
        ("{type: list}", "a, b", ["a", "b"]),
        ("{type: list}", '["a", 1]', ["a", 1]),
        ("{type: path}", "a b.txt", "a b.txt"),
        ("{}", 12, "12"),
        ("{choices: [a, b]}", "b", "b"),
        ("{pattern: '^x'}", "xy", "xy"),
    ],
)
def test_text_is_read_as_its_type_wants(spec, given, value):
    """What comes from a command line is text; what comes from Python keeps its type."""
    assert check_inputs(specs(spec), {"i": given}) == {"i": value}


@pytest.mark.parametrize(
    ("spec", "given"),
    [
        ("{type: int}", "3.5"),
        ("{type: int}", True),
        ("{type: number}", "much"),
        ("{type: bool}", "maybe"),
        ("{type: list}", "[a"),
        ("{choices: [a, b]}", "c"),
        ("{pattern: '^x'}", "yx"),
        ("{type: path}", 4),
    ],
)
def test_what_does_not_fit_is_named(spec, given):
    """The message says which input, what it must be and what it got."""
    with pytest.raises(UsageError, match=r"input `i` must .*`"):
        check_inputs(specs(spec), {"i": given})


def specs(spec):
    text = f"name: x\ninputs: {{i: {spec}}}\nsub_steps: [{{id: a, kind: shell, command: x}}]"
    return load(text).required().workflow.inputs


def test_a_name_is_looked_up_at_home_before_what_is_shipped(tmp_path):
    """A person's workflow of the same name goes before the shipped one."""
    config = load_config(tmp_path, env={})
    assert find_file("shell_chain", config).name == "shell_chain.yaml"
    own = tmp_path / "workflows" / "shell_chain.yaml"
    own.parent.mkdir()
    own.write_text("")
    assert find_file("shell_chain", config) == own
    with pytest.raises(NotFoundError, match="is a folder"):
        find_file(str(tmp_path) + "/", config)


def test_a_watch_sees_what_others_write(tmp_path):
    """A commit through another connection is seen once; looking costs no transaction."""
    with Ledger(tmp_path / "l.db") as ledger:
        watch = Watch(ledger)
        assert not watch.changed()
        with ledger.write() as connection:
            add_event(connection, "2026-03-01T09:00:00.000Z", instance_id="i")
        assert watch.changed()
        assert not watch.changed()
        watch.close()


def test_strays_are_known_by_their_mark(tmp_path):
    """Only processes started with the mark are ended, also those that left their group."""
    import os
    import subprocess

    ours = subprocess.Popen(["setsid", "sleep", "60"], env={**os.environ, "RY_MARK": "one"})
    other = subprocess.Popen(["sleep", "60"], env={**os.environ, "RY_MARK": "two"})
    try:
        assert ours.pid in end_strays(b"RY_MARK=one\0")
        assert ours.wait(5) < 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
