"""Which files of the copy are results, and so may reach the person's folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from loop.alternatives import writes
from loop.deliver import TRASH
from loop.diagnose import rule_path
from loop.values import Survey
from loop.work import Work
from openry.capability.registry import Registry


def made_results(workflow: Mapping[str, Any], work: Work, registry: Registry) -> frozenset[str]:
    """Files that the draft's author named as results, or that the calls say they write."""
    made = {path for step in workflow.get("sub_steps") or [] for path in writes(step, registry)}
    return frozenset(path.removeprefix("./") for path in (*work.results, *made))


def declared_results(workflow: Mapping[str, Any], work: Work, registry: Registry) -> frozenset[str]:
    """Files that may change: those that are made, that the acceptance is about, or that go away."""
    declared = {rule_path(rule) for rule in work.hard}
    for step in workflow.get("sub_steps") or []:
        moved = _moved(step, registry)
        declared.update((*moved, TRASH) if moved else ())
    own = frozenset(path.removeprefix("./") for path in declared if path)
    return own | made_results(workflow, work, registry)


def is_result(path: str, declared: frozenset[str], survey: Survey, text: str) -> bool:
    """Whether a file that changed in the copy is one of the results.

    A file that was there before must be declared; a new one may also be named (itself, or a folder
    above it) in `text`, the task and the workflow.
    """
    above = [path, *(str(parent) for parent in PurePosixPath(path).parents if str(parent) != ".")]
    if any(name in declared or f"{name}/" in declared for name in above):
        return True
    return survey.get(path) is None and any(_named(name, text) for name in above)


def _moved(step: Mapping[str, Any], registry: Registry) -> tuple[str, ...]:
    """Inputs that the call takes away: it says that it moves or deletes."""
    name = str(step.get("capability") or "")
    if not re.match(r"(move|delete|rename)", name) or name not in registry:
        return ()
    args = step.get("args") or {}
    values = (args.get(each) for each in registry.get(name).with_role("input"))
    return tuple(value for value in values if isinstance(value, str))


def _named(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None
