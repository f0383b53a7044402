"""`python -m demo [--inject-fault] [--to DIR]`: the real commands on a fresh copy of `files/`.

Nothing is prepared: each task starts from its sentence, in an OPENRY_HOME of its own. The exit
status is 1 when a task did not converge.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Task:
    """One call of `openry-loop new`; `name` is also that of its folder."""

    name: str
    title: str
    sentence: str
    more: tuple[str, ...] = ()


ONE = Task(
    "one-goal",
    "one goal",
    "Find the lines of app.log that contain ERROR and save them to errors.txt",
)
THREE = Task(
    "three-goals",
    "three goals in one sentence, the second on the result of the first",
    "Collect the lines of app.log that contain ERROR into errors.txt, count the lines of"
    " errors.txt into error_count.txt, and keep the rows of orders.csv whose status is open"
    " in open_orders.csv",
)
FAULTY = Task(
    "inject-fault",
    "a workflow with two mistakes: a column and a file that do not exist",
    "Keep the rows of orders.csv whose status is open in open_orders.csv, and count the lines"
    " of app.log that contain ERROR into error_count.txt",
    ("--from", str(HERE / "faulty.yaml")),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--inject-fault", action="store_true", help="start from a faulty workflow")
    parser.add_argument("--to", type=Path, default=Path("demo-out"), help="made anew each time")
    given = parser.parse_args()
    tasks = (FAULTY,) if given.inject_fault else (ONE, THREE)
    place: Path = given.to.absolute()
    failed = [task.name for task in tasks if not run(task, place)]
    if failed:
        print(f"demo: not converged: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run(task: Task, place: Path) -> bool:
    """Run one task in a fresh copy of the sample folder."""
    root = place / task.name
    shutil.rmtree(root, ignore_errors=True)
    folder, home = root / "files", root / "home"
    shutil.copytree(HERE / "files", folder)
    argv = ("openry-loop", "new", task.sentence, "--dir", str(folder), "--yes", *task.more)
    print(f"\n=== {task.title} ===\n$ {shlex.join(argv)}\n", flush=True)
    began = time.monotonic()
    program = Path(sys.executable).with_name(argv[0])
    status = subprocess.run([program, *argv[1:]], env=_environment(home), check=False).returncode
    seconds = time.monotonic() - began
    # Linux counts in kilobytes, macOS in bytes; it is the largest of all children so far.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    peak_mb = peak / (1_000_000 if sys.platform == "darwin" else 1000)
    print(f"\nexit status {status}, {seconds:.1f} s from start to end, at most {peak_mb:.0f} MB")
    print(f"the files: {folder}\nthe workflow, the ledger, the session: {home}", flush=True)
    return status == 0


def _environment(home: Path) -> dict[str, str]:
    """Ours without anybody's OpenRY settings: the embedded model, and a home of its own."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("OPENRY_")}
    return {**kept, "OPENRY_HOME": str(home)}


if __name__ == "__main__":
    sys.exit(main())
