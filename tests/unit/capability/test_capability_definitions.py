"""What a definition must have, how packs are read, and that the shipped ones are well made."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from openry.capability import Registered, Registry, ToolDefinition, as_mcp, as_openai, load_registry
from openry.capability.arguments import complete
from openry.capability.builtin.runner import load
from openry.capability.offers import as_json, as_prompt
from openry.capability.registry import read_mapping
from openry.errors import BadFileError, NotFoundError
from openry.orchestrator.validation import parse_rules

REGISTRY = load_registry()
EVERY_TOOL = pytest.mark.parametrize("tool", REGISTRY.tools(), ids=lambda tool: tool.name)

GOOD = """\
name: say_hello
description: Greets somebody by name. Use it for greetings, not for farewells.
parameters:
  who: {type: string, required: true, description: Whom to greet.}
command_template: [echo, "hello {who}"]
examples:
  - {request: Greet Ann, arguments: {who: Ann}}
"""


def definition(**changes):
    """A good definition with some keys changed; None takes a key out."""
    data = {
        "name": "say_hello",
        "description": "Greets somebody by name.",
        "parameters": {"who": {"type": "string", "required": True, "description": "Whom."}},
        "command_template": ["echo", "hello {who}"],
        "examples": [{"request": "Greet Ann", "arguments": {"who": "Ann"}}],
        **changes,
    }
    return ToolDefinition.model_validate({k: v for k, v in data.items() if v is not None})


# --- refusal ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"description": None}, "description"),
        ({"description": "Greets."}, "description"),
        ({"examples": None}, "examples"),
        ({"parameters": {"who": {"type": "string"}}}, "`who` has no `description`"),
        ({"command_template": ["echo", "{whom}"]}, "`{whom}` is used"),
        ({"ensures": [{"type": "file_exists", "path": "{out}"}]}, "`{out}` is used"),
        ({"conventions": {"tone": "friendly"}}, "`tone` names no parameter"),
    ],
)
def test_a_poor_definition_is_refused_with_what_is_missing(changes, missing):
    """Descriptions are what models choose by, so none without them is registered."""
    with pytest.raises(BadFileError, match=re.escape(missing)):
        Registry().register(Registered(definition(**changes), "hello.yaml"))


def test_everything_that_is_missing_is_said_at_once():
    """A person mends a definition once, not problem by problem."""
    poor = definition(description=None, examples=None, parameters={"who": {"type": "string"}})

    with pytest.raises(BadFileError) as refusal:
        Registry().register(Registered(poor, "hello.yaml"))

    assert len(refusal.value.problems) == 3
    assert all(problem.startswith("hello.yaml: ") for problem in refusal.value.problems)


@pytest.mark.parametrize(
    "changes",
    [
        {"python": "module:function"},
        {"command_template": None},
        {"command_template": None, "python": "no_function"},
        {"command_template": []},
        {"command_template": ["echo", ["cat"]]},
        {"name": "Say Hello"},
        {"cues": ["("]},
        {"error_patterns": ["*"]},
        {"descriptoin": "x"},
        {"side_effects": "some"},
    ],
)
def test_an_impossible_definition_is_no_definition(changes):
    """What cannot be carried out does not load."""
    with pytest.raises(ValueError, match="ToolDefinition"):
        definition(**changes)


# --- packs --------------------------------------------------------------------------------


def pack(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path):
    """The rest of the pack loads; each bad file is named with its problem and place."""
    mine = pack(
        tmp_path / "mine",
        good=GOOD,
        syntax="name: [unclosed\n",
        unknown=GOOD.replace("command_template", "comand_template"),
        poor=GOOD.replace("examples:", "x-examples:"),
        listing="- a\n",
        twice=GOOD + "name: again\n",
    )

    registry = load_registry([mine])

    said = "\n".join(map(str, registry.problems))
    assert registry.get("say_hello").pack == "mine"
    assert "syntax.yaml:2: " in said
    assert "unknown key `comand_template` (did you mean `command_template`?)" in said
    assert "unknown key `x-examples` (did you mean `examples`?)" in said
    assert "must hold one map" in said
    assert "`name` twice" in said
    assert len(registry) == len(REGISTRY) + 1


def test_scalars_are_what_a_person_expects(tmp_path: Path):
    """`no` is a word, `10:30` a time, `012` an article number, a date text: as in YAML 1.2."""
    values = {"a": "no", "b": "10:30", "c": "012", "d": "2026-01-02", "e": "3", "f": "true"}
    (tmp_path / "x.yaml").write_text("".join(f"{k}: {v}\n" for k, v in values.items()))

    assert read_mapping(tmp_path / "x.yaml") == {**values, "e": 3, "f": True}


def test_two_tools_of_one_name_are_an_error_that_names_both(tmp_path: Path):
    """Neither pack silently wins over the other."""
    pack(tmp_path / "packs" / "a", hello=GOOD)
    pack(tmp_path / "packs" / "b", hello=GOOD)

    registry = load_registry([tmp_path / "packs"])

    (problem,) = registry.problems
    assert "two tools are named `say_hello`" in problem.message
    assert "packs/a/hello.yaml" in problem.message
    assert "packs/b/hello.yaml" in problem.message


def test_an_unknown_name_offers_the_nearest():
    """A misspelt capability costs one turn, not three."""
    with pytest.raises(NotFoundError, match="did you mean `count_lines`"):
        REGISTRY.get("count_line")


def test_a_scope_takes_names_packs_and_patterns():
    """A step offers what it names and nothing else."""
    names = {tool.name for tool in REGISTRY.scope(["files.*", "json_*", "text.count_lines"])}

    assert {"read_file", "json_query", "count_lines"} <= names
    assert "sort_lines" not in names
    with pytest.raises(NotFoundError, match="sort_line"):
        REGISTRY.scope(["sort_line"])


# --- the shipped packs --------------------------------------------------------------------


def test_the_shipped_packs_have_no_problem():
    """All files of templates/capabilities register."""
    assert REGISTRY.problems == []
    assert {tool.pack for tool in REGISTRY} == {
        "text", "files", "data", "http", "git", "archive", "dates", "mail",
    }  # fmt: skip


def test_a_task_is_read_as_asking_for_everyday_tools_only():
    """Others are used where they are named: what a sentence means does not change by a new pack."""
    assert {tool.pack for tool in REGISTRY.everyday()} == {"text", "files", "data"}
    assert len(REGISTRY.everyday()) == 67


@EVERY_TOOL
def test_a_shipped_tool_is_described_well_enough_to_be_chosen(tool):
    """Six wordings and more, Chinese among them; says when not to use it; names its opposite."""
    requests = [example.request for example in tool.examples]

    assert len(set(requests)) >= 6
    assert any(re.search(r"[\u4e00-\u9fff]", request) for request in requests)
    assert "Not " in tool.description or "never" in tool.description
    assert tool.opposite in REGISTRY
    assert tool.opposite != tool.name
    assert tool.cues


@EVERY_TOOL
def test_a_tools_cues_match_some_of_its_own_wordings(tool):
    """A cue that never matches what the tool is asked with decides nothing."""
    requests = [example.request for example in tool.examples]

    hits = [any(re.search(cue, each, re.IGNORECASE) for cue in tool.cues) for each in requests]

    assert sum(hits) >= 2


@EVERY_TOOL
def test_an_examples_arguments_fit_the_parameters(tool):
    """What the examples teach is callable."""
    for example in tool.examples:
        assert complete(tool, example.arguments).items() >= example.arguments.items()


@EVERY_TOOL
def test_a_parameters_cues_decide_for_values_it_can_have(tool):
    """A cue for a value that no call may give would be a trap."""
    for parameter in tool.parameters.values():
        for value in parameter.cues:
            if parameter.types == ("boolean",):
                assert value in ("true", "false")
            elif parameter.enum:
                assert value in map(str, parameter.enum)


@EVERY_TOOL
def test_a_python_tool_takes_what_its_definition_promises(tool):
    """Every parameter is one of the function's; what need not be given, it need not get."""
    if tool.python is None:
        return
    takes = inspect.signature(load(tool.python)).parameters
    optional = {n for n, p in tool.parameters.items() if not p.required and p.default is None}
    extra = {"output"} if tool.output_file == "{output}" else set()

    assert set(tool.parameters) - extra <= set(takes)
    assert {n for n, p in takes.items() if p.default is not p.empty} >= optional & set(takes)
    assert all(n in tool.parameters or p.default is not p.empty for n, p in takes.items())


@EVERY_TOOL
def test_every_convention_states_a_default(tool):
    """What a request leaves open is a parameter that need not be given."""
    for name in tool.conventions:
        assert not tool.parameters[name].required


@EVERY_TOOL
def test_the_post_conditions_are_rules_the_orchestrator_reads(tool):
    """Every rule of every example parses as a validation rule."""
    from openry.capability import ensures_for

    for example in tool.examples:
        rules, problems = parse_rules(ensures_for(tool, example.arguments), tool.name)
        assert not problems, [str(problem) for problem in problems]
        assert len(rules) == len(ensures_for(tool, example.arguments))


def test_function_calling_schemas_are_json_schema():
    """Every tool's parameters are a valid schema that its own examples fulfil."""
    for function in as_openai(REGISTRY):
        about = function["function"]
        Draft202012Validator.check_schema(about["parameters"])
        for example in REGISTRY.get(about["name"]).examples:
            Draft202012Validator(about["parameters"]).validate(example.arguments)


def test_mcp_tools_tell_what_they_change():
    """A client can tell a reader from a writer."""
    tools = {tool["name"]: tool for tool in as_mcp(REGISTRY)}

    assert tools["read_file"]["annotations"]["readOnlyHint"]
    assert not tools["move"]["annotations"]["readOnlyHint"]
    assert not tools["move"]["annotations"]["idempotentHint"]
    assert tools["sort_lines"]["inputSchema"]["required"] == ["path"]


def test_prompt_text_says_all_a_call_needs():
    """Name, purpose, arguments with their kinds and defaults, one example."""
    text = as_prompt(REGISTRY.scope(["first_lines"]))

    assert text.startswith("- first_lines: Take the first lines")
    assert "path (string, required)" in text
    assert "count (integer, default 10)" in text
    assert '{"path": "diary.txt", "count": 4, "output": "intro.txt"}' in text


def test_a_definition_survives_its_json_form():
    """`--capabilities --format json` holds the whole definition."""
    for data in as_json(REGISTRY):
        assert ToolDefinition.model_validate(data) == REGISTRY.get(data["name"])
