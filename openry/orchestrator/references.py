"""Inputs of type `ref`: what a step of another session ended with, by `SESSION/STEP`.

They are looked up once, as the instance is put down: retries and replays see the same, whatever
becomes of that session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openry.errors import NotFoundError, UsageError
from openry.ledger.instances import Instance, get_instance
from openry.ledger.journal import Transaction
from openry.ledger.replays import newest_completed, newest_of
from openry.ledger.runs import payloads_of, runs_of
from openry.ledger.session_rows import family
from openry.models import RunState
from openry.orchestrator.intake import Row
from openry.orchestrator.plan import Plan, read_plan
from openry.orchestrator.spec import InputType
from openry.session.lifecycle import EXPORTED, STATES, root_of
from openry.texts import did_you_mean

_ANY = f'"type":"{InputType.REF.value}"'
#: Where a result says whose it is.
ORIGIN = "_ref"
_S = RunState
_STATES = {
    _S.QUEUED: "waits for its turn",
    _S.IN_PROGRESS: "is running",
    _S.WAITING_APPROVAL: "waits for a person",
    _S.FAILED: "failed",
    _S.CANCELLED: "was cancelled",
    _S.SKIPPED: "was skipped",
    _S.DROPPED: "was given up",
}


def refer(connection: Transaction, row: Row) -> Row:
    """The row of an instance with the results of other sessions among its inputs.

    Raises:
        UsageError: With every session or step that is not there, or has not ended well.
    """
    if _ANY not in row["plan"]:
        return row
    plan = read_plan(row["plan"])
    specs = plan.composition.inputs if plan.composition else plan.workflow_at(0).inputs
    inputs, problems = dict(row["inputs"]), list(_never_looked_up(plan))
    for name, spec in specs.items():
        if spec.type is InputType.REF and isinstance(inputs.get(name), str):
            try:
                inputs[name] = _result(connection, inputs[name])
            except (NotFoundError, ValueError) as error:
                problems.append(f"input `{name}`: {error}")
    if problems:
        raise UsageError("; ".join(problems))
    return {**row, "inputs": inputs}


def _never_looked_up(plan: Plan) -> Iterator[str]:
    """References that only a big step names, which begins long after the others were looked up."""
    for big_step in plan.big_steps if plan.composition else ():
        for name, spec in plan.workflows[big_step.ref].inputs.items():
            given = big_step.inputs.get(name, spec.default)
            if spec.type is InputType.REF and isinstance(given, str) and "{{" not in given:
                yield (
                    f"big step `{big_step.ref}`: input `{name}` is looked up when the composition"
                    f" is started: give that an input of type `ref`, here `{name}: '{{{{ inputs."
                    f"{name} }}}}'`"
                )


def _result(connection: Transaction, ref: str) -> Mapping[str, Any]:
    session, _, step = ref.partition("/")
    instance_id = newest_completed(connection, session) or _session(connection, session)
    ids = family(connection, instance_id)
    known: dict[str, Mapping[str, Any]] = {}
    for one in ids:
        known = {**payloads_of(connection, one), **known}  # its own steps before its children's
    if step not in known:
        raise ValueError(_why_not(connection, ids, step))
    return {**known[step], ORIGIN: f"{instance_id}/{step}"}


def _session(connection: Transaction, name: str) -> str:
    """The session to which the instance belongs whose id begins like this.

    Raises:
        NotFoundError: With what there is instead.
    """
    try:
        return root_of(connection, name).instance_id
    except NotFoundError as error:
        newest = get_instance(connection, newest_of(connection, name))
        if newest is None:
            raise
        raise NotFoundError(
            f"no session of workflow `{name}` has ended well: the newest, `{newest.instance_id}`,"
            f" {_stands(newest)}"
        ) from error


def _why_not(connection: Transaction, ids: Sequence[str], step: str) -> str:
    """Why a session has no result of `step`."""
    instances = [one for one in (get_instance(connection, each) for each in ids) if one]
    root = instances[0]
    steps = _steps_of(instances)
    if step not in steps:
        has = ", ".join(f"`{each}`" for each in steps)
        hint = did_you_mean(step, steps) or f"it has {has}"
        return f"session `{root.instance_id}` has no step `{step}` ({hint})"
    runs = [run for each in ids for run in runs_of(connection, each)]
    of_step = [run for run in runs if run.step_id == step and not run.item]
    if of_step:
        last = of_step[-1]
        said = _STATES.get(RunState(last.status), "is under way")
        said += f" ({last.reason})" if last.reason else ""
    else:
        said = "was never reached" if root.ended_at else "was not reached yet"
    said = f"step `{step}` of session `{root.instance_id}` {said}, so it has no result"
    if root.reason.startswith(EXPORTED):
        return f"{said} here: the session was {root.reason} and goes on there"
    return f"{said}: the session {_stands(root)}"


def _stands(instance: Instance) -> str:
    state, outcome = STATES[instance.state]
    return f"{state} ({outcome})" if outcome else f"is {state}"


def _steps_of(instances: Sequence[Instance]) -> list[str]:
    plans = [read_plan(instance.plan) for instance in instances]
    workflows = [spec for plan in plans for spec in plan.workflows.values()]
    return list(dict.fromkeys(step.id for spec in workflows for step in spec.sub_steps))
