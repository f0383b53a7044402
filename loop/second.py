"""The second reading's result, as a soft rule of its own: it never rejects, it only prefers.

Where the wording is understood in two independent ways, what the second one computes is compared
with what a run left. A difference makes the loop look at its other readings.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from loop.mentions import find_mentions
from loop.minded import minds_columns
from loop.reference import OpenQuestionError, expected, same
from loop.values import RuleData, Survey
from loop.wording import understand
from openry.models import RuleResult

#: More input than this is not computed twice.
MAX_BYTES = 8 * 1024**2
TYPE = "second_reading"


def second_reading(task: str, survey: Survey, folder: Path) -> Mapping[str, bytes]:
    """The result files that an independent reading computes; none where it is not sure."""
    if sum(file.bytes for file in survey.files) > MAX_BYTES:
        return {}
    mentions = find_mentions(task, survey)
    ops = understand(task, mentions)
    if not ops or not minds_columns(ops, task, mentions, survey):
        return {}
    names = [name for name in survey.names if (folder / name).is_file()]
    files = {name: (folder / name).read_bytes() for name in names}
    try:
        return expected(ops, files)
    except OpenQuestionError:
        return {}


def rules_of(wanted: Mapping[str, bytes]) -> tuple[RuleData, ...]:
    """One rule a result file, for the diagnosis; no workflow file can hold it."""
    return tuple({"type": TYPE, "path": name} for name in wanted)


def judge(wanted: Mapping[str, bytes], folder: Path) -> tuple[RuleResult, ...]:
    """Whether `folder` holds what the second reading computed, a verdict a file."""
    return tuple(_verdict(name, content, folder / name) for name, content in wanted.items())


def _verdict(name: str, content: bytes, path: Path) -> RuleResult:
    wording = f"{TYPE} path={name}"
    if not path.is_file():
        return RuleResult(wording, False, message=f"`{name}` is missing")
    if same(path.read_bytes(), content):
        return RuleResult(wording, True)
    return RuleResult(wording, False, message=f"a second reading of the task gives another {name}")
