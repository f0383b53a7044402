"""How instances, steps and problems look: as JSON with a schema version, and in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from openry.ledger.instances import Instance
from openry.ledger.journal import Event
from openry.ledger.replays import Links
from openry.models import Problem
from openry.orchestrator.outcomes import InstanceOutcome, StepOutcome
from openry.texts import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

SCHEMA_VERSION = 1
_ALONE = Links()
_MARKS = {
    "done": ("✔", "green"),
    "validated": ("✔", "green"),
    "completed": ("✔", "green"),
    "in_progress": ("▶", "cyan"),
    "running": ("▶", "cyan"),
    "queued": ("…", "cyan"),
    "pending": ("·", "dim"),
    "waiting_approval": ("?", "yellow"),
    "suspended": ("?", "yellow"),
    "skipped": ("-", "dim"),
    "resumed": ("↻", "yellow"),
    "lost": ("↻", "yellow"),
    "cancelled": ("■", "red"),
}
_BAD = ("✘", "red")
_LINE_CHARS = 200


# --- JSON ---------------------------------------------------------------------------------


def status_json(outcome: InstanceOutcome, links: Links = _ALONE) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "instance": outcome.instance_id,
        "state": outcome.state,
        "workflow": outcome.workflow,
        "reason": outcome.reason,
        "workspace": outcome.workspace,
        "plan": outcome.plan_hash,
        "created_at": outcome.created_at,
        "ended_at": outcome.ended_at,
        "head": outcome.head,
        **({"replay_of": links.replay_of, "from": links.from_step} if links.replay_of else {}),
        **({"replayed_by": list(links.replayed_by)} if links.replayed_by else {}),
        "steps": [step_json(step) for step in outcome.steps],
    }


def step_json(step: StepOutcome) -> dict[str, Any]:
    return {
        "id": step.id,
        "state": step.state,
        "attempts": step.attempts,
        "run_id": step.run_id,
        "payload": dict(step.payload),
        "big_step": step.big_step,
        "reason": step.reason,
        **({"expected": step.expected, "items": _items_json(step)} if step.expected else {}),
    }


def _items_json(step: StepOutcome) -> list[dict[str, Any]]:
    return [
        {
            "item": each.item,
            "state": each.state,
            "attempts": each.attempts,
            "run_id": each.run_id,
            "reason": each.reason,
        }
        for each in step.items
    ]


def inspect_json(step: StepOutcome) -> dict[str, Any]:
    """A step with every rule and command of its latest run."""
    rules = [
        {
            "rule": rule.rule,
            "passed": rule.passed,
            "expected": rule.expected,
            "actual": rule.actual,
            "message": rule.message,
        }
        for rule in step.rules
    ]
    commands = [
        {
            "seq": each.seq,
            "command": each.command,
            "exit_code": each.exit_code,
            "ending": each.ending,
            "stdout": each.stdout,
            "stderr": each.stderr,
            "duration_ms": each.duration_ms,
            "started_at": each.started_at,
        }
        for each in step.commands
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        **step_json(step),
        "started_at": step.started_at,
        "ended_at": step.ended_at,
        "rules": rules,
        "commands": commands,
    }


def list_json(instances: Iterable[Instance]) -> dict[str, Any]:
    rows = [
        {
            "instance": each.instance_id,
            "state": each.state,
            "workflow": each.workflow,
            "current_step": each.current_step,
            "reason": each.reason,
            "created_at": each.created_at,
            "ended_at": each.ended_at,
        }
        for each in instances
    ]
    return {"schema_version": SCHEMA_VERSION, "instances": rows}


def problems_json(problems: Sequence[Problem], *, ok: bool) -> dict[str, Any]:
    rows = [
        {
            "file": each.file,
            "line": each.line,
            "message": each.message,
            "hint": each.hint,
            "level": each.level,
        }
        for each in problems
    ]
    return {"schema_version": SCHEMA_VERSION, "ok": ok, "problems": rows}


def event_json(event: Event) -> dict[str, Any]:
    return {
        "at": event.at,
        "step": event.step_id,
        "run_id": event.run_id,
        "kind": event.kind,
        "old": event.old,
        "new": event.new,
        "reason": event.reason,
        "actor": event.actor,
        "data": dict(event.data),
    }


# --- text ---------------------------------------------------------------------------------


def state_text(state: str) -> Text:
    from rich.text import Text

    mark, colour = _MARKS.get(state, _BAD)
    return Text(f"{mark} {state}", style=colour)


def instance_tree(outcome: InstanceOutcome, links: Links = _ALONE) -> RenderableType:
    """An instance with its steps, grouped by big step where there are several."""
    from rich.text import Text
    from rich.tree import Tree

    head = Text.assemble((outcome.workflow, "bold"), f"  {outcome.instance_id}  ")
    tree = Tree(head + state_text(outcome.state))
    if links.replay_of:
        tree.add(Text(f"replays {links.replay_of} from `{links.from_step}`", style="dim"))
    if links.replayed_by:
        tree.add(Text(f"replayed by {', '.join(links.replayed_by)}", style="dim"))
    branch, big_step = tree, ""
    for step in outcome.steps:
        if step.big_step != big_step:
            big_step = step.big_step
            branch = tree.add(Text(big_step, style="bold")) if big_step else tree
        branch.add(_step_line(step))
    if outcome.reason:
        tree.add(Text(_one_line(outcome.reason), style="red" if outcome.final else "yellow"))
    return tree


def _step_line(step: StepOutcome) -> Text:
    from rich.text import Text

    mark, colour = _MARKS.get(step.state, _BAD)
    line = Text.assemble((f"{mark} ", colour), step.id, (f"  {step.state}", "dim"))
    if step.expected:
        done = sum(each.state == "done" for each in step.items)
        line.append(f"  {done} of {step.expected} items", style="dim")
    if step.attempts > 1:
        line.append(f"  attempt {step.attempts}", style="yellow")
    took = _took(step.started_at, step.ended_at)
    if took:
        line.append(f"  {took}", style="dim")
    if step.reason and step.state != "done":
        line.append(f"  {_one_line(step.reason)}", style="red")
    return line


def instance_table(instances: Iterable[Instance]) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("instance", "workflow", "state", "step", "started", "reason"):
        table.add_column(column, overflow="fold" if column == "reason" else "ellipsis")
    for each in instances:
        table.add_row(
            each.instance_id,
            each.workflow,
            state_text(each.state),
            each.current_step,
            (each.started_at or each.created_at)[:19].replace("T", " "),
            _one_line(each.reason),
        )
    return table


def event_line(event: Event) -> str:
    """One event as a line of a log."""
    where = event.step_id or "instance"
    if "item" in event.data:
        where += f"[{event.data['item']}]"
    what = event.new or event.kind
    reason = f": {_one_line(event.reason)}" if event.reason else ""
    return f"{event.at}  {where}  {what}{reason}"


def _took(started_at: str | None, ended_at: str | None) -> str:
    if not started_at or not ended_at:
        return ""
    seconds = (
        datetime.fromisoformat(ended_at) - datetime.fromisoformat(started_at)
    ).total_seconds()
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _one_line(text: str) -> str:
    return one_line(text, _LINE_CHARS)
