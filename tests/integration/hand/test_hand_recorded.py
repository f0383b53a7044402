"""The recorded cases whose effect counts: policy and sandbox, for root and for another user."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hand_helpers import alive, as_user, need_bubblewrap, need_root

from openry.config import load_config
from openry.forwarder import Hand
from openry.forwarder.bounds import narrowed
from openry.ledger.fast import FastLedger
from openry.models import Command, RunContext, SandboxSpec
from openry.policy import load_policy

pytestmark = pytest.mark.sandbox
SHARED = Path(__file__).resolve().parents[4] / "shared"
CASES = SHARED / "cases" / "policy.jsonl"
NOBODY = 65534
LIMITS = {"mem_mb": "memory_mb", "procs": "procs", "disk_mb": "disk_mb", "time_s": "time_s"}


def cases() -> list[dict[str, Any]]:
    if not CASES.is_file():
        return []
    every = map(json.loads, CASES.read_text("utf-8").splitlines())
    return [case for case in every if case["layer"] in ("sandbox", "either")]


def in_our_form(small: dict[str, Any]) -> dict[str, Any]:
    """A small policy of the cases as one of ours, with its limits."""
    rules = []
    for word in ("allow", "deny"):
        for one in small[word]:
            if isinstance(one, dict):
                rules.append({word: one["cmd"], **{k: one[k] for k in one if k != "cmd"}})
                continue
            program, _, rest = one.partition(" ")
            narrow = {"script": [rest]} if rest.endswith(".py") else {"sub": [rest]}
            rules.append({word: program, **(narrow if rest not in ("", "*") else {})})
    return {
        "default": small["default"],
        "commands": rules,
        "files": {key: [one for one in small[key] if "$" not in one] for key in ("read", "write")},
        "network": {"hosts": small["net"]},
        "limits": {LIMITS[key]: amount for key, amount in small.get("limits", {}).items()},
    }


class World:
    """The folders that the cases talk about, and what became of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.heard = 0
        self.nap = f"sleep 30.{os.getpid()}"  # other tests at once have others
        self.server = socket.create_server(("127.0.0.1", 0))
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while True:
                client, _ = self.server.accept()
                with client:
                    self.heard += len(client.recv(99))
        except OSError:
            return

    def line(self, text: str, pid: str, secret: str) -> str:
        places = {"/home/agent": "home", "/outside": "outside", "/ws-evil": "wsevil"}
        for name, place in places.items():
            text = re.sub(rf"(?<![\w.]){name}", str(self.root / place), text)
        text = text.replace("sleep 30", self.nap)
        text = text.replace("18077", str(self.server.getsockname()[1])).replace(
            "~/", f"{self.root}/home/"
        )
        return text.replace("/proc/1/", f"/proc/{pid}/").replace("OPENRY_PARENT_SECRET", secret)

    def harm(self, forward: Callable[[], Any], secret: str) -> str:
        """What a command did that it must not; empty for nothing."""
        before, heard = self._outside(), self.heard
        most = 0
        done: list[Any] = []
        runner = Thread(target=lambda: done.append(forward()))
        runner.start()
        while runner.is_alive():
            runner.join(0.02)
            most = max(most, len(alive(self.nap)))
        self._hear_all()
        told = done[0].stdout
        big = self.root / "ws" / "big.bin"
        found = {
            "read": any(f"{word}SECRET" in told for word in ("TOP", "ENV", "KEY"))
            or "PRIVATEKEY" in told or f"{secret}=" in told,
            "written": self._outside() != before,
            "sent": self.heard > heard,
            "crowd": most >= 250,
            "filled": big.exists() and big.stat().st_size > 64 << 20,
        }  # fmt: skip
        big.unlink(missing_ok=True)
        for path in self._outside().keys() - before.keys():
            Path(path).unlink()
        for path, content in before.items():
            Path(path).write_bytes(content)
        return " ".join(name for name, is_so in found.items() if is_so)

    def _hear_all(self) -> None:
        """Until everybody who has connected so far was listened to."""
        with socket.create_connection(self.server.getsockname()) as last:
            last.shutdown(socket.SHUT_WR)
            last.recv(1)

    def _outside(self) -> dict[str, bytes]:
        places = (self.root / "outside", self.root / "home", self.root / "wsevil")
        files = (path for place in places for path in place.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}


@pytest.fixture
def world(migrated: Path) -> Iterator[World]:
    if not CASES.is_file():
        pytest.skip("the recorded cases are not here")
    with tempfile.TemporaryDirectory(prefix="openry-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        make = SHARED / "tools" / "make_policy_fixture.sh"
        subprocess.run(["sh", make, folder], check=True, capture_output=True)
        (root / "state").mkdir(mode=0o700)
        shutil.copy(migrated, root / "state" / "openry.db")
        made = World(root)
        yield made
        made.server.close()


def outcomes(world: World, case: dict[str, Any]) -> tuple[str, str, str]:
    """What the case does with nothing round it; under policy and sandbox; in the latter alone."""
    config = load_config(world.root / "state", env={})
    workspace = str(world.root / "ws")
    policy = in_our_form(case["policy"])
    spec = narrowed(SandboxSpec("bubblewrap", (workspace,)), load_policy(policy), workspace)
    free = SandboxSpec("none", (workspace,))
    secret = _own_variable()
    env = {"PATH": os.defpath, "HOME": str(world.root / "home"), "TMPDIR": str(world.root)}
    found = []
    with FastLedger(config.ledger) as ledger:
        for policies, sandbox in (((), free), ((policy,), spec), ((), spec)):
            context = RunContext(workspace=workspace, sandbox=sandbox, policy=policies)
            hand = Hand(ledger, context, config, env=env)
            pid = "1" if sandbox is spec else str(os.getpid())
            # As `bash` where a policy is in force: the cases are written for it.
            line = world.line(case["cmd"], pid, secret)
            command = Command(stages=(("/bin/bash", "-c", line),), timeout_s=8)
            if policies:
                command = Command(line, timeout_s=8)
            found.append(
                world.harm(lambda hand=hand, command=command: hand.forward(command), secret)
            )
            shutil.rmtree(world.root / "ws" / "build" / "l", ignore_errors=True)
            (world.root / "ws" / "build" / "l").unlink(missing_ok=True)
    return found[0], found[1], found[2]


def _own_variable() -> str:
    """The name of a variable that this process was started with, and that no command inherits."""
    text = Path("/proc/self/environ").read_text("utf-8", "replace")
    names = [one.partition("=")[0] for one in text.split("\0") if len(one.partition("=")[2]) > 2]
    passed = ("PATH", "HOME", "LANG", "LC_", "TZ", "USER", "LOGNAME", "TERM", "CI", "TMPDIR", "PWD")
    return next((name for name in names if not name.startswith(passed)), "PATH")


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_a_recorded_effect_is_kept_from_happening(world: World, case: dict[str, Any]) -> None:
    """It happens without them, as a control; where only the sandbox can hold it, by that alone."""
    need_bubblewrap()

    control, held, by_sandbox = outcomes(world, case)

    assert control, "the control run did nothing"
    assert not held
    assert not (case["layer"] == "sandbox" and by_sandbox)


def test_the_recorded_effects_do_not_happen_for_another_user(world: World) -> None:
    """All of them, each with its control run."""
    need_bubblewrap()
    need_root()
    outcomes(world, cases()[0])
    for path in (world.root, *world.root.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    shutil.rmtree(world.root / "state" / "sandbox", ignore_errors=True)

    def work() -> list[tuple[str, str, str]]:
        here = World(world.root)
        return [outcomes(here, case) for case in cases()]

    told = dict(zip((case["id"] for case in cases()), as_user(NOBODY, work), strict=True))

    assert [name for name, (control, _, _) in told.items() if not control] == []
    assert [name for name, (_, held, _) in told.items() if held] == []
