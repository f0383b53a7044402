"""Runs workflows for the loop: on the real engine, in copies of the folder, judged by code."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loop import second as second_reading
from loop.evidence import CommandSeen, StepRun, Trial, cut
from loop.kit import Kit, new_folder
from loop.values import Acceptance, RuleData
from openry.clock import monotonic
from openry.errors import NotFoundError
from openry.forwarder import Hand
from openry.ledger.journal import Event
from openry.ledger.runs import runs_of
from openry.llm import ChatReply, ChatRequest, Model
from openry.llm.wrapper import Wrapper
from openry.models import RuleResult, RunContext, SandboxSpec
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.outcomes import InstanceOutcome, StepOutcome
from openry.orchestrator.spec import WorkflowSpec
from openry.orchestrator.validation import check_rules, parse_rules

if TYPE_CHECKING:
    from loop.models import Models

#: Seeds and attempts of one draw lie this far from those of the next.
_DRAW = 1000
#: States that the live view shows.
_SHOWN = frozenset({"in_progress", "done", "failed", "dropped", "cancelled", "overflow"})


class Interrupted(Exception):  # noqa: N818  # not an error: somebody asked to stop
    """The run was ended because somebody asked to stop."""


class Drawn(Wrapper):
    """A model whose answers differ from draw to draw, and are the same again within one."""

    def __init__(self, inner: Model, draw: Callable[[], int]) -> None:
        super().__init__(inner)
        self._draw = draw

    def complete(self, request: ChatRequest) -> ChatReply:
        shift = self._draw() * _DRAW
        if not shift:
            return self.inner.complete(request)
        moved = replace(request, seed=request.seed + shift, attempt=request.attempt + shift)
        return self.inner.complete(moved)


class EngineRunner:
    """Runs and replays for one session. Close it, or use it as a context manager.

    Args:
        base: Snapshot of the folder that every run begins with.
        work: Folder for the copies; nothing in it outlives a run.
        wanted: What a second reading of the task computes; judged as soft rules.
        strict: Whether they are hard ones instead.
        note_instance: Told of an instance before it runs, so that a killed one can be found.
    """

    def __init__(
        self,
        kit: Kit,
        session_id: str,
        base: str,
        acceptance: Acceptance,
        work: Path,
        models: Models,
        *,
        wanted: Mapping[str, bytes],
        on_step: Callable[[Mapping[str, Any]], None],
        should_stop: Callable[[], bool],
        note_instance: Callable[[str], None] = lambda instance_id: None,
        strict: bool = False,
    ) -> None:
        self.kit = kit
        self.session_id = session_id
        self.base = base
        self.acceptance = acceptance
        self.work = work
        self.models = models
        self.wanted = wanted
        self.strict = strict
        self._on_step = on_step
        self._should_stop = should_stop
        self._note_instance = note_instance
        self._draw = 0
        self._does: dict[str, str] = {}

    @cached_property
    def engine(self) -> Engine:
        return Engine(
            replace(self.kit.config, model=self.models.executor),
            ledger=self.kit.ledger,
            registry=self.kit.registry,
            open_model=lambda name: Drawn(self.models.open(name), lambda: self._draw),
        )

    def run(self, text: str, draw: int = 0) -> Trial:
        """Run a workflow in a fresh copy of the folder and judge what came of it.

        Args:
            draw: Which of several independent runs this is; models answer each of them anew.

        Raises:
            Interrupted: Somebody asked to stop.
        """
        began, spent, self._draw = monotonic(), self.models.spent(), draw
        with self.open_copy(self.base) as folder:
            workflow = _read(text)
            outcome = self._carried_out(workflow, folder)
            after = self.kit.store.create(folder).id
            payload = outcome.payload
            hard = self.judge(self.acceptance.hard, folder, payload)
            second = second_reading.judge(self.wanted, folder)
        tokens, cost = self.models.spent()
        return Trial(
            text=text,
            state=outcome.state,
            steps=(*self._steps(outcome, after), *_not_reached(workflow, outcome)),
            hard=(*hard, *(second if self.strict else ())),
            soft=() if self.strict else second,
            instance_id=outcome.instance_id,
            before=self.base,
            after=after,
            changed=self._changed(self.base, after),
            seconds=round(monotonic() - began, 3),
            tokens=tokens - spent[0],
            cost_usd=cost - spent[1],
        )

    def replay(
        self,
        text: str,
        step_id: str,
        snapshot: str,
        payload: Mapping[str, Any],
        draw: int = 0,
        referee: Sequence[RuleData] = (),
    ) -> StepRun:
        """Run one step alone in a copy of `snapshot`; `referee` judges it from outside."""
        self._draw = draw
        with self.open_copy(snapshot) as folder:
            outcome = self.engine.run_step(
                _read(text), step_id, workspace=folder, payload=payload, drafted=True
            )
            if self._should_stop():
                raise Interrupted
            judged = self.judge(referee, folder, outcome.payload) if referee else ()
            return replace(step_run(outcome), referee=tuple(judged))

    def rest(self, trial: Trial, step_id: str, draw: int) -> Trial:
        """Run a trial anew from one of its steps on, and judge what came of it.

        The trial that is given back has only the steps from there on, and no snapshots.

        Raises:
            UsageError: The files as they were before the step are not kept any more.
            Interrupted: Somebody asked to stop.
        """
        began, spent, self._draw = monotonic(), self.models.spent(), draw
        with new_folder(self.work) as folder:
            replay = self.engine.replay(trial.instance_id, step_id, workspace=folder)
            outcome = self._ended(str(replay.row["instance_id"]))
            hard = self.judge(self.acceptance.hard, folder, outcome.payload)
            second = second_reading.judge(self.wanted, folder) if self.strict else ()
        tokens, cost = self.models.spent()
        return Trial(
            text=trial.text,
            state=outcome.state,
            steps=tuple(map(step_run, outcome.steps)),
            hard=(*hard, *second),
            instance_id=outcome.instance_id,
            seconds=round(monotonic() - began, 3),
            tokens=tokens - spent[0],
            cost_usd=cost - spent[1],
        )

    def depends(
        self,
        text: str,
        step_id: str,
        snapshot: str,
        payload: Mapping[str, Any],
        paths: Sequence[str],
    ) -> bool:
        """Whether what a step writes to `paths` is another once its input is.

        Some other input must lead to another result, not only to none: a result that appears when
        the input is as expected, and then is a constant, does not follow from it.
        """

        def written(change: Callable[[bytes], bytes] | None) -> dict[str, bytes]:
            return self._written(text, step_id, snapshot, payload, paths, change)

        result = written(None)
        return not result or any(
            other and other != result for other in map(written, (_emptied, _doubled, _scrambled))
        )

    def _written(
        self,
        text: str,
        step_id: str,
        snapshot: str,
        payload: Mapping[str, Any],
        paths: Sequence[str],
        change: Callable[[bytes], bytes] | None,
    ) -> dict[str, bytes]:
        """What a step leaves at `paths`; empty files, and what it did not touch, do not count."""
        with self.open_copy(snapshot) as folder:
            if change is not None:
                _change_files(folder, change)
            before = _contents(folder, paths)
            self.engine.run_step(
                _read(text), step_id, workspace=folder, payload=payload, drafted=True
            )
            if self._should_stop():
                raise Interrupted
            after = _contents(folder, paths)
            return {path: data for path, data in after.items() if data != before.get(path)}

    def judge(
        self, rules: Sequence[RuleData], folder: Path, payload: Mapping[str, Any]
    ) -> Sequence[RuleResult]:
        """What rules say of a folder, which their commands can only read."""
        parsed, _ = parse_rules(list(rules))
        sandbox = SandboxSpec(backend="auto", read=(str(folder),))
        context = RunContext(workspace=str(folder), sandbox=sandbox)
        hand = Hand(self.kit.fast, context, self.kit.config)
        return check_rules(parsed, workspace=folder, payload=payload, run=hand.forward)

    def open_copy(self, snapshot: str) -> AbstractContextManager[Path]:
        """A throw-away copy of a snapshot."""
        return self.kit.open_copy(snapshot, self.work)

    def clear(self) -> None:
        """Remove what a killed process left in the folder for copies."""
        shutil.rmtree(self.work, ignore_errors=True)

    def close(self) -> None:
        if "engine" in self.__dict__:
            self.engine.close()
        self.clear()

    def _carried_out(self, workflow: WorkflowSpec, folder: Path) -> InstanceOutcome:
        self._does = {
            step.id: step.command or step.capability or step.description
            for step in workflow.sub_steps
        }
        instance_id = self.engine.submit(
            _watched(workflow), workspace=folder, drafted=True, session_id=self.session_id
        )
        return self._ended(instance_id)

    def _ended(self, instance_id: str) -> InstanceOutcome:
        """Run an instance that was put down to its end."""
        self._note_instance(instance_id)
        outcome = self.engine.run(instance_id, self._told, self._should_stop)
        self._note_instance("")
        if not outcome.final:
            self.cancel(instance_id)
            if self._should_stop():
                raise Interrupted
        return outcome

    def cancel(self, instance_id: str) -> None:
        """End an instance that nobody needs any more; one that has ended is left alone."""
        try:
            if self.engine.cancel(instance_id):
                self.engine.run(instance_id)
        except NotFoundError:
            return

    def _told(self, event: Event) -> None:
        if event.step_id and event.new in _SHOWN:
            does = self._does.get(event.step_id, "")
            told = {"step": event.step_id, "state": event.new, "reason": event.reason}
            self._on_step({**told, "does": does})

    def _steps(self, outcome: InstanceOutcome, after: str) -> tuple[StepRun, ...]:
        """The steps with the snapshot before each, and what each changed."""
        with self.kit.ledger.read() as connection:
            runs = runs_of(connection, outcome.instance_id)
        before: dict[str, str] = {}
        for run in runs:
            before.setdefault(run.step_id, run.snapshot_id)
        marks = [before.get(step.id, "") for step in outcome.steps]
        ends = iter([*[mark for mark in marks if mark][1:], after])
        return tuple(
            replace(
                step_run(step),
                snapshot=mark,
                changed=self._changed(mark, next(ends)) if mark else (),
            )
            for step, mark in zip(outcome.steps, marks, strict=True)
        )

    def _changed(self, before: str, after: str) -> tuple[str, ...]:
        if before == after:
            return ()
        return tuple(change.path for change in self.kit.store.diff(before, after))


def _contents(folder: Path, paths: Sequence[str]) -> dict[str, bytes]:
    places = {path: folder / path for path in paths}
    found = {path: place.read_bytes() for path, place in places.items() if place.is_file()}
    return {path: data for path, data in found.items() if data}


def _change_files(folder: Path, change: Callable[[bytes], bytes]) -> None:
    """Change every file, and put a stranger beside each, so that names are others too."""
    for place in [each for each in folder.rglob("*") if each.is_file() and not each.is_symlink()]:
        data = change(place.read_bytes())
        place.write_bytes(data)
        place.with_name(f"stranger-{place.name}").write_bytes(data)


def _emptied(data: bytes) -> bytes:
    return b""


def _doubled(data: bytes) -> bytes:
    """Every line but the first twice: a header stays one."""
    head, newline, rest = data.partition(b"\n")
    return b"".join([head, newline, rest, rest])


_DIGITS, _LETTERS = b"0123456789", b"abcdefghijklmnopqrstuvwxyz"
_OTHERS = bytes.maketrans(
    _DIGITS + _LETTERS + _LETTERS.upper(),
    b"1234567890" + b"nopqrstuvwxyzabcdefghijklm" + b"NOPQRSTUVWXYZABCDEFGHIJKLM",
)


def _scrambled(data: bytes) -> bytes:
    """Other digits and other letters in every line but the first."""
    head, newline, rest = data.partition(b"\n")
    return b"".join([head, newline, rest.translate(_OTHERS)])


def _not_reached(workflow: WorkflowSpec, outcome: InstanceOutcome) -> tuple[StepRun, ...]:
    """The steps that never had their turn."""
    ran = {step.id for step in outcome.steps}
    left = [step for step in workflow.sub_steps if step.id not in ran]
    return tuple(StepRun(step.id, step.kind.value, "") for step in left)


def step_run(step: StepOutcome) -> StepRun:
    """A step's outcome as evidence: outputs cut, a capability's own error class kept."""
    error = ((step.result or {}).get("error") or {}) if step.result else {}
    return StepRun(
        id=step.id,
        kind=step.kind,
        state="" if step.state == "pending" else step.state,
        reason=step.reason,
        attempts=step.attempts,
        error_class=str(error.get("error_class") or error.get("class") or ""),
        error=str(error.get("message") or ""),
        rules=step.rules,
        commands=tuple(
            CommandSeen(
                each.command,
                0 if each.exit_code is None else each.exit_code,
                cut(each.stdout),
                cut(each.stderr),
                each.ending,
            )
            for each in step.commands
        ),
        payload=dict(step.payload),
    )


@contextmanager
def closing(runner: EngineRunner) -> Iterator[EngineRunner]:
    """Close `runner` whatever happens."""
    try:
        yield runner
    finally:
        runner.close()


def _read(text: str) -> WorkflowSpec:
    workflow = load(text).required().workflow
    assert workflow is not None, "the loop drafts workflows, not compositions"
    return workflow


def _watched(workflow: WorkflowSpec) -> WorkflowSpec:
    """The same workflow with a snapshot before every step."""
    steps = tuple(s.model_copy(update={"snapshot": "before"}) for s in workflow.sub_steps)
    return workflow.model_copy(update={"sub_steps": steps})
