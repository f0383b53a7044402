"""The typed edits over workflows that nobody thought of: small, local, and true to their word."""

from __future__ import annotations

import difflib
import random
import statistics
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

import pytest

from loop.apply import apply, data_of, dump
from loop.edits import EDIT_CLASSES, Edit, parse_edit
from openry.errors import BadFileError
from openry.orchestrator.loader import load

RULE = {"type": "file_contains", "path": "out.txt", "contains": "x"}
WORDS = ("count", "the", "ERROR", "lines: all", "of #1", "app.log", "é", "it's", '"so"', "twice")


def words(dice: random.Random, least: int = 1) -> str:
    return " ".join(dice.choices(WORDS, k=dice.randint(least, 8)))


def step(dice: random.Random, number: int) -> dict[str, Any]:
    """A step as people and the loop write them, with some keys or without."""
    kind = dice.choice(["shell", "shell", "agent", "agent", "capability"])
    own: dict[str, Any] = {
        "shell": {
            "command": dice.choice(["grep -c x a > b", "sort a |\n  uniq > b\n", words(dice)])
        },
        "agent": {"description": words(dice, 3)},
        "capability": {"capability": "sort_lines", "args": {"path": "a", "output": "b"}},
    }[kind]
    if kind == "agent" and dice.random() < 0.7:
        labels = ("example", "example", "background")
        own["prompt_blocks"] = [
            {"type": "text", "label": label, "content": words(dice)}
            for label in labels[: dice.randint(1, 3)]
        ]
    if dice.random() < 0.6:
        own["validation"] = [dict(RULE), {"type": "file_exists", "path": "b"}][: dice.randint(1, 2)]
    if dice.random() < 0.4:
        own["timeout_seconds"] = dice.randint(1, 90)
    if dice.random() < 0.3:
        own["max_output_tokens"] = 4000
    return {"id": f"s{number}", "kind": kind, **own}


def workflow(dice: random.Random) -> str:
    """Canonical text with the comments and blank lines that people put in."""
    steps = [step(dice, number) for number in range(dice.randint(2, 6))]
    lines = []
    for line in dump({"name": "w", "sub_steps": steps}).splitlines():
        if line.startswith("  - id: "):
            lines += ["  # what comes next", ""][: dice.randint(0, 1)]
            line += dice.choice(["", "  # mine"])
        lines.append(line)
    return "\n".join(lines) + "\n"


def new_step(dice: random.Random, name: str) -> dict[str, Any]:
    return {"id": name, "kind": "shell", "command": "sort a > b", "validation": [dict(RULE)]}


def edits(dice: random.Random, steps: list[dict[str, Any]], place: int) -> Iterator[dict[str, Any]]:
    """One edit of every operation that this step can take."""
    here = steps[place]
    rules, blocks = here.get("validation") or [], here.get("prompt_blocks") or []
    examples = [block for block in blocks if block["label"] == "example"]
    yield {"op": "set_retries", "retries": dice.randint(0, 5)}
    yield {"op": "set_timeout", "seconds": dice.randint(100, 900)}
    yield {"op": "set_overflow", "max_output_tokens": 2000, "strategy": "truncate"}
    yield {"op": "set_route", "on": "on_success", "target": "done"}
    yield {"op": "add_check", "rule": {**RULE, "contains": words(dice)}}
    yield {"op": "to_shell", "command": words(dice)}
    yield {"op": "to_agent", "text": words(dice)}
    args = {"path": words(dice), "output": "b"}
    yield {"op": "to_capability", "name": "sort_lines", "args": args}
    parts = [new_step(dice, "p"), {"id": "q", "kind": "shell", "command": "uniq b > c"}]
    yield {"op": "split_step", "steps": parts}
    yield {
        "op": "insert_step",
        "place": dice.choice(["before", "after"]),
        "data": new_step(dice, "n"),
    }
    yield {"op": "add_fallback", "data": new_step(dice, "f")}
    yield {"op": "narrow_policy", "policy": "strict"}
    yield {"op": "widen_policy", "policy": "permissive"}
    yield {"op": "set_model", "model": "openai/large"}
    yield {"op": "remove_step"}
    if rules:
        last = len(rules) - 1
        yield {"op": "strengthen_check", "index": last, "rule": {**RULE, "contains": "xyz"}}
        yield {"op": "relax_check", "index": last}
    if here["kind"] == "agent":
        yield {"op": "set_prompt", "text": words(dice, 3)}
        yield {"op": "add_context", "text": words(dice)}
        yield {"op": "add_example", "given": words(dice), "answer": words(dice)}
        yield {"op": "set_output", "key": "n", "choices": ["a", "b"]}
        yield {"op": "set_output", "key": "n", "json_schema": {"type": "integer"}}
    if examples:
        yield {"op": "remove_example", "index": len(examples) - 1}
    if len(blocks) > len(examples):
        yield {"op": "drop_context", "index": 0}
    if place + 1 < len(steps):
        yield {"op": "merge_steps", "other": steps[place + 1]["id"]}


def touched(old: str, new: str) -> int:
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return sum(line[:1] in "+-" for line in lines)


def region(text: str, ids: list[str]) -> tuple[int, int]:
    """Lines of some neighbouring steps, up to where the next one's comments may begin."""
    lines = text.splitlines()
    dashes = [n for n, line in enumerate(lines) if line.startswith("  - id: ")]
    own = [n for n, at in enumerate(dashes) if lines[at].split()[2] in ids]
    end = dashes[own[-1] + 1] if own[-1] + 1 < len(dashes) else len(lines)
    while end > dashes[own[-1]] + 1 and lines[end - 1].strip()[:1] in ("", "#"):
        end -= 1
    return dashes[own[0]], end


def tried(dice: random.Random) -> Iterator[tuple[Edit, str, str]]:
    """Every edit that a step of one generated workflow can take: (edit, old text, new text)."""
    text = workflow(dice)
    assert load(text).ok, load(text).errors
    steps = data_of(text)["sub_steps"]
    place = dice.randrange(len(steps))
    for data in edits(dice, steps, place):
        edit = parse_edit({"step": steps[place]["id"], **data})
        try:
            new = apply(text, [edit])
        except BadFileError:
            assert edit.op == "merge_steps", edit  # only steps that are alike can be merged
            continue
        yield edit, text, new


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(n, marks=pytest.mark.long) for n in range(12, 200))]
)
def test_an_edit_leaves_every_other_step_byte_for_byte(seed):
    """Whatever the edit: the result loads, and lines outside its step are the same bytes."""
    for edit, old, new in tried(random.Random(seed)):
        assert load(new).ok, (edit, load(new).errors)
        ids = [edit.step, edit.other] if edit.op == "merge_steps" else [edit.step]
        start, end = region(old, ids)
        before = old.splitlines()[:start]
        after = list(dropwhile(lambda line: not line, old.splitlines()[end:]))
        assert new.splitlines()[: start - 2] == before[: start - 2], edit
        assert new.splitlines()[len(new.splitlines()) - len(after) :] == after, edit
        kept = [line for line in (*before[: start - 2], *after) if "#" in line]
        assert [line for line in kept if line not in new.splitlines()] == [], edit


def test_edits_are_small_and_every_operation_is_tried():
    """The median edit changes at most six lines; no operation of the vocabulary is left out."""
    sizes: dict[str, list[int]] = {}
    for seed in range(12):
        for edit, old, new in tried(random.Random(seed)):
            sizes.setdefault(edit.op, []).append(touched(old, new))

    assert set(sizes) == {kind.operation() for kind in EDIT_CLASSES}
    assert statistics.median(n for each in sizes.values() for n in each) <= 6
