"""One task from the order to the outcome: understand, plan, draft, rounds, deliver, save.

Every phase writes what it decided before the next begins. A session that is opened again reads
that, skips what is done, and goes on; what a model was paid to say it reads from the cassette.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from loop import deliver, leftovers, shelf
from loop.apply import data_of
from loop.assay import strength
from loop.contract import contract_of
from loop.deliver import Delivery, is_hidden
from loop.drafting import Drafted, Drafter, ways_out
from loop.evidence import Trial
from loop.finishing import made_up
from loop.journal import History, Journal, made_before
from loop.kit import Kit
from loop.memory import recall
from loop.order import STRUCTURED, Order
from loop.outcome import Finished
from loop.preflight import Estimate, estimate
from loop.provenance import confidence
from loop.rounds import Rounds, Stop, sums
from loop.runner import EngineRunner, Interrupted, closing
from loop.scope import declared_results, is_result, made_results
from loop.second import rules_of
from loop.understanding import Understood, seal, understand, unsealed
from loop.values import Strength
from loop.variant import USUAL, Variant
from loop.work import Emit, Work
from openry.clock import monotonic
from openry.errors import BudgetError, ModelError, OpenRYError, UsageError, WorkspaceChangedError
from openry.ledger.process import this_process

#: Asks a person yes or no; None when nobody is there.
Ask = Callable[[str], bool]
_FOR_A_PERSON = ("needs_human", "infra_unhealthy")


class Session:
    """One session. `run` takes it from wherever its journal stands to its outcome.

    Args:
        kit: What a process loads once.
        emit: Told of every phase, for the live view and `--json`.
        ask: Asked before the first run when a person is there.
        should_stop: True once somebody wants it to stop.
        variant: How it differs from the session that people get.
    """

    def __init__(
        self,
        kit: Kit,
        order: Order,
        session_id: str,
        *,
        emit: Emit,
        ask: Ask | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        journal: Journal | None = None,
        variant: Variant = USUAL,
    ) -> None:
        self.kit = kit
        self.order = order
        self.id = session_id
        self.emit = emit
        self.ask = ask
        self.should_stop = should_stop
        self.variant = variant
        self.journal = journal or Journal(kit.ledger, session_id)
        self.folder = kit.config.home / "loops" / session_id
        self._base = self.folder / "base"
        self._began = monotonic()
        self._earlier_s = 0.0
        self._models = kit.models(order, session_id)

    @property
    def calls(self) -> int:
        """How often a model was asked."""
        return self._models.budget.spent.calls

    # --- from the order to the outcome ------------------------------------------------------

    def run(self) -> Finished:
        """Go on until there is an outcome.

        Raises:
            OpenRYError: Nothing was begun, and the message says what is in the way.
        """
        bought = self._bought()
        if bought is not None and not bought.enough:
            return Finished("budget", f"budget_{bought.limit}", sentence=bought.sentence)
        try:
            return self._run()
        except OpenRYError as error:
            if self.journal.history() is None:
                shutil.rmtree(self.folder, ignore_errors=True)
                raise
            return self._failed(error)
        except (Interrupted, KeyboardInterrupt):
            known = self.journal.history()
            if known is not None and known.session["state"] == "ended":
                return self._recorded(known)  # it came when all was done
            if known is None:
                shutil.rmtree(self.folder, ignore_errors=True)
                sentence = "nothing was begun yet; give the task again"
                return Finished("interrupted", "interrupted", sentence=sentence)
            if self._time_is_over() and not self.should_stop():
                return self._finish("budget", "budget_time", "the time for this task is over")
            sentence = f"go on with `openry-loop resume {self.id}`"
            return self._finish("interrupted", "interrupted", sentence)

    def _bought(self) -> Estimate | None:
        """What the budget buys; None for a session that began already."""
        if self.journal.history() is not None or self.order.strategy != STRUCTURED:
            return None
        if self.order.budget_tokens is None and self.order.budget_usd is None:
            return None
        bought = estimate(self.order, self._models.planner(), self.kit.registry)
        self.emit("budget", {"rounds": bought.rounds, "sentence": bought.sentence})
        return bought

    def _failed(self, error: OpenRYError) -> Finished:
        """An error that the session itself knows how to end with; others go to the caller."""
        if isinstance(error, BudgetError):
            reason = f"budget_{error.limit}" if error.limit else "budget"
            return self._finish("budget", reason, str(error))
        if isinstance(error, ModelError):
            return self._finish("unusable", "planner_unusable", ways_out(error, self.order))
        if isinstance(error, WorkspaceChangedError):
            return self._finish("needs_human", "workspace_changed", str(error))
        sentence = f"{error}; then go on with `openry-loop resume {self.id}`"
        return self._finish("unusable", error.code, sentence, state="interrupted")

    def _run(self) -> Finished:
        history = self.journal.history()
        if history is not None and history.session["state"] == "ended":
            return self._recorded(history)
        self.emit("phase", {"phase": "understand"})
        if history is None:
            leftovers.mark(self.folder)
        snapshot = history.session["snapshot_id"] if history else self._snapshot()
        self.kit.store.restore(snapshot, self._base)
        sealed = unsealed(history.session) if history else None
        made = made_before(self.kit.ledger, self.order)
        understood = self.variant.understood(
            understand(self.kit, self.order, self._base, sealed, made)
        )
        if history is None:
            self._begin(understood, snapshot)
        else:
            self._earlier_s = sums(history.rounds)[2]
            self.journal.note(state="running", ended_at=None, **_this_process())
        with closing(self._runner(understood, snapshot)) as runner:
            runner.clear()
            self._end_killed(runner)
            self._show(understood, runner)
            drafter = Drafter(self.kit, self.order, self.id, self._models)
            drafted = self._draft(drafter, understood)
            work = self._work(understood, drafted, drafter)
            rounds = Rounds(
                work,
                runner,
                self.journal,
                self.emit,
                spent=self._models.spent,
                keeper=self.variant.gatekeeper,
            )
            if not self._known().rounds:
                rounds.draft(drafted.text)
            stop = rounds.go(self._known())
            return self._conclude(stop, understood, work, runner)

    # --- the beginning ---------------------------------------------------------------------

    def _snapshot(self) -> str:
        try:
            return self.kit.store.create(Path(self.order.directory)).id
        except OpenRYError as error:
            raise UsageError(str(error)) from error

    def _begin(self, understood: Understood, snapshot: str) -> None:
        acceptance = understood.acceptance
        stored = json.loads(json.dumps({"hard": acceptance.hard}))
        values = {
            "name": understood.name,
            "task": self.order.task,
            "directory": self.order.directory,
            "settings": self.order.to_data(),
            "acceptance": stored,
            "acceptance_hash": seal(stored),
            "acceptance_origin": acceptance.origin,
            "goals": list(understood.plan),
            "snapshot_id": snapshot,
            **_this_process(),
        }
        self.journal = self.journal.begin(self.kit.ledger, self.id, values)

    def _show(self, understood: Understood, runner: EngineRunner) -> None:
        event = understood.to_event()
        event["budget"] = {"tokens": self.order.budget_tokens, "usd": self.order.budget_usd}
        hard = understood.acceptance.hard
        if self.order.accept and all(one.passed for one in runner.judge(hard, self._base, {})):
            event["assumed"].append("all that is stated holds before anything is done")
        self.emit("plan", {"session": self.id, **event})
        if self.ask is not None and not self.ask("go on with this plan?"):
            raise KeyboardInterrupt

    def _draft(self, drafter: Drafter, understood: Understood) -> Drafted:
        drafted = drafter.draft(understood)
        if drafted.plan != understood.plan:
            self.journal.note(goals=list(drafted.plan))
            self.emit("plan", {"session": self.id, "plan": list(drafted.plan)})
        self.emit("draft", {"workflow": drafted.text})
        return drafted

    def _runner(self, understood: Understood, snapshot: str) -> EngineRunner:
        return EngineRunner(
            self.kit,
            self.id,
            snapshot,
            understood.acceptance,
            self.folder / "work",
            self._models,
            wanted=understood.wanted,
            on_step=lambda event: self.emit("step", event),
            should_stop=lambda: self.should_stop() or self._time_is_over(),
            note_instance=lambda instance: self.journal.note(data={"instance": instance}),
            strict=self.variant.soft == "hard",
        )

    def _end_killed(self, runner: EngineRunner) -> None:
        """Cancel the instance that a killed process of this session left behind."""
        left = (self._known().session["data"] or {}).get("instance")
        if left:
            runner.cancel(left)

    def _work(self, understood: Understood, drafted: Drafted, drafter: Drafter) -> Work:
        order = self.order
        structured = order.strategy == STRUCTURED
        second, strict = rules_of(understood.wanted), self.variant.soft == "hard"
        return Work(
            task=order.task,
            hard=(*understood.acceptance.hard, *(second if strict else ())),
            soft=() if strict else second,
            soft_counts=not order.source or understood.acceptance.origin == "derived",
            survey=understood.survey,
            registry=self.kit.registry,
            candidates=understood.reading.candidates,
            make=lambda one: self.kit.workflow_data(one, understood.name, order.task),
            results=drafted.results,
            drafted=not order.source and not structured,
            contract=lambda step: contract_of(step, self.kit.registry),
            ask=drafter.propose
            if any(not p.startswith("local/") for p in order.planners)
            else None,
            rungs=len(order.planners),
            remember=recall(self.kit.ledger, self.id, self._known().session["created_at"]),
            max_rounds=order.rounds,
            instances=order.instances,
            time_is_over=self._time_is_over,
        )

    def _time_is_over(self) -> bool:
        minutes = self.order.max_minutes
        used = self._earlier_s + monotonic() - self._began
        return minutes is not None and used >= minutes * 60

    # --- the end ---------------------------------------------------------------------------

    def _conclude(
        self, stop: Stop, understood: Understood, work: Work, runner: EngineRunner
    ) -> Finished:
        trial, text = stop.round.trial, stop.round.text
        if not trial.acceptable:
            return self._finish(_outcome(stop.reason), stop.reason, stop.sentence)
        passed, runs = stop.round.runs
        if 2 * passed < runs:
            sentence = f"only {passed} of {runs} runs passed: its model is not up to it"
            return self._finish("not_converged", "unreliable", sentence)
        if self.order.strategy == STRUCTURED and not self.order.source:
            wrong = made_up(trial, self.order.task, work.hard, runner)
            if wrong:
                sentence = f"nothing was delivered: {wrong}, so it is made up"
                return self._finish("needs_human", "made_up", sentence)
        delivery = self._delivery(trial, text, work)
        found = self._strength(stop, understood, delivery, runner)
        if found.disputed and work.soft_counts and self.variant.soft != "off":
            sentence = f"nothing was delivered: {found.disputed}; say it in other words"
            return self._finish("needs_human", "contradiction", sentence)
        if self.order.require_strong and not found.strong:
            why = "; ".join(found.weak_because) or "another result would pass as well"
            return self._finish("needs_human", "weak_acceptance", f"the acceptance is weak: {why}")
        self._deliver(trial, delivery)
        made = {*delivery.write, *delivery.unchanged} - set(understood.survey.names)
        path = shelf.save(
            self.kit.config.home / "workflows", self._known(), stop, found, self.order
        )
        return self._finish(
            "converged", stop.reason, workflow=str(path), delivery=delivery, made=sorted(made)
        )

    def _delivery(self, trial: Trial, text: str, work: Work) -> Delivery:
        """What of the run's copy belongs into the person's folder."""
        workflow, registry = data_of(text), self.kit.registry
        declared, words = declared_results(workflow, work, registry), f"{self.order.task}\n{text}"
        changes = self.kit.store.diff(trial.before, trial.after)
        delivery = deliver.plan(
            [change.path for change in changes if change.kind != "deleted"],
            [change.path for change in changes if change.kind == "deleted"],
            lambda path: is_result(path, declared, work.survey, words),
        )
        made = sorted(made_results(workflow, work, registry) - set(delivery.write))
        with self._copy(trial.after) as folder:
            return replace(
                delivery,
                write=tuple(path for path in delivery.write if (folder / path).is_file()),
                unchanged=tuple(p for p in made if not is_hidden(p) and (folder / p).is_file()),
            )

    def _strength(
        self, stop: Stop, understood: Understood, delivery: Delivery, runner: EngineRunner
    ) -> Strength:
        self.emit("phase", {"phase": "strength"})
        trial = stop.round.trial
        found = strength(
            self.kit,
            self.order.task,
            understood.survey,
            understood.acceptance,
            trial,
            data_of(stop.round.text),
            understood.reading.candidates,
            delivery,
            runner.judge,
            self.folder / "work",
        )
        self.journal.note(
            acceptance_strength="strong" if found.strong else "weak",
            weak_because=list(found.weak_because),
        )
        return found

    def _deliver(self, trial: Trial, delivery: Delivery) -> None:
        """Copy the results into the person's folder."""
        self.emit("phase", {"phase": "deliver"})
        target = Path(self.order.directory)
        with self._copy(trial.after) as source:
            deliver.deliver(delivery, source=source, base=self._base, target=target)
        told = {
            "written": delivery.write,
            "removed": delivery.remove,
            "unchanged": delivery.unchanged,
            "left_out": delivery.left_out,
        }
        self.emit("delivered", {key: list(paths) for key, paths in told.items()})

    def _copy(self, snapshot: str) -> AbstractContextManager[Path]:
        return self.kit.open_copy(snapshot, self.folder)

    def _finish(
        self,
        outcome: str,
        reason: str,
        sentence: str = "",
        *,
        workflow: str = "",
        delivery: Delivery | None = None,
        made: Sequence[str] = (),
        state: str = "",
    ) -> Finished:
        history = self.journal.history()
        if history is None:
            return Finished(outcome, reason, session=self.id, sentence=sentence)
        if not workflow and history.rounds:
            workflow = str(shelf.keep_best(self.folder, history))
        state = state or ("interrupted" if outcome == "interrupted" else "ended")
        tokens, cost = self._models.spent()
        delivered = delivery or Delivery(())
        target = Path(self.order.directory)
        self.journal.end(
            state,
            outcome=outcome,
            stop=reason,
            workflow_path=workflow,
            results=[str(target / path) for path in delivered.results],
            tokens=tokens,
            cost_usd=cost,
            seconds=round(self._earlier_s + monotonic() - self._began, 3),
            data={
                "sentence": sentence,
                "made": list(made),
                "removed": [str(target / path) for path in delivered.remove],
            },
        )
        if state == "ended":
            shutil.rmtree(self._base, ignore_errors=True)
        self.emit("end", {"outcome": outcome})
        return self._recorded(self._known())

    def _recorded(self, history: History) -> Finished:
        return Finished.from_row(history.session, confidence(history.current))

    def _known(self) -> History:
        history = self.journal.history()
        assert history is not None, "the session was begun"
        return history


def _this_process() -> dict[str, object]:
    """Columns that say who is at work on a session."""
    own = this_process()
    return {"pid": own.pid, "pid_started_at": own.started_at, "host": own.host}


def _outcome(reason: str) -> str:
    if reason in _FOR_A_PERSON:
        return "needs_human"
    return "budget" if reason.startswith("budget_") else "not_converged"
