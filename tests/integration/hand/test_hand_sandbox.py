"""Inside the sandbox only what is named exists. Each act succeeds outside it, as a control."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_helpers import need_bubblewrap

from openry.errors import SandboxError
from openry.forwarder import Hand
from openry.models import Command, SandboxSpec
from openry.sandbox import launcher

pytestmark = pytest.mark.sandbox
MakeHand = Callable[..., Hand]


@pytest.fixture(autouse=True)
def _needed():
    need_bubblewrap()


def _both(make_hand: MakeHand, line: str) -> tuple[bool, bool]:
    """Whether `line` succeeds without the sandbox, and within."""
    free, caged = make_hand("none"), make_hand("bubblewrap")
    return free.forward(Command(line)).exit_code == 0, caged.forward(Command(line)).exit_code == 0


def test_files_outside_cannot_be_read(make_hand: MakeHand, tmp_path: Path):
    """Neither by path nor by a link that leads out."""
    (tmp_path / "secret").write_text("x")
    link = tmp_path / "ws" / "link"

    def lines() -> list[str]:
        return [f"cat {tmp_path}/secret", "cat link", "cat ../secret"]

    hand = make_hand("none")
    link.symlink_to(tmp_path / "secret")
    caged = make_hand("bubblewrap")
    for line in lines():
        assert hand.forward(Command(line)).exit_code == 0, line
        assert caged.forward(Command(line)).exit_code != 0, line


def test_files_outside_cannot_be_written(make_hand: MakeHand, tmp_path: Path):
    """What seems to be written there ends with the sandbox; the ledger is not even seen."""
    target = tmp_path / "new"
    make_hand("bubblewrap").forward(Command(f"echo x > {target}"))
    assert not target.exists()
    make_hand("none").forward(Command(f"echo x > {target}"))
    assert target.exists()
    assert _both(make_hand, f"test -e {tmp_path}/home/openry.db") == (True, False)


def test_the_workspace_can_be_written(make_hand: MakeHand, tmp_path: Path):
    """And /tmp, which is the sandbox's own."""
    assert _both(make_hand, "echo x > made && echo x > $TMPDIR/made") == (True, True)
    assert (tmp_path / "ws" / "made").exists()


def test_system_folders_are_read_only(make_hand: MakeHand):
    """Whoever runs it."""
    caged = make_hand("bubblewrap")

    assert caged.forward(Command("echo x > /usr/made")).exit_code != 0
    assert caged.forward(Command("ls /usr/bin >/dev/null")).exit_code == 0


def test_what_runs_outside_later_is_protected(make_hand: MakeHand, tmp_path: Path):
    """Hooks and settings in the workspace can be read, not written."""
    for name in (".git/hooks", ".vscode", ".openry"):
        (tmp_path / "ws" / name).mkdir(parents=True)
        assert _both(make_hand, f"touch {name}/x && rm {name}/x") == (True, False)


def test_the_network_is_closed(make_hand: MakeHand):
    """Also the loopback interface of the host; open only when asked for."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        line = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"

        assert _both(make_hand, line) == (True, False)
        workspace = make_hand().context.workspace
        spec = SandboxSpec("bubblewrap", (workspace,), network=True)
        assert make_hand(sandbox=spec).forward(Command(line)).exit_code == 0


def test_other_processes_cannot_be_seen(make_hand: MakeHand):
    """The sandbox counts its own processes only, and its options are not among their words."""
    caged = make_hand("bubblewrap")

    assert int(caged.forward(Command("ls -d /proc/[0-9]* | wc -l")).stdout) < 8
    assert "bind" not in caged.forward(Command("tr '\\0' ' ' < /proc/1/cmdline")).stdout
    env = caged.forward(
        Command("tr '\\0' '\\n' < /proc/1/environ; tr '\\0' '\\n' </proc/1/environ")
    )
    assert "OPENRY_HOME" not in env.stdout


def test_no_further_namespaces(make_hand: MakeHand):
    """A user namespace inside would give powers back."""
    assert make_hand("bubblewrap").forward(Command("unshare -U true")).exit_code != 0


def test_a_sandbox_that_cannot_be_built_refuses(make_hand: MakeHand, tmp_path: Path):
    """125 and what to do; never unconfined instead."""
    hand = make_hand(sandbox=SandboxSpec("bubblewrap", (str(tmp_path / "gone"),)))

    result = hand.forward(Command("touch ran"))

    assert result.exit_code == 125
    assert result.stderr.startswith("openry: sandbox unavailable: ") or "\nopenry: sandbox" in (
        result.stderr
    )
    assert not (tmp_path / "ws" / "ran").exists()


def test_an_unknown_backend_is_refused():
    """Only what was written out can be asked for."""
    with pytest.raises(SandboxError, match="there is no sandbox"):
        launcher(SandboxSpec("docker"), "")
