"""A sandbox is believed once it was tried, and refused at any surprise."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_helpers import OpenRY, need_bubblewrap, need_sandbox

from openry.forwarder import Hand
from openry.models import Command, CommandResult, SandboxSpec
from openry.models.command import LAYERS
from openry.sandbox.probe import Act, probe

pytestmark = pytest.mark.sandbox
MakeHand = Callable[..., Hand]


@pytest.fixture(autouse=True)
def _needed():
    need_bubblewrap()


@pytest.mark.parametrize(
    ("more", "count"), [({}, 9), ({"network": True}, 8), ({"hosts": ("a.test",)}, 10)]
)
def test_every_act_is_refused_inside_and_done_outside(more: dict, count: int):
    """But for the one that must work in both: writing the workspace. Each way of the network."""
    acts = {act.name: act for act in probe(SandboxSpec("auto", **more))}

    assert [act.surprise for act in acts.values()] == [""] * (count - 1)
    assert acts["read"].outside and not acts["read"].inside
    assert acts["workspace"].outside and acts["workspace"].inside
    assert not Path("/usr/.openry-probe").exists()


def test_a_control_run_that_fails_is_a_surprise():
    """What could not be done outside says nothing of the inside."""
    assert "the probe itself failed: `connect`" in Act("connect", False, False).surprise


def test_no_sandbox_is_a_surprise():
    """The probe finds out that nothing is closed."""
    surprises = [act.surprise for act in probe(SandboxSpec("none")) if act.surprise]

    assert "a file outside could be read" in surprises


def test_the_command_line_shows_each_act(openry: OpenRY):
    """With its control run; status 125 at a surprise."""
    done = openry.raw("probe", "--json")

    assert done.returncode == 0
    assert {act["name"] for act in json.loads(done.stdout)} > {"read", "write", "workspace"}
    assert openry.raw("probe").stdout.decode().splitlines()[-1].startswith("it holds: ")
    none = openry.raw("probe", "--backend", "none")
    assert none.returncode == 125
    assert none.stdout.decode().splitlines()[-1].startswith("it does NOT hold: ")


def test_one_probe_serves_until_the_machine_restarts(make_hand: MakeHand):
    """Its mark lies in the home, closed to others; another policy is another probe."""
    hand = make_hand("bubblewrap")
    assert hand.forward(Command("true")).ok

    folder = Path(hand.config.home, "sandbox")
    (mark,) = folder.iterdir()
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    mark.rename(folder / f"{mark.name}-before-the-last-start")
    assert make_hand("bubblewrap").forward(Command("true")).ok
    assert list(folder.iterdir()) == [mark]
    wider = SandboxSpec("bubblewrap", (hand.context.workspace,), network=True)
    assert make_hand(sandbox=wider).forward(Command("true")).ok
    assert len(list(folder.iterdir())) == 2


def test_a_sandbox_that_does_not_hold_runs_nothing(
    make_hand: MakeHand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A `bwrap` that confines nobody is found out: 125, and which act succeeded."""
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    hand = make_hand("bubblewrap")

    result = hand.forward(Command("touch ran"))

    assert result.exit_code == 125
    assert "a file outside could be read" in result.stderr
    assert not Path(hand.context.workspace, "ran").exists()


def test_without_bubblewrap_nothing_runs_unconfined(
    make_hand: MakeHand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`bubblewrap` is refused with what to install; `auto` takes landlock, and the row says so."""
    need_sandbox("landlock")
    monkeypatch.setenv("PATH", str(tmp_path))

    named = make_hand("bubblewrap").forward(Command("touch ran"))
    auto = make_hand("auto", run_id="manual")
    read = auto.forward(Command(f"/bin/cat {tmp_path}/home/openry.db"))
    write = auto.forward(Command("echo x > made; read -r line < made; echo $line"))

    assert named.exit_code == 125
    assert "sandbox unavailable: bubblewrap is not installed; run: apt-get" in named.stderr
    assert (read.exit_code, write.stdout) == (1, "x\n")
    assert not Path(auto.context.workspace, "ran").exists()
    database = sqlite3.connect(tmp_path / "home" / "openry.db")
    shells = [row[0] for row in database.execute("SELECT shell FROM commands_log ORDER BY id")]
    database.close()
    assert shells == ["", *["/bin/sh (sandbox: landlock)"] * 2]


@pytest.mark.parametrize(
    ("backend", "layer", "way"),
    [
        ("none", "fs_read", "write `sandbox: auto`"),
        ("landlock", "tree_kill", "run: apt-get install bubblewrap"),
    ],
)
def test_what_is_required_and_cannot_be_held_is_refused(
    make_hand: MakeHand, backend: str, layer: str, way: str
):
    """125 and the way to get it; bubblewrap holds all of it."""
    need_sandbox(backend)

    def run(name: str) -> CommandResult:
        spec = SandboxSpec(name, (make_hand().context.workspace,), require=(layer,))
        return make_hand(sandbox=spec).forward(Command("echo ran"))

    refused = run(backend)

    assert refused.exit_code == 125
    assert f"`{layer}` is required, which `{backend}` cannot hold; {way}" in refused.stderr
    assert run("bubblewrap").stdout == "ran\n"


def test_a_requirement_is_not_dropped_with_bubblewrap(
    make_hand: MakeHand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`auto` falls back to landlock only where that holds all that is required."""
    need_sandbox("landlock")
    workspace = make_hand().context.workspace
    monkeypatch.setenv("PATH", str(tmp_path))
    all_but_one = SandboxSpec("auto", (workspace,), require=("fs_read", "fs_write", "net"))
    everything = SandboxSpec("auto", (workspace,), require=LAYERS)
    hosts = SandboxSpec("auto", (workspace,), hosts=("a.test",))

    assert make_hand(sandbox=all_but_one).forward(Command("echo ran")).stdout == "ran\n"
    for spec in (everything, hosts):
        refused = make_hand(sandbox=spec).forward(Command("echo ran"))
        assert refused.exit_code == 125
        assert "apt-get install bubblewrap" in refused.stderr


def test_every_row_says_what_surrounded_the_command(openry: OpenRY):
    """Also that nothing did."""
    openry("-c", "true")

    assert openry.rows()[0]["shell"] == "/bin/sh (sandbox: none)"
