"""An instance once more from one of its steps: a new one, linked to the old, on kept files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from openry.errors import UsageError
from openry.ledger.instances import Instance
from openry.ledger.journal import Transaction, seconds_between
from openry.ledger.records import snapshots_of
from openry.ledger.runs import Run, runs_of
from openry.models import RunState
from openry.orchestrator.course import new_id
from openry.orchestrator.intake import Row, own_folder
from openry.orchestrator.plan import Plan, read_plan, sha256_of
from openry.orchestrator.recorded import recorded_name, replies_of
from openry.orchestrator.room import Room
from openry.orchestrator.spec import AgentSpec, Kind
from openry.texts import bracketed, did_you_mean


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay would do.

    Attributes:
        steps: Steps of its workflow from there on, in the order of the file.
        snapshot_id: The files it begins with; empty for an empty folder.
        row: The new instance, not put down yet.
        kept: How many steps before that are not done again.
        saved_s: How long these took then, with their failed attempts.
    """

    step_id: str
    steps: tuple[str, ...]
    snapshot_id: str
    row: Row
    kept: int
    saved_s: float


def plan_replay(
    room: Room,
    connection: Transaction,
    instance: Instance,
    from_step: str,
    *,
    model: str = "",
    recorded: bool = False,
    mended: Row | None = None,
) -> Replay:
    """What a replay of an instance from one of its steps would be; the first without a name.

    Args:
        mended: An instance's row with the plan to follow instead of its own.

    Raises:
        UsageError: It has no such step, nobody kept the files as they were before it, what an
            agent said is not in the ledger, or `mended` has no such step.
    """
    plan = read_plan(mended["plan"]) if mended else room.plan(instance)
    runs = [run for run in runs_of(connection, instance.instance_id) if not run.item]
    first = _first_run(plan, runs, from_step, instance)
    place = _place_of(plan, first)
    ids = [step.id for step in plan.workflow_at(place).sub_steps]
    if first.step_id not in ids:
        raise UsageError(f"the mended `{plan.name}` has no step `{first.step_id}` to begin at")
    before = runs[: runs.index(first)]
    done = [run for run in before if run.status == RunState.DONE]
    payload = dict(done[-1].payload if done else plan.payload)
    steps = {run.step_id: {"payload": dict(run.payload)} for run in done}
    snapshot_id = first.snapshot_id or _kept_for(connection, instance, first, ids)
    if not snapshot_id and (before or Path(instance.workspace) != _own(room, instance)):
        raise UsageError(
            f"nobody kept the files as they were before step `{first.step_id}`: give it"
            " `snapshot: before`, or its workflow `max_retries`, and run it again"
        )
    if recorded:
        _refuse_unrecorded(room, runs[runs.index(first) :])
        model = recorded_name(instance.instance_id, first.run_id)
    if model:
        plan = _acted_by(plan, model)
    row = _row(room, instance, replace(plan, steps={**plan.steps, **steps}), payload)
    big = [each for each in instance.data.get("big", ()) if each["place"] != place]
    row["data"] = {"place": place, "entry": first.step_id, "big": big, "entry_payload": payload}
    row |= {"replay_of": instance.instance_id, "replay_from_step": first.step_id}
    if mended:
        row |= {name: mended[name] for name in ("source_file", "inputs")}
        row["drafted"] = instance.drafted or mended["drafted"]
    following = tuple(ids[ids.index(first.step_id) :])
    kept = len({(run.big_step, run.step_id) for run in done})
    return Replay(first.step_id, following, snapshot_id, row, kept, sum(map(_took_s, before)))


def refuse_other(plan: Plan, instance: Instance) -> None:
    """Whether a mended workflow is the one that an instance was started with.

    Raises:
        UsageError: It is another one.
    """
    if (plan.kind, plan.name) != (instance.kind, instance.workflow):
        raise UsageError(
            f"`{plan.name}` is no mended `{instance.workflow}`: start it by itself, or give the"
            " file that the instance came from"
        )


def _took_s(run: Run) -> float:
    if run.started_at is None or run.ended_at is None:
        return 0.0
    return max(0.0, seconds_between(run.started_at, run.ended_at))


def _acted_by(plan: Plan, model: str) -> Plan:
    """The plan with one model in all its agent steps."""

    def by(agent: AgentSpec | None) -> AgentSpec:
        return (agent or AgentSpec()).model_copy(update={"model": model})

    workflows = {}
    for name, spec in plan.workflows.items():
        steps = [
            step.model_copy(update={"model_ladder": (), "agent": step.agent and by(step.agent)})
            for step in spec.sub_steps
        ]
        update = {"agent": by(spec.agent), "sub_steps": type(spec.sub_steps)(steps)}
        workflows[name] = spec.model_copy(update=update)
    return replace(plan, workflows=workflows)


def _refuse_unrecorded(room: Room, runs: Sequence[Run]) -> None:
    """Only turns of the built-in agent stand in the ledger."""
    for run in runs:
        if run.kind != Kind.AGENT or run.status != RunState.DONE or "items" in (run.result or {}):
            continue
        if not replies_of(room.ledger, run):
            raise UsageError(
                f"what the agent of step `{run.step_id}` said is not in the ledger: a program of"
                " its own did it, or an older OpenRY; replay it with `--model`, or as it is"
            )


def _own(room: Room, instance: Instance) -> Path:
    return own_folder(room.config, instance.instance_id)


def _first_run(plan: Plan, runs: Sequence[Run], from_step: str, instance: Instance) -> Run:
    """The run at which the step was first entered."""
    if not runs:
        raise UsageError(f"instance `{instance.instance_id}` has not begun: nothing to replay")
    if not from_step:
        return runs[0]
    found = next((run for run in runs if run.step_id == from_step), None)
    if found is None:
        hint = bracketed(did_you_mean(from_step, [run.step_id for run in runs]))
        raise UsageError(f"instance `{instance.instance_id}` never ran a step `{from_step}`{hint}")
    return found


def _place_of(plan: Plan, run: Run) -> int:
    refs = [step.ref for step in plan.big_steps]
    return refs.index(run.big_step) if run.big_step in refs else 0


def _kept_for(connection: Transaction, instance: Instance, run: Run, ids: Sequence[str]) -> str:
    """The files of the big step's start serve its first step as well."""
    if run.step_id != ids[0]:
        return ""
    wanted = f"big step, visit {run.data['visit']}"
    found = snapshots_of(connection, instance.instance_id)
    return next((each.snapshot_id for each in found if each.reason == wanted), "")


def _row(room: Room, instance: Instance, plan: Plan, payload: Mapping[str, Any]) -> Row:
    instance_id, text = new_id(), plan.to_text()
    kept = ("workflow", "kind", "source_file", "inputs", "drafted")
    return {
        **{name: getattr(instance, name) for name in kept},
        "instance_id": instance_id,
        "plan": text,
        "plan_hash": sha256_of(text),
        "payload": dict(payload),
        "workspace": str(own_folder(room.config, instance_id)),
    }
