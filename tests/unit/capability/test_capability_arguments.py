"""Arguments: every problem at once, types taken where they are meant, nothing out of the folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.agent.calls import told_with_schema
from openry.capability import ToolDefinition, complete, load_registry, prepare
from openry.capability.arguments import outside
from openry.capability.rendering import ensures_for, safe_path
from openry.errors import BadArgumentsError

REGISTRY = load_registry()
FILTER = REGISTRY.get("filter_lines")
SORT = REGISTRY.get("sort_lines")


def problems(tool: ToolDefinition, args: dict) -> tuple[str, ...]:
    with pytest.raises(BadArgumentsError) as refusal:
        complete(tool, args)
    return refusal.value.problems


def test_every_problem_is_said_at_once():
    """A model pays per turn, so one answer names all that is wrong, with the fix."""
    said = problems(
        FILTER, {"needel": "x", "where": "middle", "ignore_case": "perhaps", "path": 7.5}
    )

    assert said == (
        "`filter_lines` has no parameter `needel` (did you mean `needle`?)",
        "missing `needle`: The text to look for, one line at most",
        '`where` must be one of `anywhere`, `start`, `end`, `whole`, `word`, got "middle"',
        '`ignore_case` must be boolean, got string "perhaps"',
    )


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("first_lines", {"path": "a", "count": -1}, "`count` must be at least 0, got -1"),
        ("filter_lines", {"path": "a", "needle": ""}, "`needle` may not be empty"),
        ("filter_lines", {"path": "", "needle": "x"}, "`path` may not be empty: name a file"),
        ("filter_lines", {"path": "a\0b", "needle": "x"}, "`path` may not hold a NUL character"),
        ("filter_lines", {"path": "a", "needle": "x\ny"}, "`needle` must match"),
        ("join_files", {"paths": []}, "`paths` needs at least 1"),
        ("join_files", {"paths": [["a"]]}, '`paths[0]` must be string, got array ["a"]'),
        ("csv_columns", {"path": "a", "columns": {"a": 1}}, "`columns` must be array"),
        ("average_numbers", {"path": "a", "decimals": 99}, "`decimals` must be at most 12"),
        ("first_lines", {"path": "a", "count": True}, "`count` must be integer, got boolean true"),
    ],
)
def test_a_value_outside_its_limits_is_told_its_limit(name, args, said):
    """Each limit of a parameter is checked and named."""
    assert any(problem.startswith(said) for problem in problems(REGISTRY.get(name), args))


@pytest.mark.parametrize(
    ("name", "given_value", "taken"),
    [
        ("count", "5", 5),
        ("count", 5.0, 5),
        ("count", None, 10),
    ],
)
def test_a_number_is_taken_however_it_is_written(name, given_value, taken):
    """Templates and small models write numbers as text; null means not given."""
    values = complete(REGISTRY.get("first_lines"), {"path": "a.txt", name: given_value})

    assert values[name] == taken
    assert type(values[name]) is type(taken)


def test_flags_lists_and_texts_are_taken_however_they_are_written():
    """`"true"` is a flag, `'["a"]'` a list, one name a list of one, a number a text."""
    assert complete(SORT, {"path": "a", "numeric": "true"})["numeric"] is True
    assert complete(REGISTRY.get("join_files"), {"paths": '["a", "b"]'})["paths"] == ["a", "b"]
    assert complete(REGISTRY.get("join_files"), {"paths": "a.txt"})["paths"] == ["a.txt"]
    assert complete(FILTER, {"path": "a", "needle": 404})["needle"] == "404"
    assert complete(REGISTRY.get("csv_columns"), {"path": "a", "columns": 2})["columns"] == [2]


def test_a_text_that_looks_like_a_number_stays_text_where_text_is_wanted():
    """`007` is a needle, not 7."""
    assert complete(FILTER, {"path": "a", "needle": "007"})["needle"] == "007"
    assert (
        complete(REGISTRY.get("csv_filter"), {"path": "a", "column": "1", "value": "01"})["value"]
        == "01"
    )


# --- paths --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["../up.txt", "/etc/passwd", "a/../../b", "link/x", "link", "~/../.."]
)
def test_no_path_leads_out_of_the_workspace(tmp_path: Path, path: str):
    """Neither by `..`, nor by a full path, nor by a link."""
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "link").symlink_to(tmp_path)

    for args in ({"path": path, "needle": "x"}, {"path": "a", "needle": "x", "output": path}):
        with pytest.raises(BadArgumentsError, match="outside the workspace"):
            prepare(FILTER, args, workspace)


def test_a_path_inside_is_fine_however_it_is_written(tmp_path: Path):
    """Full paths into the workspace and detours that end in it are its own."""
    (tmp_path / "sub").mkdir()

    assert outside((str(tmp_path / "a"), "sub/../a", ".", "sub//b", "~a"), tmp_path) == ()


# --- argv ---------------------------------------------------------------------------------

HOSTILE = st.text(
    st.one_of(st.characters(exclude_characters="\0\n", exclude_categories=["Cs"]),
              st.sampled_from("-;|&$`'\"*?(){}<>\\ =%")),
    min_size=1,
)  # fmt: skip


@given(HOSTILE)
def test_a_value_stays_one_argument(text):
    """Whatever a value holds, it is one word of the argument vector, braces included."""
    tool = ToolDefinition.model_validate(
        {
            "name": "say",
            "parameters": {"text": {"type": "string"}, "flag": {"type": "boolean"}},
            "command_template": ["echo", {"if": "flag", "then": ["-n"]}, "--", "<{text}>"],
        }
    )

    assert prepare(tool, {"text": text}, Path("/")).stages == (("echo", "--", f"<{text}>"),)


@given(HOSTILE)
def test_a_path_is_never_an_option_or_an_assignment(path):
    """`-rf`, `-` and `x=y` as file names are names."""
    safe = safe_path(path)

    assert not safe.startswith("-")
    assert safe in (path, f"./{path}")
    if "=" in path and not path.startswith("/"):
        assert safe.startswith("./")


def test_a_flag_adds_its_words_and_an_empty_stage_is_left_out(tmp_path: Path):
    """A pipeline grows with what is asked: one program, or two."""
    tool = ToolDefinition.model_validate(
        {
            "name": "order",
            "parameters": {
                "path": {"type": "string", "format": "path"},
                "once": {"type": "boolean"},
                "kind": {"type": "string"},
            },
            "command_template": [
                [{"if": "once", "then": ["sort", "-u", "--", "{path}"]}],
                [
                    "sort",
                    {"if": "kind", "equals": "number", "then": ["-n"]},
                    {"if": "once", "else": ["--", "{path}"]},
                ],
            ],
            "env": {"LC_ALL": "C"},
        }
    )

    plain = prepare(tool, {"path": "a.txt", "kind": "text"}, tmp_path)
    both = prepare(tool, {"path": "a.txt", "once": True, "kind": "number"}, tmp_path)

    assert plain.stages == (("sort", "--", "a.txt"),)
    assert both.stages == (("sort", "-u", "--", "a.txt"), ("sort", "-n"))
    assert plain.env == {"LC_ALL": "C"}


def test_lists_are_spread_and_absent_words_left_out(tmp_path: Path):
    """`{paths...}` becomes one word per path, made safe; a lone `{x}` without value is no word."""
    tool = ToolDefinition.model_validate(
        {
            "name": "cat",
            "parameters": {
                "paths": {"type": "array", "items": {"type": "string", "format": "path"}},
                "suffix": {"type": "string"},
            },
            "command_template": ["cat", "{suffix}", "--", "{paths...}"],
        }
    )

    command = prepare(tool, {"paths": ["a", "-b"]}, tmp_path)

    assert command.stages == (("cat", "--", "a", "./-b"),)


def test_a_python_tool_gets_its_arguments_as_json(tmp_path: Path):
    """Nothing of a call is in the argument vector, and the output is the child's to write."""
    command = prepare(FILTER, {"path": "a", "needle": "$(x)", "output": "o.txt"}, tmp_path)

    request = json.loads(command.stdin or b"")
    assert command.stages[0][-1] == "openry.capability.builtin.text:filter_lines"
    assert request["output"] == "o.txt"
    assert request["args"]["needle"] == "$(x)"
    assert "output" not in request["args"]
    assert command.label == 'filter_lines {"path": "a", "needle": "$(x)", "output": "o.txt"}'


def test_secrets_are_not_in_the_label(tmp_path: Path):
    """The log shows that a secret was given, not which."""
    tool = ToolDefinition.model_validate(
        {
            "name": "login",
            "parameters": {"token": {"type": "string"}},
            "command_template": ["login", "{token}"],
            "secrets": ["token"],
        }
    )

    assert "s3cret" not in prepare(tool, {"token": "s3cret"}, tmp_path).label


# --- post-conditions ----------------------------------------------------------------------


def test_post_conditions_are_filled_with_the_call():
    """A literal needle is escaped for a regex, flags keep their type."""
    rules = ensures_for(FILTER, {"path": "a.log", "needle": "a.b", "output": "o"})
    order = ensures_for(SORT, {"path": "a", "output": "o", "reverse": "true"})

    assert {"type": "relation", "kind": "subset_lines", "input": "a.log", "output": "o"} in rules
    assert any(rule.get("regex") == r"a\.b" for rule in rules)
    assert any(rule["type"] == "sorted" and rule["reverse"] is True for rule in order)


def test_post_conditions_that_cannot_be_asked_are_left_out():
    """No output: nothing to look at. Output over the input: nothing left to compare with."""
    assert ensures_for(FILTER, {"path": "a.log", "needle": "x"}) == []
    assert [r["type"] for r in ensures_for(SORT, {"path": "a", "output": "a"})] == ["sorted"]


# --- anything a model may say -------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(
        ["../x", "/etc/passwd", "-rf", "a\0b", "[", '{"a": 1}', "1e999", "\ud800", "."]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


@pytest.mark.parametrize("tool", REGISTRY.tools(), ids=lambda tool: tool.name)
def test_any_arguments_make_a_command_inside_the_workspace_or_are_refused(tool, tmp_path: Path):
    """No value raises anything but its list of problems, and no accepted path leads out."""
    names = st.sampled_from([*tool.parameters, "other_name"])

    @settings(max_examples=30, deadline=None)
    @given(st.dictionaries(names, JSON_VALUES))
    def holds(extra):
        try:
            command = prepare(tool, {**tool.examples[0].arguments, **extra}, tmp_path)
        except BadArgumentsError as refusal:
            assert refusal.problems
            return
        assert command.stages
        assert all(isinstance(word, str) and "\0" not in word for s in command.stages for word in s)
        assert not command.output_file.startswith(("/", ".."))
        json.loads(command.stdin or b"{}")

    holds()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1e400"])
def test_a_number_can_be_written(value):
    """What JSON cannot hold is refused, not handed to a program."""
    weigh = ToolDefinition.model_validate(
        {
            "name": "weigh",
            "command_template": ["echo", "{kilos}"],
            "parameters": {"kilos": {"type": "number", "description": "How heavy."}},
        }
    )

    assert "must be a number that can be written" in problems(weigh, {"kilos": value})[0]


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_a_number_larger_than_any_is_refused(value):
    """In one sentence, like one that is only too large."""
    weigh = ToolDefinition.model_validate(
        {
            "name": "weigh",
            "command_template": ["echo", "{kilos}"],
            "parameters": {"kilos": {"type": "integer", "description": "How heavy."}},
        }
    )

    assert "`kilos` must be at most 9007199254740992" in problems(weigh, {"kilos": value})[0]


def test_bad_arguments_are_said_with_the_schema():
    """Every problem at once, and what a model needs for the next try."""
    tool = REGISTRY.get("count_lines")

    with pytest.raises(BadArgumentsError) as caught, told_with_schema(tool):
        complete(tool, {"pth": "a"})

    *said, schema = caught.value.problems
    assert len(said) == 2
    assert json.loads(schema.removeprefix("the arguments must fit ")) == tool.json_schema()
