"""How long a policy takes over a command line, once it is loaded."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import yaml

from bench.measure import Row, percentile
from bench.refusals import recorded
from openry.policy import Policy, load_policy

_ROOT = Path(__file__).parent.parent
_RECORDED = _ROOT.parent / "shared" / "cases" / "agent-trajectories"
_OWN = _ROOT / "tests" / "unit" / "policy" / "lines.yaml"
_ROUNDS = 5


def decisions(place: Path) -> list[Row]:
    """Processor time of a decision; recorded commands where they are, else lines of the tests."""
    lines = recorded(_RECORDED) if _RECORDED.is_dir() else _own_lines()
    rows = []
    for name in ("strict", "moderate"):
        policy = load_policy(name)
        times = [
            median(each)
            for each in zip(*(_round(policy, lines) for _ in range(_ROUNDS)), strict=True)
        ]
        p99 = round(percentile(times, 0.99), 3)
        what = f"`{name}`, {len(lines):,} command lines, p99"
        peer = "their median"
        rows.append(Row(what, p99, "ms", peer, round(median(times), 3), "<= 1 ms", p99 <= 1))
    return rows


def _own_lines() -> list[str]:
    groups = yaml.safe_load(_OWN.read_text("utf-8"))
    return [line for group in groups for line in (*group["bypass"], *group["harmless"])]


def _round(policy: Policy, lines: list[str]) -> list[float]:
    """Milliseconds of processor time for each line."""
    spent = []
    for line in lines:
        began = time.process_time_ns()
        policy.decide(line, cwd="/testbed", home="/root", path="/usr/bin:/bin")
        spent.append((time.process_time_ns() - began) / 1e6)
    return spent
