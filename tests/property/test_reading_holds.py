"""What every reading keeps, whatever a person writes and a folder holds."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.binding import WORK
from loop.choosing import Chooser
from loop.mentions import Kind, find_mentions
from loop.reading import ANSWER, Reader
from loop.survey import survey
from openry.capability.registry import load_registry

pytestmark = pytest.mark.model

NAMES = st.sampled_from(
    ["a.txt", "b.csv", "c.json", "old notes.txt", "-x.log", "数据.txt", "sub/d.txt", "it's.md"]
)
CONTENTS = st.one_of(
    st.sampled_from(
        ["", "red\nblue\nred\n", "1\n22\n3\n", "id,colour\n1,red\n2,blue\n", '[{"id": 1}]', "\0"]
    ),
    st.text(max_size=60),
)
FOLDERS = st.dictionaries(NAMES, CONTENTS, max_size=4)
WORDS = st.sampled_from(
    """
    sort count keep remove replace the lines of with 'red' and then , ; . into to in first last 2
    three column id colour sum per by unique reverse other lines a.txt b.csv c.json out.txt new.csv
    res.json "old notes.txt" 数据.txt 保存到 统计 删除 http://x.org/a.txt ann@x.org 'don't ? -x.log
    *.txt files copy append rename highest number it them
    """.split()
)
TASKS = st.one_of(st.lists(WORDS, max_size=14).map(" ".join), st.text(max_size=80))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    tools = load_registry().everyday()
    return Reader(tools, lambda: Chooser(tools, tmp_path_factory.getbasetemp() / "rows"))


@pytest.mark.parametrize("examples", [40, pytest.param(600, marks=pytest.mark.long)])
def test_whatever_is_read_can_be_done(reader: Reader, examples: int):
    """Inputs are there or made before; outputs are new or asked for; each new file comes once."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(task=TASKS, files=FOLDERS)
    def holds(task, files):
        root = Path(tempfile.mkdtemp())
        try:
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8", errors="surrogatepass")
            check(reader, task, root)
        finally:
            shutil.rmtree(root)

    holds()


#: Tools that fill a folder, which words like `into` name.
FILL_A_FOLDER = ("create_directory", "extract_archive", "save_attachments", "fetch_mail")


def check(reader: Reader, task: str, root: Path) -> None:
    looked = survey(root)
    reading = reader.read(task, looked)
    mentions = find_mentions(reading.task, looked)
    new = {m.text for m in mentions if m.kind is Kind.NEW_FILE}
    asked = {m.text for m in mentions if m.kind in (Kind.FILE, Kind.NEW_FILE)}

    assert bool(reading.candidates) != bool(reading.problems)
    for candidate in reading.candidates:
        made: list[str] = []
        was_read: set[str] = set()
        for goal in candidate.goals:
            assert all(n in {*looked.names, *looked.folders, *made} for n in goal.inputs)
            was_read.update(goal.inputs)
            for name in goal.outputs:
                changed = name in was_read  # nothing else is named, and the task says to change it
                folder = goal.tool in FILL_A_FOLDER and name in reading.task  # by words round it
                ours = name == ANSWER or name.startswith(WORK)
                assert name in asked or changed or folder or ours
                made.append(name)
        assert all(made.count(name) == 1 for name in new)
        assert all(made.count(name) <= 1 for name in made if name.startswith(WORK))
