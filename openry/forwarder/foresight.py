"""What a call would come to, without making it: the verdict, the rule, and what it would touch."""

from __future__ import annotations

from openry.models.command import MANUAL_RUN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from openry.ledger.fast import FastLedger
    from openry.models.command import Command, RunContext
    from openry.policy import Policy


def foresee(
    command: Command,
    *,
    policy: Policy | None,
    context: RunContext,
    ledger: FastLedger,
    cwd: str,
    env: Mapping[str, str],
) -> dict[str, Any]:
    """`verdict`, `rule`, `reason`, `instead`, and the paths and hosts that the command names.

    A run that may start nothing more says so before any rule does. Where no policy is in force
    the line is read all the same, for what it touches.
    """
    from openry.forwarder.judging import verdict_of
    from openry.policy import load_policy

    known = policy or load_policy("permissive")
    seen = verdict_of(known, command, cwd=cwd, workspace=context.workspace, env=env)
    said = _allowed("", "no policy is in force")
    if policy is not None:
        rule = seen.rule or ", ".join(dict.fromkeys(part.rule for part in seen.parts))
        said = _said(seen.decision.word, rule, seen.reason, seen.instead)
    touched = {"reads": [*seen.reads], "writes": [*seen.writes], "hosts": [*seen.hosts]}
    return {**said, **_at_the_gate(context, ledger), **touched}


def _said(verdict: str, rule: str, reason: str, instead: str = "") -> dict[str, str]:
    return {"verdict": verdict, "rule": rule, "reason": reason, "instead": instead}


def _allowed(rule: str, reason: str) -> dict[str, str]:
    return _said("allow", rule, reason)


def _at_the_gate(context: RunContext, ledger: FastLedger) -> dict[str, str]:
    """What the ledger would say before any policy: nothing, or why nothing may be started."""
    if context.run_id == MANUAL_RUN:
        return {}
    from openry.ledger.gates import MAY_START, gate

    found = gate(context, ledger.run(context.run_id))
    if found is MAY_START:
        return {}
    reason = " ".join(found.text.split()).removeprefix("openry: not allowed: ")
    return _said(str(found.ending), "", reason)
