"""Arguments come from evidence in the fragment and the files, and from nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from loop.binding import Filled, Scene, as_made, fill, without_remarks
from loop.choosing import veiled
from loop.mentions import find_mentions
from loop.survey import survey
from loop.values import FileInfo, Goal
from openry.capability.registry import load_registry

REGISTRY = load_registry()
FILES = {
    "plants.txt": "oak: tall\nfern: small\nrose [red]\ndaisy: small\n",
    "sizes.txt": "12\n7\n30\n",
    "team.csv": "name,dept,pay_grade,age\nAnn,Sales,3,41\nBo,IT,2,27\nCy,Sales,1,35\n",
    "conf.json": '{"owner": {"name": "Ann", "mail": "a@x.org"}, "port": 80, "tags": ["a", "b"]}',
    "more.txt": "x\n",
}


@pytest.fixture
def scene(tmp_path: Path):
    """What a fragment says, over a folder with FILES."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    looked = survey(tmp_path)

    def make(text: str, **more) -> Scene:
        asked = without_remarks(text)
        mentions = find_mentions(text, looked)
        return Scene(text, mentions, looked, asked, veiled(asked), intermediate="mid", **more)

    return make


def first(name: str, scene: Scene) -> Filled:
    ways = fill(REGISTRY.get(name), scene)
    assert ways, f"{name} is not feasible"
    return ways[0]


def args(name: str, scene: Scene) -> dict:
    """The arguments of the best way, without paths."""
    tool = REGISTRY.get(name)
    paths = {*tool.with_role("input"), *tool.with_role("output")}
    return {k: v for k, v in first(name, scene).args.items() if k not in paths}


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("lines of plants.txt with 'tall' into a.txt", "tall"),
        ("lines of plants.txt that contain small into a.txt", "small"),
        ("lines of plants.txt mentioning the word fern", "fern"),
        ("the lines marked [red] in plants.txt", "[red]"),
        ("every ERROR line of plants.txt", "ERROR"),
        ("just the small ones of plants.txt", "small"),
        ("plants.txt 中包含 fern 的行", "fern"),
        ("找出 plants.txt 中含有“oak”的行", "oak"),
    ],
)
def test_a_needle_is_quoted_led_to_or_known(text, needle, scene):
    """Quoted, after a word of containing, in capitals or brackets, or a word of some lines."""
    assert args("filter_lines", scene(text))["needle"] == needle


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("the second word of each line of plants.txt", 2),
        ("word 1 of every line in plants.txt", 1),
        ("取 plants.txt 每行的第 2 个单词", 2),
    ],
)
def test_words_of_a_line_are_counted(text, number, scene):
    """In plain text a word is what a column is in a table."""
    assert args("text_column", scene(text))["column"] == number


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("Create the folder results", "results"),
        ("make a directory called results/2026, please", "results/2026"),
        ("a new folder named inbox.", "inbox"),
        ("mkdir -p build/tmp", "build/tmp"),
        ("新建一个文件夹 output", "output"),
        ("新建文件夹，名为 logs", "logs"),
    ],
)
def test_a_folder_to_make_is_named_by_the_words_round_it(text, folder, scene):
    """No ending tells it from a word; without a name no folder is made."""
    assert first("create_directory", scene(text)).outputs == (folder,)
    assert fill(REGISTRY.get("create_directory"), scene("make me a new folder")) == ()


def test_a_folder_is_moved_or_removed_when_no_file_is_named(tmp_path):
    """Its name is a word of the text that the workspace has as a folder."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "a.txt").write_text("a\n")
    looked = survey(tmp_path)

    def inputs(text: str) -> tuple[str, ...]:
        made = Scene(text, find_mentions(text, looked), looked, text, veiled(text))
        return first("delete", made).inputs

    assert inputs("throw away the directory tmp") == ("tmp",)
    assert inputs("throw away a.txt of tmp") == ("a.txt",)


def test_a_field_is_one_of_each_element(tmp_path):
    """Whatever place the element has in the list that shows it."""
    (tmp_path / "p.json").write_text('[{"name": "Ann", "age": 31}, {"name": "Bo", "age": 9}]')
    text = "Keep the objects of p.json whose age is above 30 in o.json"
    looked = survey(tmp_path)
    made = Scene(text, find_mentions(text, looked), looked, text, veiled(text))

    assert args("json_filter", made) == {"field": "age", "op": ">", "value": "30"}


def test_no_needle_no_filter(scene):
    """Words that the file does not hold are nothing to look for."""
    assert fill(REGISTRY.get("filter_lines"), scene("make plants.txt pretty")) == ()


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("replace 'oak' with 'elm' in plants.txt", "oak", "elm"),
        ("change small to tiny in plants.txt", "small", "tiny"),
        ("in plants.txt write big instead of tall", "tall", "big"),
        ("use 'elm' instead of 'oak' in plants.txt", "oak", "elm"),
        ("replace the colons in plants.txt with dashes", ":", "-"),
        ("swap every fern in plants.txt for moss", "fern", "moss"),
        ("把 plants.txt 里的 oak 替换成 elm", "oak", "elm"),
        ("replace oak with elm in plants.txt itself", "oak", "elm"),
    ],
)
def test_a_replacement_has_an_old_and_a_new_text(text, old, new, scene):
    """Whichever is said first; a sign may be named."""
    got = args("replace_text", scene(text))

    assert (got["needle"], got["replacement"]) == (old, new)


@pytest.mark.parametrize(
    ("tool", "text", "count"),
    [
        ("first_lines", "the first two lines of plants.txt", 2),
        ("last_lines", "last 3 lines of plants.txt", 3),
        ("first_lines", "only the top line of plants.txt", 1),
        ("last_lines", "plants.txt 的最后两行", 2),
    ],
)
def test_a_count_is_said(tool, text, count, scene):
    """In digits or words; `the top line` is one."""
    assert args(tool, scene(text))["count"] == count


def test_a_range_goes_upwards(scene):
    """Two numbers are the start and the end."""
    assert args("line_range", scene("lines 2 to 4 of plants.txt")) == {"start": 2, "end": 4}


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("the name column of team.csv", "name"),
        ("names from team.csv into n.txt", "name"),
        ("the pay grade of team.csv", "pay_grade"),
        ("second column of team.csv", 2),
        ("column 3 of team.csv", 3),
        ("取出 team.csv 的 dept 列", "dept"),
        ("team.csv 的第二列", 2),
    ],
)
def test_a_column_is_named_or_counted(text, column, scene):
    """A header as it is spoken (`pay grade`, a plural), or its number."""
    assert args("csv_column", scene(text))["column"] == column


def test_a_file_name_names_no_column(tmp_path):
    """The `name` of name.txt is no header."""
    (tmp_path / "team.csv").write_text(FILES["team.csv"])
    text = "column 2 of team.csv into name.txt"
    looked = survey(tmp_path)

    way = first("csv_column", Scene(text, find_mentions(text, looked), looked, text, text))

    assert way.args["column"] == 2


def test_columns_keep_the_order_said(scene):
    """Not that of the table."""
    text = "only age and name of team.csv, with the header"

    assert args("csv_columns", scene(text))["columns"] == ["age", "name"]


@pytest.mark.parametrize(
    ("text", "column", "op", "value"),
    [
        ("rows of team.csv where dept is Sales", "dept", "==", "Sales"),
        ("everybody of team.csv in Sales", "dept", "==", "Sales"),
        ("rows of team.csv with an age over 30", "age", ">", "30"),
        ("rows of team.csv whose age is at least 35", "age", ">=", "35"),
        ("discard the rows of team.csv with an age under 30", "age", ">=", "30"),
        ("remove everybody from Sales, team.csv", "dept", "!=", "Sales"),
        ("筛选 team.csv 中 age 大于 30 的行", "age", ">", "30"),
    ],
)
def test_a_condition_has_a_column_a_sign_and_a_value(text, column, op, value, scene):
    """A cell tells its column; where rows are to go, the condition is turned round."""
    got = args("csv_filter", scene(text))

    assert (got["column"], got.get("op", "=="), str(got["value"])) == (column, op, value)


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("average age per dept", "mean"),
        ("highest age for each dept", "max"),
        ("sum of age by dept", "sum"),
    ],
)
def test_a_group_is_not_what_is_added(text, function, scene):
    """`per X`, `for each X` and `by X` make the groups; the other column is worked on."""
    got = args("csv_aggregate", scene(f"{text} of team.csv"))

    assert got["group_by"] == "dept"
    assert got["column"] == "age"
    assert got.get("function", "sum") == function


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("the port in conf.json", "port"),
        ("the owner's mail from conf.json", "owner.mail"),
        ("conf.json, name of the owner", "owner.name"),
    ],
)
def test_a_query_is_a_path_that_is_there(text, query, scene):
    """Its keys are said; the deepest that fits best is taken."""
    assert args("json_query", scene(text))["query"] == query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sort sizes.txt", {"numeric": True}),
        ("sort sizes.txt, the biggest number at the top", {"numeric": True, "reverse": True}),
        ("sort sizes.txt from high to low", {"numeric": True, "reverse": True}),
        ("sort sizes.txt, smallest last", {"numeric": True, "reverse": True}),
        ("sort plants.txt from Z to A", {"reverse": True}),
        ("sort plants.txt", {}),
    ],
)
def test_numbers_are_sorted_as_numbers(text, expected, scene):
    """A file of nothing but numbers; the direction is said in words."""
    assert args("sort_lines", scene(text)) == expected


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("trim plants.txt at the start and end of lines", None),
        ("remove trailing spaces of plants.txt", "end"),
    ],
)
def test_a_choice_follows_its_cues(text, side, scene):
    """Both ends are the default, which needs no argument or says so."""
    assert args("trim_lines", scene(text)).get("side") in ({None, "both"} if not side else {side})


def test_a_named_file_is_read_and_a_new_one_written(scene):
    """Each in its place."""
    way = first("sort_lines", scene("sort plants.txt into sorted.txt"))

    assert (way.inputs, way.outputs) == (("plants.txt",), ("sorted.txt",))


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("replace oak with elm in plants.txt", "plants.txt"),
        ("sort plants.txt", "plants.txt"),
        ("how many lines has plants.txt?", "answer.txt"),
        ("the first 2 lines of plants.txt", "answer.txt"),
    ],
)
def test_without_a_new_file_a_change_is_made_in_place(text, output, scene):
    """What asks for a figure or a part is answered in answer.txt."""
    tools = {"replace": "replace_text", "sort": "sort_lines", "how": "count_lines"}
    tool = tools.get(text.split()[0], "first_lines")

    assert first(tool, scene(text, answer="answer.txt")).outputs == (output,)


def test_two_new_files_are_two_operations(scene):
    """One goal writes one file."""
    assert fill(REGISTRY.get("sort_lines"), scene("sort plants.txt to a.txt and to b.txt")) == ()


def test_a_tool_reads_its_own_kind_of_file(scene):
    """Tables for csv tools, JSON for json tools, one field of text for text ones."""
    for tool, text in [
        ("csv_count_rows", "count plants.txt"),
        ("json_to_csv", "team.csv as a table"),
        ("text_column", "first word of each line in team.csv"),
    ]:
        assert fill(REGISTRY.get(tool), scene(text)) == ()


def test_join_follows_what_comes_first(scene):
    """`B after A` is A, then B."""
    way = first("join_files", scene("put more.txt after plants.txt in all.txt"))

    assert way.inputs == ("plants.txt", "more.txt")


def goal(tool: str, inputs: tuple[str, ...], outputs: tuple[str, ...], **given) -> Goal:
    return Goal("", tool, {"path": inputs[0], "output": outputs[0], **given}, inputs, outputs)


def test_the_other_lines_are_what_the_filter_left(scene):
    """The same text, the opposite tool, the same file."""
    last = goal("filter_lines", ("plants.txt",), ("small.txt",), needle="small")
    said = scene("the other lines to rest.txt", before=(last,), previous=("small.txt",))

    way = first("remove_lines", said)

    assert way.args == {"path": "plants.txt", "needle": "small", "output": "rest.txt"}


def test_figures_of_one_column_go_on_with_it(scene):
    """`and the average` after a sum is that of the same column of the same table."""
    last = goal("csv_aggregate", ("team.csv",), ("s.txt",), column="age", function="sum")
    made = {"s.txt": FileInfo("s.txt", 0, "number")}
    said = scene("the average in avg.txt", before=(last,), previous=("s.txt",), made=made)

    way = first("csv_aggregate", said)

    assert (way.inputs, way.args["column"], way.args["function"]) == (("team.csv",), "age", "mean")


def test_a_result_looks_like_what_its_tool_gives(scene):
    """A figure is no file to work on; columns that are kept are those that are there."""
    said = scene("x of team.csv into y")
    made = {
        name: as_made(REGISTRY.get(name), Filled(given, ("team.csv",), ("y",)), said)
        for name, given in {
            "csv_aggregate": {"column": "age"},
            "csv_columns": {"columns": ["age", "name"]},
            "csv_drop_columns": {"columns": ["age"]},
            "csv_column": {"column": "name"},
            "count_lines": {},
        }.items()
    }

    assert made["csv_aggregate"].kind == made["count_lines"].kind == "number"
    assert made["csv_columns"].columns == ("age", "name")
    assert made["csv_drop_columns"].columns == ("name", "dept", "pay_grade")
    assert made["csv_column"].head == "ann\nbo\ncy"


def test_what_is_named_and_unused_costs(scene):
    """A tool that takes the number is cheaper than one that does not."""
    said = scene("the first 3 lines of plants.txt")

    assert first("first_lines", said).penalty < first("upper_case", said).penalty


def test_remarks_on_form_are_left_out():
    """They say nothing of which tool is meant."""
    text = "take the mail column (no heading), keep the header, one per line, in that order"

    assert without_remarks(text) == "take the mail column"


def test_scenes_are_values(scene):
    """Nothing is changed by filling."""
    said = scene("sort plants.txt into a.txt")
    before = dataclasses.asdict(said)

    fill(REGISTRY.get("sort_lines"), said)

    assert dataclasses.asdict(said) == before
