"""Inputs of type `ref`: what a step of another session ended with, by `SESSION/STEP`.

They are looked up once, as the instance is put down: retries and replays see the same, whatever
becomes of that session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openry.errors import NotFoundError, UsageError
from openry.ledger.instances import find_instance
from openry.ledger.journal import Transaction
from openry.ledger.replays import newest_completed
from openry.ledger.runs import payloads_of
from openry.ledger.session_rows import family
from openry.orchestrator.intake import Row
from openry.orchestrator.plan import read_plan
from openry.orchestrator.spec import InputType

_ANY = f'"type":"{InputType.REF.value}"'
#: Where a result says whose it is.
ORIGIN = "_ref"


def refer(connection: Transaction, row: Row) -> Row:
    """The row of an instance with the results of other sessions among its inputs.

    Raises:
        UsageError: With every session or step that is not there, or has not ended well.
    """
    if _ANY not in row["plan"]:
        return row
    plan = read_plan(row["plan"])
    specs = plan.composition.inputs if plan.composition else plan.workflow_at(0).inputs
    inputs, problems = dict(row["inputs"]), []
    for name, spec in specs.items():
        if spec.type is InputType.REF and isinstance(inputs.get(name), str):
            try:
                inputs[name] = _result(connection, inputs[name])
            except (NotFoundError, ValueError) as error:
                problems.append(f"input `{name}`: {error}")
    if problems:
        raise UsageError("; ".join(problems))
    return {**row, "inputs": inputs}


def _result(connection: Transaction, ref: str) -> Mapping[str, Any]:
    session, _, step = ref.partition("/")
    instance_id = newest_completed(connection, session) or find_instance(connection, session)
    known: dict[str, Mapping[str, Any]] = {}
    for one in family(connection, instance_id):
        known = {**payloads_of(connection, one), **known}  # its own steps before its children's
    if step not in known:
        has = ", ".join(f"`{each}`" for each in known) or "none"
        raise ValueError(
            f"session `{instance_id}` has no step `{step}` that is done (it has {has})"
        )
    return {**known[step], ORIGIN: f"{instance_id}/{step}"}
