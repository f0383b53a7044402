"""The hand, measured: one call, many at once, a flood, and what judging and a sandbox cost."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from bench.measure import (
    BIN,
    Case,
    Row,
    Spent,
    cost,
    environment,
    in_turns,
    middle,
    peak_mib,
    percentile,
    run,
    timed,
)
from openry.config import Config, load_config
from openry.forwarder import Hand
from openry.ledger.fast import FastLedger
from openry.models import Command, CommandResult, RunContext, SandboxSpec

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "cases" / "agent-trajectories"
_MB = 1_000_000
_PEER = "python3 -c pass"


def command_line(place: Path) -> list[Row]:
    """One call of `openry` beside the interpreter it runs in."""
    env = environment(place)

    def call(*argv: str) -> Callable[[], Spent]:
        return lambda: run(argv, cwd=place, env=env)

    ours, theirs = in_turns(
        31, call(str(BIN / "openry"), "-c", "true"), call(sys.executable, "-c", "pass")
    )
    cpu, bare_cpu = middle([s.cpu_ms for s in ours]), middle([s.cpu_ms for s in theirs])
    wall, bare_wall = middle([s.wall_ms for s in ours]), middle([s.wall_ms for s in theirs])
    return [
        Row("openry -c true, CPU", cpu, "ms", _PEER, bare_cpu, "<= 2.5 x", cpu <= 2.5 * bare_cpu),
        Row("openry -c true, wall", wall, "ms", _PEER, bare_wall, "<= 3 x", wall <= 3 * bare_wall),
    ]


def imports(place: Path) -> list[Row]:
    """`import openry.cli` beside an empty program: the price of every call."""
    env = environment(place)

    def call(code: str) -> Callable[[], Spent]:
        return lambda: run((sys.executable, "-c", code), cwd=place, env=env)

    ours, theirs = in_turns(15, call("import openry.cli"), call("pass"))
    wall = (middle([s.wall_ms for s in spent]) for spent in (ours, theirs))
    return [Row("import openry.cli", next(wall), "ms", _PEER, next(wall))]


def in_process(place: Path) -> list[Row]:
    """The hand without a process of its own: unconfined, in the sandbox, and a bare `sh`."""
    config, folder = _home(place)
    with FastLedger(config.ledger) as ledger:

        def call(backend: str, policy: tuple[str, ...] = ()) -> Callable[[], tuple[float, float]]:
            sandbox = SandboxSpec(backend, (str(folder),))
            context = RunContext(workspace=str(folder), sandbox=sandbox, policy=policy)
            hand = Hand(ledger, context, config)
            return cost(lambda: hand.forward(Command("true")))

        def beside(*calls: Callable[[], tuple[float, float]]) -> list[tuple[float, float]]:
            """Wall and processor milliseconds of each: a median, and a mean.

            The system counts processor time in hundredths of a second: over many calls it is right.
            """
            times = 151
            rounds = in_turns(times, *calls)
            return [
                (
                    middle([wall for wall, _ in costs]),
                    round(sum(cpu for _, cpu in costs) / times, 2),
                )
                for costs in rounds
            ]

        # Each beside its own peer: what a sandbox leaves to be cleared away is no cost of others.
        ledger.make_room()
        plain = call("none")
        sh = cost(lambda: subprocess.run(("sh", "-c", "true"), cwd=folder, check=True))
        (shell, shell_cpu), (hand, hand_cpu) = beside(sh, plain)
        (unjudged, _), (judged, _) = beside(plain, call("none", ("moderate",)))
        confined = beside(plain, call("bubblewrap")) if shutil.which("bwrap") else []
    rows = [
        Row("in-process call", hand, "ms", "sh -c true", shell, "+ <= 1 ms", hand - shell <= 1),
        Row("in-process call, CPU of all processes", hand_cpu, "ms", "sh -c true", shell_cpu),
        Row("judged by `moderate`, in bash", judged, "ms", "the same call unjudged", unjudged),
    ]
    if confined:
        (free, free_cpu), (boxed, boxed_cpu) = confined
        same = "the same call unconfined"
        met = boxed - free <= 10
        rows += [
            Row("sandboxed call, CPU of all", boxed_cpu, "ms", same, free_cpu),
            Row("sandboxed call", boxed, "ms", same, free, "+ <= 10 ms", met),
        ]
    return rows


def forwarders(place: Path, count: int = 8, calls: int = 200) -> list[Row]:
    """Agents that call `openry` at once, a process each time: every call has its row."""
    env = environment(place)
    line = f'i=0; while [ $i -lt {calls} ]; do "$0" -c true || exit 1; i=$((i+1)); done'
    argv = ("sh", "-c", line, str(BIN / "openry"))
    return _rows_of(place, argv, count, calls, f"{count} agents x {calls} openry -c true", env)


def writers(place: Path, count: int = 16, calls: int = 200) -> list[Row]:
    """Processes that write to the ledger without a command between: its own pace."""
    env = environment(place)
    code = (
        "import sys\n"
        "from openry.ledger.fast import FastLedger\n"
        "from openry.models import CommandResult, RunContext\n"
        "ledger = FastLedger(sys.argv[1])\n"
        f"for number in range({calls}):\n"
        "    begun = ledger.begin(RunContext(), f'echo {number}')\n"
        "    ledger.finish(begun.command_id, CommandResult(0, 'done', '', 0.001))\n"
    )
    _home(place)
    argv = (sys.executable, "-c", code, str(place / "home" / "openry.db"))
    return _rows_of(place, argv, count, calls, f"{count} writers x {calls} rows", env)


def _rows_of(
    place: Path, argv: tuple[str, ...], count: int, calls: int, what: str, env: dict[str, str]
) -> list[Row]:
    """Run `count` of these at once and count what is in the ledger afterwards."""
    began = time.perf_counter()
    working = [
        subprocess.Popen(argv, cwd=place, env=env, stdout=subprocess.DEVNULL) for _ in range(count)
    ]
    failed = sum(process.wait() != 0 for process in working)
    seconds = time.perf_counter() - began
    with closing(sqlite3.connect(place / "home" / "openry.db")) as ledger:
        query = "SELECT count(*) FROM commands_log WHERE ending = 'exited'"
        (rows,) = ledger.execute(query).fetchone()
    expected = count * calls
    return [
        Row(f"{what}: rows", rows, "", target=f"{expected:,}", met=rows == expected),
        Row(f"{what}: processes that failed", failed, "", target="0", met=failed == 0),
        Row(f"{what}: a second", round(expected / seconds, 1), "/s"),
    ]


def flood(place: Path, size_mb: int = 500) -> list[Row]:
    """A command that prints hundreds of megabytes: read, redacted, kept, answered."""
    env = {**environment(place), "SERVICE_API_KEY": "wxyz-0123456789"}
    sample = place / "sample.log"
    with open(sample, "wb") as file:
        for number in range(10 * _MB // 80):
            file.write(
                b"2026-04-13 08:%02d:%02d.%03d INFO worker-%03d handled request %08x in %4d ms ok\n"
                % (number // 60 % 60, number % 60, number % 1000, number % 97,
                   number * 2654435761 % 2**32, number * 7 % 5000)
            )  # fmt: skip
    size = sample.stat().st_size * (times := size_mb // 10)
    line = (
        f"i=0; while [ $i -lt {times} ]; do cat sample.log; i=$((i+1)); done; date +%s.%N > ended"
    )
    run((str(BIN / "openry"), "-c", "true"), cwd=place, env=env)
    ours, theirs = [], []
    for _ in range(3):
        ours.append(_flooded(place, env, line))
        theirs.append(run(("sh", "-c", f"({line}) | cat > /dev/null"), cwd=place, env=env))
    speed = round(size / _MB / (middle([s.wall_ms for s, _ in ours]) / 1000), 1)
    bare = round(size / _MB / (middle([s.wall_ms for s in theirs]) / 1000), 1)
    busy = round(size / _MB / (middle([s.cpu_ms for s, _ in ours]) / 1000), 1)
    peak = round(peak_mib((str(BIN / "openry"), "-c", line), cwd=place, env=env), 1)
    after = round(max(late for _, late in ours), 2)
    what = f"{size_mb} MB of output"
    return [
        Row(f"{what}: speed", speed, "MB/s", "sh | cat", bare, ">= 80 MB/s", speed >= 80),
        Row(f"{what}: per CPU second of all processes", busy, "MB/s"),
        Row(f"{what}: peak memory", peak, "MiB", target="<= 64 MiB", met=peak <= 64),
        Row(f"{what}: answer after its end", after, "s", target="<= 1 s", met=after <= 1),
    ]


def _flooded(place: Path, env: dict[str, str], line: str) -> tuple[Spent, float]:
    """What it took, and how many seconds after the command's end the answer was there."""
    spent = run((str(BIN / "openry"), "-c", line), cwd=place, env=env)
    ready_at = time.time()
    answer = json.loads(spent.output)
    assert answer["exit_code"] == 0, answer["stderr"]
    shutil.rmtree(place / "home" / "runs")
    return spent, ready_at - float((place / "ended").read_text())


def policy(place: Path) -> list[Row]:
    """What a verdict costs, over the commands that agents really ran."""
    commands = list(_recorded())
    if not commands:
        return []
    from openry.policy import load_policy

    config, folder = _home(place)
    del config
    rows = []
    for name in ("moderate", "strict"):
        began = time.perf_counter()
        known = load_policy(name)
        load_ms = (time.perf_counter() - began) * 1000
        decide = timed_each(
            lambda command, known=known: known.decide(  # type: ignore[misc]
                command, cwd=str(folder), workspace=str(folder)
            )
        )
        best = [min(times) for times in zip(*(decide(commands) for _ in range(3)), strict=True)]
        what = f"`{name}`: verdict on {len(best):,} recorded commands"
        p99 = round(percentile(best, 0.99), 3)
        rows += [
            Row(f"{what}, median", round(percentile(best, 0.5), 3), "ms"),
            Row(f"{what}, p99", p99, "ms", target="<= 1 ms", met=p99 <= 1),
            Row(f"`{name}`: loading it", round(load_ms, 1), "ms"),
        ]
    return rows


def timed_each(call: Callable[[str], object]) -> Callable[[list[str]], list[float]]:
    """Milliseconds of CPU that `call` took for each of some texts."""

    def measured(texts: list[str]) -> list[float]:
        taken = []
        for text in texts:
            began = time.thread_time()
            call(text)
            taken.append((time.thread_time() - began) * 1000)
        return taken

    return measured


def _recorded() -> Iterator[str]:
    for file in sorted(RECORDED.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            yield from filter(None, json.loads(line)["actions"])


def sandbox(place: Path) -> list[Row]:
    """Trying whether a sandbox holds: once for a policy, until the machine starts anew."""
    if not shutil.which("bwrap"):
        return []
    from openry.sandbox.probe import probe

    del place
    once = timed(lambda: probe(SandboxSpec("bubblewrap")))
    (taken,) = in_turns(7, once)
    probed = middle(taken)
    return [Row("probe", probed, "ms", target="<= 15 ms", met=probed <= 15)]


def _home(place: Path) -> tuple[Config, Path]:
    """A home with a ledger, and a workspace."""
    folder = place / "workspace"
    folder.mkdir(exist_ok=True)
    (place / "home").mkdir(mode=0o700, exist_ok=True)
    config = load_config(place / "home", env={})
    with FastLedger(config.ledger) as ledger:
        begun = ledger.begin(RunContext(), "true")
        assert begun.command_id is not None
        ledger.finish(begun.command_id, CommandResult(0, "", "", 0.0))
    with closing(sqlite3.connect(config.ledger)) as connection, connection:
        connection.execute("DELETE FROM commands_log")
    return config, folder


CASES: dict[str, Case] = {
    "command_line": command_line,
    "imports": imports,
    "in_process": in_process,
    "forwarders": forwarders,
    "writers": writers,
    "flood": flood,
    "policy": policy,
    "sandbox": sandbox,
}
