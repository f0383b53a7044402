"""The recorded policy cases, each with a small policy and what must become of the command."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from openry.policy import Decision, load_policy

SHARED = Path(__file__).resolve().parents[4] / "shared"
CASES = SHARED / "cases" / "policy.jsonl"
MAKE = SHARED / "tools" / "make_policy_fixture.sh"
pytestmark = pytest.mark.skipif(not CASES.is_file(), reason="the recorded cases are not here")


def in_our_form(small: dict[str, Any]) -> dict[str, Any]:
    """A small policy of the cases as one of ours."""
    rules = [our_rule(word, one) for word in ("allow", "deny") for one in small[word]]
    files = {"read": small["read"], "write": small["write"]}
    return {
        "default": small["default"],
        "commands": rules,
        "files": {key: [one for one in some if "$" not in one] for key, some in files.items()},
        "network": {"hosts": small["net"]},
    }


def our_rule(word: str, one: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(one, dict):
        return {word: one["cmd"], **{key: one[key] for key in one if key != "cmd"}}
    program, _, rest = one.partition(" ")
    if rest.endswith(".py"):
        return {word: program, "script": [rest]}
    return {word: program, **({"sub": [rest]} if rest and rest != "*" else {})}


@pytest.fixture(scope="module")
def fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    subprocess.run(["sh", str(MAKE), str(folder)], check=True, capture_output=True)
    return folder


def cases() -> list[dict[str, Any]]:
    if not CASES.is_file():
        return []
    every = map(json.loads, CASES.read_text("utf-8").splitlines())
    return [case for case in every if case["layer"] != "sandbox"]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_a_recorded_case_is_decided_as_it_must_be(case: dict[str, Any], fixture: Path) -> None:
    """What must be refused is; what is harmless is allowed.

    Those of which only the effect counts are tried in the sandbox: `test_hand_recorded`.
    """
    policy = load_policy(in_our_form(case["policy"]))

    verdict = policy.decide(
        case["cmd"],
        cwd=str(fixture / "ws"),
        workspace=str(fixture / "ws"),
        home=str(fixture / "home"),
        path=os.defpath,
    )

    allowed = verdict.decision is Decision.ALLOW
    assert allowed == (case["expected"] == "allow"), verdict.reason
