"""Loading never raises, whatever the file holds."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from openry.orchestrator.lint import lint
from openry.orchestrator.loader import load
from openry.orchestrator.rules import RULE_TYPES
from openry.orchestrator.spec import SubStep, WorkflowSpec
from openry.orchestrator.validation import parse_rules

JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
              st.sampled_from(["done", "abort", "{{ x }}", "{{", "${payload.a}", "*", "("])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner)
    ),
    max_leaves=6,
)  # fmt: skip
RULES = st.fixed_dictionaries(
    {"type": st.sampled_from(sorted(RULE_TYPES))},
    optional=dict.fromkeys(
        ("key", "path", "regex", "contains", "rules", "rule", "schema", "kind", "input"), JUNK
    ),
)
STEP = st.fixed_dictionaries(
    {"id": st.one_of(st.sampled_from("abc"), JUNK)},
    optional={
        **dict.fromkeys(set(SubStep.model_fields) - {"id"}, JUNK),
        "validation": st.one_of(JUNK, st.lists(RULES, max_size=2)),
        "kind": st.sampled_from(["agent", "shell", "capability", "approval", "x", None]),
    },
)
FILE = st.fixed_dictionaries(
    {"sub_steps": st.one_of(JUNK, st.lists(STEP, max_size=3))},
    optional=dict.fromkeys(set(WorkflowSpec.model_fields) - {"sub_steps"}, JUNK),
)
GOOD = """\
name: w
inputs: {day: {type: string, default: mon}}
sub_steps:
  - id: a
    kind: shell
    command: "echo '{{ inputs.day }}' ${payload.x} | cat <<< \\"hi\\""
    validation:
      - {type: file_contains, path: x, regex: "^a+$"}
      - not: {rule: {type: file_exists, path: y}}
    validation_routing:
      - {when: {type: payload_has_key, key: k}, on_match: done, on_mismatch: b}
  - id: b
    description: do {{ payload.x }}
    for_each: {items: "*.log", as: f}
"""


@settings(max_examples=100, deadline=None, derandomize=True)
@given(FILE)
def test_any_data_loads_or_is_explained(data):
    """A spec without errors, or errors without a spec; each has a line and a sentence."""
    import yaml

    loaded = load(yaml.safe_dump(data, allow_unicode=True), file="f.yaml")

    assert loaded.ok == (loaded.workflow is not None or loaded.composition is not None)
    for problem in loaded.problems:
        assert problem.line > 0
        assert problem.message
        assert "\n" not in str(problem)
    if loaded.ok:
        lint(loaded)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 10**9))
def test_a_good_file_broken_anywhere_is_explained(seed):
    """Characters dropped, doubled, swapped: always a result, never an exception."""
    dice = random.Random(seed)
    text = list(GOOD)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text))
        text[at] = dice.choice(["", text[at] * 2, *"\n\t'\"{}[]:#*&!|>%@` ", "é", "\x00"])
    loaded = load("".join(text), file="f.yaml")

    assert loaded.ok == (loaded.workflow is not None)
    assert all(problem.message for problem in loaded.problems)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.one_of(st.lists(RULES, max_size=3), JUNK, st.text(max_size=40)))
def test_any_rules_parse_or_are_explained(data):
    """`--accept` takes whatever it is given and answers with rules or sentences."""
    rules, problems = parse_rules(data)

    assert not (rules and problems)
    assert all(str(problem).isprintable() for problem in problems)
