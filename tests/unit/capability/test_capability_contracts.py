"""A tool's own result fulfils its post-conditions, whatever the input: a contract must be true."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openry.capability import complete, ensures_for, load_registry, prepare
from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.runner import load, replace_file
from openry.orchestrator.validation import check_rules, parse_rules

REGISTRY = load_registry()
#: The packs whose tools turn one text or table into another.
PROMISING = [tool.name for tool in REGISTRY if tool.ensures and tool.pack in ("text", "data")]
LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["a", "A", "b", "_", "10", "9", "-3", "4.5 kg", "", " ", "é", "É", "x,y", '"q"', "a a"]
        ),
        st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=6),
    ),
    max_size=8,
)
ENDS = st.sampled_from(["\n", "\r\n"])
CELLS = st.one_of(
    st.sampled_from(["a", "B", " c ", "x, y", 'say "hi"', "two\nlines", "", "7", "$5", "é"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=4),
)


JSON = st.one_of(
    st.just(REGISTRY.entry("json_query").fixtures["profile.json"].encode()),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).map(lambda value: json.dumps(value).encode()),
)


def text(draw) -> bytes:
    lines, end = draw(LINES), draw(ENDS)
    return (end.join(lines) + end * draw(st.booleans())).encode()


def table(draw, names: tuple[str, ...]) -> bytes:
    delimiter = draw(st.sampled_from([",", ";", "\t"]))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=draw(ENDS))
    writer.writerows([names, *draw(st.lists(st.tuples(*[CELLS] * len(names)), max_size=5))])
    return out.getvalue().encode()


@st.composite
def inputs(draw, tool):
    """What the tool reads, and the arguments of one of its examples with the flags shuffled."""
    example = draw(st.sampled_from(tool.examples))
    args = {k: v for k, v in example.arguments.items() if k not in ("path", "other", "paths")}
    for name, parameter in tool.parameters.items():
        if parameter.role == "flag" and draw(st.booleans()):
            args[name] = draw(st.booleans())
        if name == "needle" and args.get("kind") != "regex":
            args[name] = draw(st.sampled_from(["a", "A", "é", ".", "x", "["]))
    if args.get("regex"):
        args["needle"] = "a"
    args["output"] = "out.txt"
    if tool.pack == "text":
        files = {name: text(draw) for name in ("f", "g")}
    elif "path" in tool.parameters and "JSON" in tool.parameters["path"].description:
        files = {"f.json": draw(JSON)}
        args["output"] = "out.json"
    else:
        columns = [args.get("column"), args.get("group_by"), *args.get("columns", [])]
        names = tuple(dict.fromkeys(c for c in columns if isinstance(c, str))) or ("k", "v")
        files = {name: table(draw, (*names, "w", "z")) for name in ("f", "g")}
    given_paths = {"path": next(iter(files)), "other": "g", "paths": ["f", "g"]}
    return files, args | {k: v for k, v in given_paths.items() if k in tool.parameters}


@pytest.mark.parametrize("examples", [10, pytest.param(150, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", PROMISING)
def test_a_result_keeps_the_contract(name, examples: int, tmp_path: Path, monkeypatch):
    """On text and tables with odd ends, quotes, blanks and letters; failures promise nothing."""
    tool = REGISTRY.get(name)
    monkeypatch.chdir(tmp_path)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(inputs(tool))
    def holds(drawn):
        files, args = drawn
        for path, content in files.items():
            Path(path).write_bytes(content)
        try:
            run(tool, args)
        except ToolFailure:
            return
        rules, problems = parse_rules(ensures_for(tool, args), "ensures")
        failed = [r for r in check_rules(rules, workspace=tmp_path, payload={}) if not r.passed]
        assert not problems
        assert not failed, (args, files, Path(args["output"]).read_bytes())

    holds()


def run(tool, args) -> None:
    """As the child does, or the program itself."""
    values = complete(tool, args)
    if tool.python is None:
        command = prepare(tool, args, Path.cwd())
        data = b""
        for stage in command.stages:
            made = subprocess.run(stage, input=data, capture_output=True, env=dict(command.env))
            data = made.stdout
        Path(args["output"]).write_bytes(data)
        return
    result = load(tool.python)(**{k: v for k, v in values.items() if k != "output"})
    replace_file(args["output"], [result] if isinstance(result, bytes) else result)
