"""What a task's words and a folder offer as arguments."""

from __future__ import annotations

import json

import pytest

from openry.agent.actions import constrain, from_json, turn_schema
from openry.agent.evidence import Evidence, gather
from openry.capability import load_registry


def test_files_named_in_the_task_come_first(tmp_path):
    """Order is likelihood: a model that takes the first option takes a sensible one."""
    for name in ("a.txt", "notes.md", "logs/x.log", ".hidden", "z.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("id,name\n1,al\n")

    found = gather("Put the column 'name' of z.csv into names.txt, 2 times", tmp_path)

    assert found.files[0] == "z.csv"
    assert ".hidden" not in found.files and "logs/x.log" in found.files
    assert found.new_files == ("names.txt",)
    assert found.columns == ("name", "id")
    assert found.literals == ("name",)
    assert found.numbers == (2,)


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("don't touch 'a b' or \"c\"", ("a b", "c")),
        ("replace `x` by ``", ("x",)),
        ("把 “错误” 和「警告」", ("错误", "警告")),
        ("no quotes", ()),
    ],
)
def test_quoted_text_is_found_in_any_quotes(tmp_path, text, literals):
    """An apostrophe inside a word is no quote."""
    assert gather(text, tmp_path).literals == literals


def test_what_looks_like_its_role_is_found_once(tmp_path):
    """An address is no server, and a server no file."""
    found = gather(
        "send a.eml from ann@example.org over smtp.example.org, get https://example.org/x/y.png as"
        " y.png, on 2026-01-02 15:00 in Europe/Paris, at abc1234",
        tmp_path,
    )

    assert found.typed == {
        "url": ("https://example.org/x/y.png",),
        "address": ("ann@example.org",),
        "revision": ("abc1234",),
        "host": ("smtp.example.org",),
    }
    assert found.new_files == ("a.eml", "y.png")


def test_keys_of_json_are_paths_that_the_text_puts_in_order(tmp_path):
    """`*` for every element; the one whose keys are said comes first."""
    (tmp_path / "s.json").write_text(
        '{"server": {"host": "a", "port": 1}, "users": [{"name": "b"}, {"name": "c"}]}'
    )
    (tmp_path / "bad.json").write_text("{")

    assert gather("the port of the server in s.json", tmp_path).keys[0] == "server.port"
    keys = gather("every name of the users in s.json", tmp_path).keys
    assert keys[0] == "users.*.name"
    schema = {"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"]}
    narrowed = constrain(schema, {"field": "field"}, gather("the name, s.json", tmp_path))
    assert narrowed["properties"]["field"]["enum"][0] == "name"


def test_a_call_is_never_made_impossible():
    """Where there is no evidence for an argument, its own schema stays."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert "enum" not in constrain(schema, {"path": "input"}, Evidence())["properties"]["path"]


def test_every_shipped_capability_can_be_constrained(tmp_path):
    """Whatever a tool's parameters are, the schema of a turn stays a valid JSON Schema."""
    from jsonschema import Draft202012Validator

    (tmp_path / "a.csv").write_text("id,name\n1,al\n")
    evidence = gather("first 3 rows of a.csv with 'al' to b.csv", tmp_path)
    for tool in load_registry():
        roles = {name: each.role for name, each in tool.parameters.items()}
        schema = turn_schema([(tool.name, constrain(tool.json_schema(), roles, evidence))])
        Draft202012Validator.check_schema(schema)
        json.dumps(schema)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {"action": 3},
        {"action": "run"},
        {"action": "x", "arguments": "["},
        {"action": "report", "status": "great"},
        {"action": "report", "status": "completed", "payload": 4},
    ],
)
def test_what_is_no_action_says_why(data):
    """Every malformed reply becomes a sentence for the model, never an exception."""
    assert from_json(data).why
