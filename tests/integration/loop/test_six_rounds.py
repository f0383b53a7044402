"""kill -9 at every journal record of six rounds: the same workflow, and no call paid twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.loop.helpers import fill, tree
from tests.integration.loop.sixrounds import MENDS

pytestmark = pytest.mark.sandbox
#: Records that the whole session writes; a test holds this number true.
RECORDS = 42
_QUICK = {(25, "before")}


class Place:
    """A home, a folder and a list of paid calls, as on a fresh machine."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, fill(root / "work")
        self.home, self.calls = root / "home", root / "calls"

    def run(self, at: int = 0, when: str = "before") -> subprocess.CompletedProcess[str]:
        given = [self.home, self.folder, self.calls, at, when]
        return subprocess.run(
            [sys.executable, "-m", "tests.integration.loop.sixrounds", *map(str, given)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    @property
    def paid(self) -> list[str]:
        return self.calls.read_text().split() if self.calls.exists() else []


def ended(place: Place, done: subprocess.CompletedProcess[str]) -> tuple:
    """What must be the same however often it was killed."""
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    text = Path(answer["workflow"]).read_text()
    return answer["outcome"], answer["rounds"], answer["edits"], text, tree(place.folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("whole"))
    done = place.run()
    return ended(place, done), place.paid, json.loads(done.stdout.splitlines()[-1])["records"]


def test_six_rounds_mend_six_steps(undisturbed):
    """Three by rule, three by the planner, each in a round of its own."""
    (outcome, rounds, edits, text, _), paid, records = undisturbed

    assert (outcome, rounds, edits) == ("converged", 6, 6)
    assert paid == list(MENDS)
    assert text.startswith("# six mistakes\n")
    assert records == RECORDS


def every() -> list:
    points = [(at, when) for at in range(1, RECORDS + 1) for when in ("before", "after")]
    marks = {point: [] if point in _QUICK else [pytest.mark.long] for point in points}
    return [pytest.param(*point, marks=marks[point]) for point in points]


@pytest.mark.parametrize(("at", "when"), every())
def test_killed_at_any_record_it_ends_the_same(undisturbed, tmp_path, at, when):
    """Kill -9 of the whole process at the Nth record, go on: identical YAML, each paid once."""
    place = Place(tmp_path)

    killed = place.run(at, when)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    assert ended(place, place.run()) == undisturbed[0]
    assert place.paid == list(MENDS)
