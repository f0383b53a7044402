"""Loading a workflow: every problem at once, with its line and the nearest word."""

from __future__ import annotations

import textwrap

import pytest

from openry.errors import BadFileError
from openry.orchestrator.loader import load


def problems(text: str, **more) -> list[str]:
    return [str(p) for p in load(textwrap.dedent(text), file="w.yaml", **more).problems]


def workflow(text: str):
    loaded = load(textwrap.dedent(text), file="w.yaml")
    assert [str(p) for p in loaded.errors] == []
    return loaded.workflow or loaded.composition


def test_every_problem_comes_out_at_once_with_line_and_hint():
    """Shape, meaning and templates are all looked at, whatever else is wrong."""
    text = """\
        name: demo
        sub_step: []
        sub_steps:
          - id: a
            kind: shel
            comand: echo
          - id: b
            kind: shell
            command: echo {{ payloda.x }}
            on_success: c
            max_sub_step_retries: two
            validation:
              - type: file_exist
                path: x
              - {type: payload_value_matches, key: k, regex: "(["}
              - {type: json_schema, key: k, schema: {type: strin}}
              - {type: file_contains, path: x}
              - foo
            validation_routing:
              - when: {type: payload_has_key, key: x}
                on_match: bb
              - on_match: done
          - id: b
            kind: capability
            timeout_seconds: -1
    """

    assert problems(text) == [
        "w.yaml:2: unknown key `sub_step` (did you mean `sub_steps`?)",
        "w.yaml:5: `kind` must be agent | shell | capability | approval, got `shel`"
        " (did you mean `shell`?)",
        "w.yaml:6: unknown key `comand` (did you mean `command`?)",
        "w.yaml:9: `command`: `payloda` is not defined (did you mean `payload`?)",
        "w.yaml:10: `on_success` leads nowhere: no step is called `c` (there are `a`, `b`, `done`)",
        "w.yaml:11: `max_sub_step_retries` must be a whole number, got `two`",
        "w.yaml:13: unknown rule type `file_exist` (did you mean `file_exists`?)",
        "w.yaml:15: `regex`: bad regex: unterminated character set at position 2",
        "w.yaml:16: `schema`: bad JSON Schema at type: 'strin' is not valid under any of the"
        " given schemas",
        "w.yaml:17: `validation[3]` needs `contains` or `regex`",
        "w.yaml:18: a rule is a mapping with `type`, got `foo`",
        "w.yaml:21: `on_match` leads nowhere: no step is called `bb` (did you mean `b`?)",
        "w.yaml:22: `validation_routing[1]` needs exactly one of `when`, `when_any`, `when_all`",
        "w.yaml:23: step id `b` is given twice (first on line 7)",
        "w.yaml:23: missing `capability` (a capability step needs it)",
        "w.yaml:25: `timeout_seconds` must be greater than 0, got `-1`",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n- b\n", "w.yaml:1: a workflow is a mapping with `name` and `sub_steps`"),
        ("name: x\n", "w.yaml:1: missing `sub_steps`"),
        ("sub_steps: []\n", "w.yaml:1: `sub_steps` must not be empty"),
        ("sub_steps: hello\n", "w.yaml:1: `sub_steps` must be a list, got `hello`"),
        ("sub_steps:\n- {description: x}\n", "w.yaml:2: missing `id`"),
        ("sub_steps:\n- {id: null, description: x}\n", "w.yaml:2: missing `id`"),
        ("sub_steps:\n- {id: a}\n", "w.yaml:2: missing `description` (an agent step needs its"),
        (
            "sub_steps:\n- id: a\n  command: x\n",
            "w.yaml:3: `command` has no meaning on an agent step (add `kind: shell`)",
        ),
        (
            "sub_steps:\n- {id: done, description: x}\n",
            "w.yaml:2: `done` is a route's word and cannot be a step's id",
        ),
        (
            "sub_steps:\n- {id: a, description: x, on_failure: continue}\n",
            "w.yaml:2: `on_failure` cannot be `continue` (it takes `abort`, `retry`,",
        ),
        (
            "sub_steps:\n- {id: a, description: x, payload_from: aa}\n",
            "w.yaml:2: `payload_from` leads nowhere: no step is called `aa` (did you mean `a`?)",
        ),
        (
            "sub_steps:\n- {id: a, description: x, max_tool_calls: true}\n",
            "w.yaml:2: `max_tool_calls` must be a number, got `true`",
        ),
        (
            "inputs:\n  n: {type: int, default: many}\nsub_steps:\n- {id: a, description: x}\n",
            "w.yaml:2: default of `n` is not of type `int`",
        ),
        (
            "inputs: {n: {}}\nsub_steps:\n- {id: a, description: 'x {{ inputs.m }}'}\n",
            "w.yaml:3: `description`: `inputs.m` is not defined: there is no input `m`"
            " (there are `n`)",
        ),
        (
            "sub_steps:\n- {id: a, description: x, max_output_tokens: 50}\n",
            "w.yaml:2: `max_output_tokens` must be 0 or at least 200 (a notice alone takes",
        ),
        (
            "name: me\nsub_steps:\n- {id: a, description: x, on_output_overflow: me}\n",
            "w.yaml:3: `on_output_overflow: me` would overflow into itself",
        ),
        (
            "sub_steps:\n- {id: a, description: x, env: {A-B: x}, secrets: ['X=1']}\n",
            "w.yaml:2: `A-B` cannot be a variable's name",
        ),
        (
            "sub_steps:\n- {id: a, description: x, secrets: ['X=1']}\n",
            "w.yaml:2: `X=1` cannot be a variable's name",
        ),
        (
            "sub_steps:\n- {id: 'a\u200bb', description: x}\n",
            "w.yaml:2: a step's id is made of visible characters",
        ),
        (
            "big_steps:\n- {ref: a, on_success: c}\n- {ref: b}\n",
            "w.yaml:2: `on_success` leads nowhere: no step is called `c`",
        ),
        (
            "sub_steps:\n- id: a\n  kind: shell\n  command: |\n    x=1\n    cat <<E\n"
            "    {{ payload.k }}\n    E\n",
            "w.yaml:7: `command`: `{{ payload.k }}` stands in a heredoc, where it would be program"
            ' text (give it a name under `env:` and use "$NAME" there)',
        ),
        (
            'sub_steps:\n- id: a\n  description: "{{ cycler.__init__.__globals__ }}"\n',
            "w.yaml:3: `description`: unsafe attribute `__",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(text, said):
    """Each kind of mistake has its sentence."""
    assert any(problem.startswith(said) for problem in problems(text)), problems(text)


def test_warnings_do_not_keep_a_file_from_loading():
    """Keys of other tools are a warning, `x-…` is nobody's business."""
    loaded = load(
        "sub_steps:\n- {id: a, description: x, semantic_reporting: true, x-mine: 1}\n",
        file="w.yaml",
    )

    assert loaded.ok
    assert [p.level for p in loaded.problems] == ["warning"]
    assert "`semantic_reporting` is understood by other tools" in str(loaded.problems[0])


def test_required_raises_every_error(tmp_path):
    """`required` is for callers that go no further: one error with all sentences."""
    with pytest.raises(BadFileError) as caught:
        load("sub_steps:\n- {idd: a}\n").required()

    assert "unknown key `idd` (did you mean `id`?)" in str(caught.value)


def test_a_file_that_is_not_there_or_not_readable_is_a_problem(tmp_path):
    """Loading never raises over the disk."""
    (tmp_path / "folder").mkdir()

    assert "cannot be read: no such file" in str(load(tmp_path / "none.yaml").problems[0])
    assert "cannot be read: is a directory" in str(load(tmp_path / "folder").problems[0])


def test_a_route_to_a_neighbouring_workflow_is_a_warning(tmp_path):
    """A route may leave for a workflow that lies beside this one; it is said, not refused."""
    (tmp_path / "other.yaml").write_text("sub_steps: [{id: x, description: y}]\n")
    mine = tmp_path / "mine.yaml"
    mine.write_text("sub_steps:\n- {id: a, description: x, on_dropped: other}\n")

    loaded = load(mine)

    assert loaded.ok
    assert "leaves this workflow" in str(loaded.problems[0])
    assert loaded.workflow.name == "mine"


def test_a_prompt_file_that_is_missing_is_an_error_unless_optional(tmp_path):
    """What a prompt needs must be there when the workflow loads."""
    (tmp_path / "style.md").write_text("be brief")
    text = (
        "sub_steps:\n- id: a\n  prompt_blocks:\n"
        "  - {type: file, path: style.md}\n  - {type: file, path: gone.md}\n"
        "  - {type: file, path: perhaps.md, optional: true}\n"
        "  - {type: file, path: '{{ inputs.f }}'}\ninputs: {f: {}}\n"
    )
    path = tmp_path / "w.yaml"
    path.write_text(text)

    assert [(p.line, p.message) for p in load(path).problems] == [(5, "no file `gone.md`")]


def test_a_prompt_file_beside_the_workflow_gets_its_full_path(tmp_path):
    """It is found wherever the workflow runs; the workspace's own files keep their name."""
    (tmp_path / "prompt_blocks").mkdir()
    (tmp_path / "prompt_blocks" / "style.md").write_text("be brief")
    path = tmp_path / "w.yaml"
    blocks = "[{type: file, path: style.md}, {type: file, path: own.md, optional: true}]"
    path.write_text(f"sub_steps: [{{id: a, prompt_blocks: {blocks}}}]\n")

    found, own = load(path).required().workflow.sub_steps[0].prompt_blocks

    assert found.path == str(tmp_path / "prompt_blocks" / "style.md")
    assert own.path == "own.md"


def test_older_files_load_and_mean_what_their_author_meant():
    """Version as number, no name, null lists, yes and no, keys on kinds where they grew."""
    flow = workflow("""\
        version: 1.10
        timeout_minutes: 5
        sub_steps:
          - id: one
            kind: shell
            note: first
            command: echo "${payload.x}" '${env.HOME}' $PATH $(date)
            payload_keys: [status, count]
            payload_keys_on_error: fallback
            expect_payload: yes
            overflow_strategy: truncate
            validation:
            on_failure: abort
          - id: two
            timeout_seconds: 30
            description: go on
            payload_from: one
            payload_keys: null
            on_payload_missing: retry_current
            on_dropped: one
            inherit_payload: on
            command_policy: {params: [{command: git, blocked_subcommands: [push]}]}
          - id: three
            description: end
            command_policy: moderate
            env: {N: 5, EMPTY: null, FLAG: true}
            validation_routing:
              - when_any:
                  - {type: payload_value_in_set, key: k, values: [a, b]}
                  - {type: payload_type, key: n, expected_type: integer}
                on_match: done
                on_mismatch: abort
                on_mismatch_message: no
    """)
    one, two, three = flow.sub_steps

    assert (flow.name, flow.version) == ("workflow", "1.10")
    assert one.expect_payload is True
    assert one.validation == ()
    assert one.overflow_handler == "truncate"
    assert flow.after("one") == "two"
    assert flow.after("three") == "done"
    assert (two.timeout_s, two.inherit_payload, two.payload_keys) == (30, True, ())
    assert three.env == {"N": "5", "EMPTY": "", "FLAG": "true"}
    assert three.validation_routing[0].on_mismatch_message == "no"


def test_a_composition_takes_bare_names_and_the_same_ref_twice():
    """`refs without routes` run in order, also one that comes twice."""
    plan = workflow("version: '2'\nbig_steps:\n- a\n- {ref: b, on_failure: a}\n- ref: a\n")

    assert [step.ref for step in plan.big_steps] == ["a", "b", "a"]
    assert plan.big_steps[0].on_failure == "abort"


def test_defaults_depend_on_the_kind():
    """An agent has ten calls and no clock, a shell step a clock and no limit."""
    flow = workflow(
        "sub_steps:\n- {id: a, description: x}\n- {id: b, kind: shell, command: x}\n"
        "- {id: c, kind: approval, prompt: ok?}\n- {id: d, kind: shell, command: x,"
        " irreversible: true, max_tool_calls: 2, timeout_seconds: 1.5}\n"
    )

    assert [(s.tool_calls, s.timeout_s) for s in flow.sub_steps] == [
        (10, None), (0, 600.0), (0, None), (2, 1.5)
    ]  # fmt: skip
    assert [s.snapshot_when for s in flow.sub_steps] == ["none", "none", "none", "before"]


def test_plan_data_reads_back_into_an_equal_spec():
    """What an instance stores says everything the file said."""
    from openry.orchestrator.spec import WorkflowSpec, plan_data, plan_hash

    flow = workflow("""\
        inputs: {day: {type: string, choices: [mon, tue]}}
        agent: local/smollm2
        sub_steps:
          - id: a
            kind: capability
            capability: count_lines
            args: {path: "{{ inputs.day }}.log", deep: [1, {x: null}]}
            for_each: {items: "*.log", as: file}
            retry_backoff_seconds: {base: 1, cap: 9, jitter: true}
            sandbox: bubblewrap
            validation:
              - {type: payload_value_equals, key: k, value: null}
              - not: {rule: {type: json_schema, key: k, schema: {type: object}}}
              - {type: any_of, rules: [{type: file_exists, path: x}]}
    """)
    data = plan_data(flow)

    assert WorkflowSpec.model_validate(data) == flow
    assert plan_hash(data) == plan_hash(dict(reversed(data.items())))


def test_the_schema_for_editors_knows_every_key():
    """`schema` is made from the models, so it cannot forget one."""
    from openry.orchestrator.spec import SubStep, json_schema

    schema = json_schema()
    known = schema["$defs"]["SubStep"]["properties"]

    assert set(known) - SubStep.foreign_keys == {
        info.alias or name for name, info in SubStep.model_fields.items()
    }


def test_the_schema_for_editors_takes_the_short_forms():
    """An editor may not underline what loads: names for mappings, numbers for texts, `x-` keys."""
    import jsonschema

    from openry.orchestrator.spec import json_schema

    data = {
        "version": 1.1, "agent": "local/x", "sandbox": "none", "x-mine": 1,
        "sub_steps": [
            {"id": "a", "description": "x", "retry_backoff_seconds": 3, "semantic_reporting": True,
             "command_policy": "strict", "capabilities": "files.*", "env": {"A": 1, "B": None},
             "validation": [{"type": "not", "rule": {"type": "sorted", "path": "x"}}]}
        ],
    }  # fmt: skip
    validator = jsonschema.Draft202012Validator(json_schema())

    assert list(validator.iter_errors(data)) == []
    assert list(validator.iter_errors({"big_steps": ["a", {"ref": "b"}]})) == []
    data["sub_steps"][0]["comand"] = "x"
    assert len(list(validator.iter_errors(data))) == 1


def test_capabilities_are_checked_where_their_names_are_known():
    """A caller that has the registry gives its names."""
    text = "sub_steps: [{id: a, kind: capability, capability: count_line}]"

    assert load(text).ok
    (problem,) = load(text, capabilities={"count_lines", "sort_lines"}).problems
    assert str(problem) == (
        "<text>:1: no capability is called `count_line` (did you mean `count_lines`?)"
    )
