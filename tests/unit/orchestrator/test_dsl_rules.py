"""Each rule type passes, fails, and says why it cannot be evaluated; none ever raises."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any

import pytest

from openry.models import CommandResult, Ending
from openry.orchestrator.rules import RULE_TYPES
from openry.orchestrator.validation import check_rules, parse_rules

PAYLOAD: dict[str, Any] = {
    "status": "ok", "n": 3, "f": 2.5, "flag": True, "one": 1, "text1": "1", "nothing": None,
    "list": [1, 2], "deep": {"a": {"b": [5, 6]}}, "a.b": "literal", "copy": "ok",
    "out": "data.txt", "yaml": "a: [1, 2]\n", "bad_yaml": "a: [1\n", "multi": "x\nERROR y\n",
}  # fmt: skip
FILES = {
    "data.txt": "b\na\na\n",
    "sorted.txt": "a\na\nb\n",
    "uniq.txt": "a\nb\n",
    "numbers.txt": "2\n10\n33\n",
    "empty.txt": "",
    "count.txt": "3\n",
    "max.txt": "33\n",
    "head.txt": "b\na\n",
    "tail.txt": "a\na\n",
    "both.txt": "x\n" * 8,
    "reversed.txt": "a\na\nb\n",
    "tally.txt": "      2 a\n      1 b\n",
    "tally.csv": "a,2\nb,1\n",
    "tally.json": '{"a": 2, "b": 1}',
    "people.csv": "name,age\nann,30\nbob,4\n",
    "names.txt": "ann\nbob\n",
    "ages.csv": "age\n30\n4\n",
    "people.json": '[{"name": "ann", "age": 30}, {"name": "bob", "age": 4}]',
    "ragged.csv": "a,b\n1,2\n3\n",
    "broken.json": '{"a": 1,}',
    "twice.json": '{"a": 1, "a": 2}',
    "rows.jsonl": '{"a": 1}\n{"a": 2}\n',
    "conf.yaml": "on: off\nn: 012\n",
    "sub/x.log": "1\n",
    "sub/y.log": "2\n",
}


@pytest.fixture
def workspace(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "ws" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "outside.txt").write_text("secret\n")
    (tmp_path / "ws" / "link").symlink_to(tmp_path / "outside.txt")
    (tmp_path / "ws" / "binary").write_bytes(b"head \xff\xfe tail\n")
    os.mkfifo(tmp_path / "ws" / "pipe")
    return tmp_path / "ws"


def real_shell(workspace):
    """A `RunCommand` that really starts the program, without ledger and sandbox."""

    def run(command):
        (argv,) = command.stages
        started = time.monotonic()
        try:
            done = subprocess.run(
                argv, cwd=workspace, capture_output=True, text=True, timeout=command.timeout_s,
                env={**os.environ, **command.env}, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            spent = time.monotonic() - started
            return CommandResult(124, "", "", spent, Ending.TIMEOUT)
        spent = time.monotonic() - started
        return CommandResult(done.returncode, done.stdout, done.stderr, spent)

    return run


def check(workspace, rule: dict[str, Any], **more):
    rules, problems = parse_rules([rule])
    assert [str(p) for p in problems] == []
    more = {"run": real_shell(workspace), **more}
    (result,) = check_rules(rules, workspace=workspace, payload=PAYLOAD, **more)
    return result


def R(type_, **keys):  # noqa: N802 - short, because the tables below are long
    return {"type": type_, **keys}


def rel(kind, source, output, **more):
    return R("relation", kind=kind, input=source, output=output, **more)


PASS = [
    R("payload_has_key", key="n"),
    R("payload_has_key", key="deep.a.b.1"),
    R("payload_value_matches", key="status", regex="^o"),
    R("payload_value_matches", key="multi", regex="ERROR"),
    R("payload_value_matches", key="flag", regex="^true$"),
    R("payload_values_equal", key_a="status", key_b="copy"),
    R("payload_values_not_equal", key_a="one", key_b="text1"),
    R("payload_value_equals", key="flag", value=True),
    R("payload_value_equals", key="one", value=1.0),
    R("payload_value_equals", key="nothing", value=None),
    R("payload_value_equals", key="a.b", value="literal"),
    R("payload_value_equals", key="deep.a.b", value=[5, 6]),
    R("payload_value_in_set", key="status", values=["ok", "fine"]),
    R("payload_value_in_set", key="one", values=[True, "1"], mode="deny"),
    R("payload_value_greater_than", key="n", threshold=2),
    R("payload_value_greater_than", key="n", threshold=3, or_equal=True),
    R("payload_value_less_than", key="f", threshold=2.6),
    R("payload_type", key="n", expected_type="int"),
    R("payload_type", key="n", expected_type="number"),
    R("payload_type", key="nothing", expected_type="null"),
    R("payload_yaml_valid", key="yaml"),
    R("file_exists", path="data.txt"),
    R("file_exists", path="./sub/../sub"),
    R("file_contains", path="data.txt", contains="a\na"),
    R("file_contains", path="count.txt", regex=r"^\s*\d+\s*$"),
    R("file_contains", path="binary", contains="tail"),
    R("file_size_greater_than", path="data.txt", min_bytes=5),
    R("file_size_greater_than", path_key="out"),
    R("command", run="sort -c sorted.txt"),
    R("command", run="test \"$(wc -l < ${payload.out})\" -eq 3 && test '{{ payload.n }}' = 3"),
    R("command_output_contains", run="cat data.txt", contains="a"),
    R("json_schema", key="deep", schema={"required": ["a"]}),
    R("json_schema", path="people.json", schema={"type": "array", "minItems": 2}),
    R("file_matches_schema", path="people.csv", columns=["name", "age"], min_rows=2),
    R("file_matches_schema", path="people.json", columns=["age", "name"]),
    R("file_matches_schema", path="rows.jsonl", schema={"items": {"required": ["a"]}}),
    R("file_matches_schema", path="conf.yaml", schema={"properties": {"on": {"const": "off"}}}),
    R("files_count", glob="sub/*.log", min=2, max=2),
    R("files_count", glob="**/*.log", min=2),
    R("files_count", glob="*.none", max=0),
    R("sorted", path="sorted.txt"),
    R("sorted", path="numbers.txt", numeric=True, unique=True),
    R("sorted", path="people.csv", column="age", numeric=True, reverse=True),
    R("no_line_matches", path="data.txt", regex="^c"),
    R("no_line_matches", path="data.txt", contains="zz"),
    R("all_lines_match", path="numbers.txt", regex=r"^\d+$"),
    R("not", rule=R("file_exists", path="gone.txt")),
    R("any_of", rules=[R("file_exists", path="gone"), R("file_exists", path="data.txt")]),
    R("any_of", rules=[R("file_contains", path="gone", contains="x"),
                       R("file_exists", path="data.txt")]),
    R("all_of", rules=[R("file_exists", path="data.txt"), R("file_exists", path="sub")]),
    R("file_exists", path="{{ payload.out }}"),
    rel("subset_lines", "data.txt", "head.txt"),
    rel("subset_lines", "data.txt", "tail.txt", ordered=True),
    rel("permutation", "data.txt", "sorted.txt"),
    rel("same_line_count", "data.txt", "numbers.txt"),
    rel("sum_of_line_counts", ["data.txt", "sorted.txt", "uniq.txt"], "both.txt"),
    rel("set_equal", "data.txt", "uniq.txt"),
    rel("prefix", "data.txt", "head.txt"),
    rel("suffix", "data.txt", "tail.txt"),
    rel("tally_of", "data.txt", "tally.txt"),
    rel("tally_of", "data.txt", "tally.csv"),
    rel("tally_of", "data.txt", "tally.json"),
    rel("projection", "people.csv", "names.txt", columns=["name"]),
    rel("projection", "people.csv", "ages.csv", columns=["2"], ordered=True),
    rel("projection", "people.csv", "ages.csv"),
    rel("number_in", "numbers.txt", "max.txt"),
    rel("number_in", "people.csv", "count.txt".replace("count", "age30"), columns=["age"]),
    rel("round_trip", "people.csv", "people.json"),
    rel("round_trip", "data.txt", "reversed.txt", via="reverse"),
]  # fmt: skip
FAIL = [
    (R("payload_has_key", key="m"), "the payload has no `m`"),
    (R("payload_value_matches", key="status", regex="^k"), "does not match"),
    (R("payload_values_equal", key_a="one", key_b="text1"), "differ"),
    (R("payload_values_equal", key_a="one", key_b="flag"), "differ"),
    (R("payload_values_not_equal", key_a="status", key_b="copy"), "are the same"),
    (R("payload_value_equals", key="flag", value=1), "not the expected value"),
    (R("payload_value_equals", key="flag", value="true"), "not the expected value"),
    (R("payload_value_equals", key="one", value="1"), "not the expected value"),
    (R("payload_value_in_set", key="status", values=["no"]), "not in the set"),
    (R("payload_value_in_set", key="status", values=["ok"], mode="deny"), "in the set"),
    (R("payload_value_greater_than", key="n", threshold=3), "too small"),
    (R("payload_value_less_than", key="n", threshold=3), "too large"),
    (R("payload_type", key="flag", expected_type="int"), "another type"),
    (R("payload_type", key="f", expected_type="int"), "another type"),
    (R("payload_yaml_valid", key="bad_yaml"), "not valid YAML"),
    (R("file_exists", path="gone.txt"), "does not exist"),
    (R("file_contains", path="data.txt", contains="zz"), "does not contain"),
    (R("file_contains", path="data.txt", regex="^zz$"), "does not match"),
    (R("file_size_greater_than", path="data.txt", min_bytes=6), "too small"),
    (R("file_size_greater_than", path="empty.txt"), "too small"),
    (R("command", run="exit 3"), "failed"),
    (R("command", run="false | tee /dev/null"), "failed"),
    (R("command_output_contains", run="echo hi", contains="ho"), "does not contain"),
    (R("json_schema", key="deep", schema={"required": ["z"]}), "does not fit the schema"),
    (R("file_matches_schema", path="people.csv", columns=["age", "name"]), "expected form"),
    (R("file_matches_schema", path="people.csv", min_rows=3), "expected form"),
    (R("file_matches_schema", path="ragged.csv"), "expected form"),
    (R("file_matches_schema", path="people.json", columns=["name"]), "expected form"),
    (R("files_count", glob="*.log", min=1), "matches 0 files"),
    (R("files_count", glob="sub/*", max=1), "matches 2 files"),
    (R("sorted", path="data.txt"), "not in order"),
    (R("sorted", path="numbers.txt"), "not in order"),
    (R("sorted", path="sorted.txt", unique=True), "not in order"),
    (R("no_line_matches", path="data.txt", regex="^a"), "must not have"),
    (R("all_lines_match", path="data.txt", contains="a"), "a line that differs"),
    (R("all_lines_match", path="empty.txt", regex="."), "is empty"),
    (R("not", rule=R("file_exists", path="data.txt")), "holds, and must not"),
    (R("any_of", rules=[R("file_exists", path="x"), R("file_exists", path="y")]), "none of"),
    (R("all_of", rules=[R("file_exists", path="sub"), R("file_exists", path="y")]), "not exist"),
    (rel("subset_lines", "data.txt", "numbers.txt"), "breaks subset_lines"),
    (rel("subset_lines", "uniq.txt", "data.txt"), "breaks subset_lines"),
    (rel("subset_lines", "data.txt", "uniq.txt", ordered=True), "breaks subset_lines"),
    (rel("permutation", "data.txt", "uniq.txt"), "breaks permutation"),
    (rel("permutation", "uniq.txt", "data.txt"), "breaks permutation"),
    (rel("same_line_count", "data.txt", "uniq.txt"), "breaks same_line_count"),
    (rel("sum_of_line_counts", ["data.txt", "uniq.txt"], "both.txt"), "breaks sum_of"),
    (rel("set_equal", "data.txt", "numbers.txt"), "breaks set_equal"),
    (rel("prefix", "data.txt", "tail.txt"), "breaks prefix"),
    (rel("suffix", "data.txt", "head.txt"), "breaks suffix"),
    (rel("prefix", "uniq.txt", "both.txt"), "breaks prefix"),
    (rel("tally_of", "uniq.txt", "tally.txt"), "breaks tally_of"),
    (rel("projection", "people.csv", "names.txt", columns=["age"]), "breaks projection"),
    (rel("number_in", "numbers.txt", "count.txt"), "breaks number_in"),
    (rel("number_in", "numbers.txt", "names.txt"), "breaks number_in"),
    (rel("round_trip", "people.csv", "tally.json"), "breaks round_trip"),
    (rel("round_trip", "data.txt", "sorted.txt".replace("sorted", "head"), via="reverse"),
     "breaks round_trip"),
]  # fmt: skip
CANNOT = [
    (R("payload_value_matches", key="statuss", regex="x"), "no `statuss` (it has `status`)"),
    (R("payload_value_equals", key="deep.z", value=1), "the payload has no `deep.z`"),
    (R("payload_value_greater_than", key="status", threshold=1), "is str, not a number"),
    (R("payload_value_less_than", key="flag", threshold=1), "is bool, not a number"),
    (R("payload_yaml_valid", key="n"), "is int, not text"),
    (R("file_contains", path="gone.txt", contains="x"), "does not exist"),
    (R("file_contains", path="sub", contains="x"), "is a directory"),
    (R("file_contains", path="pipe", contains="x"), "not a regular file"),
    (R("file_contains", path="link", contains="secret"), "leaves the workspace"),
    (R("file_contains", path="../outside.txt", contains="secret"), "leaves the workspace"),
    (R("file_contains", path="/etc/passwd", contains="root"), "leaves the workspace"),
    (R("file_exists", path="../outside.txt"), "leaves the workspace"),
    (R("file_exists", path="{{ payload.outt }}"), "did you mean `out`?"),
    (R("file_size_greater_than", path="gone"), "no such file"),
    (R("file_size_greater_than", path_key="n"), "does not hold a path"),
    (R("command", run="sleep 5", timeout_seconds=0.2), "took longer than 0.2 s"),
    (R("command", run="echo ${payload.nope}"), "`payload.nope` is not defined"),
    (R("command_output_contains", run="sleep 5", contains="x", timeout_seconds=0.2), "longer"),
    (R("db_query", query="SELECT 1"), "the ledger cannot be asked here"),
    (R("http_status", url="http://localhost/"), "the network cannot be reached"),
    (R("unchanged", glob="**"), "there is no snapshot"),
    (R("json_schema", path="broken.json", schema={}), "not valid JSON"),
    (R("json_schema", path="twice.json", schema={}), "key `a` stands twice"),
    (R("json_schema", key="deep", schema={"$ref": "http://example.com/x"}), "cannot be applied"),
    (R("json_schema", key="deep", schema={"$ref": "#"}), "cannot be applied"),
    (R("file_matches_schema", path="data.txt"), "format of `data.txt` is not clear"),
    (R("files_count", glob="../*", min=1), "leaves the workspace"),
    (R("sorted", path="names.txt", numeric=True), "`ann` in `names.txt` is not a number"),
    (R("sorted", path="people.csv", column="agee"), "no column `agee` (there are name, age)"),
    (R("not", rule=R("file_contains", path="gone", contains="x")), "does not exist"),
    (R("any_of", rules=[R("file_contains", path="gone", contains="x")]), "none of the rules"),
    (R("all_of", rules=[R("file_contains", path="gone", contains="x")]), "does not exist"),
    (R("payload_values_equal", key_a="one", key_b="gone"), "the payload has no `gone`"),
    (R("payload_values_not_equal", key_a="gone", key_b="one"), "the payload has no `gone`"),
    (R("payload_value_in_set", key="gone", values=[1], mode="deny"), "the payload has no `gone`"),
    (R("payload_type", key="gone", expected_type="null"), "the payload has no `gone`"),
    (R("no_line_matches", path="gone", contains="x"), "`gone` does not exist"),
    (R("all_lines_match", path="gone", contains="x"), "`gone` does not exist"),
    (rel("tally_of", "data.txt", "names.txt"), "is not a count and a value"),
    (rel("same_line_count", "*.none", "data.txt"), "no file matches `*.none`"),
    (rel("projection", "people.csv", "names.txt"), "set `columns`"),
    (rel("round_trip", "data.txt", "people.json"), "format of `data.txt` is not clear"),
]


@pytest.mark.parametrize("rule", PASS, ids=lambda rule: json.dumps(rule)[:70])
def test_a_rule_passes(workspace, rule):
    """What holds, passes, and not because there was nothing to look at."""
    (workspace / "age30.txt").write_text("30\n")
    result = check(workspace, rule)

    assert (result.passed, result.message) == (True, "")


@pytest.mark.parametrize(("rule", "said"), FAIL, ids=lambda case: json.dumps(case)[:70])
def test_a_rule_fails_with_what_was_there(workspace, rule, said):
    """A failure says what was expected, what was there, and in words what is wrong."""
    result = check(workspace, rule)

    assert not result.passed
    assert said in result.message
    assert "cannot be evaluated" not in result.message
    assert result.expected and result.actual


@pytest.mark.parametrize(("rule", "said"), CANNOT, ids=lambda case: json.dumps(case)[:70])
def test_a_rule_that_cannot_be_evaluated_fails_with_the_reason(workspace, rule, said):
    """A rule without an answer never passes and never raises."""
    result = check(workspace, rule)

    assert not result.passed
    assert result.message.startswith("cannot be evaluated: ")
    assert said in result.message


def test_every_rule_type_is_tried_in_all_three_ways():
    """The tables above know every type there is."""
    outside = {"db_query", "http_status", "unchanged"}  # have tests of their own below
    always_answered = {"payload_has_key"}
    types = [{rule["type"] for rule in PASS}, {rule["type"] for rule, _ in FAIL}]

    assert types[0] | outside == types[1] | outside == set(RULE_TYPES)
    assert {rule["type"] for rule, _ in CANNOT} | always_answered == set(RULE_TYPES)


def test_rules_about_the_outside_use_what_they_are_given(workspace):
    """The ledger, the network and the snapshot are asked through callables."""
    asked = []
    query = lambda text: asked.append(text) or "row" in text  # noqa: E731
    fetch = lambda method, url, timeout: asked.append((method, url, timeout)) or 204  # noqa: E731
    more = {"query": query, "fetch": fetch, "changed": lambda: ["sub/x.log", "new.txt"]}

    assert check(workspace, R("db_query", query="row"), **more).passed
    assert not check(workspace, R("db_query", query="none"), **more).passed
    http = R("http_status", url="http://h/", expected_status=204, method="head")
    assert check(workspace, http, **more).passed
    assert asked[-1] == ("HEAD", "http://h/", 10)
    assert not check(workspace, R("http_status", url="http://h/"), **more).passed
    assert check(workspace, R("unchanged", glob="*.csv"), **more).passed
    assert not check(workspace, R("unchanged", glob="**/*.log"), **more).passed


def test_a_callable_that_breaks_fails_its_rule_only(workspace):
    """Whatever a runner raises, the rule has failed and the next one is still looked at."""

    def broken(command):
        raise OSError("disk gone")

    rules, _ = parse_rules("command run=true\nfile_exists path=data.txt")
    results = check_rules(rules, workspace=workspace, payload={}, run=broken)

    assert [result.passed for result in results] == [False, True]
    assert results[0].message == "cannot be evaluated: OSError: disk gone"


def test_a_catastrophic_regex_is_stopped(workspace):
    """Backtracking without end fails the rule within seconds, wherever the pattern stands."""
    (workspace / "evil.txt").write_text("a" * 5000 + "!\n")
    started = time.process_time()
    patterns = [
        R("file_contains", path="evil.txt", regex=r"^(a|aa)+$"),
        R("all_lines_match", path="evil.txt", regex=r"^(a|aa)+$"),
    ]
    results = [check(workspace, rule) for rule in patterns]
    schema = {"pattern": r"^(a|aa)+$"}
    rules, _ = parse_rules([R("json_schema", key="k", schema=schema)])
    results += check_rules(rules, workspace=workspace, payload={"k": "a" * 5000 + "!"})

    assert ["took too long" in result.message for result in results] == [True] * 3
    assert time.process_time() - started < 8


def test_vacuous_relations_say_so(workspace):
    """A law that held because nothing could have broken it is marked."""
    held = [
        rel("subset_lines", "data.txt", "empty.txt"),
        rel("permutation", "empty.txt", "empty.txt"),
        rel("permutation", "count.txt", "count.txt"),
        rel("prefix", "data.txt", "empty.txt"),
        rel("same_line_count", "empty.txt", "empty.txt"),
        R("sorted", path="count.txt"),
        R("no_line_matches", path="empty.txt", regex="x"),
        R("all_lines_match", path="empty.txt", regex="x", allow_empty=True),
    ]
    results = [check(workspace, rule) for rule in held]

    assert [(r.passed, r.vacuous) for r in results] == [(True, True)] * len(held)
    assert not check(workspace, rel("permutation", "data.txt", "sorted.txt")).vacuous


def test_a_command_that_holds_for_want_of_its_file_is_vacuous(workspace):
    """`! grep` of a file that is not there turns a failure into success."""
    results = [
        check(workspace, R("command", run=run))
        for run in ("! grep -q x nowhere.txt", "! grep -q x data.txt", "true")
    ]

    assert [(r.passed, r.vacuous) for r in results] == [(True, True), (True, False), (True, False)]


def test_a_message_of_the_writers_own_is_shown(workspace):
    """`message` replaces ours, and stands beside the reason when there is no answer."""
    failed = check(workspace, R("file_exists", path="gone", message="no report"))
    unclear = check(workspace, R("file_contains", path="gone", contains="x", message="no report"))

    assert failed.message == "no report"
    assert unclear.message == "no report (cannot be evaluated: `gone` does not exist)"


def test_readable_folders_beside_the_workspace_can_be_named(workspace):
    """What the sandbox may read, rules may read."""
    outside = R("file_contains", path="../outside.txt", contains="secret")

    assert check(workspace, outside, readable=[workspace.parent]).passed


def test_commands_cannot_be_run_without_a_runner(workspace):
    """No runner, no answer."""
    result = check(workspace, R("command", run="true"), run=None)

    assert result.message == "cannot be evaluated: commands cannot be run here"


def test_values_in_a_rules_command_are_values(workspace):
    """A payload's text is handed to the shell as a variable."""
    rules, _ = parse_rules(
        [R("command_output_contains", run="echo {{ payload.x }}", contains="$(")]
    )
    payload = {"x": "$(touch pwned)"}
    (result,) = check_rules(rules, workspace=workspace, payload=payload, run=real_shell(workspace))

    assert result.passed
    assert not (workspace / "pwned").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("file_exist path=x", "a:1: unknown rule type `file_exist` (did you mean `file_exists`?)"),
        ("file_exists path", "a:1: `path` is not `key=value`"),
        ("file_exists pth=x", "a:1: unknown key `pth` (did you mean `path`?)"),
        ("file_exists path='x", "a:1: cannot be read: no closing quotation"),
        ("file_exists path=x\nsorted", "a:2: missing `path`"),
        ("- type: sorted\n  paths: x\n", "a:2: unknown key `paths` (did you mean `path`?)"),
        ("- type: sorted\n  path: x\n - b", "a:3: not valid YAML"),
        ("[]", ""),
    ],
)
def test_rules_given_on_a_command_line_say_what_is_wrong(text, said):
    """Inline or YAML, each problem has its line."""
    rules, problems = parse_rules(text, "a")

    assert rules == ()
    assert [said in str(p) for p in problems[-1:]] == ([True] if said else [])


def test_rules_come_from_files_lists_and_lines(tmp_path):
    """A file, JSON, data and the inline form all give the same rule."""
    path = tmp_path / "accept.yaml"
    path.write_text("- type: file_contains\n  path: out.txt\n  contains: '12'\n")
    data = [{"type": "file_contains", "path": "out.txt", "contains": "12"}]
    forms = [
        path, data, json.dumps(data), "file_contains path=out.txt contains=12",
        "- file_contains: {path: out.txt, contains: 12}", {"accept": data},
    ]  # fmt: skip

    assert len({parse_rules(form)[0] for form in forms}) == 1


@pytest.mark.parametrize("rule", [*PASS, *(rule for rule, _ in FAIL)], ids=json.dumps)
def test_a_rules_wording_can_be_given_as_a_rule(rule):
    """What a report prints can be pasted after `--accept`."""
    (read,), _ = parse_rules([rule])

    assert parse_rules(read.wording()) == ((read,), ())
