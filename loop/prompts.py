"""G2: what a change does to the texts that a model reads.

They must render for every payload that is known, grow only so far, and hold nothing copied out of
the data of one case: such a prompt knows the answer instead of the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from loop.evidence import Trial
from loop.journal import Gate
from openry.errors import TemplateError
from openry.orchestrator.templates import render_text

#: Characters that a step's prompt may gain by one change, and have at most.
GROWTH_CHARS, MOST_CHARS = 2500, 16_000
#: Words in a row that two texts share only if one was copied.
COPIED_WORDS = 5
_WORD = re.compile(r"[^\W_]+(?:[._:/-]+[^\W_]+)*")
#: A pair of prompts is looked at where these differ.
_TEXTS = ("description", "prompt_blocks")


def check(
    parent: Mapping[str, Any],
    child: Mapping[str, Any],
    *,
    task: str,
    data: Iterable[str],
    trials: Sequence[Trial],
) -> Gate | None:
    """The gate's verdict; None where no prompt changes.

    Args:
        task: The person's words: what stands there may be said again.
        data: Texts of the case: heads of files, outputs of commands.
        trials: Runs whose payloads the new prompts must render with.
    """
    old = {step["id"]: step for step in parent.get("sub_steps") or []}
    changed = [
        step
        for step in child.get("sub_steps") or []
        if any(step.get(key) != old.get(step["id"], {}).get(key) for key in _TEXTS)
    ]
    if not changed:
        return None
    known = _grams(task)
    for step in old.values():
        known |= _grams(prompt_of(step))
    case = {gram for text in data for gram in _grams(text)}
    for step in changed:
        before = prompt_of(old.get(step["id"], {}))
        after = prompt_of(step)
        problems = [
            *_too_long(before, after),
            *_copied(after, known, case),
            *_unrendered(str(step["id"]), before, after, child, trials),
        ]
        if problems:
            return Gate("G2", False, f"step `{step['id']}`: {problems[0]}")
    return Gate("G2", True, f"renders, is bounded and copies nothing ({len(changed)} prompts)")


def prompt_of(step: Mapping[str, Any]) -> str:
    """All of a step's words that its model will read."""
    blocks = step.get("prompt_blocks") or []
    contents = [str(block.get("content") or "") for block in blocks]
    return "\n".join([*contents, str(step.get("description") or "")])


def _too_long(before: str, after: str) -> Iterator[str]:
    if len(after) > max(MOST_CHARS, len(before)):
        yield f"its prompt has {len(after):,} characters, at most {MOST_CHARS:,} are read well"
    elif len(after) - len(before) > GROWTH_CHARS:
        yield f"its prompt grows by {len(after) - len(before):,} characters at once"


def _copied(after: str, known: set[tuple[str, ...]], case: set[tuple[str, ...]]) -> Iterator[str]:
    for gram in sorted((_grams(after) & case) - known):
        yield f"`{' '.join(gram)}` is copied out of the data of this case"
        return


def _unrendered(
    step_id: str, before: str, after: str, workflow: Mapping[str, Any], trials: Sequence[Trial]
) -> Iterator[str]:
    """What cannot be filled in after the change, and could before."""
    for trial in trials:
        scope = _scope(trial, step_id, workflow)
        if scope is None or _trouble(before, scope):
            continue
        trouble = _trouble(after, scope)
        if trouble:
            yield f"its prompt cannot be filled in: {trouble}"
            return


def _trouble(text: str, scope: Mapping[str, Any]) -> str:
    try:
        render_text(text, scope)
    except TemplateError as error:
        return str(error)
    return ""


def _scope(trial: Trial, step_id: str, workflow: Mapping[str, Any]) -> dict[str, Any] | None:
    """What templates of a step saw in a run; None when the run never came to it."""
    ids = [step.id for step in trial.steps]
    if step_id not in ids or not trial.steps[ids.index(step_id)].ran:
        return None
    place = ids.index(step_id)
    payload = trial.steps[place - 1].payload if place else {}
    steps = {step.id: {"payload": dict(step.payload)} for step in trial.steps}
    run = {"attempt": 1, "id": ""}
    declared = workflow.get("inputs") or {}
    inputs = {name: (each or {}).get("default", "") for name, each in declared.items()}
    return {
        "payload": dict(payload), "steps": steps, "inputs": inputs, "env": {}, "run": run,
        "last_failure": "", "item": "",
    }  # fmt: skip


def _grams(text: str) -> set[tuple[str, ...]]:
    words = [word.lower() for word in _WORD.findall(text)]
    return {tuple(words[n : n + COPIED_WORDS]) for n in range(len(words) - COPIED_WORDS + 1)}
