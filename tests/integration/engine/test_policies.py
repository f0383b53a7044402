"""Command policies of workflows: what holds when nothing is said, and what a person grants."""

from __future__ import annotations

from typing import Any

import pytest

from openry.errors import UsageError

ONE = "{{name: w, {policy} sub_steps: [{{id: a, kind: shell, command: {command!r}}}]}}"


def text(command: str, policy: str = "") -> str:
    return ONE.format(command=command, policy=f"command_policy: {policy}," if policy else "")


@pytest.mark.parametrize(
    ("policy", "command", "ok"),
    [
        ("", "ls | wc -l; mkdir -p b && touch b/a && rm -r b", True),
        ("", "git push origin main", False),
        ("", "sudo ls", False),
        ("moderate", "sudo ls", False),
        ("{default: allow}", "true; command -v sudo || true", True),
        ("strict", "touch a", False),
        ("permissive", "eval 'touch a'", True),
        ("permissive", "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", False),
    ],
)
def test_a_workflow_is_under_moderate_unless_it_says_otherwise(
    bench: Any, policy: str, command: str, ok: bool
) -> None:
    """What a person wrote into the workflow holds; when that is nothing, `moderate` does."""
    outcome = bench.run(text(command, policy))

    assert outcome.ok is ok, outcome.reason


def test_a_step_narrows_and_never_widens(bench: Any) -> None:
    """`permissive` in a step frees nothing that its workflow does not."""
    steps = "sub_steps: [{id: a, kind: shell, command: sudo ls, command_policy: permissive}]"

    assert not bench.run(f"{{name: w, {steps}}}").ok
    assert not bench.run(f"{{name: w, command_policy: strict, {steps}}}").ok


def test_a_policy_file_is_frozen_at_the_start(bench: Any, config: Any) -> None:
    """A name of OPENRY_HOME means what it meant when the instance was started."""
    folder = config.home / "policies"
    folder.mkdir()
    path = folder / "own.yaml"
    path.write_text("commands: [{allow: [ls, wc]}]\ntests: {allow: [ls]}\n")
    instance_id = bench.submit(text("touch made", "own"))
    path.write_text("default: allow\n")

    outcome = bench.engine.run(instance_id)

    assert not outcome.ok
    assert "no rule allows" in outcome.reason
    assert bench.run(text("touch made", "own")).ok


def test_a_policy_that_cannot_be_read_starts_nothing(bench: Any) -> None:
    """Every problem of every policy is told before the first step."""
    with pytest.raises(UsageError, match=r"no policy `nobodys`.*"):
        bench.submit(text("ls", "nobodys"))
    with pytest.raises(UsageError, match="`perhaps`"):
        bench.submit(text("ls", "{default: perhaps}"))


def test_a_yes_lets_a_retry_through(bench: Any) -> None:
    """A step that needs a yes fails; approved, the same command of its next attempt runs once."""
    policy = "{default: allow, commands: [{confirm: touch}]}"
    instance_id = bench.submit(text("touch made", policy))
    outcome = bench.engine.run(instance_id)
    (asked,) = bench.engine.approvals(instance_id)

    assert not outcome.ok
    assert asked.kind == "command"
    assert bench.engine.answer(instance_id, approve=True) == 1
    bench.engine.retry(instance_id)
    assert bench.engine.run(instance_id).ok
    assert (bench.workspace / "made").exists()


def test_the_folders_of_a_persons_sandbox_are_files_of_the_policy(bench: Any) -> None:
    """What a workflow shows its sandbox may be named in its commands."""
    steps = "sub_steps: [{id: a, kind: shell, command: cat /srv/none/a || true}]"

    assert bench.run(f"{{name: w, sandbox: {{read: [/srv/none]}}, {steps}}}").ok
    assert not bench.run(f"{{name: w, {steps}}}").ok
