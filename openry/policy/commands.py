"""`openry policy explain` and `openry policy test` as plain functions."""

# ruff: noqa: PTH100, PTH111
# Paths are compared as text here, many for each command.

from __future__ import annotations

import os
from pathlib import Path

from openry.policy.load import load_file, load_policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from openry.policy.policy import Policy


def explain(
    command: str | Sequence[Sequence[str]],
    policy: Policy | str | Path | Mapping[str, Any] = "moderate",
    *,
    cwd: str = "",
    workspace: str = "",
    home: str = "",
    path: str | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What the policy says of `command`, as the JSON that `openry policy explain` prints.

    Args:
        env: The variables that it would find; None means our own.

    Raises:
        NotFoundError: No policy has that name.
        BadFileError: The policy is not what it must be.
    """
    folder = os.path.abspath(cwd or ".")
    known = policy if hasattr(policy, "decide") else load_policy(policy)
    verdict = known.decide(
        command,
        cwd=folder,
        workspace=workspace or folder,
        home=home or os.path.expanduser("~"),
        path=path,
        inherited=os.environ if env is None else env,
    )
    return {
        "verdict": verdict.decision.word,
        "reason": verdict.reason,
        "parts": [
            {
                "argv": list(part.argv),
                "verdict": part.decision.word,
                "rule": part.rule,
                "reason": part.reason,
            }
            for part in verdict.parts
        ],
        "reads": list(verdict.reads),
        "writes": list(verdict.writes),
        "hosts": list(verdict.hosts),
        "instead": verdict.instead,
    }


def test_file(path: str | Path) -> str:
    """Load a policy file, with its own tests; one line that says how it stands.

    Raises:
        BadFileError: It is not what it must be; every problem with its line.
    """
    import yaml

    policy = load_file(Path(path))
    tests = (yaml.safe_load(Path(path).read_text("utf-8")) or {}).get("tests") or {}
    count = sum(len(some) if isinstance(some, list) else 1 for some in tests.values())
    rules = f"{len(policy.rules)} rule{'' if len(policy.rules) == 1 else 's'}"
    if not count:
        return f"{path}: {rules}; it has no tests of its own: add some under `tests`"
    return f"{path}: {rules}, {count} of {count} tests as they should be"


test_file.__test__ = False  # type: ignore[attr-defined]  # no test of pytest
