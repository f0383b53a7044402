"""Requests for bash: a machine in the sandbox, and commands judged by what they did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loop import bench_nl2bash as suite
from loop.bench_nl2bash import Task
from loop.bench_root import Machine, build, clear
from loop.kit import Kit
from openry.config import load_config
from openry.errors import BadFileError, UsageError
from openry.llm import ScriptedModel

FILES = (
    {"path": "/testbed", "mode": "0o755", "type": "dir"},
    {"path": "/testbed/a.txt", "mode": "0o644", "type": "file", "text": "one\ntwo\n"},
    {"path": "/testbed/deep", "mode": "0o700", "type": "dir"},
    {"path": "/testbed/deep/b.txt", "mode": "0o600", "type": "file", "text": "three\n",
     "mtime": "2022-05-31T23:59:59Z"},
)  # fmt: skip

pytestmark = pytest.mark.sandbox


@pytest.fixture
def kit(tmp_path):
    """A kit that asks no model."""
    with Kit(load_config(tmp_path / "home", env={})) as made:
        yield made


@pytest.fixture
def machine(kit, tmp_path):
    """A machine with a few files."""
    (tmp_path / "root").mkdir()
    return Machine(kit, tmp_path / "root", FILES)


def test_the_root_is_a_folder_of_ours_and_nothing_else_is_seen(machine, tmp_path):
    """What is at `/` is in the folder; programs are there, the host's files are not."""
    shown = machine.run(f"ls /testbed; ls {tmp_path}; touch /new /usr/new; readlink -f /testbed/..")

    assert shown.output.split() == ["a.txt", "deep", "/"]
    assert (tmp_path / "root" / "new").is_file()
    assert not Path("/usr/new").exists()


def test_a_shell_goes_on_where_the_last_one_stood(machine):
    """`cd` holds for the next command, and so do files; a failure is only its own."""
    machine.run("cd /testbed/deep && exit 3")
    shown = machine.run("pwd; cat b.txt; false")

    assert (shown.output, shown.exit_code, shown.cwd) == (
        "/testbed/deep\nthree\n",
        1,
        "/testbed/deep",
    )


def test_files_are_as_they_are_listed(machine):
    """Modes and times are those of the list; two machines are equal, whatever their folder."""
    shown = machine.run("stat -c '%a %Y' /testbed/a.txt /testbed/deep /testbed/deep/b.txt")

    assert shown.output == "644 1672531200\n700 1672531200\n600 1654041599\n"


def test_what_a_command_destroys_is_its_own_machine(machine, kit, tmp_path):
    """Everything may be removed in there; the next machine is whole again."""
    before = machine.state()
    line = (Path(__file__).parent / "data" / "removes_all.txt").read_text()
    machine.run(line)
    after = machine.state()
    (tmp_path / "other").mkdir()

    assert before and not after
    assert Machine(kit, tmp_path / "other", FILES).state() == before


def test_a_file_outside_is_refused(tmp_path):
    """No list leads out of its machine."""
    with pytest.raises(ValueError, match="leads out"):
        build(tmp_path, [{"path": "/../x", "mode": "0o644", "type": "file"}])


def test_a_machine_can_be_cleared_whatever_its_rights(tmp_path):
    """Folders without any rights go; links to folders that are not its own do no harm."""
    (tmp_path / "kept").mkdir(mode=0o750)
    root = tmp_path / "root"
    (root / "shut").mkdir(parents=True)
    (root / "shut" / "file").touch()
    (root / "link").symlink_to(tmp_path / "kept")
    (root / "shut").chmod(0)

    clear(root)

    assert not root.exists()
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o750


TASKS = (
    ("count", "Count the text files", "find /testbed -name '*.txt' | wc -l"),
    ("copy", "Copy a.txt to c.txt", "cp /testbed/a.txt /testbed/c.txt"),
    ("go", "Go to deep", "cd /testbed/deep"),
    ("odd", "Print a random number", "echo $RANDOM $RANDOM"),
    ("lacks", "Ask nobody", "no-such-program-here | cat"),
    ("file", "Read what is not there", "cat /etc/networks | wc -l"),
)
SAID = {
    "count": (["ls /testbed", "echo 2"], [0.5, 1.0]),
    "copy": (["true", "cat /testbed/a.txt > /testbed/c.txt"], [0.33, 1.0]),
    "go": (["true", "cd /testbed/deep"], [1.0, 1.0]),
    "odd": (["echo 4"], [0.0]),
    "lacks": (["true"], [1.0]),
    "file": (["echo 0"], [0.5]),
}


@pytest.fixture
def folders(tmp_path):
    """A suite and the transcript of one model."""
    made = tmp_path / "suite", tmp_path / "told"
    for each in made:
        each.mkdir()
    tasks = [{"id": name, "query": query, "gold": gold} for name, query, gold in TASKS]
    _write(made[0] / "one.tasks.jsonl", tasks)
    _write(made[0] / "one.files.jsonl", FILES)
    said = [{"task": name, "actions": acts, "rewards": got} for name, (acts, got) in SAID.items()]
    _write(made[1] / "big-model.one.jsonl", said)
    return made


def test_recorded_commands_are_played_and_judged(kit, folders):
    """Right by output, by files and by folder; what gold cannot judge is set aside and said."""
    found = suite.run(kit, *folders)
    nothing, big = found.totals()

    assert found.layer == "L3"
    assert found.aside == {
        "odd": "do not do the same twice",
        "lacks": "ask for what is not here",
        "file": "ask for what is not here",
    }
    assert (big["subject"], big["tasks"], big["first"], big["best"]) == ("big-model", 3, 0.0, 1.0)
    assert (big["recorded_first"], big["recorded_best"]) == (pytest.approx(1 / 3), 1.0)
    assert big["as_recorded"] == pytest.approx(5 / 6)
    assert nothing["best"] == 0.0
    assert "3 tasks judged, 3 set aside" in found.to_text()
    assert "<svg" in found.to_html()


def test_a_model_is_told_what_its_last_command_did(tmp_path):
    """Turn by turn until one is right; the first turn is asked of the task alone."""
    gone = "cat /testbed/none.txt"
    model = ScriptedModel([gone, "ls /testbed", "echo 2"], name="openai/scripted")
    task = Task("t", "Count the text files", "", FILES)
    with Kit(load_config(tmp_path / "h", env={}), open_model=lambda *a, **k: model) as kit:
        gold = suite.gold_of(kit, Task("t", "q", "find /testbed -name '*.txt' | wc -l", FILES))
        turns = suite._write(kit, task, gold, 10)

    first, second, third = ([each.text for each in r.messages] for r in model.requests)
    assert [turn.right for turn in turns] == [False, False, True]
    assert len(first) == 2
    assert second[2] == gone and "No such file" in second[3] and "Exit status: 1" in second[3]
    assert third[:4] == second and "a.txt" in third[5]
    assert "Exit status" not in third[5]


def test_a_gold_command_that_prints_and_changes_nothing_is_met_by_doing_nothing(kit):
    """Such tasks lift everybody; the table's first line says by how much."""
    gold = suite.gold_of(kit, Task("t", "q", "find /testbed -name '*.java'", FILES))

    turns = suite._play(kit, Task("t", "q", "", FILES), gold, [("true", None)])

    assert not gold.unfit and turns[0].right


@pytest.mark.parametrize(("turn", "right"), [(1, False), (2, True), (3, True)])
def test_the_first_right_turn_counts(turn, right):
    """Best of ten turns is right by any of them."""
    turns = (suite.Turn("a", False), suite.Turn("b", True), suite.Turn("c", False))

    assert suite.Line("t", "m", turns).right_by(turn) is right


def test_folders_without_tasks_or_with_bad_lines_are_one_sentence(tmp_path):
    """Every bad line is named; an empty folder is said to be one."""
    with pytest.raises(UsageError, match=r"tasks\.jsonl"):
        suite.read_folder(tmp_path)
    (tmp_path / "x.tasks.jsonl").write_text('{"id": 1}\nno\n')
    with pytest.raises(BadFileError) as caught:
        suite.read_folder(tmp_path)
    assert len(caught.value.problems) == 3


def _write(path: Path, rows) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
