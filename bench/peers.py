"""Other engines to stand beside: DBOS on SQLite, Prefect, Dagu. Fetched when they are wanted.

They live in a cache of the bench's own and are nobody's dependency. One that cannot be had is
left out of the table, with a line that says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "openry-bench"
_DAGU = "@dagu-org/dagu-linux-x64"
#: What every step of every engine does: say when.
STAMP = "date +%s%N >> {times}"

_DBOS = """
import subprocess, sys
from dbos import DBOS
kind, folder, command = sys.argv[1:4]
DBOS(config={
    "name": "bench", "system_database_url": f"sqlite:///{folder}/dbos.db", "log_level": "ERROR",
    "run_admin_server": False, "application_version": "1", "executor_id": "one",
})

@DBOS.step()
def step(command):
    subprocess.run(("sh", "-c", command), check=True)

@DBOS.workflow()
def course(steps, command):
    for _ in range(steps):
        step(command)

DBOS.launch()
if kind == "chain":
    course(int(sys.argv[4]), command)
elif kind == "many":
    queue = DBOS.register_queue("bench", worker_concurrency=8, polling_interval_sec=0.1)
    of = [queue.enqueue(course, int(sys.argv[5]), command) for _ in range(int(sys.argv[4]))]
    for handle in of:
        handle.get_result()
elif kind == "again":
    for handle in DBOS.list_workflows():
        DBOS.retrieve_workflow(handle.workflow_id).get_result()
DBOS.destroy()
"""
_PREFECT = """
import subprocess, sys
from concurrent.futures import ThreadPoolExecutor
from prefect import flow, task
kind, folder, command = sys.argv[1:4]

@task
def step(command):
    subprocess.run(("sh", "-c", command), check=True)

@flow
def course(steps, command):
    for _ in range(steps):
        step(command)

if kind == "chain":
    course(int(sys.argv[4]), command)
else:
    course(0, command)  # eight at once would each wait for a server of their own
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: course(int(sys.argv[5]), command), range(int(sys.argv[4]))))
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another engine.

    Attributes:
        chain: The command that runs so many steps one after the other, given the folder to work
            in, the number and what a step does.
        many: The same for so many courses of so many steps, eight at a time.
    """

    name: str
    env: Mapping[str, str]
    chain: Callable[[Path, int, str], Sequence[str]]
    many: Callable[[Path, int, int, str], Sequence[str]]

    @property
    def short(self) -> str:
        """Its name as a folder's."""
        return self.name.split()[0].lower()


def python_of(package: str) -> str:
    """A Python that has `package`, in an environment of its own; empty when it cannot be had."""
    place = _CACHE / package
    python = place / "bin" / "python"
    if not (place / "ready").exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        make = (sys.executable, "-m", "venv", str(place))
        install = (str(python), "-m", "pip", "install", "-q", package)
        if not (_works(make) and _works(install)):
            return ""
        (place / "ready").touch()
    return str(python)


def dagu_program() -> str:
    """Dagu from its npm package; empty when it cannot be had."""
    place = _CACHE / "dagu"
    program = place / "package" / "bin" / "dagu"
    if not program.exists():
        place.mkdir(parents=True, exist_ok=True)
        if not _works(("npm", "pack", "--silent", _DAGU), place):
            return ""
        with tarfile.open(next(place.glob("*.tgz"))) as packed:
            packed.extractall(place, filter="data")
        program.chmod(0o755)
    return str(program)


def _works(argv: Sequence[str], folder: Path | None = None) -> bool:
    try:
        done = subprocess.run(
            argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0


def dbos() -> Peer | None:
    python = python_of("dbos")
    if not python:
        return None
    return Peer(
        "DBOS on SQLite",
        {},
        lambda place, steps, does: (python, "-c", _DBOS, "chain", str(place), does, str(steps)),
        lambda place, courses, steps, does: (
            *(python, "-c", _DBOS, "many", str(place), does, str(courses), str(steps)),
        ),
    )


def dbos_again(place: Path, does: str) -> Sequence[str]:
    """DBOS once more, to recover what it was at."""
    return (python_of("dbos"), "-c", _DBOS, "again", str(place), does)


def prefect() -> Peer | None:
    python = python_of("prefect")
    if not python:
        return None
    quiet = {"PREFECT_LOGGING_LEVEL": "ERROR", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    quiet["PREFECT_SERVER_LOGGING_LEVEL"] = "ERROR"
    quiet["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "180"
    return Peer(
        "Prefect",
        quiet,
        lambda place, steps, does: (python, "-c", _PREFECT, "chain", str(place), does, str(steps)),
        lambda place, courses, steps, does: (
            *(python, "-c", _PREFECT, "many", str(place), does, str(courses), str(steps)),
        ),
    )


def dagu() -> Peer | None:
    program = dagu_program()
    if not program:
        return None

    def file(place: Path, steps: int, does: str) -> Path:
        lines = [f'  - name: s{n}\n    command: sh -c "{does}"' for n in range(steps)]
        made = place / "course.yaml"
        made.write_text("steps:\n" + "\n".join(lines) + "\n")
        return made

    def many(place: Path, courses: int, steps: int, does: str) -> Sequence[str]:
        start = f"{program} start {file(place, steps, does)}"
        return ("sh", "-c", f"seq {courses} | xargs -P 8 -I % {start} > dagu.out 2>&1")

    return Peer(
        "Dagu",
        {},
        lambda place, steps, does: (program, "start", str(file(place, steps, does))),
        many,
    )
