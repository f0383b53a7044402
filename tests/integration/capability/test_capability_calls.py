"""Calls through the real hand: examples, awkward files, hostile arguments, the sandbox."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openry.capability import Registry, complete, invoke, load_registry
from openry.capability.builtin import runner
from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.runner import load
from openry.capability.commands import show_text
from openry.capability.trial import Trial, lay_out, try_example
from openry.errors import BadArgumentsError, NotFoundError
from openry.orchestrator.validation import check_rules, parse_rules

TOOLS = load_registry().names()
A_FEW = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def broken(rules: list, folder: Path) -> tuple[str, ...]:
    """The post-conditions that do not hold, by the orchestrator's own evaluation."""
    parsed, problems = parse_rules(rules, "ensures")
    results = check_rules(parsed, workspace=folder, payload={})
    failed = [f"{r.rule}: {r.message} ({r.actual})" for r in results if not r.passed]
    return (*map(str, problems), *failed)


def trials_of(registry: Registry, name: str, folder: Path, hand) -> list[Trial]:
    """Every example of a tool, each in a folder of its own; `hand` gives what runs commands."""
    entry, found = registry.entry(name), []
    for number, example in enumerate(entry.tool.examples):
        place = folder / f"{name}-{number}"
        place.mkdir()
        found.append(try_example(entry, example, place, hand(place), broken))
    return found


@pytest.mark.parametrize("name", TOOLS)
def test_two_examples_of_every_tool_are_right(
    registry: Registry, runner, tmp_path: Path, name: str
):
    """They run for real: success, the stated result, the output file, every post-condition."""
    entry = registry.entry(name)
    for number, example in enumerate(random.Random(name).sample(entry.tool.examples, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        trial = try_example(entry, example, folder, runner(folder), broken)
        assert trial.problems == (), example.request


@pytest.mark.long
@pytest.mark.parametrize("name", TOOLS)
def test_every_example_is_right_in_the_sandbox(
    registry: Registry, runner, backend, tmp_path: Path, name: str
):
    """What the shipped definitions teach is true, confined or not."""
    network = registry.get(name).network
    trials = trials_of(registry, name, tmp_path, lambda folder: runner(folder, backend, network))

    assert not [trial for trial in trials if trial.problems]


# --- programs against plain computations --------------------------------------------------

LINES = st.lists(st.sampled_from(["b", "B", "a", "ab", "10", "9", "-3", "4.5", "", "ä", " x"]))


@A_FEW
@given(LINES, st.booleans(), st.booleans())
def test_sorting_is_by_character_code(call, workspace, lines, reverse, unique):
    """The same order as Python's, on every machine whatever its language."""
    (workspace / "in.txt").write_text("".join(f"{line}\n" for line in lines))

    got = call("sort_lines", path="in.txt", reverse=reverse, unique=unique).raw_output

    wanted = sorted(set(lines) if unique else lines, reverse=reverse)
    assert got == "".join(f"{line}\n" for line in wanted)


@A_FEW
@given(st.lists(st.integers(-20, 20)), st.booleans(), st.booleans())
def test_numbers_are_sorted_as_numbers(call, workspace, numbers, reverse, unique):
    """9 before 10, -3 before 2; equal lines once when asked."""
    (workspace / "in.txt").write_text("".join(f"{number}\n" for number in numbers))

    got = call("sort_lines", path="in.txt", numeric=True, reverse=reverse, unique=unique).data

    wanted = sorted(set(numbers) if unique else numbers, reverse=reverse)
    assert got == [str(number) for number in wanted]


def test_marks_and_line_ends_take_no_part_in_sorting(call, workspace: Path):
    """A byte order mark stays out of the lines, and the last line needs no end to be equal."""
    (workspace / "in.txt").write_bytes(b"\xef\xbb\xbfb\r\na\r\nb")

    call("sort_lines", path="in.txt", unique=True, output="out.txt")

    assert (workspace / "out.txt").read_bytes() == b"a\r\nb\r\n"


@A_FEW
@given(LINES, st.integers(0, 5))
def test_the_ends_of_a_file_are_slices(call, workspace, lines, count):
    """First and last lines, none too many."""
    (workspace / "in.txt").write_text("".join(f"{line}\n" for line in lines))

    first = call("first_lines", path="in.txt", count=count, output="first.txt")
    last = call("last_lines", path="in.txt", count=count, output="last.txt")

    assert first.data == {"output": "first.txt"}
    assert last.success
    assert (workspace / "first.txt").read_text().split("\n")[:-1] == lines[:count]
    rest = lines[max(0, len(lines) - count) :]
    assert (workspace / "last.txt").read_text().split("\n")[:-1] == rest


# --- awkward files ------------------------------------------------------------------------

NAMES = [
    "two words.txt",
    "-n",
    "--help",
    "x=1.txt",
    "new\nline",
    "$(touch canary)",
    "'\"`;|&",
    "大.txt",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_is_a_name(call, workspace: Path, name: str):
    """Options, assignments, quotes and line ends in names are parts of names."""
    (workspace / name).write_text("b\na\nb\n")

    assert call("sort_lines", path=name).data == ["a", "b", "b"]
    assert call("first_lines", path=name, count=1).data == ["b"]
    assert call("unique_lines", path=name, output=f"out {name}").success
    assert (workspace / f"out {name}").read_text() == "b\na\n"
    assert call("copy", path=name, output=f"{name}.copy").success
    assert call("diff", path=name, other=f"{name}.copy").data == ""
    assert call("last_lines", path=name, count=1, output=name).success
    assert (workspace / name).read_text() == "b\n"
    assert not (workspace / "canary").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"a", b"a\r\nb", b"\xff\xfe", b"\x00\x01\n\xff", b"\xef\xbb\xbf", b"a," * 9999],
)
def test_no_file_makes_a_tool_break(
    registry: Registry, workspace: Path, monkeypatch, content: bytes
):
    """Every tool reads every file, or says in its own class why not; none fails inside."""
    monkeypatch.chdir(workspace)
    for tool in registry:
        if tool.side_effects != "none" or not (tool.python or "").startswith("openry."):
            continue
        for name in ("f", "g"):
            (workspace / name).write_bytes(content)
        replaced = {"path": "f", "other": "g", "paths": ["f", "g"]}
        example = tool.examples[0].arguments
        args = {k: replaced.get(k, v) for k, v in example.items() if k != "output"}
        try:
            b"".join(
                iter([r])
                if isinstance(r := load(tool.python or "")(**complete(tool, args)), bytes)
                else r
            )
        except ToolFailure as failure:
            assert failure.error_class in ("bad_arguments", "not_found"), tool.name
        except NotADirectoryError:
            assert tool.name == "list_directory"


def test_a_huge_file_is_read_in_pieces(call, workspace: Path):
    """100 MB through filter, count and sort, each in little memory."""
    line = "2026-01-01 INFO nothing to see here, and a good many words more than one\n" * 999
    with (workspace / "big.log").open("w") as file:
        for _ in range(1400):
            file.write(line + "2026-01-01 ERROR disk\n")

    kept = call("filter_lines", path="big.log", needle="ERROR", output="errors.log")
    counted = call("count_lines", path="big.log")

    assert kept.success
    assert counted.data == 1_400_000
    assert (workspace / "errors.log").read_text().count("\n") == 1400


# --- what goes wrong ----------------------------------------------------------------------


def test_a_missing_file_is_told_with_the_nearest_name(call, workspace: Path):
    """Class, sentence and the likely fix; for programs and for our own tools."""
    (workspace / "server.log").write_text("a\n")

    for name, more in (("first_lines", {}), ("count_lines", {}), ("diff", {"other": "server.log"})):
        error = call(name, path="sever.log", **more).error
        assert error and error.error_class == "not_found"
        assert error.hint == "did you mean `server.log`?"


def test_a_failed_call_leaves_no_output_and_no_draft(call, workspace: Path):
    """Neither a half file nor the draft of one."""
    (workspace / "in.csv").write_text("a,b\n1,2\n")

    result = call("csv_column", path="in.csv", column="c", output="deep/out.txt")

    assert result.error and result.error.error_class == "bad_arguments"
    assert "no column `c`" in result.error.message
    assert not (workspace / "deep").exists()
    assert [path.name for path in workspace.iterdir()] == ["in.csv"]


def test_a_folder_is_no_file(call, workspace: Path):
    """Said as what it is, whichever program finds it."""
    (workspace / "sub").mkdir()

    for name in ("count_lines", "first_lines", "sort_lines", "read_file"):
        error = call(name, path="sub").error
        assert error and error.error_class == "bad_arguments", name


def test_notes_say_what_was_assumed(call, workspace: Path):
    """A CSV tool tells whether it took the first row as header."""
    (workspace / "t.csv").write_text("1,2\n3,4\n")

    result = call("csv_count_rows", path="t.csv")

    assert result.data == 2
    assert result.notes == ("`t.csv`: there is no header row",)


@pytest.mark.sandbox
def test_a_tool_in_the_sandbox_cannot_write_beside_the_workspace(call, workspace: Path, backend):
    """A link that appears after the check leads nowhere."""
    (workspace / "in.txt").write_text("a\n")

    assert call("upper_case", backend, path="in.txt", output="sub/out.txt").success
    assert (workspace / "sub/out.txt").read_text() == "A\n"
    with pytest.raises(BadArgumentsError, match="outside the workspace"):
        call("upper_case", backend, path="in.txt", output="../out.txt")


@pytest.mark.parametrize(
    "value",
    ["$(touch canary)", "`touch canary`", "; touch canary", "' -e x", "a\\1&/", "-e", "%s%n"],
)
def test_hostile_values_are_values(call, workspace: Path, value: str):
    """No value becomes a program, an option or a pattern."""
    (workspace / "in.txt").write_text(f"x{value}y\nother\n")

    kept = call("filter_lines", path="in.txt", needle=value)
    changed = call("replace_text", path="in.txt", needle=value, replacement=value[::-1])

    assert kept.data == [f"x{value}y"]
    assert changed.data == f"x{value[::-1]}y\nother\n"
    assert not (workspace / "canary").exists()


# --- databases ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "error_class"),
    [
        ("DELETE FROM book", "refused"),
        ("DROP TABLE book", "refused"),
        ("ATTACH '/tmp/x.db' AS x", "refused"),
        ("PRAGMA user_version = 3", "refused"),
        ("SELECT load_extension('x')", "refused"),
        ("SELECT nothing FROM book", "bad_arguments"),
        ("SELECT 1; SELECT 2", "bad_arguments"),
        ("", None),
    ],
)
def test_a_database_is_only_read(registry, call, workspace: Path, query, error_class):
    """One SELECT, nothing else, whatever the words."""
    entry = registry.entry("sqlite_query")
    lay_out(entry, entry.tool.examples[0], workspace)
    before = (workspace / "shelf.db").read_bytes()

    if error_class is None:
        with pytest.raises(BadArgumentsError):
            call("sqlite_query", path="shelf.db", query=query)
        return
    error = call("sqlite_query", path="shelf.db", query=query).error

    assert error and error.error_class == error_class
    assert (workspace / "shelf.db").read_bytes() == before
    assert [path.name for path in workspace.iterdir()] == ["shelf.db"]


# --- packs and commands -------------------------------------------------------------------


def test_a_pack_wraps_a_program_in_ten_lines(tmp_path: Path, runner):
    """A definition in a folder is shown and tested like a shipped one."""
    pack = tmp_path / "mine"
    pack.mkdir()
    (pack / "shout.yaml").write_text(
        "name: shout\n"
        "description: Says a word loudly. Use it for shouting, not for whispering.\n"
        "parameters:\n"
        "  word: {type: string, required: true, description: What to shout.}\n"
        'command_template: [printf, "%s!\\n", "{word}"]\n'
        "examples:\n"
        "  - {request: Shout hey, arguments: {word: hey}, result: hey!}\n"
        "  - {request: Shout no, arguments: {word: no}, result: wrong}\n"
    )
    registry = load_registry([pack])

    trials = trials_of(registry, "shout", tmp_path, runner)

    assert registry.scope(["mine.*"]) == (registry.get("shout"),)
    assert "word (string, required): What to shout." in show_text(registry, "shout")
    assert [trial.problems for trial in trials] == [(), ("the result is 'no!', not 'wrong'",)]
    with pytest.raises(NotFoundError, match="did you mean `shout`"):
        show_text(registry, "shot")


def test_a_pack_may_bring_python(tmp_path: Path, runner, workspace: Path):
    """`python: ./file.py:function` is found beside the definition, and its mistakes are classed."""
    pack = tmp_path / "mine"
    pack.mkdir()
    (pack / "tool.py").write_text(
        "def double(number):\n"
        "    if number > 5:\n        raise ValueError('too much')\n"
        "    return f'{number * 2}\\n'.encode()\n"
    )
    (pack / "double.yaml").write_text(
        "name: double\ndescription: Doubles a whole number.\n"
        "parameters: {number: {type: integer, required: true, description: The number.}}\n"
        "python: ./tool.py:double\nexamples: [{request: Double 2, arguments: {number: 2}}]\n"
    )
    tool = load_registry([pack]).get("double")
    run = runner(workspace)

    assert invoke(tool, {"number": "4"}, run, workspace).data == 8
    error = invoke(tool, {"number": 6}, run, workspace).error
    assert error and (error.error_class, error.message) == ("internal", "ValueError: too much")


def test_a_tool_takes_no_more_memory_than_its_module_says(tmp_path):
    """The child is bounded, not who called it; it says so in one line."""
    tool = tmp_path / "greedy.py"
    tool.write_text("MEMORY_BYTES = 300 << 20\n\ndef take(mb):\n    return bytes(mb << 20)[:1]\n")
    child = Path(runner.__file__).parent.parent / "child.py"

    def take(mb):
        argv = [sys.executable, "-I", "-S", str(child), f"{tool}:take"]
        request = json.dumps({"args": {"mb": mb}})
        return subprocess.run(argv, input=request, capture_output=True, text=True, check=False)

    assert take(10).returncode == 0
    assert take(1000).stderr.startswith("error[resource]")
