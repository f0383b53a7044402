"""`python -m bench.refusals FOLDER`: which recorded commands that only read are refused, and why.

FOLDER holds `*.jsonl` files whose lines have a list `actions` of shell lines. They are judged by
their text alone; nothing is run but `bash -n`, which says whether a line is one at all.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from openry.data import data_root
from openry.policy import Decision, Policy, Verdict, load_policy

_DATA = Path(__file__).with_suffix(".yaml")
_PLACE: dict[str, Any] = {
    "cwd": "/",
    "workspace": "/testbed",
    "home": "/root",
    "path": "/usr/bin:/bin",
}
_SHOWN = 150


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal. `because` is empty where nothing explains it; `reads`: it only reads, truly."""

    command: str
    times: int
    because: str
    reads: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What became of all: `kinds` counts commands by what they are."""

    kinds: Counter[str]
    refused: tuple[Refused, ...]

    @property
    def falsely(self) -> int:
        return sum(one.times for one in self.refused if one.reads)

    @property
    def only_read(self) -> int:
        return self.kinds["allowed"] + self.falsely

    @property
    def percent(self) -> float:
        return 100 * self.falsely / self.only_read if self.only_read else 0.0


def recorded(folder: Path) -> list[str]:
    """Every shell line of the folder, as often as it was written."""
    return [
        line
        for path in sorted(folder.glob("*.jsonl"))
        for row in path.read_text("utf-8").splitlines()
        for line in json.loads(row)["actions"]
    ]


def reading_policy() -> Policy:
    """What only reads is allowed, all over the machine."""
    given = dict(yaml.safe_load(_DATA.read_text("utf-8"))["policy"])
    path = data_root() / "templates/policies" / f"{given.pop('like')}.yaml"
    rules = [*yaml.safe_load(path.read_text("utf-8"))["commands"], {"allow": given.pop("more")}]
    return load_policy({**given, "commands": rules})


def judge(lines: list[str]) -> Found:
    policy, why = reading_policy(), yaml.safe_load(_DATA.read_text("utf-8"))["why"]
    kinds: Counter[str] = Counter()
    refused = []
    for line, times in Counter(lines).items():
        verdict = policy.decide(line, **_PLACE, inherited={"PATH": _PLACE["path"]})
        kind = _kind(line, verdict)
        kinds[kind] += times
        if kind == "refused":
            refused.append(Refused(line, times, *_because(line, verdict, why)))
    refused.sort(key=lambda one: (not one.reads, one.because, -one.times, one.command))
    return Found(kinds, tuple(refused))


def _kind(line: str, verdict: Verdict) -> str:
    if verdict.allowed:
        return "allowed"
    if subprocess.run(["bash", "-n", "-c", line], capture_output=True, check=False).returncode:
        return "no command"
    against = [part for part in verdict.parts if part.decision is not Decision.ALLOW]
    if any(part.rule == "default" for part in against):
        return "does more than read"
    return "writes" if any(part.rule == "files.write" for part in against) else "refused"


def _because(line: str, verdict: Verdict, why: list[dict[str, Any]]) -> tuple[str, bool]:
    for one in why:
        if re.search(one["reason"], verdict.reason) and re.search(one.get("command", ""), line):
            return str(one["because"]), bool(one.get("reads", True))
    return "", True


def table(found: Found) -> str:
    """The result as Markdown."""
    kinds, total = found.kinds, sum(found.kinds.values())
    lines = [
        f"{total:,} commands: {kinds['no command']} that bash cannot read,"
        f" {kinds['does more than read']} with a program that does more than read,"
        f" {kinds['writes']} that write a file,"
        f" {kinds['refused'] - found.falsely} that run something nobody knows or are no command,"
        f" {found.only_read:,} that only read.",
        "",
        f"Of these {found.only_read:,} are refused: {found.falsely}, **{found.percent:.1f} %**.",
    ]
    because, reads = None, None
    for one in found.refused:
        if one.reads != reads:
            reads = one.reads
            lines += ["", "## Refused although they only read" if reads else "## Rightly refused"]
        if one.because != because:
            because = one.because
            same = sum(each.times for each in found.refused if each.because == because)
            lines += ["", f"### {because or 'NOT EXPLAINED'} ({same})", ""]
            lines += ["| times | command |", "| ---: | --- |"]
        lines.append(f"| {one.times} | {_cell(one.command)} |")
    return "\n".join(lines) + "\n"


def _cell(command: str) -> str:
    text = " ".join(command.split())
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    ticks = "``" if "`" in text else "`"
    pad = " " if ticks == "``" else ""
    return f"{ticks}{pad}{text}{pad}{ticks}".replace("|", "\\|")


_HEAD = """# Refusals of recorded commands

Commands that language models wrote for file tasks, judged by `bench/refusals.yaml`: the programs of
`strict`, and further ones that only read. `python -m bench.refusals FOLDER` prints this table.

"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.refusals", description=__doc__)
    parser.add_argument("folder", type=Path)
    print(_HEAD + table(judge(recorded(parser.parse_args().folder))), end="")


if __name__ == "__main__":
    main()
