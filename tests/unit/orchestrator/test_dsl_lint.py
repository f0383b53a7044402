"""Lint: what loads and is still likely wrong, with its line."""

from __future__ import annotations

import textwrap

import pytest

from openry.capability import load_registry
from openry.orchestrator.lint import lint
from openry.orchestrator.loader import load

TEXT_TOOLS = len(load_registry().scope(["text.*"]))
CHECK = "validation: [{type: file_exists, path: x}]"


def warnings(text: str) -> list[str]:
    loaded = load(textwrap.dedent(text), file="w.yaml")
    assert loaded.errors == ()
    return [str(problem) for problem in lint(loaded)]


def test_a_sound_workflow_has_nothing_to_be_said():
    """No warnings for what the loop writes."""
    assert (
        warnings(f"""\
        sub_steps:
          - {{id: a, kind: shell, command: ls, {CHECK}}}
          - {{id: b, kind: capability, capability: count_lines, args: {{path: x}}}}
          - {{id: c, description: go, expect_payload: true}}
    """)
        == []
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"""\
            sub_steps:
              - {{id: a, kind: shell, command: ls, on_success: c, {CHECK}}}
              - {{id: b, description: never}}
              - {{id: c, description: last}}
            """,
            "w.yaml:3: warning: step `b` is never reached (no route leads to it)",
        ),
        (
            """\
            sub_steps:
              - {id: a, description: x, on_success: b}
              - {id: b, description: x, on_success: a}
            """,
            "w.yaml:2: warning: from step `a` no route leads to `done`: the loop has no exit",
        ),
        (
            "sub_steps: [{id: a, kind: shell, command: ls}]",
            "w.yaml:1: warning: nothing checks what step `a` did (add `validation`)",
        ),
        (
            f"""\
            sub_steps:
              - id: a
                kind: shell
                command: |
                  echo
                  echo {{{{ payload.x | raw }}}}
                {CHECK}
            """,
            "w.yaml:6: warning: `| raw` puts a value into the command of step `a` as program text",
        ),
        (
            f"sub_steps: [{{id: a, kind: shell, command: '{{{{ payload.x }}}} -v', {CHECK}}}]",
            "w.yaml:1: warning: in step `a` the value of `{{ payload.x }}` decides which program",
        ),
        (
            "sub_steps: [{id: a, description: x, command_policy: permissive}]",
            "w.yaml:1: warning: policy `permissive` allows more than any step needs",
        ),
        (
            "command_policy: {mode: blocklist}\nsub_steps: [{id: a, description: x}]",
            "w.yaml:1: warning: a blocklist is no boundary",
        ),
        (
            f"sub_steps: [{{id: a, description: x, capabilities: {[*'abcdefghijklmopqrstuv']}}}]",
            "w.yaml:1: warning: step `a` offers 21 capabilities",
        ),
        (
            "sub_steps: [{id: a, description: x, capabilities: [text.*, csv_sort, of_mine]}]",
            f"w.yaml:1: warning: step `a` offers {TEXT_TOOLS + 2} capabilities",
        ),
        (
            "capabilities: ['text.*', 'sort_*']\nsub_steps: [{id: a, description: x}]",
            f"w.yaml:1: warning: the workflow offers {TEXT_TOOLS} capabilities",
        ),
        (
            f"sub_steps: [{{id: a, kind: shell, command: ls, parallel_actions: 2, {CHECK}}}]",
            "w.yaml:1: warning: `parallel_actions` of step `a` is for the built-in agent alone"
            " (leave it out)",
        ),
        (
            "agent: {adapter: echo-agent}\n"
            "sub_steps: [{id: a, description: x, parallel_actions: 2, agent: {max_turns: 3}}]",
            "w.yaml:2: warning: `parallel_actions` of step `a` is for the built-in agent alone",
        ),
        (
            "sub_steps: [{id: a, kind: approval, prompt: x, blackboard: true}]",
            "w.yaml:1: warning: step `a` runs no commands, so it cannot use its blackboard"
            " (leave it out)",
        ),
        (
            "capabilities: [sort_lines]\nsub_steps: [{id: a, description: x, blackboard: mine}]",
            "w.yaml:2: warning: step `a` runs no commands, so it cannot use its blackboard"
            " (give its agent `mode: free`)",
        ),
        (
            "capabilities: [sort_lines]\n"
            "sub_steps: [{id: a, description: x, blackboard: mine, validation: ["
            "{not: {rule: {file_exists: {path: a}}}}]}]",
            "w.yaml:2: warning: step `a` runs no commands, so it cannot use its blackboard",
        ),
        (
            "sub_steps: [{id: a, description: x, on_payload_missing: abort}]",
            "w.yaml:1: warning: step `a` promises no payload, so none can be missing",
        ),
        (
            "env: {OPENAI_API_KEY: abcdefgh}\nsub_steps: [{id: a, description: x}]",
            "w.yaml:1: warning: `OPENAI_API_KEY` is a secret written into the file",
        ),
        (
            "sub_steps:\n- id: a\n  description: use ghp_" + "a1B2" * 9,
            "w.yaml:3: warning: a value here looks like a secret",
        ),
        (
            "big_steps: [{ref: a, on_success: c}, {ref: b}, {ref: c}]",
            "w.yaml:1: warning: big step `b` is never reached",
        ),
    ],
)
def test_each_thing_to_be_warned_of(text, said):
    """One sentence each, at the line where it stands."""
    assert any(warning.startswith(said) for warning in warnings(text)), warnings(text)


@pytest.mark.parametrize(
    "rules",
    [
        "validation: [{command: {run: 'blackboard get x'}}]",
        "validation: [{not: {rule: {command_output_contains: {run: ls, contains: x}}}}]",
        "validation_routing: [{when: {command: {run: ls}}, on_match: continue, on_mismatch: done}]",
    ],
)
@pytest.mark.parametrize("step", ["capabilities: [sort_lines]", "kind: approval, prompt: x"])
def test_a_rule_that_runs_a_command_uses_the_blackboard(step, rules):
    """Also where the step itself runs none, and where the rule stands in another."""
    text = f"sub_steps: [{{id: a, description: x, blackboard: mine, {step}, {rules}}}]"

    assert not [warning for warning in warnings(text) if "blackboard" in warning]


def test_a_secret_is_not_repeated_in_the_warning():
    """Warnings are printed and stored; the secret is not in them."""
    text = "env: {API_KEY: hunter2hunter2}\nsub_steps: [{id: a, description: x}]"

    assert all("hunter2" not in warning for warning in warnings(text))


def test_a_retry_loop_with_a_way_on_is_fine():
    """Going back is allowed where some route leads to the end."""
    text = """\
        sub_steps:
          - {id: a, description: x, on_success: done, on_failure: b}
          - {id: b, description: x, on_success: a}
    """

    assert warnings(text) == []
