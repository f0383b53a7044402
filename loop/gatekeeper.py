"""Takes one proposal through the gates, cheapest first, and stops at the first that refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from loop import gates, pairs, prompts
from loop.apply import check_text, data_of
from loop.contract import reaches_out
from loop.diagnose import rule_path, rule_type, signature
from loop.edits import Proposal, heirs
from loop.evidence import StepRun, Trial
from loop.guards import objections
from loop.journal import Gate, History
from loop.values import RuleData
from loop.work import Runner, Work


class Gatekeeper:
    """G0 to G4, and the whole run that decides; certification and pruning come later."""

    #: Whether the first proposal that passes is taken, though another may be better still.
    takes_first = False

    def __init__(self, work: Work, runner: Runner) -> None:
        self.work = work
        self.runner = runner

    def judge(
        self, proposal: Proposal, parent: Trial, before: str, text: str, history: History
    ) -> tuple[tuple[Gate, ...], Trial | None]:
        """What the gates say of `text` in the place of `before`, and its whole run if any.

        What only a person may accept is read (G0), and not run.
        """
        old, new = data_of(before), data_of(text)
        judged = not (proposal.redraft or proposal.needs_person)
        against = self._objections(old, new, proposal) if judged else ()
        known = "" if proposal.redraft else before
        found = [gates.static(check_text(text, self.work.registry, known), against)]
        if not found[-1].passed or proposal.needs_person:
            return tuple(found), None
        by_model = proposal.origin.startswith("planner")
        for gate in self._without_whole_runs(old, new, parent, text, history, by_model=by_model):
            found.append(gate)
            if not gate.passed:
                return tuple(found), None
        admitted = self._by_pairs(new) and any(gate.name == "G3" for gate in found)
        runs = self._whole_runs(parent, text)
        found.append(pairs.protect(parent, runs))
        if found[-1].passed and not admitted:
            found.append(gates.whole(parent, _middle(runs)))
        return tuple(found), _middle(runs)

    def _by_pairs(self, workflow: Mapping[str, Any]) -> bool:
        """Whether dice have a part in it, and the order allows to throw them more than once."""
        models = any(step.get("kind", "agent") == "agent" for step in workflow["sub_steps"])
        return models and self.work.instances > 1

    def _without_whole_runs(
        self,
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        parent: Trial,
        text: str,
        history: History,
        *,
        by_model: bool,
    ) -> Iterator[Gate]:
        trials = [each.trial for each in history.rounds]
        trials += [each.trial for each in history.attempts if each.trial is not None]
        changed = gates.changes(old, new)
        checks = gates.offline(changed, trials, self.runner.judge, self.runner.open_copy)
        yield from [checks] if checks else []
        read = prompts.check(old, new, task=self.work.task, data=self._case(trials), trials=trials)
        yield from [read] if read else []
        alone = self._alone(changed, parent, new, text)
        yield from [alone] if alone else []
        made_up = self._made_up(changed, parent, new, text) if by_model else None
        yield from [made_up] if made_up else []

    def _alone(
        self, changed: Sequence[gates.Changed], parent: Trial, child: Mapping[str, Any], text: str
    ) -> Gate | None:
        """G3 for one step that acts otherwise; other changes go to the whole run.

        A step that only got another check would be judged by just that check.
        """
        acting = [each.step for each in changed if each.acts]
        ids = [step["id"] for step in child["sub_steps"]]
        if len(acting) != 1 or set(ids) != {step.id for step in parent.steps}:
            return None
        old = parent.step(acting[0])
        if old is None or not old.snapshot:
            return None
        payload = _payload_before(parent, old)
        if self._by_pairs(child) and "agent" in (old.kind, _kind(child, old.id)):
            return pairs.walk(self._replays(parent, old, text, payload))
        new = self.runner.replay(text, old.id, old.snapshot, payload)
        return gates.replay(old, new, _step_signature)

    def _made_up(
        self, changed: Sequence[gates.Changed], parent: Trial, child: Mapping[str, Any], text: str
    ) -> Gate | None:
        """G3 for what a model wrote: a result that stays the same without any input is made up."""
        for each in changed:
            old = parent.step(each.step)
            if not each.acts or old is None or not old.snapshot:
                continue
            judged = tuple(filter(None, map(rule_path, self.work.hard)))
            payload = _payload_before(parent, old)
            if _kind(child, old.id) != "agent" and not self.runner.depends(
                text, old.id, old.snapshot, payload, judged
            ):
                note = "another input never gives another result: it is made up"
                return Gate("G3", False, f"step `{old.id}`: {note}")
        return None

    def _replays(
        self, parent: Trial, old: StepRun, text: str, payload: Mapping[str, Any]
    ) -> Iterator[pairs.Pair]:
        """Parent and child from the same snapshot, judged by the same rules from outside."""
        steps = data_of(parent.text)["sub_steps"]
        own = next((step.get("validation") or [] for step in steps if step["id"] == old.id), [])
        outside = [rule for rule in self.work.hard if rule_path(rule) in old.changed]
        referee: list[RuleData] = [*own, *outside]

        def one(workflow: str, draw: int) -> StepRun:
            return self.runner.replay(workflow, old.id, old.snapshot, payload, draw, referee)

        return pairs.until_settled((one(parent.text, draw), one(text, draw)) for draw in count(1))

    def _whole_runs(self, parent: Trial, text: str) -> list[Trial]:
        """One run, or three where dice have a part in it and the order allows more than one."""
        first = self.runner.run(text)
        if self.work.instances < pairs.RUNS or not first.asks_models:
            return [first]
        return [first, *(self.runner.run(text, draw) for draw in range(1, pairs.RUNS))]

    def _case(self, trials: Sequence[Trial]) -> list[str]:
        """Texts that belong to this one case: no prompt may hold a piece of them."""
        heads = [file.head for file in self.work.survey.files]
        commands = [each for trial in trials for step in trial.steps for each in step.commands]
        return [*heads, *(text for each in commands for text in (each.stdout, each.stderr))]

    def _objections(
        self, parent: Mapping[str, Any], child: Mapping[str, Any], proposal: Proposal
    ) -> tuple[str, ...]:
        return objections(
            parent,
            child,
            task=self.work.task,
            results=self.work.results,
            contract=self.work.contract,
            heirs=heirs(proposal.edits),
            reaches_out=lambda name: reaches_out(name, self.work.registry),
        )


def _middle(runs: Sequence[Trial]) -> Trial:
    """The run in the middle by its score: what two of three runs reach."""
    return sorted(runs, key=lambda trial: trial.score)[len(runs) // 2]


def _kind(workflow: Mapping[str, Any], step_id: str) -> str:
    step = next(each for each in workflow["sub_steps"] if each["id"] == step_id)
    return str(step.get("kind", "agent"))


def _payload_before(trial: Trial, step: StepRun) -> Mapping[str, Any]:
    """The payload that `step` was given: the one of the step before it."""
    place = trial.steps.index(step)
    return trial.steps[place - 1].payload if place else {}


def _step_signature(step: StepRun) -> str:
    command = step.commands[-1] if step.commands else None
    words = step.error or (command.stderr if command else "") or step.reason
    rule = rule_type(step.broken_rules[0]) if step.broken_rules else ""
    return signature(step.id, rule, step.error_class, "", None, words)
