"""`python -m bench [CASE…] [--to FILE]`: print tables and write results.json.

Every figure is a median of interleaved runs, most of them beside a peer from the same minute.
Nothing here passes or fails: a missed target is printed as such, and the exit status stays 0.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench.cases import CASES
from bench.measure import Row, machine


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--to", type=Path, default=Path(__file__).with_name("results.json"))
    given = parser.parse_args()
    if unknown := [name for name in given.cases if name not in CASES]:
        parser.error(f"unknown case `{unknown[0]}`: choose among {', '.join(CASES)}")
    results = {"schema_version": 1, "at": _now(), "machine": machine(), "cases": {}}
    print("{system}, {processor}, {cores} cores, load {load}, Python {python}".format(**machine()))
    cases = {}
    for name in given.cases or CASES:
        with tempfile.TemporaryDirectory(prefix="openry-bench-") as place:
            rows = CASES[name](Path(place))
        _print(name, rows)
        cases[name] = [row.to_data() for row in rows]
    results["cases"] = cases
    given.to.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(f"\nwritten to {given.to}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _print(name: str, rows: list[Row]) -> None:
    print(f"\n{name}")
    for row in rows:
        ours = f"{row.ours:,.2f}".rstrip("0").rstrip(".")
        line = f"  {row.what:<52} {ours:>10} {row.unit:<5}"
        if row.theirs is not None:
            line += f" {row.ratio or 0:>7.2f} x  {row.peer} ({row.theirs:,.2f})"
        if row.target:
            line += f"  [target {row.target}: {'met' if row.met else 'missed'}]"
        print(line.rstrip(), flush=True)


if __name__ == "__main__":
    main()
