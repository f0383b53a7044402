"""What rules alone get out of an answer, and what they must leave to the model."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from openry.errors import ModelError
from openry.llm.repair import even_indentation, extract

WORKFLOW = """\
name: demo
sub_steps:
  - id: a
    kind: shell
    command: echo hi
    on_success: done
"""
MEANT = yaml.safe_load(WORKFLOW)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
words = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
plain_values = st.recursive(
    st.none() | st.integers() | words | st.just("first line\n  second: line\n"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.text(max_size=5), json_values, min_size=1, max_size=4)


@pytest.mark.parametrize(
    "said",
    [
        WORKFLOW,
        f"```yaml\n{WORKFLOW}```",
        f"~~~\n{WORKFLOW}~~~\nThat should do.",
        f"```yaml\n{WORKFLOW}",
        f"Sure! Here is the workflow:\n\n{WORKFLOW}\nLet me know if you want changes.",
        f"<think>maybe `name: other`?</think>\n{WORKFLOW}",
        f"\ufeff{WORKFLOW}",
        WORKFLOW.replace("\n", "\r\n"),
        WORKFLOW.replace("    kind", "   kind"),
        WORKFLOW.replace("    kind", "     kind"),
        WORKFLOW.replace("    command", "\t\tcommand"),
        f"```\nls\n```\nand then\n```yaml\n{WORKFLOW}```",
        json.dumps(MEANT),
        f"As JSON:\n{json.dumps(MEANT, indent=2)}\nDone.",
    ],
)
def test_the_workflow_is_found_whatever_stands_around_it(said):
    """Fences, sentences, thoughts, uneven indentation, tabs, JSON for YAML: one meaning."""
    found = extract(said, "yaml")

    assert found.value == MEANT
    assert yaml.safe_load(found.text) == MEANT


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('Here: {"a": 1}. Enjoy', {"a": 1}),
        ("```json\n[1]\n```", [1]),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ("{'a': 'say \"hi\"', 'b': \"it's\"}", {"a": 'say "hi"', "b": "it's"}),
        ('{"a": "x, }", // why\n "b": /* so */ "//"}', {"a": "x, }", "b": "//"}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ("{\u201ca\u201d: 1}", {"a": 1}),
        ('Put it in {braces}: {"a": 1}', {"a": 1}),
        ('<think>{"a": 0}</think>{"a": 1}', {"a": 1}),
    ],
)
def test_json_is_found_and_mended(said, meant):
    """Each slip that leaves no doubt is mended; text inside strings is never touched."""
    assert extract(said).value == meant


@pytest.mark.parametrize("said", ["", "  \n ", None, "\ufeff"])
@pytest.mark.parametrize("want", ["json", "yaml"])
def test_nothing_is_an_empty_answer(said, want):
    """No text, white space and null are the same mistake, with its own code."""
    with pytest.raises(ModelError) as caught:
        extract(said, want)

    assert caught.value.code == "empty_answer"


@pytest.mark.parametrize(
    ("said", "want"),
    [
        ('{"a": {"b": 1}, "c": "tru', "json"),
        ('{"a": {"b": 1},\n "c": 2,\n "d": [', "yaml"),
        ('```json\n{"a": [1, 2', "json"),
        ("I cannot do that.", "yaml"),
        ("<modification>\n  change step a to run twice\n</modification>", "yaml"),
        ("Sure! Here it comes:\n", "yaml"),
        ('{"a" 1}', "json"),
        ("{" * 5000, "json"),
        ("[" * 5000 + "]" * 5000, "json"),
        ("x" * 500_000, "json"),
    ],
)
def test_half_an_answer_stays_half(said, want):
    """What has no end, or no document at all, is a bad answer that keeps its text."""
    with pytest.raises(ModelError) as caught:
        extract(said, want)

    assert caught.value.code == "bad_answer"
    assert caught.value.text == said


@given(documents, st.sampled_from(["", "Here:\n", "```json\n"]), st.sampled_from(["", "\nBye."]))
def test_sound_json_comes_out_as_it_went_in(document, before, after):
    """Whatever object is written, alone, in a fence or in prose, is read back equal."""
    assert extract(f"{before}{json.dumps(document)}{after}").value == document


@given(documents, st.integers(min_value=1, max_value=200))
def test_a_cut_object_is_never_taken_for_a_whole_one(document, missing):
    """Cut anywhere, an object is refused, not read as one of its parts."""
    text = json.dumps(document)

    with pytest.raises(ModelError):
        extract(text[: max(0, len(text) - missing)])


@given(st.dictionaries(words, plain_values, min_size=1))
def test_even_yaml_keeps_its_meaning(document):
    """Making indentation even changes nothing where it was even already."""
    text = yaml.safe_dump(document)

    assert yaml.safe_load(even_indentation(text)) == document


def test_block_scalars_keep_their_inner_indentation():
    """Lines of a `|` block are text, not levels."""
    text = "a:\n  - run: |\n      if x:\n         y\n     done: 1\n"

    assert even_indentation(text) == "a:\n  - run: |\n      if x:\n         y\n    done: 1\n"
