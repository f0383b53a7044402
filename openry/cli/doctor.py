"""`openry doctor`: what works on this machine, and the fix of what does not."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from openry.agent.adapters import installed_adapters
from openry.cli.output import write, write_json
from openry.cli.parser import Parser
from openry.config import Config, load_config, make_home
from openry.errors import OpenRYError
from openry.forwarder import Hand
from openry.forwarder.environment import shell_argv
from openry.ledger.fast import FastLedger
from openry.models import Command, RunContext, SandboxSpec
from openry.sandbox.cgroup import shown_limits
from openry.sandbox.quarantine import KEPT_DAYS, contents

#: Broken promises of a ledger that are shown.
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `needed` ones that do not work make the exit status 1."""

    name: str
    ok: bool
    said: str
    fix: str = ""
    needed: bool = True


def main(words: Sequence[str]) -> int:
    parser = Parser("openry doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--disk", action="store_true", help="only what takes room on the disk")
    parser.add_argument("--ledger", action="store_true", help="only whether the ledger is sound")
    given = parser.parse_args(words)
    config = load_config()
    if given.disk:
        from openry.cli.disk import report

        return report(config, as_json=given.json)
    all_ = (_shell, _sandbox, _landlock, _quarantine, _ledger, _model, _planner, _agents)
    looks = (_sound_ledger,) if given.ledger else all_
    findings = [look(config) for look in looks]
    if given.json:
        write_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            mark = "ok  " if finding.ok else "FAIL" if finding.needed else "none"
            fix = f"\n      fix: {finding.fix}" if finding.fix and not finding.ok else ""
            write(f"{mark}  {finding.name}: {finding.said}{fix}\n")
    return 1 if any(finding.needed and not finding.ok for finding in findings) else 0


def _shell(config: Config) -> Finding:
    shell = shell_argv(config.shell)[0]
    ok, said = _run(config, "none")
    return Finding(
        "shell", ok, f"{shell}, {said}", "set `shell: {program: /bin/sh}` in config.yaml"
    )


def _sandbox(config: Config) -> Finding:
    ok, said = _run(config, "bubblewrap")
    fix = "install bubblewrap (Debian: apt-get install bubblewrap) and allow user namespaces"
    return Finding(
        "sandbox", ok, f"bubblewrap, {said}" + (f"; {shown_limits()}" if ok else ""), fix
    )


def _landlock(config: Config) -> Finding:
    ok, said = _run(config, "landlock")
    fix = "nothing to do where bubblewrap works; else a kernel of 6.12 or later"
    return Finding("sandbox without bubblewrap", ok, f"landlock, {said}", fix, needed=False)


def _quarantine(config: Config) -> Finding:
    root = f"{config.home_dir}/quarantine"
    entries, used_bytes = contents(root)
    said = f"{entries} times something was made under a protected name"
    held = f"{said}, {used_bytes / 1_048_576:.1f} MiB in {root}; each goes after {KEPT_DAYS} days"
    return Finding("quarantine", True, held if entries else "nothing is in it", needed=False)


def _run(config: Config, backend: str) -> tuple[bool, str]:
    """Run `echo` with a ledger of its own, for real."""
    with tempfile.TemporaryDirectory() as folder, FastLedger(Path(folder, "openry.db")) as ledger:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        sandbox = SandboxSpec(backend, (str(workspace),))
        context = RunContext(workspace=str(workspace), sandbox=sandbox)
        hand = Hand(ledger, context, config)
        hand.forward(Command("true"))
        began = time.monotonic()
        result = hand.forward(Command("echo works"))
        took_ms = (time.monotonic() - began) * 1000
    if result.stdout == "works\n":
        return True, f"works, {took_ms:.0f} ms a command"
    said = result.stderr.strip().removeprefix("openry: ").removeprefix("sandbox unavailable: ")
    return False, said or f"`echo` ended with {result.exit_code}"


def _ledger(config: Config) -> Finding:
    def look() -> str:
        from openry.ledger.commands import find
        from openry.ledger.db import Ledger

        make_home(config)
        with Ledger(config.ledger) as ledger, ledger.read() as connection:
            last = find(connection, limit=1)
        return f"{config.ledger}, last written {last[0].started_at if last else 'never'}"

    return _tried("ledger", look, "set OPENRY_DB to a file you may write, or restore a backup")


def _sound_ledger(config: Config) -> Finding:
    """Every row of it read: what contradicts itself, a few sentences of it."""
    from openry.ledger.consistency import inconsistencies
    from openry.ledger.db import Ledger
    from openry.ledger.instances import count_instances

    try:
        with Ledger(config.ledger) as ledger, ledger.read() as connection:
            found = list(islice(inconsistencies(connection), _SHOWN + 1))
            count = count_instances(connection)
    except OpenRYError as error:
        found, count = [str(error)], 0
    more = "\n      and more" if len(found) > _SHOWN else ""
    said = "\n      ".join(found[:_SHOWN]) + more
    fix = "bring a backup back: openry backup FILE --restore"
    many = "instance" if count == 1 else "instances"
    return Finding("ledger", not found, said or f"{count} {many}, all sound", fix)


def _model(config: Config) -> Finding:
    return _model_finding("model", config.model, config)


def _planner(config: Config) -> Finding:
    return _model_finding("planner model", config.planner_model, config)


def _model_finding(name: str, model: str, config: Config) -> Finding:
    def look() -> str:
        from openry.llm import check_model, open_model

        check_model(open_model(model, config=config))
        return model

    return _tried(name, look, "run `make setup`, or set OPENRY_MODEL and its provider's key")


def _agents(config: Config) -> Finding:
    """Agent programs that an adapter can start; the one that is only for trying does not count."""
    name = "outside agents"
    try:
        adapters = installed_adapters(config.home)
    except OpenRYError as error:
        return Finding(name, False, str(error), needed=False)
    real = [one for one in adapters if not one.program.startswith("./")]
    found = [one.name for one in real if shutil.which(one.program)]
    none = "none on PATH (the built-in one works)"
    fix = "install the program of one: " + ", ".join(one.name for one in real)
    return Finding(name, bool(found), ", ".join(found) or none, fix, needed=False)


def _tried(name: str, look: Callable[[], str], fix: str) -> Finding:
    try:
        return Finding(name, True, look())
    except OpenRYError as error:
        return Finding(name, False, str(error), fix)
