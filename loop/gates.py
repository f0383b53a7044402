"""What a change must show before it is taken, cheapest first.

G0 reads it, G1 tries its checks on outputs that are already there, G3 runs the changed step alone
from the recorded snapshot, and a whole run decides. Each gate answers with a value; the session
stops at the first that refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loop.diagnose import rule_path, said
from loop.evidence import StepRun, Trial
from loop.journal import Gate
from loop.values import RuleData
from openry.models import RuleResult

#: Judges rules in a workspace, given a payload.
Judge = Callable[[Sequence[RuleData], Path, Mapping[str, Any]], Sequence[RuleResult]]
#: A throw-away copy of a snapshot.
OpenCopy = Callable[[str], AbstractContextManager[Path]]
#: Bad outputs that every check must see through; the others are counted.
_MUST_REJECT = ("missing", "empty")


@dataclass(frozen=True, slots=True)
class Changed:
    """What is new in one step of a child workflow."""

    step: str
    rules: tuple[RuleData, ...]
    acts: bool


def changes(parent: Mapping[str, Any], child: Mapping[str, Any]) -> tuple[Changed, ...]:
    """What each step of `child` has that `parent` does not, for the steps that both have."""
    old = {step["id"]: step for step in parent.get("sub_steps") or []}
    found = []
    for step in child.get("sub_steps") or []:
        before = old.get(step["id"])
        if before is None or before == step:
            continue
        known = before.get("validation") or []
        rules = tuple(rule for rule in step.get("validation") or [] if rule not in known)
        rest = [{k: v for k, v in each.items() if k != "validation"} for each in (before, step)]
        found.append(Changed(step["id"], rules, rest[0] != rest[1]))
    return tuple(found)


def static(problems: Sequence[str], objections: Sequence[str]) -> Gate:
    """G0: the child loads and lints, and no guard objects."""
    said_all = (*problems, *objections)
    return Gate("G0", not said_all, "; ".join(said_all[:5]) or "loads, lints, no guard objects")


def offline(
    changed: Sequence[Changed], trials: Sequence[Trial], judge: Judge, open_copy: OpenCopy
) -> Gate | None:
    """G1: new checks, tried on every output that was logged and on bad outputs made from them.

    A check must reject no good output, and see through a missing and an empty one. Where no bad
    output was logged it cannot show more; the gate is then indecisive. None: nothing to try.
    """
    checks = [(each.step, rule) for each in changed if not each.acts for rule in each.rules]
    if not checks:
        return None
    good = [trial for trial in trials if trial.acceptable]
    bad = [trial for trial in trials if not trial.acceptable and trial.after]
    notes = []
    rejected_bad = 0
    for step_id, rule in checks:
        for trial in good:
            if not _holds(rule, step_id, trial, judge, open_copy):
                return Gate("G1", False, f"`{rule.get('type')}` rejects a result that is good")
        rejected_bad += sum(not _holds(rule, step_id, trial, judge, open_copy) for trial in bad)
        path = rule_path(rule)
        source = (good or bad)[0] if good or bad else None
        if not path or source is None:
            continue
        survived = _survivors(rule, path, source, judge, open_copy)
        missed = [name for name in survived if name in _MUST_REJECT]
        if missed:
            return Gate("G1", False, f"`{rule.get('type')}` lets a {missed[0]} `{path}` pass")
        notes.append(f"`{rule.get('type')}` sees through {5 - len(survived)} of 5 bad outputs")
    if bad and not rejected_bad:
        return Gate("G1", False, "adds nothing: it rejects no output that was wrong")
    what = f"rejects {rejected_bad} of {len(bad)} wrong outputs" if bad else "no wrong output known"
    return Gate("G1", True, "; ".join([what, *notes]), indecisive=not bad)


def replay(parent: StepRun | None, child: StepRun, signature_of: Callable[[StepRun], str]) -> Gate:
    """G3: the changed step alone, from the snapshot in which the old one ran.

    One replay is enough for a step without a model; with a model it is evidence of one draw.
    """
    one_draw = child.kind == "agent"
    if child.passed:
        before = "passed" if parent and parent.passed else "failed"
        note = f"passes alone, where the old step {before}"
        return Gate("G3", True, f"{note} (one draw of its model)" if one_draw else note, one_draw)
    what = "; ".join(map(said, child.broken_rules)) or child.error or child.reason or child.state
    same = parent is not None and signature_of(parent) == signature_of(child)
    return Gate("G3", False, f"fails {'in the same way' if same else 'alone'}: {what}"[:300])


def whole(parent: Trial, child: Trial) -> Gate:
    """The whole run: better than before. That nothing breaks is the protect set's business."""
    if child.score > parent.score:
        return Gate("run", True, _better(parent, child))
    failing = [said(rule) for rule in child.hard if not rule.passed]
    stuck = next((step for step in child.steps if step.ran and not step.passed), None)
    what = "; ".join(failing) or (f"step `{stuck.id}` fails" if stuck else "no better than before")
    return Gate("run", False, f"no better: {what}"[:300])


def _better(parent: Trial, child: Trial) -> str:
    held, before = (sum(r.passed for r in t.hard) for t in (child, parent))
    total = len(child.hard)
    done, all_steps = sum(s.passed for s in child.steps), len(child.steps)
    return f"{done} of {all_steps} steps pass, {held} of {total} hard rules hold (before: {before})"


def _holds(rule: RuleData, step_id: str, trial: Trial, judge: Judge, open_copy: OpenCopy) -> bool:
    step = trial.step(step_id)
    payload = step.payload if step else {}
    with open_copy(trial.after) as folder:
        return all(verdict.passed for verdict in judge([rule], folder, payload))


def _survivors(
    rule: RuleData, path: str, trial: Trial, judge: Judge, open_copy: OpenCopy
) -> list[str]:
    """Names of the bad outputs that `rule` lets pass."""
    survived = []
    with open_copy(trial.after) as folder:
        place = folder / path
        content = place.read_bytes() if place.is_file() else b"a\nb\n"
        for name, bad in _bad_outputs(rule, path, content, folder, trial):
            if bad is None:
                place.unlink(missing_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(bad)
            if all(verdict.passed for verdict in judge([rule], folder, {})):
                survived.append(name)
    return survived


def _bad_outputs(
    rule: RuleData, path: str, content: bytes, folder: Path, trial: Trial
) -> Iterator[tuple[str, bytes | None]]:
    """The built-in bad set: nothing done, nothing in it, half of it, an input, an echo."""
    lines = content.splitlines(keepends=True)
    inputs = (
        each
        for each in sorted(folder.iterdir())
        if each.is_file() and each.name not in trial.changed and each.name != path
    )
    stale = next(inputs, None)
    echo = next((str(rule[key]) for key in ("contains", "value", "regex") if key in rule), "")
    yield "missing", None
    yield "empty", b""
    yield "truncated", b"".join(lines[: len(lines) // 2])
    yield "stale", stale.read_bytes() if stale else b"stale\n"
    yield "echo", f"{echo}\n".encode()
